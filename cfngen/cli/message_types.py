"""The types of messages and results that commands show; a new type is one more line in `MESSAGE_TYPES`.

The JSON of every message is made from its attributes (see `json_output`); docs/json.md is generated from this table.
The table has dotted names of classes and renderers, which are imported when they are used: imports are slow, and most
commands need only one or two of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from cfngen.hints import Line

# Names of the commands that deploy, that show stack events, and that show the steps of their work.
_DEPLOYMENTS = ("deploy", "watch", "rollback")
_WITH_EVENTS = (*_DEPLOYMENTS, "delete", "rehearse")
_WITH_STEPS = ("plan", *_WITH_EVENTS, "status", "etcd backup", "etcd restore")


class Printable(Protocol):
    """A message or result: a dataclass whose `kind` is its `type` in JSON."""

    kind: ClassVar[str]


@dataclass(frozen=True)
class MessageType:
    """The class of a message, the commands that show the message, and its form as text.

    Attributes:
        class_name: dotted name of the class, relative to the package cfngen.
        commands: the commands that show the message; `kubeconfig --print` means only with the option --print.
        renderer: dotted name, relative to cfngen.cli.render, of the function that returns a message as lines of text;
            empty for messages that `render.live` draws while an operation is in progress.
        has_full_form: whether the renderer has a parameter `full`, which shows long values and lists completely.
        is_progress: whether the text goes to standard error, so that standard output has results only.
        blank_line_before: whether a blank line separates the text from the progress above it.
        is_data: whether the text is data for programs, which is printed unchanged in every locale.
    """

    class_name: str
    commands: Sequence[str]
    renderer: str = ""
    has_full_form: bool = False
    is_progress: bool = False
    blank_line_before: bool = False
    is_data: bool = False

    @property
    def message_class(self) -> type:
        """The class of the messages."""
        class_: type = _import("cfngen", self.class_name)
        return class_

    def lines(self, message: Printable, *, full: bool = False) -> list[Line]:
        """Return a message as lines of text."""
        render: Callable[..., Sequence[Line]] = _import("cfngen.cli.render", self.renderer)
        lines = render(message, full=full) if self.has_full_form else render(message)
        return ["", *lines] if self.blank_line_before else list(lines)


MESSAGE_TYPES: Mapping[str, MessageType] = {
    "step": MessageType("deploy.messages.Step", _WITH_STEPS, "notices.step_lines", is_progress=True),
    "notice": MessageType("deploy.messages.Notice", _WITH_STEPS, "notices.notice_lines", is_progress=True),
    "plan": MessageType("deploy.preview.plan.Plan", ("plan", "deploy"), "plan.lines", has_full_form=True),
    "event": MessageType("deploy.messages.Event", (*_WITH_EVENTS, "events")),
    "progress": MessageType("deploy.watching.progress.Progress", _WITH_EVENTS),
    "diagnosis": MessageType(
        "deploy.watching.diagnosis.Diagnosis", (*_WITH_EVENTS, "events --failures"), "diagnosis.lines"
    ),
    "finished": MessageType("deploy.messages.Finished", _DEPLOYMENTS, "finished.result_lines"),
    "validationChange": MessageType(
        "deploy.inspection.validation.ValidationChange",
        ("deploy", "validate cluster"),
        "validation.change_lines",
        is_progress=True,
    ),
    "validation": MessageType(
        "deploy.inspection.validation.Validation", ("deploy", "validate cluster"), "validation.result_lines"
    ),
    "status": MessageType("deploy.inspection.cluster_status.ClusterStatus", ("status",), "status.status_lines"),
    "kubeconfig": MessageType("deploy.access.kubeconfig.KubeconfigChange", ("kubeconfig",), "kubeconfig.change_lines"),
    "kubeconfigDocument": MessageType(
        "deploy.access.kubeconfig.KubeconfigDocument",
        ("kubeconfig --print",),
        "kubeconfig.document_lines",
        is_data=True,
    ),
    "etcdSnapshots": MessageType(
        "deploy.etcd.snapshots.Snapshots",
        ("etcd list",),
        "etcd.snapshot_lines",
        has_full_form=True,
    ),
    "etcdBackup": MessageType("deploy.etcd.backup.BackupTaken", ("etcd backup",), "etcd.backup_lines"),
    "etcdRestorePlan": MessageType("deploy.etcd.restore.RestorePlan", ("etcd restore",), "etcd.restore_plan_lines"),
    "etcdRestoreProgress": MessageType(
        "deploy.etcd.watch.RestoreProgress", ("etcd restore",), "etcd.restore_progress_lines", is_progress=True
    ),
    "etcdRestored": MessageType("deploy.etcd.restore.Restored", ("etcd restore",), "etcd.restored_lines"),
    "survey": MessageType("deploy.deletion.plan.DeletionPlan", ("delete",), "deletion.plan_lines"),
    "removed": MessageType(
        "deploy.deletion.orphaned_resource.OrphanRemoved", ("delete",), "deletion.removed_lines", is_progress=True
    ),
    "deletionFailed": MessageType(
        "deploy.deletion.stack_removal.DeletionFailed", ("delete",), "deletion.failed_lines", is_progress=True
    ),
    "deleted": MessageType(
        "deploy.deletion.result.Deleted", ("delete",), "deletion.result_lines", blank_line_before=True
    ),
    "remains": MessageType("deploy.deletion.leftovers.Remains", (*_DEPLOYMENTS, "delete"), "deletion.remains_lines"),
    "rehearsal": MessageType("rehearse.report.Rehearsal", ("rehearse",), "rehearsal.result_lines"),
    "rehearsalWritten": MessageType(
        "rehearse.report.RehearsalWritten", ("rehearse",), "rehearsal.written_lines", blank_line_before=True
    ),
    "rehearsalSteps": MessageType("rehearse.report.RehearsalSteps", ("rehearse --list",), "rehearsal.step_lines"),
    "policy": MessageType("permissions.grants.Policy", ("permissions",), "permissions.document_lines", is_data=True),
    "sandbox": MessageType("sandbox.status.SandboxStatus", ("sandbox status",), "sandbox.status_lines"),
}
"""The types of messages, by `kind`, which is their `type` in JSON and must not change."""


def message_type(message: Printable) -> MessageType:
    """Return the type of a message."""
    return MESSAGE_TYPES[message.kind]


def _import(package: str, name: str) -> Any:
    """Return an attribute of a module of the package, e.g. `plan.lines` of `cfngen.cli.render`."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"{package}.{module}"), attribute)
