"""The types of messages and results that commands show; a new type is one more line in `MESSAGE_TYPES`.

The JSON of every message is made from its attributes (see `json_output`); docs/reference/json.md is generated from this
table. It has dotted names of classes and renderers, which are imported when they are used: imports are slow, and most
commands need only one or two of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from cfngen.hints import Line

_DEPLOYING_COMMANDS = ("deploy", "watch", "rollback")
# These commands show the events of stacks while they wait.
_COMMANDS_WITH_EVENTS = (*_DEPLOYING_COMMANDS, "delete", "rehearse")
# These commands announce the steps of their work.
_COMMANDS_WITH_STEPS = (
    "check network",
    "plan",
    *_COMMANDS_WITH_EVENTS,
    "status",
    "etcd backup",
    "etcd restore",
    "replace",
    "pause",
    "resume",
)


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
        renderer_takes_full: whether the renderer has a parameter `full`, which shows long values and lists completely.
        is_progress: whether the text goes to standard error, so that standard output has results only.
        blank_line_before: whether a blank line separates the text from the progress above it.
        is_verbatim: whether the text is data for programs, which is printed unchanged in every locale.
    """

    class_name: str
    commands: Sequence[str]
    renderer: str = ""
    renderer_takes_full: bool = False
    is_progress: bool = False
    blank_line_before: bool = False
    is_verbatim: bool = False

    @property
    def message_class(self) -> type:
        """The class of the messages."""
        class_: type = _import_attribute("cfngen", self.class_name)
        return class_

    def lines(self, message: Printable, *, full: bool = False) -> list[Line]:
        """Return a message as lines of text; `full` shows long values and lists completely, if the renderer can."""
        render: Callable[..., Sequence[Line]] = _import_attribute("cfngen.cli.render", self.renderer)
        lines = render(message, full=full) if self.renderer_takes_full else render(message)
        return ["", *lines] if self.blank_line_before else list(lines)


