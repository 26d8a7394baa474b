"""Formats the status of a cluster as one screen of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import click

from cfngen.cli.suggested_commands import colored
from cfngen.cli.terminal import table
from cfngen.deploy.inspection.cluster_status import (
    AddonState,
    ApiState,
    BackupState,
    ClusterStatus,
    Expiry,
    GroupState,
    MasterState,
    StackState,
    Unknown,
    VolumeState,
)
from cfngen.deploy.inspection.drift import Drift
from cfngen.deploy.public_addresses import LostAddress
from cfngen.hints import CommandText, Hint, Line, suggest
from cfngen.text import pluralize

_Reading = TypeVar("_Reading")

EXPIRY_WARNING = timedelta(days=30)  # before a certificate expires
MAX_CLOCK_SKEW = timedelta(minutes=1)  # between this machine and AWS
_COLOURS = {"healthy": "green", "busy": "yellow", "empty": "yellow", "absent": "yellow"}
_UNITS = (("year", 365 * 86400), ("month", 30 * 86400), ("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def status_lines(status: ClusterStatus) -> list[Line]:
    """Return the status as lines; sections that were not requested are not shown."""
    lines: list[Line] = [
        click.style(status.cluster, bold=True) + f"  {status.region}, account {status.account}",
        "",
        *_stack(status.stack, status.time),
    ]
    if status.stack.status and status.endpoint is not None:
        lines += [
            *_api(status),
            *_section("Masters", status.masters, lambda masters: _masters(masters, status.time)),
            *_section("Node groups", status.node_groups, _groups),
            *_section("Left behind", status.stale_groups, lambda groups: [f"  {group.text}" for group in groups]),
            *_section("Lost addresses", status.lost_addresses, _lost_addresses),
            *_section("Data volumes", status.volumes, _volumes),
            *_section("Backups of etcd", status.backups, lambda backups: _backups(backups, status.time)),
            *_section("Add-ons", status.addons, lambda addons: _addons(addons, status.time)),
            *_section("Valid until", status.certificates, lambda expiries: _expiries(expiries, status.time)),
            *_section("Drift", status.drift, _drift),
        ]
    if status.next_command:
        lines += ["", click.style("Next: ", bold=True) + str(status.next_command)]
    return lines


def _lost_addresses(lost_addresses: Sequence[LostAddress]) -> Iterator[str]:
    for address in lost_addresses:
        yield f"  {address.text}; to associate the address again, run:"
        yield f"    {address.command}"


def _stack(stack: StackState, now: datetime) -> Iterator[Line]:
    if not stack.status:
        yield f"Stack       {stack.name} does not exist"
        return
    status = click.style(stack.status, fg=_COLOURS.get(stack.health, "red"))
    since = f" for {_duration(now - stack.since)}" if isinstance(stack.since, datetime) else ""
    yield f"Stack       {stack.name}  {status}{since}{_operation(stack)}"
    if stack.reason:
        yield f"            {stack.reason}"
    yield f"            termination protection is {'on' if stack.protected else 'off'}"
    if isinstance(stack.without_policy, Unknown):
        yield f"            stack policies: {_unknown(stack.without_policy)}"
    elif stack.without_policy:
        without_policy = f"            without a stack policy: {', '.join(stack.without_policy)}; "
        yield CommandText(without_policy, suggest("deploy"), " sets it,")
        yield "            even if nothing else changes, and termination protection, unless --no-protect is given"


def _operation(stack: StackState) -> str:
    """Return the current or last operation on the stack and its result, e.g. ` (the last update succeeded)`."""
    if not stack.operation:
        return ""
    outcome = {None: "is in progress", True: "succeeded", False: "failed"}[stack.succeeded]
    noun = {"create": "creation", "delete": "deletion"}.get(stack.operation, stack.operation)
    return f" (the {'' if stack.succeeded is None else 'last '}{noun} {outcome})"


def _api(status: ClusterStatus) -> Iterator[str]:
    """Yield whether the API is ready, the versions of Kubernetes, and the number of PersistentVolumes."""
    url = status.endpoint.unknown if isinstance(status.endpoint, Unknown) else status.endpoint
    api = status.api
    if isinstance(api, ApiState):
        failing = f" ({', '.join(api.failing)})" if api.failing else ""
        readiness = click.style("ready", fg="green") if api.ready else click.style(f"not ready{failing}", fg="red")
        yield f"API         {url}  {readiness}"
        kubelets = status.kubelets if isinstance(status.kubelets, Mapping) else {}
        nodes = ", ".join(f"{pluralize(count, 'node')} with {version}" for version, count in sorted(kubelets.items()))
        yield f"Kubernetes  {status.target_version} in the cluster file, {api.version} running; {nodes or 'no nodes'}"
    elif isinstance(status.endpoint, Unknown):
        yield f"API         {_unknown(status.endpoint)}"
        yield f"Kubernetes  {status.target_version} in the cluster file"
    else:
        yield f"API         {url}  {_unknown(api) if api else ''}"
        if isinstance(api, Unknown) and api.hint and not _suggests_status(api.hint):
            yield f"            {click.style('hint:', bold=True)} {api.hint}"
        yield f"Kubernetes  {status.target_version} in the cluster file"
    if isinstance(status.persistent_volumes, int):
        yield f"Storage     {pluralize(status.persistent_volumes, 'PersistentVolume')}"


def _suggests_status(hint: Hint) -> bool:
    """Return whether a hint suggests `cfngen status`, which the user is already running."""
    return isinstance(hint, CommandText) and any(command.name == "status" for command in hint.commands)


def _masters(masters: Sequence[MasterState], now: datetime) -> list[str]:
    rows = [
        (
            master.slot,
            master.instance or "none",
            master.lifecycle,
            master.state,
            _ready(master.ready),
            master.zone,
            master.address,
            master.type,
            _age(master.launched, now),
            _image(master, now),
        )
        for master in masters
    ]
    return table(("SLOT", "INSTANCE", "LIFECYCLE", "STATE", "NODE", "ZONE", "ADDRESS", "TYPE", "AGE", "IMAGE"), rows)


def _image(master: MasterState, now: datetime) -> str:
    """Return the id of a master's AMI, its age, and whether it is outdated."""
    age = _age(master.image_created, now)
    parts = (master.image, f"{age} old" if age else "", "" if master.current else "outdated")
    return ", ".join(filter(None, parts))


