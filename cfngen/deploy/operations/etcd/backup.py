"""Takes an etcd snapshot on demand: cfngen writes a request into the bucket, and a master takes the snapshot.

No open port, shell or agent is needed.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

from cfngen.deploy.aws.snapshots import Snapshot, SnapshotStore
from cfngen.deploy.messages.message import Message, Report, Step
from cfngen.deploy.operations.runner import OperationInterruptedError, rounds
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

REQUEST_KEY = "backup-request.json"
DEFAULT_TIMEOUT = timedelta(minutes=5)
"""The masters look for a request every minute, and a large database takes some time to read and upload."""
POLL_INTERVAL_SECONDS = 5.0
PROGRESS_INTERVAL_SECONDS = 60.0


class NoAnswerError(CfngenError):
    """No master took the snapshot before the timeout."""

    code = "snapshot-timeout"


@dataclass(frozen=True)
class BackupTaken(Message):
    """A snapshot was taken on request.

    Attributes:
        cluster: name of the cluster.
        bucket: the bucket.
        snapshot: the snapshot.
        seconds: how long it took.
    """

    kind: ClassVar[str] = "etcdBackup"
    cluster: str
    bucket: str
    snapshot: Snapshot
    seconds: float


def take_snapshot(store: SnapshotStore, report: Report, timeout: timedelta = DEFAULT_TIMEOUT) -> BackupTaken:
    """Request a snapshot from the masters, and wait until it is in the bucket.

    Raises:
        NoAnswerError: no master took the snapshot before the timeout.
        OperationInterruptedError: the user interrupted the command; a master takes the snapshot all the same.
    """
    started = store.account.clock.now()
    request_id = str(uuid.uuid4())
    # Keys of the snapshots that are known not to be the requested one.
    ignored_keys = {snapshot.key for snapshot in store.snapshots()}
    store.write(REQUEST_KEY, {"id": request_id, "created": started.isoformat()})
    report(Step("requesting a snapshot from etcd's leader; the masters check for requests every minute"))
    try:
        return _wait_for_snapshot(store, report, timeout, request_id, ignored_keys)
    except KeyboardInterrupt:
        raise OperationInterruptedError(
            "interrupted; a master takes the snapshot without cfngen",
            hint=CommandText(suggest("etcd list"), " shows it within some minutes."),
        ) from None


def _wait_for_snapshot(
    store: SnapshotStore, report: Report, timeout: timedelta, request_id: str, ignored_keys: set[str]
) -> BackupTaken:
    last_progress = 0.0
    for elapsed in rounds(store.account.clock, timeout, POLL_INTERVAL_SECONDS):
        seconds = elapsed.total_seconds()
        if snapshot := _find_requested(store, request_id, ignored_keys):
            return BackupTaken(cluster=store.cluster, bucket=store.bucket, snapshot=snapshot, seconds=seconds)
        if seconds - last_progress >= PROGRESS_INTERVAL_SECONDS and elapsed < timeout:
            last_progress = seconds
            report(Step(f"waiting for the snapshot ({seconds:.0f} s)"))
    raise NoAnswerError(
        f"no master has taken a snapshot within {seconds:.0f} seconds",
        hint=CommandText(
            suggest("status"),
            (
                " shows whether they are healthy; on a master, `journalctl -u cfngen-backup` shows why not. "
                "The request remains in the bucket: a master takes the snapshot as soon as it can."
            ),
        ),
    )


def _find_requested(store: SnapshotStore, request_id: str, ignored_keys: set[str]) -> Snapshot | None:
    """Return the snapshot that answers a request; add the keys of other new ones to those to ignore."""
    for snapshot in store.snapshots():
        # A daily snapshot is only a copy of an hourly one.
        if snapshot.key in ignored_keys or snapshot.period != "hourly":
            continue
        if store.metadata(snapshot.key).get("request") == request_id:
            # The age is negative if this machine's clock is behind the master's.
            return replace(snapshot, age=max(snapshot.age, 0.0))
        ignored_keys.add(snapshot.key)  # a scheduled snapshot that was taken at the same time
    return None
