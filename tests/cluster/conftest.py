"""Logical ids and clusters are those of the golden cases; types of keys are read as for clusters by chance."""

from __future__ import annotations

import sys
from pathlib import Path

# Only the directory of a test file is on the path.
for beside in ("golden", "soak"):
    sys.path.insert(0, str(Path(__file__).parents[1] / beside))
