"""`python3 -m boot [TASK]`: what systemd starts."""

import sys

from .sequence import main

sys.exit(main(sys.argv[1:]))
