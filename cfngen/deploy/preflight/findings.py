"""What checks before a change find: plain data, which the command line shows as text or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.messages.message import Message, Notice
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, Hint, suggest
from cfngen.text import pluralize

READING = "reading"
"""Name of the check that a finding is of if something could not be read."""
ASK_FOR_PERMISSIONS = "ask for the permissions of an operator (docs/deploy/deploy.md)"


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

    def __str__(self) -> str:
        return f"{self.key}: {self.text}" if self.key else self.text

    @property
    def notice(self) -> Notice:
        """The finding as a message of its own, for what keeps nobody from deploying."""
        return Notice(str(self), f"{self.remedy}." if self.remedy else "")


class FindingsError(CfngenError):
    """What a check refuses before anything is changed."""

    advice: ClassVar[Hint]
    separator: ClassVar[str] = "; "

    def __init__(self, problems: tuple[Finding, ...], hint: Hint = "") -> None:
        super().__init__(self.separator.join(map(str, problems)), hint=hint or self.advice)
        self.problems = problems


def refusal(key: str, text: str, *, check: str = "") -> Finding:
    """Return a finding whose text says itself what to do."""
    return Finding(Severity.PROBLEM, text, key, check=check)


def unread(what: str, reason: object, key: str = "") -> Finding:
    """Return a finding that AWS let something not be read, so that nobody takes it for checked.

    Args:
        what: what was to be read, e.g. `the list of subnets`.
        reason: the error.
        key: the key in the cluster file that names it.
    """
    text = f"{what} cannot be read, so what depends on it was not checked: {reason}"
    return Finding(Severity.WARNING, text, key, ASK_FOR_PERMISSIONS, check=READING)


def judge(what: str, key: str, find_problem: Callable[[], str]) -> Iterator[Finding]:
    """Yield a refusal with the problem of something, if it has one, or that it cannot be read."""
    try:
        with translate_aws_errors():
            text = find_problem()
    except AwsError as error:
        yield unread(what, error, key)
    else:
        if text:
            yield refusal(key, text)


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
    """The existing network is not as the cluster needs it; the problems were reported before."""

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
