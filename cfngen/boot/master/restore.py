"""Restores etcd from a snapshot in the cluster's bucket, when an operator has requested it.

The request is `restore.json` in the bucket: an id and a snapshot. Every slot restores the same snapshot, and together
they form a new etcd cluster (etcd's "Disaster recovery" guide). Each slot records on its volume which request it has
completed. Once the restored cluster works, the secret of the certificate authorities records that, too. A slot that
boots after that moves its data aside and joins the restored cluster instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..machine import BootError, Machine
from . import bucket, certificate_authorities, etcd_data, etcd_members, objects
from .etcd_data import DATA_FOLDER, VOLUME_MOUNT

if TYPE_CHECKING:
    from ..contract import Bundle, MasterBoot

REQUEST_OBJECT = "restore.json"
# File with the id of the last restore request that this slot has completed, or does not need as its data is newer.
DONE_FILE = VOLUME_MOUNT + "/restored"
# State of this slot: it still has to restore the snapshot.
RESTORE_PENDING = "pending"
# State of this slot: the cluster has been restored without this slot, whose data is therefore outdated.
RESTORE_MISSED = "missed"
# The argument of etcdutl's option `--bump-revision`: by how much the restore raises etcd's revision. Clients that watch
# objects remember revisions from after the snapshot. The restore raises the revision by more than any cluster has
# written since, and marks older ones as compacted: so clients list everything again and miss no change
# (etcd-io/etcd#16028).
REVISION_BUMP = "1000000000"


def state(machine: Machine, boot: MasterBoot, bundle: Bundle) -> str:
    """Return whether this slot has to restore etcd; the operator's request is stored in `boot.restore_request`.

    Returns:
        RESTORE_PENDING if this slot has to restore the snapshot, RESTORE_MISSED if the cluster was restored without
        this slot, otherwise "".

    Raises:
        BootError: the request is malformed; or it cannot be read, and the volume has no data.
    """
    if not boot.facts.get("bucket"):
        return ""
    try:
        request = bucket.read_document(machine, boot, REQUEST_OBJECT)
    except BootError as error:
        if not etcd_data.has_data(machine):
            raise
        # A master whose volume has data boots even if S3 cannot be reached.
        machine.say(f"could not check whether a restore was requested, so the volume's data is used: {error}")
        return ""
    if not request:
        return ""
    # The id must be valid in a file name: it becomes part of the name of the folder with the old data.
    patterns = {"id": r"\w[\w-]{0,63}", "snapshot": r"[\w./:+-]+"}
    if not all(re.fullmatch(pattern, str(request.get(name, ""))) for name, pattern in patterns.items()):
        raise BootError(f"{REQUEST_OBJECT} in {boot.facts['bucket']} lacks a valid id or snapshot", hint(boot))
    boot.restore_request = request
    if machine.read(DONE_FILE) == request["id"]:
        return ""
    if not bundle.get(certificate_authorities.INITIALISED_AT):
        # The request was for an earlier cluster of this name, whose bucket was kept.
        mark_done(machine, boot)
        return ""
    is_cluster_restored = bundle.get(certificate_authorities.RESTORED_REQUEST_ID) == request["id"]
    return RESTORE_MISSED if is_cluster_restored else RESTORE_PENDING


def mark_done(machine: Machine, boot: MasterBoot) -> None:
    """Record on the volume that this slot has completed the operator's request, or does not need it."""
    if boot.restore_request:
        machine.write(DONE_FILE, boot.restore_request["id"])


def perform(machine: Machine, boot: MasterBoot) -> str:
    """Replace this slot's etcd data with the data of the requested snapshot, and move the old data aside.

    The restored data directory contains the list of members, so etcd ignores `--initial-cluster` in its manifest: it
    reads that flag only if there is no write-ahead log ("Clustering Guide", etcd).

    Raises:
        BootError: the snapshot cannot be downloaded, or is damaged; the old data is still in place.
    """
    request, bucket_name = boot.restore_request, boot.facts["bucket"]
    request_id, snapshot = request["id"], request["snapshot"]
    file, new_folder, old_folder = (
        f"{VOLUME_MOUNT}/snapshot.db",
        DATA_FOLDER + ".new",
        f"{DATA_FOLDER}.before-{request_id}",
    )
    objects.download(machine, bucket_name, snapshot, file)
    digest = machine.sha256(file)
    if request.get("sha256", digest) != digest:
        raise BootError(f"s3://{bucket_name}/{snapshot} has SHA-256 {digest}, not {request['sha256']}", hint(boot))
    # This fails if the snapshot is damaged.
    machine.run("etcdutl", "snapshot", "status", file, "--write-out=json")
    etcd_data.stop_kubelet_and_pods(machine)
    machine.remove(new_folder)
    slot = boot.facts["slot"]
    peer_urls = {letter: etcd_members.peer_url(address) for letter, address in sorted(boot.config["masters"].items())}
    # Each member is named by the letter of its slot.
    initial_cluster = ",".join(f"{letter}={url}" for letter, url in peer_urls.items())
    machine.run(
        "etcdutl",
        "snapshot",
        "restore",
        file,
        f"--data-dir={new_folder}",
        f"--name={slot}",
        f"--initial-cluster={initial_cluster}",
        f"--initial-cluster-token={request_id}",
        f"--initial-advertise-peer-urls={peer_urls[slot]}",
        f"--bump-revision={REVISION_BUMP}",
        "--mark-compacted",
    )
    if machine.glob(old_folder + "/**/*"):
        # An interrupted attempt has already moved the old data aside. FOLDER can be removed: it contains at most
        # restored data, with which etcd has never run.
        machine.remove(DATA_FOLDER)
    elif machine.glob(DATA_FOLDER + "/**/*"):
        machine.run("mv", "-T", DATA_FOLDER, old_folder)
    else:
        machine.remove(DATA_FOLDER)
    machine.run("mv", "-T", new_folder, DATA_FOLDER)
    machine.remove(etcd_data.MEMBER_ID_FILE, etcd_data.JOINING_FILE)
    mark_done(machine, boot)
    machine.remove(file)
    return f"restored {snapshot} for request {request_id}; the previous data is in {old_folder}"


def hint(boot: MasterBoot) -> str:
    """Return what an operator should do if the request cannot be fulfilled."""
    key = bucket.key(boot, REQUEST_OBJECT)
    return f"request another snapshot (`cfngen etcd list` shows them), or withdraw the request: `aws s3 rm s3://{boot.facts['bucket']}/{key}`"
