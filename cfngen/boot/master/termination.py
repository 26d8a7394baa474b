"""Delays the termination of a master while etcd would lose its quorum with it.

An update, a rollback or Auto Scaling terminates a master without asking whether the others work. A lifecycle hook of
its group holds the instance, and a systemd service keeps it held by heartbeats until enough of the others work.

They may not come back by themselves: updates and rollbacks replace masters in the order of their slots, and wait for
each, so the instance that would take the failed one's place may come later. So the wait is limited. At its end the
members of etcd that do not work are removed, and this one too if only one other works. What is left has a quorum and
serves the API; the instances that are launched in the removed members' slots join again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..host import lifecycle
from ..machine import BootError, Machine
from . import bucket, etcd_data, etcd_members, restore
from .etcd_members import client_url, etcdctl, hexadecimal_id, peer_url

if TYPE_CHECKING:
    from ..contract import JsonObject as Member
    from ..contract import MasterBoot

LIFECYCLE_HOOK = "cfngen-quorum"
UNIT = "cfngen-termination.service"
# Exit codes of `etcdctl move-leader` if this member is not the leader (etcdctl/ctlv3/command/move_leader_command.go).
NOT_LEADER_CODES = (1, 128)


def start(machine: Machine, boot: MasterBoot) -> str:
    """Enable and start the service that delays this master's termination while etcd needs it for its quorum."""
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", "--now", UNIT)
    return f"etcd gets {boot.config['quorumWait']} min to do without this master when the instance is terminated"


def watch(machine: Machine, boot: MasterBoot) -> str:
    """Wait until this instance is about to be terminated, and let that happen once etcd can do without it."""
    while not lifecycle.is_terminating(machine):
        machine.sleep(lifecycle.POLL_SECONDS)
    outcome = _await_quorum(machine, boot)
    return f"this instance is being terminated: {outcome}; {lifecycle.complete(machine, boot, LIFECYCLE_HOOK)}"


def _await_quorum(machine: Machine, boot: MasterBoot) -> str:
    """Wait until etcd has a quorum without this master; return, for the log, why the wait has ended."""
    minutes = boot.config["quorumWait"]
    deadline = machine.clock() + minutes * 60
    logged_reason = ""
    while True:
        is_overdue = machine.clock() >= deadline
        try:
            healthy = etcd_members.healthy_endpoints(machine, etcd_members.other_endpoints(boot))
            reason = _reason_to_wait(machine, boot, healthy)
            if not reason:
                return "etcd has a quorum without it"
            if exemption := _exemption(machine, boot):
                return exemption
            if is_overdue:
                return f"{reason} even after {minutes} min: {_leave(machine, boot, healthy)}"
        except BootError as error:
            reason = f"etcd's members are unknown: {error}"
            if is_overdue:
                return reason
        if reason != logged_reason:
            machine.say(f"this instance is to be terminated, but {reason}; it waits up to {minutes} min")
            logged_reason = reason
        lifecycle.send_heartbeat(machine, boot, LIFECYCLE_HOOK)
        machine.sleep(lifecycle.POLL_SECONDS)


def _exemption(machine: Machine, boot: MasterBoot) -> str:
    """Return why this master goes although etcd needs it; "" if nothing says so, or it cannot be found out."""
    try:
        if lifecycle.read_group(machine, boot)["ResourceStatus"].startswith("DELETE_"):
            return "its group is being deleted"
        request = bucket.read_document(machine, boot, restore.REQUEST_OBJECT) if boot.facts.get("bucket") else {}
    except BootError as error:
        machine.log(f"could not find out whether this master is deleted or restored: {error}")
        return ""
    is_restored = boot.facts["instanceId"] in request.get("instances", [])
    return "all masters are replaced, to restore etcd from a snapshot" if is_restored else ""


def _reason_to_wait(machine: Machine, boot: MasterBoot, healthy: list[str]) -> str:
    """Return why etcd has no quorum without this master; "" if it has one, or if this slot's member has no vote.

    Args:
        healthy: client URLs of the other slots' members that are healthy.
    """
    if healthy:
        voters = _voters(machine, healthy)
        has_vote = etcd_members.member_of_slot(boot, voters) is not None
        is_needed = has_vote and 2 * len(healthy) <= len(voters)
    else:
        # Nobody can list the members; the volume records whether this slot's member has a vote.
        is_needed = machine.exists(etcd_data.MEMBER_ID_FILE)
    slots = [
        slot
        for slot, address in sorted(boot.config["masters"].items())
        if address != boot.facts["privateAddress"] and client_url(address) not in healthy
    ]
    return f"etcd has no quorum without it while these masters do not work: {', '.join(slots)}" if is_needed else ""


def _leave(machine: Machine, boot: MasterBoot, healthy: list[str]) -> str:
    """Remove etcd's members that do not work, and this one if the others need it gone; return a text for the log.

    Every removal is agreed on by most members, so none of the removed ones can ever form a quorum of its own.
    """
    if not healthy:
        return "no other master works, so the API does not answer until this one's successor does"
    working_peers = {peer_url(address) for address in boot.config["masters"].values() if client_url(address) in healthy}
    voters = _voters(machine, healthy)
    own_member = etcd_members.member_of_slot(boot, voters)
    to_remove = [voter for voter in voters if voter != own_member and not working_peers & set(voter["peerURLs"])]
    if own_member and len(healthy) == 1:
        # Two members have no quorum without one of them. The other one leads before this one goes.
        other_ids = [hexadecimal_id(voter) for voter in voters if working_peers & set(voter["peerURLs"])]
        etcdctl(machine, [client_url("127.0.0.1")], "move-leader", *other_ids, expect=(0, *NOT_LEADER_CODES))
        to_remove.append(own_member)
    for member in to_remove:
        etcdctl(machine, healthy, "member", "remove", hexadecimal_id(member))
    return f"removed {', '.join(map(hexadecimal_id, to_remove))} from etcd, which {len(healthy)} of its members keep up"


def _voters(machine: Machine, healthy: list[str]) -> list[Member]:
    return [member for member in etcd_members.list_members(machine, healthy) if not member.get("isLearner")]
