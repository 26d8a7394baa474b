"""What all operations on a cluster have in common as text: the heading and consequences of a plan, verbs, the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import click

from cfngen.cli.display.suggested_commands import next_line
from cfngen.cli.render.durations import duration_text
from cfngen.cli.render.layout import bullets, paragraph, screen_width
from cfngen.cli.render.resource_names import resource_path
from cfngen.hints import CommandText, Line, SuggestedCommand, suggest
from cfngen.text import pluralize

if TYPE_CHECKING:
    from cfngen.deploy.messages.message import Finished, UnplannedChange


OPERATION_VERBS: Mapping[str, str] = {
    "create": "creating",
    "update": "updating",
    "delete": "deleting",
    "rollback": "rolling back",
    "import": "importing into",
}
"""By the name of an operation, as in `Progress.action`: the verb, to be followed by the name of the stack."""
_REPORT_OF_WRONG_PLAN = (
    "this is a bug in cfngen: please report it with the plan above, the cluster file and the output of ",
    SuggestedCommand("events", (("--output", "json"),)),
    ", without what is secret in them.",
)


class _AboutCluster(Protocol):
    @property
    def cluster(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def account(self) -> str: ...


def cluster_heading(message: _AboutCluster, width: int) -> list[str]:
    """Return the lines with the name of a cluster, its region and its account."""
    first, *others = paragraph(f"{message.cluster}  {message.region}, account {message.account}", width, hanging=2)
    # The name gets its style after wrapping, so that the two spaces behind it have none.
    return [click.style(message.cluster, bold=True) + first.removeprefix(message.cluster), *others]


def operation_plan_lines(
    plan: _AboutCluster,
    sentences: Iterable[str],
    *,
    table: Iterable[str] = (),
    consequences: Iterable[str] = (),
    width: int | None = None,
) -> list[str]:
    """Return what an operation will do.

    Args:
        sentences: what happens, each in lines of its own.
        table: what it happens to.
        consequences: what that means for the cluster.
        width: maximum width of a line in characters; None means the width of standard output.
    """
    max_width = width or screen_width()
    lines = [*cluster_heading(plan, max_width), *(line for text in sentences for line in paragraph(text, max_width, 2))]
    for block in (list(table), list(bullets(consequences, max_width))):
        if block:
            lines += ["", *block]
    return [*lines, ""]


def unplanned_change_lines(change: UnplannedChange) -> list[str]:
    """Return the warning that an operation touches a resource which its plan does not name."""
    return [click.style("warning: ", fg="yellow", bold=True) + f"not in the plan: {_unplanned_text(change)}"]


def finished_lines(finished: Finished) -> list[Line]:
    """Return how the operation ended, what it did besides its plan, and what to do next."""
    if not finished.unplanned:
        return _ending_lines(finished)
    subject = pluralize(len(finished.unplanned), "changed resource")
    return [
        click.style(f"The plan was wrong: it did not name {subject}.", fg="red", bold=True),
        *bullets(map(_unplanned_text, finished.unplanned), screen_width()),
        CommandText(click.style("hint: ", bold=True), *_REPORT_OF_WRONG_PLAN),
        "",
        *_ending_lines(finished),
    ]


def _unplanned_text(change: UnplannedChange) -> str:
    verb = f"{change.action.removesuffix('e')}ed"
    text = f"{resource_path(change.path, change.logical_id)} ({change.type}) is {verb}"
    return f"{text}; {change.impact.danger}: {change.impact.text}" if change.impact else text


def _ending_lines(finished: Finished) -> list[Line]:
    name = finished.stack
    if finished.in_progress:
        result = f"{name}: {finished.status}; it continues without cfngen."
        return [result, "", next_line(suggest("watch", stack=name), "   attaches again.")]
    if finished.action == "none":
        return [click.style(f"{name} is up to date: nothing was changed.", fg="green")]
    if finished.action == "tag":
        return [click.style(f"{name} is up to date, and existing subnets have got their tags.", fg="green")]
    elapsed = duration_text(finished.seconds)
    if not finished.succeeded:
        return [click.style(f"{name}: {finished.status or 'deleted'} after {elapsed}.", fg="red", bold=True)]
    lines: list[Line] = [click.style(f"{name}: {finished.status} after {elapsed}.", fg="green", bold=True)]
    if finished.action == "delete":
        purpose = "   deletes what Kubernetes created, and lists what is kept."
        return [*lines, "", next_line(suggest("delete", stack=name), purpose)]
    if finished.action != "rollback" and (endpoint := finished.outputs.get("ApiEndpoint")):
        lines += [f"Kubernetes API: {endpoint}", "", next_line(suggest("kubeconfig"), " && kubectl get nodes"), ""]
    return lines
