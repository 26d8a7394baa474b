"""Runs cfn-lint with the same result on every machine; only this module and the rules import cfn-lint.

cfn-lint reads its configuration from the command line, from `.cfnlintrc` files in the current and the home directory,
and from AWS_REGION and AWS_DEFAULT_REGION. It reads resource schemas from `~/.cache` if newer ones were downloaded. To
get the same result on every machine:

- an empty configuration file is passed, so that cfn-lint looks for no other file;
- the region is always passed, so that the environment is not read;
- the resource schemas come with the installed cfn-lint;
- the current directory is a temporary work directory. (cfn-lint reads the outputs of a nested template only if its
  TemplateURL is inside the current directory.)
"""

from __future__ import annotations

import glob
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfngen.lint.cache import Verdict
from cfngen.lint.findings import LintUnavailableError, shorten
from cfngen.lint.speed import speed_up, speed_up_rules
from cfngen.lint.views import View

if TYPE_CHECKING:
    from cfnlint.match import Match

RULES = Path(__file__).with_name("rules")
"""Directory of cfngen's own rules."""
_CFN_LINT_RULES = "https://github.com/aws-cloudformation/cfn-lint/blob/main/docs/rules.md"

# Rules of cfn-lint that are ignored. Findings of all others count, also warnings and informational findings.
IGNORED = (
    # "Use Fn::Sub instead of Fn::Join": UserData uses Fn::Join on purpose, since Fn::Sub would take some characters of
    # packed text for references.
    "I1022",
    # The limit of a template passed as a string, 51,200 bytes. The console uploads a file to S3 and `cfngen deploy`
    # does the same, so S3's limit counts for both (E9002). The rule is for users who call the API themselves.
    "I9003",
    # "Approaching" a limit: a template with more than nine tenths of the bytes, parameters, resources or outputs that
    # CloudFormation accepts. Its size follows from the cluster file, and it can be deployed; errors beyond the limits
    # are E1002, E2010, E3010 and E6010.
    "I1002",
    "I2010",
    "I3010",
    "I6010",
)


class Linter:
    """cfn-lint with its rules and cfngen's rules loaded, for one region at a time.

    The constructor imports cfn-lint (about 0.9 s) and loads the rules (about 0.5 s).

    Args:
        workplace: an empty work directory. The caller makes it the current directory before calling `judge`, and
            removes it afterwards.

    Raises:
        LintUnavailableError: cfn-lint does not know the region.
    """

    def __init__(self, region: str, workplace: Path) -> None:
        from cfnlint.runner import Runner

        self.workplace = workplace
        empty_configuration = workplace / "empty.cfnlintrc"
        empty_configuration.write_text("{}\n", encoding="utf-8")
        self._arguments = ["--config-file", str(empty_configuration), "--append-rules", str(RULES)]
        _use_bundled_schemas()
        speed_up()
        self.choose_region(region)
        self._rules = Runner(self._config_of_data).rules
        speed_up_rules(self._rules)

    def choose_region(self, region: str) -> None:
        """Judge templates for another region from now on.

        Raises:
            LintUnavailableError: cfn-lint does not know the region.
        """
        from cfnlint.helpers import REGIONS

        if region not in REGIONS:
            raise LintUnavailableError(
                f"the installed cfn-lint does not know the region {region}, so templates for it cannot be judged",
                hint="Upgrade cfn-lint, if the name is right.",
            )
        self._region = region
        self._config_of_data = self._config()

    def judge(self, view: View) -> Verdict:
        """Lint a view; return the findings of cfn-lint's and cfngen's rules, without duplicates, in a stable order.

        Raises:
            LintUnavailableError: cfn-lint crashes on a template that the user provided as a file (`view.text`).
        """
        if view.text is None:
            return self._judge(view)
        try:
            return self._judge(view)
        except Exception as error:
            raise LintUnavailableError(
                f"{view.document}: cannot be judged: cfn-lint itself fails on it ({type(error).__name__}: {error})",
                hint="Run `cfn-lint` on the file; if it fails too, its maintainers will want to know.",
            ) from error

    def _judge(self, view: View) -> Verdict:
        """Return the findings as `judge` does, without special treatment of errors in cfn-lint."""
        # cfn-lint takes ten times as long to lint a file as to lint data, so files are linted only if linting the data
        # gave findings, or if the template nests others. With a file, cfn-lint has line numbers; without them it
        # reports only the first of several findings with the same message.
        from cfnlint.runner.template import run_template_by_data

        if not view.nested:
            first_match = next(iter(run_template_by_data(view.body, self._config_of_data, self._rules)), None)
            if first_match is None:
                return []
        findings = [_finding(match, has_text=view.text is not None) for match in self._matches_in_files(view)]
        serialized_findings = {
            json.dumps(finding, sort_keys=True)
            for finding in findings
            if view.is_relevant(finding["rule"], finding["path"])
        }
        # Converting to JSON and back also replaces cfn-lint's own string classes in paths by plain strings: objects of
        # these classes cannot be passed to another process.
        return [json.loads(text) for text in sorted(serialized_findings)]

    def _config(self, templates: Sequence[Path] = ()) -> Any:
        from cfnlint.config import ConfigMixIn

        return ConfigMixIn(
            self._arguments,
            regions=[self._region],
            include_checks=["I"],
            ignore_checks=list(IGNORED),
            templates=[glob.escape(str(template)) for template in templates],
        )

    def _matches_in_files(self, view: View) -> Iterator[Match]:
        """Write a view to files in a new directory, and yield what cfn-lint reports about its template."""
        from cfnlint.runner.template import run_template_by_file_paths

        directory = Path(tempfile.mkdtemp(dir=self.workplace))
        for name, body in view.nested.items():
            (directory / f"{name}.json").write_text(json.dumps(body), encoding="utf-8")
        # No nested template can have this name, since it has a space.
        template = directory / "the template.json"
        text = json.dumps(view.body, indent=1) if view.text is None else view.text
        template.write_text(text, encoding="utf-8")
        matches: Iterator[Match] = run_template_by_file_paths(self._config([template]), self._rules)
        return matches


def _use_bundled_schemas() -> None:
    """Make cfn-lint use the resource schemas that it was installed with, not newer ones that the user downloaded."""
    import cfnlint
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    bundled = Path(cfnlint.__file__).parent / "data" / "schemas"
    if (bundled / "providers").is_dir():
        # The manager set its directories when it was imported and has no method to change them; its constructor takes
        # them, and other modules already have a reference to this object.
        type(PROVIDER_SCHEMA_MANAGER).__init__(
            PROVIDER_SCHEMA_MANAGER, providers_dir=bundled / "providers", resources_dir=bundled / "resources"
        )


def _finding(match: Match, *, has_text: bool) -> dict[str, Any]:
    """Return cfn-lint's match as a finding in JSON form.

    Args:
        has_text: whether the template was read from a text; only then line and column mean something to the user.
    """
    rule = match.rule
    is_own_rule = rule.id[1:2] == "9"
    url = rule.source_url if is_own_rule else f"{_CFN_LINT_RULES}#{rule.id}"
    return {
        "rule": rule.id,
        "severity": rule.severity,
        "message": shorten(match.message),
        "path": list(getattr(match, "path", ())),
        "further": f"{rule.shortdesc}: {url}",
        "line": match.linenumber if has_text else 0,
        "column": match.columnnumber if has_text else 0,
    }
