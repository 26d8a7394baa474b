"""Formats the status of a cluster as one screen of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import click

from cfngen.cli.display.suggested_commands import colored
from cfngen.cli.render.durations import age_text
from cfngen.cli.render.layout import screen_width, table
from cfngen.cli.render.operations import cluster_heading
from cfngen.cli.render.pausing import pause_state_lines
from cfngen.deploy.aws.addresses import LostAddress
from cfngen.deploy.aws.drift import Drift
from cfngen.deploy.aws.launched_versions import RetypedSlot, StaleGroup
from cfngen.deploy.status.cluster_problems import Problem
from cfngen.deploy.status.cluster_status import (
    AddonState,
    ApiState,
    BackupState,
    BastionState,
    ClusterStatus,
    Expiry,
    GroupState,
    MasterState,
    StackState,
    Unknown,
    VolumeState,
)
from cfngen.deploy.status.differing_values import DifferingValue
from cfngen.hints import CommandText, Hint, Line, suggest
from cfngen.text import pluralize

_Reading = TypeVar("_Reading")

EXPIRY_WARNING = timedelta(days=30)  # how long before its end the validity of a certificate is shown in red
MAX_CLOCK_SKEW = timedelta(minutes=1)  # between this machine and AWS
# The colour of a stack's status; a stack in any other state of health is red.
_COLOUR_BY_HEALTH = {"healthy": "green", "busy": "yellow", "empty": "yellow", "absent": "yellow"}


def status_lines(status: ClusterStatus) -> list[Line]:
    """Return the status as lines of text; sections that were not requested are not shown."""
    lines: list[Line] = [
        *_problem_lines(status.problems),
        *cluster_heading(status, screen_width()),
        "",
        *_stack_lines(status.stack, status.time),
        *(pause_state_lines(status.pause) if status.pause else ()),
    ]
    if status.stack.status and status.endpoint is not None:
        lines += [
            *_api_lines(status),
            *_section_lines("Masters", status.masters, lambda masters: _master_table(masters, status.time)),
            *_section_lines("Node groups", status.node_groups, _group_table),
            *_section_lines("Bastion", status.bastion, lambda bastion: _bastion_table(bastion, status.time)),
            *_section_lines("Left behind", status.stale_groups, _text_lines),
            *_section_lines("Other types", status.retyped_slots, _text_lines),
            *_section_lines("Not as in the cluster file", status.differing_values, _differing_value_lines),
            *_section_lines("Lost addresses", status.lost_addresses, _lost_address_lines),
            *_section_lines("Network", status.network_problems, _network_problem_lines),
            *_section_lines("Data volumes", status.volumes, _volume_table),
            *_section_lines("Backups of etcd", status.backups, lambda backups: _backup_lines(backups, status.time)),
            *_section_lines("Add-ons", status.addons, lambda addons: _addon_table(addons, status.time)),
            *_section_lines("Valid until", status.certificates, lambda expiries: _expiry_lines(expiries, status.time)),
            *_section_lines("Drift", status.drift, _drift_lines),
        ]
    if status.next_command:
        lines += ["", click.style("Next: ", bold=True) + str(status.next_command)]
    return lines


def _problem_lines(problems: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong, the worst in the first line of all."""
    for number, problem in enumerate(problems):
        yield click.style(problem, fg="red", bold=not number)
    if problems:
        yield ""


def _text_lines(findings: Sequence[StaleGroup | RetypedSlot]) -> list[str]:
    return [f"  {finding.text}" for finding in findings]


def _differing_value_lines(values: Sequence[DifferingValue]) -> Iterator[Line]:
    yield from (f"  {value.text}" for value in values)
    yield CommandText("  ", values[0].hint)


def _lost_address_lines(lost_addresses: Sequence[LostAddress]) -> Iterator[str]:
    for address in lost_addresses:
        yield f"  {address.text}; to associate the address again, run:"
        yield f"    {address.command}"


def _network_problem_lines(problems: Sequence[Problem]) -> list[str]:
    return [f"  {problem.sentence}" for problem in problems]