def _groups(groups: Sequence[GroupState]) -> list[str]:
    rows = [
        (
            group.name,
            str(group.desired),
            str(group.in_service),
            "unknown" if group.ready is None else str(group.ready),
            f"{group.minimum}-{group.maximum}",
            ", ".join(group.types),
            str(group.outdated) if group.outdated else "",
        )
        for group in groups
    ]
    return table(("NAME", "DESIRED", "IN SERVICE", "READY", "SIZE", "TYPE", "OUTDATED"), rows)


def _volumes(volumes: Sequence[VolumeState]) -> list[str]:
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


def _backups(backups: BackupState, now: datetime) -> Iterator[Line]:
    """Yield the time of the newest snapshot, in red if a newer one should exist, and the snapshot that is restored."""
    if backups.newest is None:
        text = "there is no snapshot yet"
    else:
        text = f"the newest snapshot is from {backups.newest:%Y-%m-%d %H:%M} UTC, {_duration(now - backups.newest)} ago"
    delay_note = f"; there should be one every {pluralize(backups.interval, 'minute')}" if backups.late else ""
    yield f"  {click.style(text + delay_note, fg='red') if backups.late else text}"
    yield CommandText(f"  in the bucket {backups.bucket}; ", suggest("etcd list"), " shows them")
    if backups.restoring:
        text = f"the masters are being restored from {backups.restoring}; "
        yield CommandText("  ", colored(CommandText(text, suggest("etcd restore"), " continues the restore"), "yellow"))


def _addons(addons: Sequence[AddonState], now: datetime) -> list[str]:
    rows = [
        (
            addon.name,
            addon.version,
            addon.status or "unknown",
            f"{_age(addon.time, now)} ago" if addon.time else "",
            addon.message if addon.status == "deployed" else click.style(addon.message or "not deployed", fg="red"),
        )
        for addon in addons
    ]
    return table(("NAME", "VERSION", "STATUS", "APPLIED", "MESSAGE"), rows)


def _expiries(expiries: Sequence[Expiry], now: datetime) -> list[str]:
    """Return a line for each certificate and token: when its validity ends, in red if that is soon."""
    name_width = max(len(expiry.what) for expiry in expiries)
    lines = []
    for expiry in expiries:
        if isinstance(expiry.ends, Unknown):
            lines.append(f"  {expiry.what.ljust(name_width)}  {_unknown(expiry.ends)}")
            continue
        remaining = expiry.ends - now
        relative_time = f"in {_duration(remaining)}" if remaining > timedelta(0) else "ended"
        text = f"{expiry.ends:%Y-%m-%d %H:%M} UTC, {relative_time}"
        # A join token is valid for a day and is renewed: it is only a problem once it has expired.
        warning_time = timedelta(0) if expiry.what == "join token" else EXPIRY_WARNING
        is_due = remaining < warning_time
        lines.append(f"  {expiry.what.ljust(name_width)}  {click.style(text, fg='red') if is_due else text}")
    return lines


def _drift(drift: Drift) -> list[str]:
    """Return the resources that differ from their templates, and how, and the stacks that cannot be compared."""
    lines = []
    for resource in drift.resources:
        status = click.style(resource.status, fg="yellow" if resource.status == "MODIFIED" else "red")
        lines.append(f"  {resource.stack}/{resource.logical_id}  {status}  {resource.physical_id}")
        lines += [
            f"    {difference.path}: {difference.actual or 'nothing'} (template: {difference.expected})"
            for difference in resource.differences
        ]
    lines += [f"  {stack}: {_unknown(Unknown(reason))}" for stack, reason in drift.failures.items()]
    return lines or ["  none: every resource matches its template"]


def _section(title: str, reading: _Reading | Unknown | None, lines: Callable[[_Reading], Iterable[Line]]) -> list[Line]:
    """Return the lines of a section under its title.

    Args:
        title: the title.
        reading: what was read; None means that it was not requested, and that there is no section.
        lines: returns the reading as lines; no lines are shown as `none`.
    """
    if reading is None:
        return []
    heading: list[Line] = ["", click.style(title, bold=True)]
    if isinstance(reading, Unknown):
        return [*heading, f"  {_unknown(reading)}"]
    return [*heading, *(list(lines(reading)) or ["  none"])]


def _unknown(reading: Unknown) -> str:
    return click.style("unknown", fg="yellow") + f": {reading.unknown}"


def _ready(ready: bool | None) -> str:
    return "unknown" if ready is None else "Ready" if ready else "not Ready"


def _age(time: datetime | None, now: datetime) -> str:
    """Return the time since `time`; empty if `time` is unknown, or in the future because clocks differ."""
    return _duration(now - time) if time and time <= now + MAX_CLOCK_SKEW else ""


def _duration(duration: timedelta) -> str:
    """Return a duration in its largest unit, e.g. `3 hours`."""
    seconds = max(int(duration.total_seconds()), 0)
    for noun, unit_seconds in _UNITS:
        if seconds >= unit_seconds:
            return pluralize(seconds // unit_seconds, noun)
    return pluralize(0, "second")
