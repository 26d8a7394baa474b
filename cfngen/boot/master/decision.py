"""Chooses a master's boot mode from the state of its volume, the secret and etcd; no configuration flag sets it.

| mode    | when                                                                                               |
| ------- | -------------------------------------------------------------------------------------------------- |
| steady  | this instance is set up already: it was only rebooted                                              |
| resume  | the volume has the data of an etcd member that the other members still list                        |
| restore | an operator requested a restore, and this slot has not restored yet                                |
| join    | the cluster exists and has several slots, but this slot's volume has no usable data                |
| init    | no cluster was ever initialised, and this is slot a; the other slots wait for it                   |

Any other state is an error with a hint. Whether the cluster exists is recorded in the secret of the certificate
authorities: once it is recorded, a blank volume never leads to a new cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..host import kubelet
from ..machine import BootError, Machine, Pending
from . import certificate_authorities, etcd_data, etcd_members, restore

if TYPE_CHECKING:
    from ..contract import Bundle, MasterBoot

STEADY, RESUME, RESTORE, JOIN, INIT = "steady", "resume", "restore", "join", "init"
FIRST_SLOT = "a"


def await_cluster(machine: Machine, boot: MasterBoot) -> Bundle:
    """Return the content of the certificate authorities' secret, once the cluster is initialised.

    The master in the first slot does not wait, as it initialises the cluster; nor does a master whose volume has etcd's
    data, as it needs no other master.

    Raises:
        BootError: the cluster was not initialised in time.
    """
    must_wait = boot.facts["slot"] != FIRST_SLOT and not etcd_data.has_data(machine)

    def probe() -> Bundle:
        bundle = certificate_authorities.load(machine, boot)
        if must_wait and not bundle.get(certificate_authorities.INITIALISED_AT):
            raise Pending(f"slot {FIRST_SLOT} has not initialised the cluster yet")
        return bundle

    hint = f"check the console of master {FIRST_SLOT}: its boot may have failed"
    return machine.wait("the first master", probe, hint, boot.remaining(machine))


def decide(machine: Machine, boot: MasterBoot, bundle: Bundle) -> str:
    """Return this master's boot mode; etcd data that can no longer be used is moved aside.

    Args:
        machine: the master; the certificate authorities are in place, so that etcd's other members can be queried.

    Raises:
        BootError: volume and secret contradict each other; continuing would lose the cluster or create a second one.
    """
    volume, secret = boot.facts["volumeId"], boot.facts["caSecretArn"]
    has_peers, has_data = len(boot.config["masters"]) > 1, etcd_data.has_data(machine)
    if has_data and not bundle:
        raise BootError(
            f"{volume} contains a cluster's data, but secret {secret} is empty",
            certificate_authorities.SECRET_RECOVERY_HINT,
        )
    restore_state = restore.state(machine, boot, bundle)
    if restore_state == restore.RESTORE_PENDING:
        return RESTORE
    if has_data and restore_state == restore.RESTORE_MISSED:
        _move_data_aside(
            machine,
            name=f"before-{boot.restore_request['id']}",
            reason="the cluster was restored from a snapshot without this master",
        )
        has_data = False
    reason = etcd_members.reason_for_unusable_data(machine, boot) if has_data and has_peers else ""
    if reason:
        _move_data_aside(machine, name=f"removed-{machine.time().replace(':', '')}", reason=reason)
        has_data = False
    if has_data:
        return STEADY if kubelet.is_set_up(machine, boot) else RESUME
    initialised_at = bundle.get(certificate_authorities.INITIALISED_AT)
    if not initialised_at:
        return INIT
    if has_peers:
        return JOIN
    raise BootError(
        f"{volume} is blank, but the cluster exists since {initialised_at}: "
        "continuing would create a second, empty one",
        "run `cfngen etcd restore latest` (in the folder of the cluster file), or restore the volume from one of its "
        "snapshots; or, to start again with an empty cluster, remove "
        f"{certificate_authorities.INITIALISED_AT} from secret {secret} and reboot",
    )


def _move_data_aside(machine: Machine, name: str, reason: str) -> None:
    """Move etcd's data to the folder `etcd.<name>` of the volume, and log the reason."""
    folder = etcd_data.move_aside(machine, name)
    machine.say(f"etcd's data on this volume can no longer be used ({reason}); it was moved to {folder}")