def _stack_lines(stack: StackState, now: datetime) -> Iterator[Line]:
    if not stack.status:
        yield f"Stack       {stack.name} does not exist"
        return
    status = click.style(stack.status, fg=_COLOUR_BY_HEALTH.get(stack.health, "red"))
    since = f" for {age_text(now - stack.since)}" if isinstance(stack.since, datetime) else ""
    yield f"Stack       {stack.name}  {status}{since}{_operation_in_brackets(stack)}"
    if stack.reason:
        yield f"            {stack.reason}"
    yield f"            termination protection is {'on' if stack.protected else 'off'}"
    if isinstance(stack.without_policy, Unknown):
        yield f"            stack policies: {_unknown_text(stack.without_policy)}"
    elif stack.without_policy:
        without_policy = f"            without a stack policy: {', '.join(stack.without_policy)}; "
        yield CommandText(without_policy, suggest("deploy"), " sets it,")
        yield "            even if nothing else changes, and termination protection, unless --no-protect is given"


def _operation_in_brackets(stack: StackState) -> str:
    if not stack.operation:
        return ""
    noun = {"create": "creation", "delete": "deletion"}.get(stack.operation, stack.operation)
    if stack.succeeded is None:
        return f" (the {noun} is {'being rolled back' if 'ROLLBACK' in stack.status else 'in progress'})"
    ending = "succeeded" if stack.succeeded else "was cancelled" if stack.cancelled else "failed"
    return f" (the last {noun} {ending})"


def _api_lines(status: ClusterStatus) -> Iterator[str]:
    target = f"Kubernetes  {status.target_version} in the {status.target_source}"
    url = status.endpoint.unknown if isinstance(status.endpoint, Unknown) else status.endpoint
    api = status.api
    if isinstance(api, ApiState):
        failing = f" ({', '.join(api.failing)})" if api.failing else ""
        readiness = click.style("ready", fg="green") if api.ready else click.style(f"not ready{failing}", fg="red")
        yield f"API         {url}  {readiness}"
        kubelets = status.kubelets if isinstance(status.kubelets, Mapping) else {}
        nodes = ", ".join(f"{pluralize(count, 'node')} with {version}" for version, count in sorted(kubelets.items()))
        yield f"{target}, {api.version} running; {nodes or 'no nodes'}"
    elif isinstance(status.endpoint, Unknown):
        yield f"API         {_unknown_text(status.endpoint)}"
        yield target
    else:
        yield f"API         {url}  {_unknown_text(api) if api else ''}"
        if isinstance(api, Unknown) and api.hint and not _suggests_status(api.hint):
            yield f"            {click.style('hint:', bold=True)} {api.hint}"
        yield target
    if isinstance(status.persistent_volumes, int):
        yield f"Storage     {pluralize(status.persistent_volumes, 'PersistentVolume')}"


def _suggests_status(hint: Hint) -> bool:
    """Return whether a hint suggests `cfngen status`, which the user is already running."""
    return isinstance(hint, CommandText) and any(command.name == "status" for command in hint.commands)


def _master_table(masters: Sequence[MasterState], now: datetime) -> list[str]:
    rows = [
        (
            master.slot,
            master.instance or "none",
            master.lifecycle,
            master.state,
            _readiness(master.ready),
            master.zone,
            master.address,
            master.type,
            _age_or_nothing(master.launched, now),
            _image_text(master, now),
        )
        for master in masters
    ]
    return table(("SLOT", "INSTANCE", "LIFECYCLE", "STATE", "NODE", "ZONE", "ADDRESS", "TYPE", "AGE", "IMAGE"), rows)


def _image_text(master: MasterState, now: datetime) -> str:
    age = _age_or_nothing(master.image_created, now)
    parts = (master.image, f"{age} old" if age else "", "" if master.current else "outdated")
    return ", ".join(filter(None, parts))


def _group_table(groups: Sequence[GroupState]) -> list[str]:
    rows = [
        (
            group.name,
            str(group.desired),
            str(group.in_service),
            "unknown" if group.ready is None else str(group.ready),
            f"{group.minimum}-{group.maximum}",
            ", ".join(group.types),
            str(group.outdated),
        )
        for group in groups
    ]
    return table(("NAME", "DESIRED", "IN SERVICE", "READY", "SIZE", "TYPE", "OUTDATED"), rows)


def _bastion_table(bastion: BastionState, now: datetime) -> list[str]:
    row = (
        bastion.instance or "none",
        bastion.lifecycle,
        bastion.state,
        bastion.zone,
        bastion.address,
        bastion.type,
        _age_or_nothing(bastion.launched, now),
        "" if bastion.current else "outdated",
    )
    return table(("INSTANCE", "LIFECYCLE", "STATE", "ZONE", "ADDRESS", "TYPE", "AGE", ""), [row])


