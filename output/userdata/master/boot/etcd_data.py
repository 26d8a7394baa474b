"""What the master's volume holds of etcd, and how it is put out of the way: moved aside, never deleted.

Beside the data lie notes, each written before or after the one thing that it speaks of, so that a boot that is cut off
anywhere finds out where it was.
"""

from __future__ import annotations

from .machine import Machine

VOLUME = "/mnt/master"
FOLDER = VOLUME + "/etcd"
DATA = FOLDER + "/member/snap/db"
# There while this member is being added. First what FOLDER holds is an unfinished copy of other members' data; then it
# is a member that has started and gets its vote.
JOINING = VOLUME + "/joining"
ADDING, PROMOTING = "adding", "promoting"
# Id (hexadecimal) of this member in the cluster, once it has a vote.
MEMBER = VOLUME + "/etcd-member"


def whole(machine: Machine) -> bool:
    """Return whether the volume holds a member's data, not just the beginning of a copy."""
    return machine.exists(DATA) and machine.read(JOINING) != ADDING


def stop(machine: Machine) -> None:
    """Stop the kubelet and every pod: nobody may move etcd's data while etcd is running.

    Pods outlive the kubelet and containerd; their processes live in a slice of systemd's.
    """
    machine.run("systemctl", "stop", "kubelet")
    machine.remove("/etc/kubernetes/manifests/*")
    # 5: there is no such slice, since no pod has run yet.
    machine.run("systemctl", "stop", "kubepods.slice", expect=(0, 5))


def make_room(machine: Machine) -> None:
    """Put out of the way what is no member's data, where a member is to begin: kubeadm wants an empty folder."""
    stop(machine)
    if machine.read(JOINING) != ADDING and machine.glob(FOLDER + "/**/*"):
        # Begun by etcd and never finished; what it is, somebody may want to look at.
        aside(machine, "unfinished")
    machine.remove(FOLDER)


def aside(machine: Machine, name: str) -> str:
    """Move etcd's data to `etcd.<name>` on the same volume; return where it is. What was there stays there."""
    place = f"{FOLDER}.{name}"
    while machine.glob(place + "/**/*"):
        place += "+"
    stop(machine)
    machine.run("mv", "-T", FOLDER, place)
    machine.remove(MEMBER)
    return place
