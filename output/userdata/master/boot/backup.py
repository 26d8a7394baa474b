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
AGAIN = 5  # minutes after which a failed snapshot is tried again, at most
Kind = TypeVar("Kind")
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
    now = calendar.timegm(time.strptime(machine.time(), "%Y-%m-%dT%H:%M:%SZ")) // 60
    interval, state = config["backups"]["interval"], json.loads(machine.read(STATE) or "{}")
    asked = state.get("asked", [])
    try:
        if not _leads(machine):
            return ""
        asked = [each["ETag"] for each in bucket.listed(machine, config, REQUEST)]
        if now < state.get("next", 0) and asked == state.get("asked", []):
            return ""
        request = str(bucket.document(machine, config, REQUEST).get("id", "")) if asked else ""
        done = _take(machine, config, request)
    except BootError as error:
        # Whatever snapshot comes next answers a request, too.
        machine.write(STATE, json.dumps({"next": now + min(AGAIN, interval), "asked": asked}))
        text = f"cfngen-backup: NO SNAPSHOT OF ETCD WAS TAKEN: {error}. What to do: {error.hint or HINT}\n"
        machine.run("sh", "-c", "cat > /dev/console", stdin=text, expect=(0, 1, 2))
        raise
    machine.write(STATE, json.dumps({"next": (now // interval + 1) * interval, "asked": asked}))
    return done


def _leads(machine: Machine) -> bool:
    """Return whether this master's member of etcd is the leader; the others have nothing to do.

    Raises:
        BootError: the member does not answer, or knows no leader.
    """
    _, text = machine.run(*ETCDCTL, "endpoint", "status", "--write-out=json")
    status = dict((_read(text, list) or [{}])[0].get("Status", {}))
    if not status.get("leader"):
        raise BootError("etcd has no leader", "are most of the masters up? `cfngen status` shows them")
    return bool(status["leader"] == status["header"]["member_id"])


def _take(machine: Machine, config: dict[str, Any], request: str) -> str:
    """Take a snapshot, upload it, and keep it as the day's if that has none."""
    facts, moment = config["facts"], machine.time().replace(":", "")
    machine.run("mkdir", "-p", "-m", "700", FOLDER)
    machine.remove(FOLDER + "/*")  # what an attempt left that was cut off
    try:
        machine.run(*ETCDCTL, "snapshot", "save", FILE)
        _, text = machine.run("etcdutl", "snapshot", "status", FILE, "--write-out=json")
        found = _read(text, dict)
        if not found.get("totalKey"):
            raise BootError("the snapshot holds no key", HINT)
        size = int(machine.run("stat", "-c", "%s", FILE)[1])
        about = {"revision": str(found.get("revision", "")), "keys": str(found["totalKey"])}
        metadata = {**about, "instance": facts["instanceId"], "request": request}
        key, sha256 = bucket.key(config, f"hourly/{moment}.db"), machine.sha256(FILE)
        objects.put(machine, facts["bucket"], key, FILE, metadata)
        _verify(machine, facts["bucket"], key, size, sha256)
    finally:
        machine.remove(FOLDER + "/*")
    day = _keep_of_day(machine, config, key, moment, size, sha256)
    return f"s3://{facts['bucket']}/{key}: {size / 2**20:.1f} MiB, {found['totalKey']} keys{day}"


def _read(text: str, kind: type[Kind]) -> Kind:
    """Return what a program of etcd says in JSON.

    Raises:
        BootError: it says something else.
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, kind):
        raise BootError(f"etcd's program answered {text.strip()[:200]!r}", HINT)
    return found


def _keep_of_day(machine: Machine, config: dict[str, Any], key: str, moment: str, size: int, sha256: str) -> str:
    """Copy the snapshot to those of the days, if its day has none yet."""
    if bucket.listed(machine, config, f"daily/{moment[:10]}"):
        return ""
    name, copy = config["facts"]["bucket"], bucket.key(config, f"daily/{moment}.db")
    machine.aws("s3", "copy_object", Bucket=name, Key=copy, CopySource={"Bucket": name, "Key": key})
    _verify(machine, name, copy, size, sha256)
    return ", and the day's"


def _verify(machine: Machine, name: str, key: str, size: int, sha256: str) -> None:
    """Make sure that S3 holds what was sent; that each byte of it arrived, S3 has checked itself.

    Raises:
        BootError: it does not.
    """
    found = machine.aws("s3", "head_object", Bucket=name, Key=key)
    if found["ContentLength"] != size or found["Metadata"].get("sha256") != sha256:
        raise BootError(
            f"s3://{name}/{key} is not what was uploaded: {found['ContentLength']} bytes of {size}",
            "who else writes to the bucket?",
        )
