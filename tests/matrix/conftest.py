"""The matrix lives its clusters with the accounts and operators of the other tests of deployment."""

from __future__ import annotations

import sys
from pathlib import Path

for part in ("aws", "deploy", "soak"):
    sys.path.insert(0, str(Path(__file__).parents[1] / part))
