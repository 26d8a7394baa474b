"""Templates of earlier versions are those of the tests of templates."""

from __future__ import annotations

import sys
from pathlib import Path

# Only the directory of a test file is on the path.
sys.path.insert(0, str(Path(__file__).parents[1] / "aws"))
