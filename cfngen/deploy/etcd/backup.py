"""A snapshot of etcd at once, asked of the masters through the bucket: no port, no shell and no agent is needed."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

from cfngen.deploy.etcd.snapshots import Snapshot, Store
from cfngen.deploy.messages import Message, Report, Step
from cfngen.errors import CfngenError

REQUEST = "backup-request.json"
PATIENCE = timedelta(minutes=5)
"""The masters look each minute, and a large database takes a while to be read and uploaded."""
PAUSE = 5.0  # seconds between two looks
SAY = 60.0  # seconds between two words that it still takes


class NoAnswerError(CfngenError):
    """No master has taken the snapshot in time."""


@dataclass(frozen=True)
class BackupTaken(Message):
    """A snapshot was taken because somebody asked for it.

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


def take(place: Store, report: Report, patience: timedelta = PATIENCE) -> BackupTaken:
    """Ask the masters for a snapshot, and wait until it lies in the bucket.

    Args:
        place: where it shall lie.
        report: told what is waited for.
        patience: how long at most.

    Raises:
        NoAnswerError: it does not appear.
        AwsError: S3 refuses.
    """
    clock = place.account.clock
    began = clock.now()
    identity = str(uuid.uuid4())
    before = {snapshot.key for snapshot in place.snapshots()}
    place.write(REQUEST, {"id": identity, "created": began.isoformat()})
    report(Step("asking etcd's leader for a snapshot; the masters look each minute"))
    said = 0.0
    while True:
        for snapshot in place.snapshots():
            if snapshot.key in before or snapshot.period != "hourly":
                continue
            if place.metadata(snapshot.key).get("request") == identity:
                passed = (clock.now() - began).total_seconds()
                return BackupTaken(place.cluster, place.bucket, replace(snapshot, age=max(snapshot.age, 0.0)), passed)
            before.add(snapshot.key)  # one that was under way already
        passed = (clock.now() - began).total_seconds()
        if passed >= patience.total_seconds():
            raise NoAnswerError(
                f"no master has taken a snapshot within {passed:.0f} seconds",
                hint="`cfngen status` shows whether they work; on a master `journalctl -u cfngen-backup` says why not. "
                "The request stays, and is answered as soon as one can.",
            )
        if passed - said >= SAY:
            said = passed
            report(Step(f"waiting for the snapshot ({passed:.0f} s)"))
        clock.sleep(PAUSE)