MESSAGE_TYPES: Mapping[str, MessageType] = {
    "step": MessageType(
        class_name="deploy.messages.Step",
        commands=_COMMANDS_WITH_STEPS,
        renderer="notices.step_lines",
        is_progress=True,
    ),
    "notice": MessageType(
        class_name="deploy.messages.Notice",
        commands=_COMMANDS_WITH_STEPS,
        renderer="notices.notice_lines",
        is_progress=True,
    ),
    "networkCheck": MessageType(
        class_name="deploy.network_check.findings.NetworkCheck",
        commands=("check network", "plan", "deploy"),
        renderer="network_check.result_lines",
    ),
    "plan": MessageType(
        class_name="deploy.preview.plan.Plan",
        commands=("plan", "deploy"),
        renderer="plan.plan_lines",
        renderer_takes_full=True,
    ),
    "event": MessageType(
        class_name="deploy.messages.Event",
        commands=(*_COMMANDS_WITH_EVENTS, "events"),
    ),
    "progress": MessageType(
        class_name="deploy.watching.progress.Progress",
        commands=_COMMANDS_WITH_EVENTS,
    ),
    "diagnosis": MessageType(
        class_name="deploy.watching.diagnosis.Diagnosis",
        commands=(*_COMMANDS_WITH_EVENTS, "events --failures"),
        renderer="diagnosis.diagnosis_lines",
    ),
    "finished": MessageType(
        class_name="deploy.messages.Finished",
        commands=_DEPLOYING_COMMANDS,
        renderer="finished.result_lines",
    ),
    "validationChange": MessageType(
        class_name="deploy.inspection.validation.ValidationChange",
        commands=("deploy", "validate cluster"),
        renderer="validation.change_lines",
        is_progress=True,
    ),
    "validation": MessageType(
        class_name="deploy.inspection.validation.Validation",
        commands=("deploy", "validate cluster"),
        renderer="validation.result_lines",
    ),
    "status": MessageType(
        class_name="deploy.inspection.cluster_status.ClusterStatus",
        commands=("status",),
        renderer="status.status_lines",
    ),
    "kubeconfig": MessageType(
        class_name="deploy.access.kubeconfig.KubeconfigChange",
        commands=("kubeconfig",),
        renderer="kubeconfig.change_lines",
    ),
    "kubeconfigDocument": MessageType(
        class_name="deploy.access.kubeconfig.KubeconfigDocument",
        commands=("kubeconfig --print",),
        renderer="kubeconfig.document_lines",
        is_verbatim=True,
    ),
    "etcdSnapshots": MessageType(
        class_name="deploy.etcd.snapshots.Snapshots",
        commands=("etcd list",),
        renderer="etcd.snapshot_lines",
        renderer_takes_full=True,
    ),
    "etcdBackup": MessageType(
        class_name="deploy.etcd.backup.BackupTaken",
        commands=("etcd backup", "pause"),
        renderer="etcd.backup_lines",
    ),
    "etcdRestorePlan": MessageType(
        class_name="deploy.etcd.restore.RestorePlan",
        commands=("etcd restore",),
        renderer="etcd.restore_plan_lines",
    ),
    "etcdRestoreProgress": MessageType(
        class_name="deploy.etcd.watch.RestoreProgress",
        commands=("etcd restore",),
        renderer="etcd.restore_progress_lines",
        is_progress=True,
    ),
    "etcdRestored": MessageType(
        class_name="deploy.etcd.restore.Restored",
        commands=("etcd restore",),
        renderer="etcd.restored_lines",
    ),
    "replacementPlan": MessageType(
        class_name="deploy.replacing.replacement_messages.ReplacementPlan",
        commands=("replace",),
        renderer="replacement.plan_lines",
    ),
    "replacementProgress": MessageType(
        class_name="deploy.replacing.replacement_messages.ReplacementProgress",
        commands=("replace",),
        renderer="replacement.progress_lines",
        is_progress=True,
    ),
    "replaced": MessageType(
        class_name="deploy.replacing.replacement_messages.Replaced",
        commands=("replace",),
        renderer="replacement.result_lines",
    ),
    "pausePlan": MessageType(
        class_name="deploy.pausing.reports.PausePlan",
        commands=("pause",),
        renderer="pausing.pause_plan_lines",
    ),
    "pauseProgress": MessageType(
        class_name="deploy.pausing.reports.PauseProgress",
        commands=("pause",),
        renderer="pausing.pause_progress_lines",
        is_progress=True,
    ),
    "paused": MessageType(
        class_name="deploy.pausing.reports.Paused",
        commands=("pause",),
        renderer="pausing.paused_lines",
        blank_line_before=True,
    ),
    "resumePlan": MessageType(
        class_name="deploy.pausing.reports.ResumePlan",
        commands=("resume",),
        renderer="pausing.resume_plan_lines",
    ),
    "resumeProgress": MessageType(
        class_name="deploy.pausing.reports.ResumeProgress",
        commands=("resume",),
        renderer="pausing.resume_progress_lines",
        is_progress=True,
    ),
    "resumed": MessageType(
        class_name="deploy.pausing.reports.Resumed",
        commands=("resume",),
        renderer="pausing.resumed_lines",
        blank_line_before=True,
    ),
    "survey": MessageType(
        class_name="deploy.deletion.plan.DeletionPlan",
        commands=("delete",),
        renderer="deletion.deletion_plan_lines",
    ),
    "removed": MessageType(
        class_name="deploy.deletion.orphaned_resource.OrphanRemoved",
        commands=("delete",),
        renderer="deletion.removed_resource_lines",
        is_progress=True,
    ),
    "deletionFailed": MessageType(
        class_name="deploy.deletion.stack_removal.DeletionFailed",
        commands=("delete",),
        renderer="deletion.failed_attempt_lines",
        is_progress=True,
    ),
    "deleted": MessageType(
        class_name="deploy.deletion.result.Deleted",
        commands=("delete",),
        renderer="deletion.result_lines",
        blank_line_before=True,
    ),
    "remains": MessageType(
        class_name="deploy.deletion.leftovers.Remains",
        commands=(*_DEPLOYING_COMMANDS, "delete"),
        renderer="deletion.remains_lines",
    ),
    "rehearsal": MessageType(
        class_name="rehearse.report.Rehearsal",
        commands=("rehearse",),
        renderer="rehearsal.result_lines",
    ),
    "rehearsalWritten": MessageType(
        class_name="rehearse.report.RehearsalWritten",
        commands=("rehearse",),
        renderer="rehearsal.written_lines",
        blank_line_before=True,
    ),
    "rehearsalSteps": MessageType(
        class_name="rehearse.report.RehearsalSteps",
        commands=("rehearse --list",),
        renderer="rehearsal.step_lines",
    ),
    "policy": MessageType(
        class_name="permissions.grants.Policy",
        commands=("permissions",),
        renderer="permissions.document_lines",
        is_verbatim=True,
    ),
    "sandbox": MessageType(
        class_name="sandbox.process.status.SandboxStatus",
        commands=("sandbox status",),
        renderer="sandbox.status_lines",
    ),
    "versions": MessageType(
        class_name="cli.commands.version.Versions",
        commands=("version",),
        renderer="notices.version_lines",
    ),
}
"""The type of each message, by its `kind`, which is its `type` in JSON and must not change."""


def message_type(message: Printable) -> MessageType:
    """Return the entry of `MESSAGE_TYPES` for a message."""
    return MESSAGE_TYPES[message.kind]


def _import_attribute(package: str, dotted_name: str) -> Any:
    """Import a module of the package, and return a function or class in it.

    Args:
        package: e.g. `cfngen.cli.render`.
        dotted_name: the module, relative to the package, and the attribute, e.g. `plan.plan_lines`.
    """
    module, _, attribute = dotted_name.rpartition(".")
    return getattr(importlib.import_module(f"{package}.{module}"), attribute)
