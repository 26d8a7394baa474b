"""Parses the masters' reports in ConfigMaps (certificates, add-ons), and finds their newest etcd snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from cfngen.cluster.model import Cluster
from cfngen.deploy.account import Account
from cfngen.deploy.aws_types import JsonObject
from cfngen.deploy.etcd.restore import REQUEST_KEY
from cfngen.deploy.etcd.snapshots import BUCKET_OUTPUT, SnapshotStore
from cfngen.deploy.inspection.cluster_status import AddonState, BackupState, Expiry, MasterState

CERTIFICATES_CONFIG_MAP, ADDONS_CONFIG_MAP = "cfngen-certificates", "cfngen-addons"  # names of the ConfigMaps
MAX_MISSED_INTERVALS = 3  # backups are late if the newest snapshot is older than this number of intervals


def read_backups(account: Account, outputs: Mapping[str, str], cluster: Cluster) -> BackupState | None:
    """Return the state of etcd's backups; None if the cluster has no bucket for them.

    Args:
        account: the AWS account.
        outputs: outputs of the cluster's stacks.
        cluster: the cluster file.

    Raises:
        CfngenError: the bucket cannot be read.
    """
    bucket = outputs.get(BUCKET_OUTPUT, "")
    if not bucket:
        return None
    store = SnapshotStore(account, bucket, cluster.name)
    interval = cluster.etcd.backups.interval  # minutes
    snapshots = store.snapshots()
    newest = snapshots[0].time if snapshots else None
    is_late = newest is None or account.clock.now() - newest > timedelta(minutes=MAX_MISSED_INTERVALS * interval)
    return BackupState(
        bucket=bucket,
        newest=newest,
        interval=interval,
        late=is_late,
        restoring=str(store.read(REQUEST_KEY).get("snapshot", "")),
    )


def parse_addons(data: Mapping[str, str]) -> tuple[AddonState, ...]:
    """Return the add-ons in the data of the masters' ConfigMap."""
    return tuple(
        AddonState(
            name=name,
            version=str(report.get("version", "")),
            status=str(report.get("status", "")),
            time=_parse_time(report.get("time")),
            message=str(report.get("message", "")),
        )
        for name, report in _parse_reports(data)
    )


def parse_certificates(data: Mapping[str, str], masters: tuple[MasterState, ...]) -> tuple[Expiry, ...]:
    """Return when the masters' certificates expire, from the data of their ConfigMap.

    Args:
        data: a report in JSON, by the instance id of the master that wrote it; reports of other instances are ignored.
        masters: the current masters.
    """
    slot_by_instance = {master.instance: master.slot for master in masters if master.instance}
    slots_and_reports = [
        (slot_by_instance[instance], report)
        for instance, report in _parse_reports(data)
        if instance in slot_by_instance
    ]
    slots_and_reports.sort(key=lambda slot_and_report: slot_and_report[0])
    return tuple(
        Expiry(what=f"master {slot}: {report.get('which', 'certificate')}", ends=ends)
        for slot, report in slots_and_reports
        if (ends := _parse_time(report.get("expires")))
    )


def _parse_reports(data: Mapping[str, str]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the keys and JSON objects in the data of a ConfigMap; anything else in it is ignored."""
    for name, text in sorted(data.items()):
        try:
            content = json.loads(text)
        except ValueError:
            continue
        if isinstance(content, dict):
            yield name, content


def _parse_time(text: object) -> datetime | None:
    """Return a time in ISO 8601 with its time zone; None if the text is anything else."""
    try:
        time = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    return time if time.tzinfo else None
