"""Lists etcd's members, and makes this slot's etcd one of them.

`kubeadm join --control-plane` is not used. It needs a bootstrap token, discovery and another master's ConfigMap, fails
when any member is down (a second slot may be lost while this one is replaced), and stops halfway when two masters join
at once. This module does the same steps one by one, each of them repeatable: add a learner (a member without a vote;
etcd allows one at a time), start etcd with the list of members, promote the learner once it has all data.

A slot is the place of one master: its letter, address and volume outlive the instance. A peer URL, at which a member
serves the other members, belongs to a slot. So before a new instance joins, a listed member with its slot's peer URL is
that of the slot's former instance.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING

from ..host.kubectl import yaml_documents
from ..machine import HOME, BootError, Machine, Pending
from . import etcd_data
from .certificate_authorities import KUBEADM_CONFIG, PKI

if TYPE_CHECKING:
    from ..contract import JsonObject as Member
    from ..contract import MasterBoot

# Path, below PKI and without suffix, of kubeadm's client certificate for etcd's liveness probe.
CLIENT_CERTIFICATE = "etcd/healthcheck-client"
CREDENTIALS = (
    f"--cacert={PKI}etcd/ca.crt",
    f"--cert={PKI}{CLIENT_CERTIFICATE}.crt",
    f"--key={PKI}{CLIENT_CERTIFICATE}.key",
)
JOIN_CONFIG_FILE = HOME + "/kubeadm-join.yaml"


def peer_url(address: str) -> str:
    """Return the URL at which a member serves the other members, with the port that kubeadm configures."""
    return f"https://{address}:2380"


def client_url(address: str) -> str:
    """Return the URL at which a member serves clients, with the port that kubeadm configures."""
    return f"https://{address}:2379"


def other_endpoints(boot: MasterBoot) -> list[str]:
    """Return the client URLs of the other slots' members, in the order of the slots' letters."""
    this_address = boot.facts["privateAddress"]
    return [client_url(address) for _, address in sorted(boot.config["masters"].items()) if address != this_address]


def etcdctl(machine: Machine, endpoints: list[str], *arguments: str, expect: tuple[int, ...] = (0,)) -> tuple[int, str]:
    """Run etcdctl against `endpoints`; return its exit code and output."""
    return machine.run(
        "etcdctl",
        f"--endpoints={','.join(endpoints)}",
        *CREDENTIALS,
        "--dial-timeout=5s",
        *arguments,
        expect=expect,
    )


def healthy_endpoints(machine: Machine, endpoints: list[str]) -> list[str]:
    """Return those of `endpoints` that are healthy.

    If any endpoint is healthy, etcd has a quorum, because the health check commits a proposal. The certificate
    authorities must be installed: if the client certificate is missing, kubeadm creates it, signed by them.
    """
    if not machine.exists(f"{PKI}{CLIENT_CERTIFICATE}.crt"):
        machine.run("kubeadm", "init", "phase", "certs", "etcd-healthcheck-client", "--config", KUBEADM_CONFIG)
    # A member that is down uses up the whole time-out; etcdctl queries all endpoints in parallel.
    command = ("endpoint", "health", "--command-timeout=5s", "--write-out=json")
    _, text = etcdctl(machine, endpoints, *command, expect=(0, 1))
    results = json.loads(text or "[]") or []
    return [str(result["endpoint"]) for result in results if result.get("health")]


def list_members(machine: Machine, endpoints: list[str]) -> list[Member]:
    """Return etcd's members, as one of `endpoints` lists them.

    Each member has `ID` (a number), `name` ("" if the member has never started), `peerURLs`, and `isLearner` if it is a
    learner.
    """
    _, text = etcdctl(machine, endpoints, "member", "list", "--write-out=json")
    return list(json.loads(text)["members"])


def member_of_slot(boot: MasterBoot, listed: list[Member]) -> Member | None:
    """Return the one of the listed members that has this slot's peer URL, or None."""
    own_peer_url = peer_url(boot.facts["privateAddress"])
    return next((member for member in listed if own_peer_url in member["peerURLs"]), None)


