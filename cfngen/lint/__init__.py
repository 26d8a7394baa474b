"""Linting templates: cfn-lint in process, with rules of cfngen's own and a cache of results.

`lint` is the interface; `lint_process` loads cfn-lint for it ahead of time. Importing this package is cheap: cfn-lint,
which takes more than a second to import, is loaded only for templates whose result is not in the cache.
"""

from cfngen.lint.cache import cache_directory
from cfngen.lint.findings import LintError, LintFinding, LintUnavailableError
from cfngen.lint.run import lint, lint_process

__all__ = ["LintError", "LintFinding", "LintUnavailableError", "cache_directory", "lint", "lint_process"]