def _volume_table(volumes: Sequence[VolumeState]) -> list[str]:
    rows = [
        (
            volume.slot,
            volume.id,
            volume.state or "does not exist",
            f"{volume.size} GiB {volume.type}" if volume.size else "",
            volume.zone,
            volume.instance or "nothing",
        )
        for volume in volumes
    ]
    return table(("SLOT", "VOLUME", "STATE", "SIZE", "ZONE", "ATTACHED TO"), rows)


def _backup_lines(backups: BackupState, now: datetime) -> Iterator[Line]:
    if backups.newest is None:
        text = "there is no snapshot yet"
    else:
        age = age_text(now - backups.newest)
        text = f"the newest snapshot is from {backups.newest:%Y-%m-%d %H:%M} UTC, {age} ago"
    delay_note = f"; there should be one every {pluralize(backups.interval, 'minute')}" if backups.late else ""
    yield f"  {click.style(text + delay_note, fg='red') if backups.late else text}"
    yield CommandText(f"  in the bucket {backups.bucket}; ", suggest("etcd list"), " shows them")
    if backups.restoring:
        sentence_start = f"the masters are being restored from {backups.restoring}; "
        sentence = CommandText(sentence_start, suggest("etcd restore"), " continues the restore")
        yield CommandText("  ", colored(sentence, "yellow"))


def _addon_table(addons: Sequence[AddonState], now: datetime) -> list[str]:
    rows = [
        (
            addon.name,
            addon.version,
            addon.status or "unknown",
            f"{_age_or_nothing(addon.time, now)} ago" if addon.time else "",
            addon.message if addon.status == "deployed" else click.style(addon.message or "not deployed", fg="red"),
        )
        for addon in addons
    ]
    return table(("NAME", "VERSION", "STATUS", "APPLIED", "MESSAGE"), rows)


def _expiry_lines(expiries: Sequence[Expiry], now: datetime) -> list[str]:
    rows = []
    for expiry in expiries:
        if isinstance(expiry.ends, Unknown):
            rows.append((expiry.what, _unknown_text(expiry.ends)))
            continue
        remaining = expiry.ends - now
        relative_time = f"in {age_text(remaining)}" if remaining > timedelta(0) else "ended"
        text = f"{expiry.ends:%Y-%m-%d %H:%M} UTC, {relative_time}"
        is_renewed = expiry.what == "join token"
        if is_renewed and remaining > timedelta(0):
            text += "; the masters renew it before"
        # A join token is valid for a day and is renewed: it is only a problem once it has expired.
        if remaining < (timedelta(0) if is_renewed else EXPIRY_WARNING):
            text = click.style(text, fg="red")
        rows.append((expiry.what, text))
    return table((), rows)


def _drift_lines(drift: Drift) -> list[str]:
    lines = []
    for resource in drift.resources:
        status = click.style(resource.status, fg="yellow" if resource.status == "MODIFIED" else "red")
        lines.append(f"  {resource.stack}/{resource.logical_id}  {status}  {resource.physical_id}")
        lines += [
            f"    {difference.path}: {difference.actual or 'nothing'} (template: {difference.expected or 'nothing'})"
            for difference in resource.differences
        ]
        lines.append("    as in the template again:" if resource.commands else "    no single command puts it back")
        lines += [f"      {command}" for command in resource.commands]
    lines += [f"  {stack}: {_unknown_text(Unknown(reason))}" for stack, reason in drift.failures.items()]
    return lines or ["  none: every resource matches its template"]


def _section_lines(
    title: str, reading: _Reading | Unknown | None, render: Callable[[_Reading], Iterable[Line]]
) -> list[Line]:
    """Return the title and the lines of a section; no lines at all if what it shows was not requested.

    Args:
        reading: what was read; `Unknown` says why it could not be read, and None means that it was not requested.
        render: returns the reading as lines; if there are none, the section says `none`.
    """
    if reading is None:
        return []
    heading: list[Line] = ["", click.style(title, bold=True)]
    if isinstance(reading, Unknown):
        return [*heading, f"  {_unknown_text(reading)}"]
    lines = list(render(reading))
    return [*heading, *(lines or ["  none"])]


def _unknown_text(reading: Unknown) -> str:
    return click.style("unknown", fg="yellow") + f": {reading.unknown}"


def _readiness(ready: bool | None) -> str:
    if ready is None:
        return "unknown"
    return "Ready" if ready else "not Ready"


def _age_or_nothing(time: datetime | None, now: datetime) -> str:
    """Return the time since `time`; empty if `time` is unknown, or in the future because clocks differ."""
    return age_text(now - time) if time and time <= now + MAX_CLOCK_SKEW else ""
