"""Findings about templates, and the error that is raised for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from cfngen.errors import CfngenError
from cfngen.text import pluralize

Severity = Literal["error", "warning", "informational"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "informational")
_NOUNS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "informational": "informational finding"}

# Maximum length of a message in characters. cfn-lint quotes whole objects and whole enumerations: one wrong instance
# type makes a message of 22 kB.
MESSAGE_LENGTH = 300


@dataclass(frozen=True)
class LintFinding:
    """A problem that lint found in a template.

    Attributes:
        rule: id of the rule, e.g. `E3012`; E9xxx, W9xxx and I9xxx are rules of cfngen (`cfngen.lint.rules`).
        severity: `error`, `warning` or `informational`.
        message: the problem, in at most `MESSAGE_LENGTH` characters.
        path: keys and list indices that lead from the top of the template to the problem, e.g. ("Resources", "Vpc",
            "Properties", …).
        document: name of the document, which contains the template.
        module: the module that built the document; empty for a template that was read from a file.
        further: short description of the rule, and the URL of its documentation.
        line: line in the document's source text, counted from 1; 0 if the document was not read from a file.
        column: column in that line, counted from 1; 0 if there is no line.
    """

    rule: str
    severity: Severity
    message: str
    path: tuple[str | int, ...]
    document: str
    module: str
    further: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        location = f"{self.document}:{self.line}:{self.column}" if self.line else self.document
        lines = [f"{location}: {self.rule} ({self.severity}) {self.message}"]
        if self.path:
            lines.append(f"    at     {'.'.join(map(str, self.path))}")
        if self.module:
            lines.append(f"    made by {self.module}")
        if self.further:
            lines.append(f"    see    {self.further}")
        return "\n".join(lines)


class LintUnavailableError(CfngenError):
    """Lint could not be run, so it is unknown whether the templates have problems."""

    code = "lint-unavailable"


class LintError(CfngenError):
    """Templates do not pass lint; nothing was written.

    Attributes:
        findings: all findings, ordered by document.
    """

    code = "lint-findings"

    MAX_SHOWN = 20

    def __init__(self, findings: Sequence[LintFinding]) -> None:
        self.findings = tuple(findings)
        super().__init__(
            self._text(),
            hint="Nothing was written. A template that cfngen made and refuses is a fault of cfngen, unless your own "
            "values (names, ids, policies, extra configuration) are what the message is about."
            if any(finding.module for finding in findings)
            else "",
        )

    def _text(self) -> str:
        """Return the error message: the number of findings by severity, and the first `MAX_SHOWN` findings."""
        counts = {severity: sum(finding.severity == severity for finding in self.findings) for severity in SEVERITIES}
        total = ", ".join(pluralize(count, _NOUNS[severity]) for severity, count in counts.items() if count)
        lines = [f"the templates do not pass lint ({total}):"]
        shown = self.findings[: self.MAX_SHOWN]
        for _, findings in groupby(shown, key=lambda finding: finding.document):
            lines += ["", *map(str, findings)]
        if len(self.findings) > len(shown):
            lines += ["", f"and {len(self.findings) - len(shown)} more"]
        return "\n".join(lines)


def shorten(message: str, length: int = MESSAGE_LENGTH) -> str:
    """Return a message on one line of at most `length` characters; "…" replaces the middle of a longer message."""
    line = " ".join(message.split())
    if len(line) <= length:
        return line
    end_length = length // 4
    start_length = length - end_length - len(" … ")
    return f"{line[:start_length].rstrip()} … {line[-end_length:].lstrip()}"
