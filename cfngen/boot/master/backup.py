"""Takes snapshots of etcd and uploads them to the cluster's bucket; each is verified before and after the upload.

A snapshot is always a new object: the role of masters may neither replace nor delete one.

Only the master whose etcd member is the leader takes them. A timer runs `backup` every minute, so that a request by
`cfngen etcd backup` is soon fulfilled. If no snapshot is due or requested, nothing is logged.
"""

from __future__ import annotations

import calendar
import json
import re
import time
from typing import TYPE_CHECKING

from ..machine import BootError, Machine
from . import bucket, objects
from .etcd_members import CREDENTIALS, client_url

if TYPE_CHECKING:
    from typing import TypeVar

    from ..contract import MasterBoot

    Json = TypeVar("Json")

SNAPSHOT_FOLDER = "/var/lib/cfngen/etcd"
SNAPSHOT_FILE = SNAPSHOT_FOLDER + "/snapshot.db"
# File with what `backup` remembers between two runs, see there.
STATE_FILE = "/var/lib/cfngen/backup.json"
TIMER = "cfngen-backup.timer"
REQUEST_OBJECT = "backup-request.json"
# The beginning of every etcdctl command. CREDENTIALS are kubeadm's client certificate for etcd's liveness probe, which
# may also read all data. The option `--command-timeout` is left out, since saving a large snapshot takes long.
ETCDCTL = ("etcdctl", f"--endpoints={client_url('127.0.0.1')}", *CREDENTIALS)
# A failed snapshot is retried after this time, or after the interval between snapshots if that is shorter.
RETRY_MINUTES = 5
# What an operator should look at after a failure that has no hint of its own.
FAILURE_HINT = "etcd's log in /var/log/pods; `df -h /var/lib /mnt/master`; `journalctl -u cfngen-backup`"


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
    interval = boot.config["backups"]["interval"]
    # "next": the minute (since 1970) of the next scheduled snapshot. "asked": a list with the ETag of the last handled
    # request, or an empty list; a new request replaces the object in the bucket, so the ETag differs. "failure": why
    # the last run failed, without digits; the same failure is written to the console once.
    state = json.loads(machine.read(STATE_FILE) or "{}")
    handled_requests = state.get("asked", [])
    requests = handled_requests
    try:
        if not _is_leader(machine):
            return ""
        requests = [request_object["ETag"] for request_object in bucket.list_objects(machine, boot, REQUEST_OBJECT)]
        if minute < state.get("next", 0) and requests == handled_requests:
            return ""
        request_id = str(bucket.read_document(machine, boot, REQUEST_OBJECT).get("id", "")) if requests else ""
        outcome = _take_snapshot(machine, boot, request_id)
    except BootError as error:
        # The requests count as handled, else they would be retried every minute. The next scheduled snapshot, after
        # RETRY_MINUTES at most, fulfils them.
        failure = re.sub(r"\d", "", str(error))
        next_state = {"next": minute + min(RETRY_MINUTES, interval), "asked": requests, "failure": failure}
        machine.write(STATE_FILE, json.dumps(next_state))
        if failure != state.get("failure"):
            text = f"cfngen-backup: NO SNAPSHOT OF ETCD WAS TAKEN: {error}. What to do: {error.hint or FAILURE_HINT}\n"
            machine.run("sh", "-c", "cat > /dev/console", stdin=text, expect=(0, 1, 2))
        raise
    machine.write(STATE_FILE, json.dumps({"next": (minute // interval + 1) * interval, "asked": requests}))
    return outcome


def _is_leader(machine: Machine) -> bool:
    """Return whether this master's etcd member is the leader, which takes the snapshots."""
    _, text = machine.run(*ETCDCTL, "endpoint", "status", "--write-out=json")
    status = dict((_parse_json(text, list) or [{}])[0].get("Status", {}))
    if not status.get("leader"):
        raise BootError("etcd has no leader", "are most of the masters up? `cfngen status` shows them")
    return bool(status["leader"] == status["header"]["member_id"])


def _take_snapshot(machine: Machine, boot: MasterBoot, request_id: str) -> str:
    """Take a snapshot, and upload it to `hourly/`, and to `daily/` if the day has none yet.

    Args:
        request_id: id of the operator's request, which becomes part of the object's metadata; "" without a request.

    Returns:
        The uploaded snapshot, for the log: its URL, size and number of keys.
    """
    facts, timestamp = boot.facts, machine.time().replace(":", "")
    machine.run("mkdir", "-p", "-m", "700", SNAPSHOT_FOLDER)
    machine.remove(SNAPSHOT_FOLDER + "/*")  # files of an interrupted attempt
    try:
        machine.run(*ETCDCTL, "snapshot", "save", SNAPSHOT_FILE)
        _, text = machine.run("etcdutl", "snapshot", "status", SNAPSHOT_FILE, "--write-out=json")
        status = _parse_json(text, dict)
        if not status.get("totalKey"):
            raise BootError("the snapshot contains no keys", FAILURE_HINT)
        size = int(machine.run("stat", "-c", "%s", SNAPSHOT_FILE)[1])
        summary = {"revision": str(status.get("revision", "")), "keys": str(status["totalKey"])}
        object_metadata = {**summary, "instance": facts["instanceId"], "request": request_id}
        key, day = _upload(machine, boot, "hourly", timestamp, object_metadata), timestamp[: len("2026-09-01")]
        daily_note = ""
        if not bucket.list_objects(machine, boot, f"daily/{day}"):
            _upload(machine, boot, "daily", timestamp, object_metadata)
            daily_note = ", also uploaded as the day's snapshot"
    finally:
        machine.remove(SNAPSHOT_FOLDER + "/*")
    return f"s3://{facts['bucket']}/{key}: {size / 2**20:.1f} MiB, {status['totalKey']} keys{daily_note}"


def _upload(machine: Machine, boot: MasterBoot, period: str, timestamp: str, object_metadata: dict[str, str]) -> str:
    """Upload the snapshot to the folder of a period, locked if the configuration says so; return its key."""
    key, lock, retention = bucket.key(boot, f"{period}/{timestamp}.db"), boot.config["backups"].get("lock"), {}
    if lock:
        until = machine.time(lock["days"][period] * 24 * 3600)
        retention = {"ObjectLockMode": lock["mode"], "ObjectLockRetainUntilDate": until}
    objects.upload(machine, boot.facts["bucket"], key, SNAPSHOT_FILE, object_metadata, retention)
    return key


def _parse_json(text: str, expected_type: type[Json]) -> Json:
    """Return the parsed JSON output of etcdctl or etcdutl."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, expected_type):
        raise BootError(f"unexpected output of etcd's program: {text.strip()[:200]!r}", FAILURE_HINT)
    return value
