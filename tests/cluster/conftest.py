"""Logical ids are those of the golden cases."""

from __future__ import annotations

import sys
from pathlib import Path

# Only the directory of a test file is on the path.
sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