def reason_for_unusable_data(machine: Machine, boot: MasterBoot) -> str:
    """Return why the etcd data on this volume can no longer be used; "" if it can be used.

    The data cannot be used if the other members have removed this slot's member, or have replaced it by a new member
    with the same peer URL: etcd never accepts the old member again. If no other member answers, the data is used.
    """
    endpoints = healthy_endpoints(machine, other_endpoints(boot))
    if not endpoints:
        return ""
    member = member_of_slot(boot, list_members(machine, endpoints))
    recorded_id = machine.read(etcd_data.MEMBER_ID_FILE)
    if member is None:
        return "the other members of etcd have removed this one"
    if recorded_id and recorded_id != hexadecimal_id(member):
        return f"the other members of etcd know this one as {hexadecimal_id(member)}, not as {recorded_id}"
    return ""


def join(machine: Machine, boot: MasterBoot) -> str:
    """Make this slot's etcd a voting member of the cluster; the kubelet must be running.

    Raises:
        BootError: it did not succeed before the time-out, as etcd has no quorum or does not start.
    """
    machine.wait(
        "etcd to add this member",
        lambda: _add_learner(machine, boot),
        hint=quorum_hint(boot),
        seconds=boot.remaining(machine),
        retry_on=(BootError, Pending),
    )
    machine.write(etcd_data.JOINING_FILE, etcd_data.PROMOTING)
    return promote(machine, boot)


def quorum_hint(boot: MasterBoot) -> str:
    """Return what an operator should do if etcd has lost its quorum."""
    return (
        "start the other masters; if the volumes of most of them are lost: `cfngen etcd restore latest` (in the folder "
        f"of the cluster file of {boot.config['cluster']})"
    )


def _add_learner(machine: Machine, boot: MasterBoot) -> None:
    """Add this slot's member to the cluster as a learner (a member without a vote), and start it.

    If it fails, the whole function can be repeated, which removes the learner and adds a new one: a learner does not
    count for the quorum.

    Raises:
        Pending: etcd has no quorum.
    """
    member_name = boot.facts["instanceId"]
    own_peer_url = peer_url(boot.facts["privateAddress"])
    endpoints = healthy_endpoints(machine, other_endpoints(boot))
    if not endpoints:
        raise Pending(f"etcd has no quorum: none of {', '.join(other_endpoints(boot))} is healthy")
    machine.write(etcd_data.JOINING_FILE, etcd_data.ADDING)
    # Clean up after an interrupted attempt: this master's etcd must not run, nor have data, when it is added again.
    machine.remove("/etc/kubernetes/manifests/etcd.yaml")
    _await_etcd_stopped(machine)
    machine.remove(etcd_data.DATA_FOLDER, etcd_data.MEMBER_ID_FILE)
    former_member = member_of_slot(boot, list_members(machine, endpoints))
    if former_member:
        etcdctl(machine, endpoints, "member", "remove", hexadecimal_id(former_member))
    # This fails while another member is a learner; the caller retries it within seconds.
    etcdctl(machine, endpoints, "member", "add", member_name, "--learner", f"--peer-urls={own_peer_url}")
    _write_manifest(machine, boot, list_members(machine, endpoints))

    def probe() -> None:
        member = member_of_slot(boot, list_members(machine, endpoints))
        # Only a member that has started has a name.
        if not member or not member.get("name"):
            raise Pending("the other members do not list it as started yet")

    machine.wait("etcd to start", probe, hint="`ctr -n k8s.io tasks ls`; /var/log/pods", seconds=180)


