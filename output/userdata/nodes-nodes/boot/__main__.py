"""`python3 -m boot [TASK]`: what systemd starts."""

import sys

from .runner import main

sys.exit(main(sys.argv[1:]))
