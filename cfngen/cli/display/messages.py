"""The list of the types of messages and results, with their renderers; a new type is one more line in `MESSAGE_TYPES`.

The JSON of every message is made from its attributes (see `json_output`); docs/reference/json.md is generated from this
table. It has dotted names of classes and renderers, which are imported when they are used: imports are slow, and most
commands need only one or two of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from cfngen.cli.display.json_output import print_json
from cfngen.cli.display.terminal import echo
from cfngen.cli.display.typography import print_verbatim
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
# These commands end so if they are given several cluster files.
_COMMANDS_FOR_SEVERAL_CLUSTERS = (
    "lint", "config", "plan", "deploy", "status", "validate cluster", "kubeconfig", "delete",
)  # fmt: skip


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
            empty for messages that are shown as text elsewhere, e.g. by `render.live` while an operation is in
            progress.
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
    "step": MessageType("deploy.messages.message.Step", _COMMANDS_WITH_STEPS, "notices.step_lines", is_progress=True),
    "notice": MessageType(
        "deploy.messages.message.Notice", _COMMANDS_WITH_STEPS, "notices.notice_lines", is_progress=True
    ),
    "networkCheck": MessageType(
        "deploy.preflight.findings.NetworkCheck", ("check network", "plan", "deploy"), "checks.network_check_lines"
    ),
    "plan": MessageType("deploy.plan.plan.Plan", ("plan", "deploy"), "plan.plan_lines", renderer_takes_full=True),
    "recreationPlan": MessageType("deploy.plan.plan.RecreationPlan", ("plan",), "plan.recreation_lines"),
    "deployedFile": MessageType("deploy.aws.kept_file.DeployedFile", ("config --deployed",)),
    "clusterFileDifference": MessageType(
        "deploy.aws.kept_file.FileDifference", ("config --diff",), "notices.file_difference_lines", is_verbatim=True
    ),
    "unplannedChange": MessageType(
        "deploy.messages.message.UnplannedChange", ("deploy",), "operations.unplanned_change_lines", is_progress=True
    ),
    "event": MessageType("deploy.messages.message.Event", (*_COMMANDS_WITH_EVENTS, "events")),
    "progress": MessageType("deploy.watching.progress.Progress", _COMMANDS_WITH_EVENTS),
    "diagnosis": MessageType(
        "deploy.watching.diagnosis.Diagnosis",
        (*_COMMANDS_WITH_EVENTS, "events --failures"),
        "diagnosis.diagnosis_lines",
    ),
    "finished": MessageType("deploy.messages.message.Finished", _DEPLOYING_COMMANDS, "operations.finished_lines"),
    "validationChange": MessageType(
        "deploy.status.validation.ValidationChange",
        ("deploy", "validate cluster"),
        "checks.validation_change_lines",
        is_progress=True,
    ),
    "validation": MessageType(
        "deploy.status.validation.Validation", ("deploy", "validate cluster"), "checks.validation_lines"
    ),
    "status": MessageType("deploy.status.cluster_status.ClusterStatus", ("status",), "status.status_lines"),
    "clusterList": MessageType(
        "deploy.status.cluster_list.ClusterList", ("status --all",), "notices.cluster_list_lines"
    ),
    "kubeconfig": MessageType(
        "deploy.access.kubeconfig.KubeconfigChange", ("kubeconfig",), "notices.kubeconfig_change_lines"
    ),
    "kubeconfigDocument": MessageType(
        "deploy.access.kubeconfig.KubeconfigDocument",
        ("kubeconfig --print",),
        "notices.kubeconfig_lines",
        is_verbatim=True,
    ),
    "etcdSnapshots": MessageType(
        "deploy.aws.snapshots.Snapshots", ("etcd list",), "etcd.snapshot_lines", renderer_takes_full=True
    ),
    "etcdBackup": MessageType(
        "deploy.operations.etcd.backup.BackupTaken", ("etcd backup", "pause"), "etcd.backup_lines"
    ),
    "etcdRestorePlan": MessageType(
        "deploy.operations.etcd.restore.RestorePlan", ("etcd restore",), "etcd.restore_plan_lines"
    ),
    "etcdRestoreProgress": MessageType(
        "deploy.operations.etcd.watch.RestoreProgress",
        ("etcd restore",),
        "etcd.restore_progress_lines",
        is_progress=True,
    ),
    "etcdRestored": MessageType("deploy.operations.etcd.restore.Restored", ("etcd restore",), "etcd.restored_lines"),
    "replacementPlan": MessageType(
        "deploy.operations.replacing.messages.ReplacementPlan", ("replace",), "replacement.plan_lines"
    ),
    "replacementProgress": MessageType(
        "deploy.operations.replacing.messages.ReplacementProgress",
        ("replace",),
        "replacement.progress_lines",
        is_progress=True,
    ),
    "replaced": MessageType("deploy.operations.replacing.messages.Replaced", ("replace",), "replacement.result_lines"),
    "pausePlan": MessageType("deploy.operations.pausing.reports.PausePlan", ("pause",), "pausing.pause_plan_lines"),
    "pauseProgress": MessageType(
        "deploy.operations.pausing.reports.PauseProgress", ("pause",), "pausing.pause_progress_lines", is_progress=True
    ),
    "paused": MessageType(
        "deploy.operations.pausing.reports.Paused", ("pause",), "pausing.paused_lines", blank_line_before=True
    ),
    "resumePlan": MessageType("deploy.operations.pausing.reports.ResumePlan", ("resume",), "pausing.resume_plan_lines"),
    "resumeProgress": MessageType(
        "deploy.operations.pausing.reports.ResumeProgress",
        ("resume",),
        "pausing.resume_progress_lines",
        is_progress=True,
    ),
    "resumed": MessageType(
        "deploy.operations.pausing.reports.Resumed", ("resume",), "pausing.resumed_lines", blank_line_before=True
    ),
    "survey": MessageType("deploy.plan.deletion.plan.DeletionPlan", ("delete",), "deletion.deletion_plan_lines"),
    "removed": MessageType(
        "deploy.operations.deletion.removal.OrphanRemoved",
        ("delete",),
        "deletion.removed_resource_lines",
        is_progress=True,
    ),
    "deletionFailed": MessageType(
        "deploy.operations.deletion.stack_removal.DeletionFailed",
        ("delete",),
        "deletion.failed_attempt_lines",
        is_progress=True,
    ),
    "deleted": MessageType(
        "deploy.operations.deletion.report.Deleted", ("delete",), "deletion.result_lines", blank_line_before=True
    ),
    "remains": MessageType(
        "deploy.operations.leftovers.Remains", (*_DEPLOYING_COMMANDS, "delete"), "deletion.remains_lines"
    ),
    "rehearsal": MessageType("rehearse.report.Rehearsal", ("rehearse",), "rehearsal.result_lines"),
    "rehearsalWritten": MessageType(
        "rehearse.report.RehearsalWritten", ("rehearse",), "rehearsal.written_lines", blank_line_before=True
    ),
    "rehearsalSteps": MessageType("rehearse.report.RehearsalSteps", ("rehearse --list",), "rehearsal.step_lines"),
    "proposedFacts": MessageType(
        "rehearse.report.ProposedFacts", ("rehearse --offline-report",), "rehearsal.fact_lines", is_verbatim=True
    ),
    "policy": MessageType("permissions.grants.Policy", ("permissions",), "notices.policy_lines", is_verbatim=True),
    "permission": MessageType(
        "permissions.explanations.ExplainedStatement", ("permissions --explain",), "permissions.statement_lines"
    ),
    "permissionDifference": MessageType(
        "permissions.differences.PermissionDifference",
        ("permissions --diff", "permissions --diff-deployed"),
        "permissions.difference_lines",
    ),
    "lint": MessageType("cli.commands.lint.Linted", ("lint",), "notices.lint_lines"),
    "userData": MessageType("cli.commands.userdata.RoleUserData", ("userdata",)),
    "sandbox": MessageType("sandbox.process.status.SandboxStatus", ("sandbox status",), "notices.sandbox_lines"),
    "clusters": MessageType(
        "cli.several_clusters.outcomes.ClusterOutcomes",
        _COMMANDS_FOR_SEVERAL_CLUSTERS,
        "notices.outcome_lines",
        blank_line_before=True,
    ),
    "versions": MessageType("cli.commands.version.Versions", ("version",), "notices.version_lines"),
}
"""The type of each message, by its `kind`, which is its `type` in JSON and must not change."""


def message_type(message: Printable) -> MessageType:
    """Return the entry of `MESSAGE_TYPES` for a message."""
    return MESSAGE_TYPES[message.kind]


def _import_attribute(package: str, dotted_name: str) -> Any:
    """Import a module of the package, and return a function or class in it.

    Args:
        dotted_name: the module, relative to the package, and the attribute, e.g. `plan.plan_lines`.
    """
    module, _, attribute = dotted_name.rpartition(".")
    return getattr(importlib.import_module(f"{package}.{module}"), attribute)


def show_message(
    message: Printable, *, json: bool, full: bool = False, render_line: Callable[[Line], str] = str
) -> None:
    """Show a message or result as text or JSON.

    As text, messages without a renderer are not shown: `render.live` draws them while an operation is in progress.

    Args:
        message: the message; the commands in its attributes already have the options for the cluster.
        full: whether to show long values and lists completely in the text.
        render_line: returns a line as text; adds the options for this cluster and account to the line's commands.
    """
    type_ = message_type(message)
    if json:
        print_json(message)
        return
    if not type_.renderer:
        return
    lines = "\n".join(render_line(line) for line in type_.lines(message, full=full))
    if type_.is_verbatim:
        print_verbatim(lines)
    else:
        echo(lines, err=type_.is_progress)
