"""The cluster file that a stack keeps, and how another one differs from it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import ClassVar

from cfngen.cluster.file.kept_file import KeyChange, key_changes
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.stacks import StackView, read_template
from cfngen.deploy.messages.message import Message
from cfngen.errors import CfngenError
from cfngen.templates.evaluation import EvaluatedTemplate
from cfngen.templates.immutable_settings import recorded_settings
from cfngen.templates.kept_file import kept_file


class NoKeptFileError(CfngenError):
    """The stack keeps no cluster file: an earlier version of cfngen has deployed it, or the file was too large."""

    code = "cluster-file-not-kept"


@dataclass(frozen=True)
class DeployedFile(Message):
    """The cluster file as it was deployed.

    Attributes:
        stack: name of the root stack.
        cluster: the cluster's name.
        content: the file's text.
    """

    kind: ClassVar[str] = "deployedFile"
    stack: str
    cluster: str
    content: str


def read_deployed_file(account: Account, stack: StackView) -> DeployedFile:
    """Return the cluster file that a root stack keeps.

    Raises:
        NoKeptFileError: it keeps none; the error says what else the stack knows of its cluster.
        AwsError: the template cannot be read.
    """
    with translate_aws_errors():
        template = read_template(account, stack.id)
    cluster = str(template.get("Metadata", {}).get("cfngen", {}).get("cluster", ""))
    if content := kept_file(template):
        return DeployedFile(stack.name, cluster, content.decode())
    known = {"name": cluster, "region": account.region, **recorded_settings(template)}
    facts = [f"{key}: {value}" for key, value in known.items() if value]
    raise NoKeptFileError(
        f"the stack {stack.name} keeps no cluster file; its template records {'; '.join(facts)}",
        hint="write the file again as docs/operate/operations.md describes; the next deployment keeps it.",
    )


@dataclass(frozen=True)
class FileDifference(Message):
    """How the cluster file differs from the deployed one.

    Attributes:
        stack: name of the root stack.
        keys: the keys with other values; none if only comments and layout differ.
        diff: the lines of a unified diff, from the deployed file to the cluster file; none if they are the same.
    """

    kind: ClassVar[str] = "clusterFileDifference"
    stack: str
    keys: tuple[KeyChange, ...]
    diff: tuple[str, ...]


def compare(deployed: DeployedFile, content: bytes, name: str) -> FileDifference:
    """Return how the cluster file with a content, and with a name in the diff, differs from the deployed one."""
    before, after = (text.split("\n") for text in (deployed.content, content.decode()))
    diff = difflib.unified_diff(before, after, f"{deployed.stack} (deployed)", name, lineterm="")
    return FileDifference(deployed.stack, key_changes(deployed.content.encode(), content), tuple(diff))


@dataclass(frozen=True)
class FileChange:
    """How a deployment changes the cluster file that the stack keeps.

    Attributes:
        keys: the keys with other values; none if only comments or layout differ, or if nothing can be compared.
        first: whether the stack keeps no file yet.
    """

    keys: tuple[KeyChange, ...]
    first: bool


def find_file_change(deployed: EvaluatedTemplate | None, requested: EvaluatedTemplate | None) -> FileChange | None:
    """Return how the file of a root changes; None if it does not, or if no root is deployed that can be read."""
    before, after = (kept_file(root.template) if root else b"" for root in (deployed, requested))
    if deployed is None or before == after or not after:
        return None
    return FileChange(key_changes(before, after) if before else (), first=not before)
