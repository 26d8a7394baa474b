"""Restoring etcd from a snapshot in the cluster's bucket, because an operator asked for it.

`restore.json` in the bucket is the request: an id and a snapshot. Every slot does the same with the same snapshot, so
that together they are a new cluster of etcd (etcd's "Disaster recovery" guide). A slot notes on its volume which
request it has fulfilled; once the restored cluster works, the secret of the authorities notes it for all. A slot that
missed it joins the restored cluster instead: it would bring back a member that the others have gone on without.
"""

from __future__ import annotations

import re
from typing import Any

from . import bucket, certificate_authorities, etcd_data, etcd_members, objects
from .etcd_data import FOLDER, VOLUME
from .machine import BootError, Machine

REQUEST = "restore.json"
# Id of the last request that this volume's data takes into account.
RECORD = VOLUME + "/restored"
PENDING, MISSED = "pending", "missed"
# Watchers remember revisions of the time after the snapshot. A jump that no cluster makes in that time, and calling all
# older ones compacted, makes them read everything anew instead of missing what changed (etcd-io/etcd#16028).
REVISION_BUMP = "1000000000"


def state(machine: Machine, config: dict[str, Any], bundle: dict[str, str]) -> str:
    """Return whether this slot has to restore (`pending`), has missed it (`missed`), or neither (an empty text).

    Raises:
        BootError: the request is not one.
    """
    if not config["facts"].get("bucket"):
        return ""
    try:
        request = bucket.document(machine, config, REQUEST)
    except BootError as error:
        if not etcd_data.whole(machine):
            raise
        # A cluster that has its data comes back while S3 is away.
        machine.say(f"nobody knows whether a restore was asked for, and the volume's data is taken: {error}")
        return ""
    if not request:
        return ""
    # The id becomes a part of a folder's name.
    patterns = {"id": r"\w[\w-]{0,63}", "snapshot": r"[\w./:+-]+"}
    if not all(re.fullmatch(pattern, str(request.get(name, ""))) for name, pattern in patterns.items()):
        raise BootError(f"{REQUEST} in {config['facts']['bucket']} names no id or no snapshot", hint(config))
    config["restore"] = request
    if machine.read(RECORD) == request["id"]:
        return ""
    if not bundle.get(certificate_authorities.INITIALISED):
        # It was meant for an earlier cluster of this name, whose bucket outlived it.
        note(machine, config)
        return ""
    return MISSED if bundle.get(certificate_authorities.RESTORED) == request["id"] else PENDING


def note(machine: Machine, config: dict[str, Any]) -> None:
    """Note on the volume that its data takes the request into account."""
    if config.get("restore"):
        machine.write(RECORD, config["restore"]["id"])


def perform(machine: Machine, config: dict[str, Any]) -> str:
    """Put the snapshot's data in the place of this slot's, which is moved aside; return what was done.

    The new data directory holds the membership, so etcd ignores the `--initial-cluster` of its manifest: it reads that
    only where there is no write-ahead log yet ("Clustering Guide", etcd).

    Raises:
        BootError: the snapshot cannot be had, or is damaged; the old data is where it was.
    """
    request, bucket_name = config["restore"], config["facts"]["bucket"]
    request_id, snapshot = request["id"], request["snapshot"]
    file, new_folder, old_folder = f"{VOLUME}/snapshot.db", FOLDER + ".new", f"{FOLDER}.before-{request_id}"
    objects.get(machine, bucket_name, snapshot, file)
    digest = machine.sha256(file)
    if request.get("sha256", digest) != digest:
        raise BootError(f"s3://{bucket_name}/{snapshot} has SHA-256 {digest}, not {request['sha256']}", hint(config))
    machine.run("etcdutl", "snapshot", "status", file, "--write-out=json")
    etcd_data.stop(machine)
    machine.remove(new_folder)
    peers = {letter: etcd_members.peer_url(address) for letter, address in sorted(config["masters"].items())}
    slot = config["facts"]["slot"]
    machine.run(
        "etcdutl",
        "snapshot",
        "restore",
        file,
        f"--data-dir={new_folder}",
        f"--name={slot}",
        f"--initial-cluster={','.join(f'{letter}={url}' for letter, url in peers.items())}",
        f"--initial-cluster-token={request_id}",
        f"--initial-advertise-peer-urls={peers[slot]}",
        f"--bump-revision={REVISION_BUMP}",
        "--mark-compacted",
    )
    if machine.glob(old_folder + "/**/*"):
        # Set aside by an attempt that was cut off; what took its place has never run.
        machine.remove(FOLDER)
    elif machine.glob(FOLDER + "/**/*"):
        machine.run("mv", "-T", FOLDER, old_folder)
    else:
        machine.remove(FOLDER)
    machine.run("mv", "-T", new_folder, FOLDER)
    machine.remove(etcd_data.MEMBER, etcd_data.JOINING)
    note(machine, config)
    machine.remove(file)
    return f"restored {snapshot} as request {request_id} says; what was there is in {old_folder}"


def hint(config: dict[str, Any]) -> str:
    """Return how to take the request back."""
    key = bucket.key(config, REQUEST)
    return f"ask for another snapshot (`cfngen etcd list`), or: `aws s3 rm s3://{config['facts']['bucket']}/{key}`"
