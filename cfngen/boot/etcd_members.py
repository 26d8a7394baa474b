"""The members of etcd: what the healthy ones say, and how this slot takes its place among them.

`kubeadm join --control-plane` is not used for that. It needs a bootstrap token, the discovery and the ConfigMap of
another master, gives up when any member is down (a slot may be lost while this one comes back), and leaves half of its
work behind when two masters join at once. The steps are its own, one by one and each to be repeated: announce a learner
(a member without a vote, of which etcd allows one at a time), start etcd with the members' list, promote the learner
once it has all data. The peer URL is the slot's, so a member with this URL is this slot's former self.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from . import etcd_data
from .certificate_authorities import KUBEADM, PKI
from .kubectl import documents
from .machine import HOME, BootError, Machine, Pending
from .runner import remaining

# The certificate with which kubeadm's own probe asks etcd.
CERTIFICATE = "etcd/healthcheck-client"
CREDENTIALS = (f"--cacert={PKI}etcd/ca.crt", f"--cert={PKI}{CERTIFICATE}.crt", f"--key={PKI}{CERTIFICATE}.key")
KUBEADM_JOIN = HOME + "/kubeadm-join.yaml"
Member = dict[str, Any]


def peer_url(address: str) -> str:
    """Return the URL that other members reach a member by; kubeadm's port."""
    return f"https://{address}:2380"


def client_url(address: str) -> str:
    """Return the URL that clients reach a member by; kubeadm's port."""
    return f"https://{address}:2379"


def others(config: dict[str, Any]) -> list[str]:
    """Return the client URLs of the other slots."""
    own = config["facts"]["privateAddress"]
    return [client_url(address) for _, address in sorted(config["masters"].items()) if address != own]


def etcdctl(machine: Machine, endpoints: list[str], *arguments: str, expect: tuple[int, ...] = (0,)) -> tuple[int, str]:
    """Run etcdctl against `endpoints`; return its exit code and what it said.

    Raises:
        BootError: another exit code than one of `expect`.
    """
    return machine.run(
        "etcdctl",
        f"--endpoints={','.join(endpoints)}",
        *CREDENTIALS,
        "--dial-timeout=5s",
        *arguments,
        expect=expect,
    )


def healthy(machine: Machine, endpoints: list[str]) -> list[str]:
    """Return those of `endpoints` that answer with the consent of most members; any one of them has a quorum behind it.

    A certificate to ask with is made if there is none; the authorities must be in place.
    """
    if not machine.exists(f"{PKI}{CERTIFICATE}.crt"):
        machine.run("kubeadm", "init", "phase", "certs", "etcd-healthcheck-client", "--config", KUBEADM)
    # A member that is down takes all of the time that it is given, and all of them are asked at once.
    command = ("endpoint", "health", "--command-timeout=5s", "--write-out=json")
    _, text = etcdctl(machine, endpoints, *command, expect=(0, 1))
    answers = json.loads(text or "[]") or []
    return [str(answer["endpoint"]) for answer in answers if answer.get("health")]


def members(machine: Machine, endpoints: list[str]) -> list[Member]:
    """Return the members as a healthy one lists them: ID, name (empty: never started), peerURLs, isLearner."""
    _, text = etcdctl(machine, endpoints, "member", "list", "--write-out=json")
    return list(json.loads(text)["members"])


def own_member(config: dict[str, Any], listed: list[Member]) -> Member | None:
    """Return the member that has this slot's peer URL, or None."""
    url = peer_url(config["facts"]["privateAddress"])
    return next((member for member in listed if url in member["peerURLs"]), None)


def disowned(machine: Machine, config: dict[str, Any]) -> str:
    """Return why the data of this volume is of no use any more; an empty text if it is, or if nobody can tell.

    A member that was removed, or replaced under the same URL, is refused by the others for ever.
    """
    endpoints = healthy(machine, others(config))
    if not endpoints:
        return ""
    member, recorded_id = own_member(config, members(machine, endpoints)), machine.read(etcd_data.MEMBER)
    if member is None:
        return "the other members of etcd have removed this one"
    if recorded_id and recorded_id != identity(member):
        return f"the other members of etcd know this one as {identity(member)}, not as {recorded_id}"
    return ""


def join(machine: Machine, config: dict[str, Any]) -> str:
    """Make this slot's etcd a member with a vote; the kubelet must be running.

    Returns:
        What was done.

    Raises:
        BootError: time is up: no quorum, or etcd does not come up.
    """
    machine.wait(
        "etcd to take this member",
        lambda: _add_learner(machine, config),
        hint(config),
        remaining(machine, config),
        (BootError, Pending),
    )
    machine.write(etcd_data.JOINING, etcd_data.PROMOTING)
    return promote(machine, config)


def hint(config: dict[str, Any]) -> str:
    """Return what an operator does when most members are away."""
    return (
        "start the other masters; if the volumes of most of them are lost: `cfngen etcd restore latest` (in the folder "
        f"of the cluster file of {config['cluster']})"
    )


