"""Snapshots of etcd in the cluster's bucket: taken by the leader's master, verified before and after the upload.

A timer comes by each minute, so that a request of `cfngen etcd backup` is answered soon; most of the time there is
nothing to do, and nothing is said.
"""

from __future__ import annotations

import calendar
import json
import time
from typing import Any, TypeVar

from . import bucket, objects
from .etcd_members import CREDENTIALS, client_url
from .machine import BootError, Machine

FOLDER = "/var/lib/cfngen/etcd"
FILE = FOLDER + "/snapshot.db"
STATE = "/var/lib/cfngen/backup.json"
TIMER = "cfngen-backup.timer"
REQUEST = "backup-request.json"
# kubeadm's certificate for probing etcd is good for reading all of it, too. No time-out: a snapshot may be large.
ETCDCTL = ("etcdctl", f"--endpoints={client_url('127.0.0.1')}", *CREDENTIALS)
RETRY_MINUTES = 5  # minutes after which a failed snapshot is tried again, at most
Json = TypeVar("Kind")
HINT = "etcd's log in /var/log/pods; `df -h /var/lib /mnt/master`; `journalctl -u cfngen-backup`"


def schedule(machine: Machine, config: dict[str, Any]) -> str:
    """Let the timer take snapshots from now on."""
    machine.run("systemctl", "enable", "--now", TIMER)
    return f"a snapshot of etcd every {config['backups']['interval']} minutes into s3://{config['facts']['bucket']}"


def backup(machine: Machine, config: dict[str, Any]) -> str:
    """Take a snapshot if one is due or asked for, and if etcd's leader is on this master.

    Returns:
        What was done; nothing if nothing was to be done.

    Raises:
        BootError: there is no snapshot that could be trusted; the console says so too.
    """
    minute = calendar.timegm(time.strptime(machine.time(), "%Y-%m-%dT%H:%M:%SZ")) // 60
    interval, state = config["backups"]["interval"], json.loads(machine.read(STATE) or "{}")
    requests = state.get("asked", [])
    try:
        if not _is_leader(machine):
            return ""
        requests = [request_object["ETag"] for request_object in bucket.listed(machine, config, REQUEST)]
        if minute < state.get("next", 0) and requests == state.get("asked", []):
            return ""
        request = str(bucket.document(machine, config, REQUEST).get("id", "")) if requests else ""
        outcome = _take_snapshot(machine, config, request)
    except BootError as error:
        # Whatever snapshot comes next answers a request, too.
        machine.write(STATE, json.dumps({"next": minute + min(RETRY_MINUTES, interval), "asked": requests}))
        text = f"cfngen-backup: NO SNAPSHOT OF ETCD WAS TAKEN: {error}. What to do: {error.hint or HINT}\n"
        machine.run("sh", "-c", "cat > /dev/console", stdin=text, expect=(0, 1, 2))
        raise
    machine.write(STATE, json.dumps({"next": (minute // interval + 1) * interval, "asked": requests}))
    return outcome


def _is_leader(machine: Machine) -> bool:
    """Return whether this master's member of etcd is the leader; the others have nothing to do.

    Raises:
        BootError: the member does not answer, or knows no leader.
    """
    _, text = machine.run(*ETCDCTL, "endpoint", "status", "--write-out=json")
    status = dict((_parse_json(text, list) or [{}])[0].get("Status", {}))
    if not status.get("leader"):
        raise BootError("etcd has no leader", "are most of the masters up? `cfngen status` shows them")
    return bool(status["leader"] == status["header"]["member_id"])


def _take_snapshot(machine: Machine, config: dict[str, Any], request: str) -> str:
    """Take a snapshot, upload it, and keep it as the day's if that has none."""
    facts, timestamp = config["facts"], machine.time().replace(":", "")
    machine.run("mkdir", "-p", "-m", "700", FOLDER)
    machine.remove(FOLDER + "/*")  # what an attempt left that was cut off
    try:
        machine.run(*ETCDCTL, "snapshot", "save", FILE)
        _, text = machine.run("etcdutl", "snapshot", "status", FILE, "--write-out=json")
        status = _parse_json(text, dict)
        if not status.get("totalKey"):
            raise BootError("the snapshot holds no key", HINT)
        size = int(machine.run("stat", "-c", "%s", FILE)[1])
        summary = {"revision": str(status.get("revision", "")), "keys": str(status["totalKey"])}
        metadata = {**summary, "instance": facts["instanceId"], "request": request}
        key, sha256 = bucket.key(config, f"hourly/{timestamp}.db"), machine.sha256(FILE)
        objects.put(machine, facts["bucket"], key, FILE, metadata)
        _verify_upload(machine, facts["bucket"], key, size, sha256)
    finally:
        machine.remove(FOLDER + "/*")
    daily_note = _copy_to_daily(machine, config, key, timestamp, size, sha256)
    return f"s3://{facts['bucket']}/{key}: {size / 2**20:.1f} MiB, {status['totalKey']} keys{daily_note}"


def _parse_json(text: str, kind: type[Json]) -> Json:
    """Return what a program of etcd says in JSON.

    Raises:
        BootError: it says something else.
    """
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise BootError(f"etcd's program answered {text.strip()[:200]!r}", HINT)
    return value


def _copy_to_daily(machine: Machine, config: dict[str, Any], key: str, timestamp: str, size: int, sha256: str) -> str:
    """Copy the snapshot to those of the days, if its day has none yet."""
    if bucket.listed(machine, config, f"daily/{timestamp[:10]}"):
        return ""
    bucket_name, daily_key = config["facts"]["bucket"], bucket.key(config, f"daily/{timestamp}.db")
    machine.aws("s3", "copy_object", Bucket=bucket_name, Key=daily_key, CopySource={"Bucket": bucket_name, "Key": key})
    _verify_upload(machine, bucket_name, daily_key, size, sha256)
    return ", and the day's"


def _verify_upload(machine: Machine, bucket_name: str, key: str, size: int, sha256: str) -> None:
    """Make sure that S3 holds what was sent; that each byte of it arrived, S3 has checked itself.

    Raises:
        BootError: it does not.
    """
    response = machine.aws("s3", "head_object", Bucket=bucket_name, Key=key)
    if response["ContentLength"] != size or response["Metadata"].get("sha256") != sha256:
        raise BootError(
            f"s3://{bucket_name}/{key} is not what was uploaded: {response['ContentLength']} bytes of {size}",
            "who else writes to the bucket?",
        )
