"""Takes snapshots of etcd on the leader's master, and uploads them to the cluster's bucket, verified before and after.

A timer runs this every minute, so that a request by `cfngen etcd backup` is soon fulfilled. If there is nothing to do,
nothing is logged.
"""

from __future__ import annotations

import calendar
import json
import time
from typing import TYPE_CHECKING

from ..machine import BootError, Machine
from . import bucket, objects
from .etcd_members import CREDENTIALS, client_url

if TYPE_CHECKING:
    from typing import TypeVar

    from ..contract import MasterBoot

    Json = TypeVar("Json")

FOLDER = "/var/lib/cfngen/etcd"
FILE = FOLDER + "/snapshot.db"
STATE_FILE = "/var/lib/cfngen/backup.json"
TIMER = "cfngen-backup.timer"
REQUEST = "backup-request.json"
# kubeadm's client certificate for etcd's liveness probe may also read all data. No time-out: a snapshot may be large.
ETCDCTL = ("etcdctl", f"--endpoints={client_url('127.0.0.1')}", *CREDENTIALS)
RETRY_MINUTES = 5  # a failed snapshot is retried after this time, or after the interval if that is shorter
HINT = "etcd's log in /var/log/pods; `df -h /var/lib /mnt/master`; `journalctl -u cfngen-backup`"


def schedule(machine: Machine, boot: MasterBoot) -> str:
    """Enable and start the timer for snapshots."""
    machine.run("systemctl", "enable", "--now", TIMER)
    return f"a snapshot of etcd every {boot.config['backups']['interval']} minutes into s3://{boot.facts['bucket']}"


def backup(machine: Machine, boot: MasterBoot) -> str:
    """Take a snapshot if one is due or was requested, and if this master's etcd member is the leader.

    Returns:
        The uploaded snapshot, for the log; "" if no snapshot was due.

    Raises:
        BootError: the snapshot failed or could not be verified; this is also written to the console.
    """
    minute = calendar.timegm(time.strptime(machine.time(), "%Y-%m-%dT%H:%M:%SZ")) // 60
    interval, state = boot.config["backups"]["interval"], json.loads(machine.read(STATE_FILE) or "{}")
    # "asked": the ETag of the last handled request; a new request replaces the object, so its ETag differs.
    requests = state.get("asked", [])
    try:
        if not _is_leader(machine):
            return ""
        requests = [request_object["ETag"] for request_object in bucket.list_objects(machine, boot, REQUEST)]
        if minute < state.get("next", 0) and requests == state.get("asked", []):
            return ""
        request = str(bucket.read_document(machine, boot, REQUEST).get("id", "")) if requests else ""
        outcome = _take_snapshot(machine, boot, request)
    except BootError as error:
        # The requests count as handled: the next attempt fulfils them.
        machine.write(STATE_FILE, json.dumps({"next": minute + min(RETRY_MINUTES, interval), "asked": requests}))
        text = f"cfngen-backup: NO SNAPSHOT OF ETCD WAS TAKEN: {error}. What to do: {error.hint or HINT}\n"
        machine.run("sh", "-c", "cat > /dev/console", stdin=text, expect=(0, 1, 2))
        raise
    machine.write(STATE_FILE, json.dumps({"next": (minute // interval + 1) * interval, "asked": requests}))
    return outcome


def _is_leader(machine: Machine) -> bool:
    """Return whether this master's etcd member is the leader, which takes the snapshots.

    Raises:
        BootError: the member does not answer, or there is no leader.
    """
    _, text = machine.run(*ETCDCTL, "endpoint", "status", "--write-out=json")
    status = dict((_parse_json(text, list) or [{}])[0].get("Status", {}))
    if not status.get("leader"):
        raise BootError("etcd has no leader", "are most of the masters up? `cfngen status` shows them")
    return bool(status["leader"] == status["header"]["member_id"])


def _take_snapshot(machine: Machine, boot: MasterBoot, request: str) -> str:
    """Take a snapshot, upload it to `hourly/`, and copy it to `daily/` if the day has none; return a log text."""
    facts, timestamp = boot.facts, machine.time().replace(":", "")
    machine.run("mkdir", "-p", "-m", "700", FOLDER)
    machine.remove(FOLDER + "/*")  # of an interrupted attempt
    try:
        machine.run(*ETCDCTL, "snapshot", "save", FILE)
        _, text = machine.run("etcdutl", "snapshot", "status", FILE, "--write-out=json")
        status = _parse_json(text, dict)
        if not status.get("totalKey"):
            raise BootError("the snapshot contains no keys", HINT)
        size = int(machine.run("stat", "-c", "%s", FILE)[1])
        summary = {"revision": str(status.get("revision", "")), "keys": str(status["totalKey"])}
        metadata = {**summary, "instance": facts["instanceId"], "request": request}
        key, sha256 = bucket.key(boot, f"hourly/{timestamp}.db"), machine.sha256(FILE)
        objects.put(machine, facts["bucket"], key, FILE, metadata)
        _verify_upload(machine, facts["bucket"], key, size, sha256)
    finally:
        machine.remove(FOLDER + "/*")
    daily_note = _copy_to_daily(machine, boot, key, timestamp, size, sha256)
    return f"s3://{facts['bucket']}/{key}: {size / 2**20:.1f} MiB, {status['totalKey']} keys{daily_note}"


def _parse_json(text: str, kind: type[Json]) -> Json:
    """Return the parsed JSON output of etcdctl or etcdutl.

    Raises:
        BootError: the output is not JSON, or of another type.
    """
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise BootError(f"unexpected output of etcd's program: {text.strip()[:200]!r}", HINT)
    return value


def _copy_to_daily(machine: Machine, boot: MasterBoot, key: str, timestamp: str, size: int, sha256: str) -> str:
    """Copy the snapshot to `daily/` unless that has a snapshot of the same day; return a note for the log."""
    if bucket.list_objects(machine, boot, f"daily/{timestamp[:10]}"):
        return ""
    bucket_name, daily_key = boot.facts["bucket"], bucket.key(boot, f"daily/{timestamp}.db")
    machine.aws("s3", "copy_object", Bucket=bucket_name, Key=daily_key, CopySource={"Bucket": bucket_name, "Key": key})
    _verify_upload(machine, bucket_name, daily_key, size, sha256)
    return ", also copied as the day's snapshot"


def _verify_upload(machine: Machine, bucket_name: str, key: str, size: int, sha256: str) -> None:
    """Check size and digest in the metadata of an uploaded object; S3 itself has verified the checksum of its content.

    Raises:
        BootError: size or digest differ from those of the local file.
    """
    response = machine.aws("s3", "head_object", Bucket=bucket_name, Key=key)
    if response["ContentLength"] != size or response["Metadata"].get("sha256") != sha256:
        raise BootError(
            f"s3://{bucket_name}/{key} differs from the uploaded snapshot "
            f"({response['ContentLength']} of {size} bytes)",
            "check who else writes to the bucket",
        )
