"""etcd's data on the master's volume; data that is no longer used is moved to another folder, never deleted.

Marker files beside the data record how far a boot has got, so that the next one can continue after an interruption.
"""

from __future__ import annotations

from ..machine import Machine

VOLUME = "/mnt/master"
FOLDER = VOLUME + "/etcd"
DATA = FOLDER + "/member/snap/db"
# Marker file that exists while this member joins. ADDING: FOLDER holds an incomplete copy of the other members' data.
# PROMOTING: the learner has started and is waiting for its promotion.
JOINING_FILE = VOLUME + "/joining"
ADDING, PROMOTING = "adding", "promoting"
# Id (hexadecimal) of this member in the cluster, once it has a vote.
MEMBER_ID_FILE = VOLUME + "/etcd-member"


def has_data(machine: Machine) -> bool:
    """Return whether the volume holds a member's complete data, not an incomplete copy."""
    return machine.exists(DATA) and machine.read(JOINING_FILE) != ADDING


def stop(machine: Machine) -> None:
    """Stop the kubelet and every pod, since etcd's data must not be moved while etcd is running.

    Pods keep running when the kubelet and containerd stop; their processes are in a systemd slice.
    """
    machine.run("systemctl", "stop", "kubelet")
    machine.remove("/etc/kubernetes/manifests/*")
    # Exit code 5: the slice does not exist, as no pod has run yet.
    machine.run("systemctl", "stop", "kubepods.slice", expect=(0, 5))


def empty_folder(machine: Machine) -> None:
    """Empty etcd's data folder for a new member: kubeadm requires that."""
    stop(machine)
    if machine.read(JOINING_FILE) != ADDING and machine.glob(FOLDER + "/**/*"):
        # Incomplete data of an earlier attempt is kept for an operator to inspect.
        move_aside(machine, "unfinished")
    machine.remove(FOLDER)


def move_aside(machine: Machine, name: str) -> str:
    """Move etcd's data to `etcd.<name>` on the same volume, or if that exists to `etcd.<name>+`; return its path."""
    target = f"{FOLDER}.{name}"
    while machine.glob(target + "/**/*"):
        target += "+"
    stop(machine)
    machine.run("mv", "-T", FOLDER, target)
    machine.remove(MEMBER_ID_FILE)
    return target
