"""An account for rehearsals, as the tests of deployment have it."""

from __future__ import annotations

import sys
from pathlib import Path

for beside in ("aws", "deploy", "cli"):
    sys.path.insert(0, str(Path(__file__).parents[1] / beside))
