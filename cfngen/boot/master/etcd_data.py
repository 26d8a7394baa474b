"""etcd's data on the master's volume; data that is no longer used is moved to another folder, never deleted.

Marker files beside the data record how far a boot has got, so that the next one can continue after an interruption.
"""

from __future__ import annotations

from ..machine import Machine

VOLUME_MOUNT = "/mnt/master"
DATA_FOLDER = VOLUME_MOUNT + "/etcd"
DATABASE_FILE = DATA_FOLDER + "/member/snap/db"
# File that exists while this slot's etcd joins the other members. Its content is ADDING while the data folder has an
# incomplete copy of the other members' data, then PROMOTING while this learner (a member without a vote) waits for its
# promotion to a voting member.
JOINING_FILE = VOLUME_MOUNT + "/joining"
ADDING, PROMOTING = "adding", "promoting"
# File with the id (hexadecimal) of this slot's etcd member, once the member has a vote.
MEMBER_ID_FILE = VOLUME_MOUNT + "/etcd-member"


def has_data(machine: Machine) -> bool:
    """Return whether the volume contains the data of an etcd member, and not just an incomplete copy."""
    return machine.exists(DATABASE_FILE) and machine.read(JOINING_FILE) != ADDING


def stop_kubelet_and_pods(machine: Machine) -> None:
    """Stop the kubelet and every pod, since etcd's data must not be moved while etcd is running.

    Pods keep running when the kubelet and containerd stop; their processes are in a systemd slice.
    """
    machine.run("systemctl", "stop", "kubelet")
    machine.remove("/etc/kubernetes/manifests/*")
    # Exit code 5: the slice does not exist, as no pod has run yet.
    machine.run("systemctl", "stop", "kubepods.slice", expect=(0, 5))


def clear_data_folder(machine: Machine) -> None:
    """Stop etcd and remove its data folder for a new member, since kubeadm requires that folder to be empty."""
    stop_kubelet_and_pods(machine)
    if machine.read(JOINING_FILE) != ADDING and machine.glob(DATA_FOLDER + "/**/*"):
        # These files are no complete database. They are kept for an operator to inspect.
        move_aside(machine, "unfinished")
    machine.remove(DATA_FOLDER)


def move_aside(machine: Machine, name: str) -> str:
    """Move etcd's data to the folder `etcd.<name>` on the same volume; return the folder's path.

    If that folder has files already, `+` is appended to the name.
    """
    new_folder = f"{DATA_FOLDER}.{name}"
    while machine.glob(new_folder + "/**/*"):
        new_folder += "+"
    stop_kubelet_and_pods(machine)
    machine.run("mv", "-T", DATA_FOLDER, new_folder)
    machine.remove(MEMBER_ID_FILE)
    return new_folder
