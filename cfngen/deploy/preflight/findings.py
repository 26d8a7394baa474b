"""What the check of a network has found: plain data, which the command line shows as text or as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from cfngen.deploy.messages.message import Message
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import pluralize


class Severity(StrEnum):
    """How serious a finding is."""

    PROBLEM = "problem"
    WARNING = "warning"
    OK = "ok"


@dataclass(frozen=True)
class Finding:
    """One thing that the check of a network has found.

    Attributes:
        severity: `problem` (the cluster would not come up, or not work), `warning`, or `ok` (nothing was found).
        text: one sentence, without a full stop.
        key: the key in the cluster file, e.g. `network.subnets[0].id`, or a deployment's parameter that overrides it,
            e.g. `--parameter SubnetAId`; empty if there is none.
        remedy: what to do, as a sentence without a capital letter; empty for `ok`.
        commands: commands of the AWS CLI that do it; words in capitals are to be replaced.
        check: name of the check in the table of checks, e.g. `routes`.
    """

    severity: Severity
    text: str
    key: str = ""
    remedy: str = ""
    commands: tuple[str, ...] = ()
    check: str = ""


def problem(key: str, text: str, remedy: str, *commands: str) -> Finding:
    """Return a finding that keeps a cluster from being created or from working."""
    return Finding(Severity.PROBLEM, text, key, remedy, commands)


def warning(key: str, text: str, remedy: str, *commands: str) -> Finding:
    """Return a finding that the user should know, though the cluster works."""
    return Finding(Severity.WARNING, text, key, remedy, commands)


@dataclass(frozen=True)
class NetworkCheck(Message):
    """The findings about the network that a cluster is to be created in.

    Attributes:
        cluster: the cluster's name.
        region: the region.
        vpc: id of the existing VPC; empty if the cluster file names none.
        findings: problems first, then warnings, then what is in order.
    """

    kind: ClassVar[str] = "networkCheck"
    cluster: str
    region: str
    vpc: str
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that keep the cluster from being created or from working."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.PROBLEM)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that the user should know."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.WARNING)


class NetworkProblemsError(CfngenError):
    """The existing network is not as the cluster needs it; the problems were reported before.

    Attributes:
        check: the findings.
    """

    code = "network-problems"

    def __init__(self, check: NetworkCheck, *, is_update: bool = False) -> None:
        keys = dict.fromkeys(finding.key for finding in check.problems)
        outcome = "nothing was changed" if is_update else "nothing was created"
        super().__init__(
            f"{outcome}: the network of {check.vpc} has {pluralize(len(check.problems), 'problem')} "
            f"({', '.join(keys)})",
            hint=CommandText(
                "correct the network or the cluster file as the findings say; ",
                suggest("check network"),
                " looks again. --skip-network-check deploys without this check.",
            ),
        )
        self.check = check
