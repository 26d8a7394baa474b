"""What the masters report of themselves in ConfigMaps, and the bucket of their snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.deploy.account import Account
from cfngen.deploy.etcd.restore import REQUEST
from cfngen.deploy.etcd.snapshots import BUCKET, Store
from cfngen.deploy.inspection.cluster_status import AddonState, BackupState, Expiry, MasterState

CERTIFICATES, ADDONS = "cfngen-certificates", "cfngen-addons"  # names of the ConfigMaps
LATE = 3  # intervals without a snapshot


def backups(account: Account, values: Mapping[str, str], cluster: Cluster) -> BackupState | None:
    """Return how the snapshots of etcd stand; None where the stack has no bucket of them.

    Args:
        account: where the cluster is.
        values: outputs of its stacks.
        cluster: the cluster file.

    Raises:
        CfngenError: the bucket cannot be read.
    """
    bucket = values.get(BUCKET, "")
    if not bucket:
        return None
    place, interval = Store(account, bucket, cluster.name), cluster.etcd.backups.interval
    found = place.snapshots()
    newest = found[0].time if found else None
    late = newest is None or account.clock.now() - newest > timedelta(minutes=LATE * interval)
    return BackupState(bucket, newest, interval, late, str(place.read(REQUEST).get("snapshot", "")))


def addons(data: Mapping[str, str]) -> tuple[AddonState, ...]:
    """Return the add-ons, of what the ConfigMap holds."""
    return tuple(
        AddonState(
            name,
            str(each.get("version", "")),
            str(each.get("status", "")),
            _time(each.get("time")),
            str(each.get("message", "")),
        )
        for name, each in _read(data)
    )


def certificates(data: Mapping[str, str], masters: tuple[MasterState, ...]) -> tuple[Expiry, ...]:
    """Return when the certificates of the masters end, of what the ConfigMap holds.

    Args:
        data: by the ids of instances; those that are gone are left out.
        masters: the masters there are.
    """
    slots = {master.instance: master.slot for master in masters if master.instance}
    told = ((slots[instance], each) for instance, each in _read(data) if instance in slots)
    return tuple(
        Expiry(f"master {slot}: {each.get('which', 'certificate')}", ends)
        for slot, each in sorted(told, key=lambda item: item[0])
        if (ends := _time(each.get("expires")))
    )


def _read(data: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what is JSON of the right form; whatever else somebody wrote there is not ours."""
    for name, text in sorted(data.items()):
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield name, found


def _time(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else None
