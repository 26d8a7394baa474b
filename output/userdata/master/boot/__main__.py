"""`python3 -m boot [renew]`: what systemd starts."""

import sys

from .sequence import main

sys.exit(main(sys.argv[1:]))
