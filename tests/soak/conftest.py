"""The accounts and operators that clusters by chance live with are those of the other tests of deployment."""

from __future__ import annotations

import sys
from pathlib import Path

for part in ("aws", "deploy"):
    sys.path.insert(0, str(Path(__file__).parents[1] / part))
