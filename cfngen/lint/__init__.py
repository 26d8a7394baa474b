"""Judging templates before anybody sees them: cfn-lint in process, rules of our own, and a cache of verdicts.

`lint` is the whole interface. Importing this package costs next to nothing: cfn-lint, which takes more than a second
to import, is loaded only when a template is judged that was not judged before.
"""

from cfngen.lint.cache import cache_directory
from cfngen.lint.findings import Finding, LintError
from cfngen.lint.run import lint

__all__ = ["Finding", "LintError", "cache_directory", "lint"]
