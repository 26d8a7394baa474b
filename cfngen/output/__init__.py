"""From templates to files: rendering, comparing, and writing all of them or none."""

from cfngen.output.compare import Difference, differences
from cfngen.output.directory import OutputError
from cfngen.output.render import render
from cfngen.output.write import WriteReport, write

__all__ = ["Difference", "OutputError", "WriteReport", "differences", "render", "write"]