def promote(machine: Machine, boot: MasterBoot) -> str:
    """Promote this slot's learner to a voting member, unless it is one already; record its id on the volume.

    After a failure the member is not removed and added again, because a voting member counts for the quorum.
    """

    def probe() -> str:
        endpoints = healthy_endpoints(machine, other_endpoints(boot))
        if not endpoints:
            raise Pending(f"etcd has no quorum: none of {', '.join(other_endpoints(boot))} is healthy")
        member = member_of_slot(boot, list_members(machine, endpoints))
        if not member:
            raise Pending("the other members no longer list this one")
        if member.get("isLearner"):
            # This fails, and is retried, until the learner has caught up with the leader.
            etcdctl(machine, endpoints, "member", "promote", hexadecimal_id(member))
        return hexadecimal_id(member)

    seconds = boot.remaining(machine)
    member_id = machine.wait("etcd to promote this member", probe, quorum_hint(boot), seconds, (BootError, Pending))
    machine.write(etcd_data.MEMBER_ID_FILE, member_id)
    machine.remove(etcd_data.JOINING_FILE)
    return f"etcd has promoted this member, {member_id}"


def _await_etcd_stopped(machine: Machine) -> None:
    """Wait until the kubelet has stopped etcd, whose manifest was removed."""

    def probe() -> None:
        # pgrep's exit code 0 means that there is such a process, 1 that there is none.
        exit_code, _ = machine.run("pgrep", "-x", "etcd", expect=(0, 1))
        if exit_code == 0:
            raise Pending("it is still running")

    machine.wait("etcd to stop", probe, hint="`systemctl status kubelet`", seconds=90)


def _write_manifest(machine: Machine, boot: MasterBoot, listed: list[Member]) -> None:
    """Let kubeadm write the static pod manifest of this master's etcd, with the list of members in etcd's flags.

    When etcd starts, it compares its flag `--initial-cluster` with the list of members in the cluster.

    Args:
        listed: etcd's members, including the one that was added for this slot.
    """
    own_name, own_url = boot.facts["instanceId"], peer_url(boot.facts["privateAddress"])
    # A member that has not started yet has no name; etcd accepts any name for it.
    names_by_url = {
        url: member.get("name") or hexadecimal_id(member) for member in listed for url in member["peerURLs"]
    }
    names_by_url[own_url] = own_name
    etcd_flags = {
        "initial-cluster": ",".join(f"{name}={url}" for url, name in names_by_url.items()),
        "initial-cluster-state": "existing",
    }
    # The documents are copied, as the flags are for this join only.
    init_configuration, cluster_configuration = copy.deepcopy(boot.config["kubeadm"])
    local_etcd = cluster_configuration["etcd"]["local"]
    other_args = [extra_arg for extra_arg in local_etcd.get("extraArgs", []) if extra_arg["name"] not in etcd_flags]
    local_etcd["extraArgs"] = [*other_args, *({"name": flag, "value": value} for flag, value in etcd_flags.items())]
    machine.write(JOIN_CONFIG_FILE, yaml_documents(init_configuration, cluster_configuration), 0o600)
    machine.run("kubeadm", "init", "phase", "etcd", "local", "--config", JOIN_CONFIG_FILE)


def record_member_id(machine: Machine, boot: MasterBoot) -> None:
    """Record this member's id on the volume."""
    member = member_of_slot(boot, list_members(machine, [client_url("127.0.0.1")]))
    if member:
        machine.write(etcd_data.MEMBER_ID_FILE, hexadecimal_id(member))


def await_local_member(machine: Machine, boot: MasterBoot) -> None:
    """Wait until the etcd member on this master is healthy, which also means that etcd has a quorum."""

    def probe() -> None:
        if not healthy_endpoints(machine, [client_url("127.0.0.1")]):
            raise Pending("it does not answer, or most members are down")

    machine.wait("etcd on this master", probe, quorum_hint(boot), boot.remaining(machine))


def hexadecimal_id(member: Member) -> str:
    """Return a member's id in hexadecimal, as etcdctl's arguments need it; in etcdctl's JSON it is a number."""
    return f"{member['ID']:x}"
