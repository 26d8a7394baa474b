"""From templates to files: rendering, comparing, and writing all of them or none."""

from cfngen.output.compare import Difference, differences
from cfngen.output.directory import OutputError
from cfngen.output.readme import README, marked
from cfngen.output.render import render
from cfngen.output.write import WriteReport, write
from cfngen.output.yaml_form import to_yaml

__all__ = ["README", "Difference", "OutputError", "WriteReport", "differences", "marked", "render", "to_yaml", "write"]