def _add_learner(machine: Machine, config: dict[str, Any]) -> None:
    """Announce this slot's member as a learner, and let it start.

    It has no vote yet, so whatever goes wrong here, all of it can be done again.
    """
    name, own = config["facts"]["instanceId"], config["facts"]["privateAddress"]
    endpoints = healthy(machine, others(config))
    if not endpoints:
        raise Pending(f"of {', '.join(others(config))} none has a quorum of members")
    machine.write(etcd_data.JOINING, etcd_data.ADDING)
    # What an attempt that died has left: etcd must not run, nor may its data be there, when it is announced anew.
    machine.remove("/etc/kubernetes/manifests/etcd.yaml")
    _await_etcd_stopped(machine)
    machine.remove(etcd_data.FOLDER, etcd_data.MEMBER)
    former = own_member(config, members(machine, endpoints))
    if former:
        etcdctl(machine, endpoints, "member", "remove", identity(former))
    # Refused while another member is a learner; the next attempt comes in seconds.
    etcdctl(machine, endpoints, "member", "add", name, "--learner", f"--peer-urls={peer_url(own)}")
    _write_manifest(machine, config, members(machine, endpoints))

    def probe() -> None:
        member = own_member(config, members(machine, endpoints))
        # Only a member that has started has a name.
        if not member or not member.get("name"):
            raise Pending("the others have not heard of it yet")

    machine.wait("etcd to start", probe, "`ctr -n k8s.io tasks ls`; /var/log/pods", 180)


def promote(machine: Machine, config: dict[str, Any]) -> str:
    """Give this slot's member, which has started, its vote, if it has none yet; note that it belongs to etcd now.

    From the moment it has a vote, the others may need it for their quorum: from here on there is no way back.
    """

    def probe() -> str:
        endpoints = healthy(machine, others(config))
        if not endpoints:
            raise Pending(f"of {', '.join(others(config))} none has a quorum of members")
        member = own_member(config, members(machine, endpoints))
        if not member:
            raise Pending("somebody has removed this member")
        if member.get("isLearner"):
            # Refused until the learner has caught up with the leader.
            etcdctl(machine, endpoints, "member", "promote", identity(member))
        return identity(member)

    seconds = remaining(machine, config)
    member_id = machine.wait("etcd's vote for this member", probe, hint(config), seconds, (BootError, Pending))
    machine.write(etcd_data.MEMBER, member_id)
    machine.remove(etcd_data.JOINING)
    return f"etcd has taken this member as {member_id}"


def _await_etcd_stopped(machine: Machine) -> None:
    """Wait until the kubelet has stopped etcd after its manifest went."""

    def probe() -> None:
        # pgrep's exit code 1: no such process.
        if machine.run("pgrep", "-x", "etcd", expect=(0, 1))[0] == 0:
            raise Pending("it is still running")

    machine.wait("etcd to stop", probe, "`systemctl status kubelet`", 90)


def _write_manifest(machine: Machine, config: dict[str, Any], listed: list[Member]) -> None:
    """Let kubeadm write etcd's manifest with the members' list, which etcd compares with what the members say."""
    name, own_url = config["facts"]["instanceId"], peer_url(config["facts"]["privateAddress"])
    # A member that has not started yet has no name; any will do.
    names = {url: member.get("name") or identity(member) for member in listed for url in member["peerURLs"]}
    arguments = {
        "initial-cluster": ",".join(f"{member_name}={url}" for url, member_name in {**names, own_url: name}.items()),
        "initial-cluster-state": "existing",
    }
    init_configuration, cluster_configuration = copy.deepcopy(config["kubeadm"])
    local = cluster_configuration["etcd"]["local"]
    other_args = [extra_arg for extra_arg in local.get("extraArgs", []) if extra_arg["name"] not in arguments]
    local["extraArgs"] = [*other_args, *({"name": key, "value": value} for key, value in arguments.items())]
    machine.write(KUBEADM_JOIN, documents(init_configuration, cluster_configuration), 0o600)
    machine.run("kubeadm", "init", "phase", "etcd", "local", "--config", KUBEADM_JOIN)


def record(machine: Machine, config: dict[str, Any]) -> None:
    """Note this member's id on the volume.

    Raises:
        BootError: the own member does not answer.
    """
    member = own_member(config, members(machine, [client_url("127.0.0.1")]))
    if member:
        machine.write(etcd_data.MEMBER, identity(member))


def await_own(machine: Machine, config: dict[str, Any]) -> None:
    """Wait until this master's own member answers with a quorum behind it.

    Raises:
        BootError: time is up.
    """

    def probe() -> None:
        if not healthy(machine, [client_url("127.0.0.1")]):
            raise Pending("it does not answer, or most members are down")

    machine.wait("etcd on this master", probe, hint(config), remaining(machine, config))


def identity(member: Member) -> str:
    """Return a member's id as etcdctl takes it: hexadecimal."""
    return f"{member['ID']:x}"
