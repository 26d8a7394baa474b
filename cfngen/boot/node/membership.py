"""The steps of a node after the common ones: wait until a master has published the join information, and join."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..host import hosts, kubelet, versions
from ..host.kubectl import kubectl
from ..machine import HOME, BootError, Machine, Pending
from . import join_secret

if TYPE_CHECKING:
    from ..contract import JoinInformation, NodeBoot

JOIN_CONFIG_FILE = HOME + "/join.yaml"
ADDRESSES_TIMER = "cfngen-addresses.timer"
# The text in the message of a node's Ready condition if the node has no CNI configuration.
NO_NETWORK_PLUGIN = "NetworkPluginNotReady"


def join(machine: Machine, boot: NodeBoot) -> str:
    """Join the cluster, unless this instance has joined before; retry with new join information until the time-out."""
    if kubelet.is_set_up(machine, boot):
        # Debian's cloud-init rewrites /etc/hosts at each boot (`manage_etc_hosts`).
        if hosts.BLOCK_BEGIN not in machine.read(hosts.HOSTS_FILE):
            addresses(machine, boot)
        machine.run("systemctl", "start", "kubelet")
        return "joined before"
    kubelet.write_patch(machine, boot)
    return machine.wait(
        "joining",
        lambda: _join_once(machine, boot),
        hint="check the masters' consoles for a failed boot; on a master: `systemctl status cfngen-boot cfngen-join "
        "cfngen-approve`",
        seconds=boot.remaining(machine),
        retry_on=(BootError, Pending),
    )


def follow(machine: Machine, boot: NodeBoot) -> str:
    """Start the timer that updates the masters' addresses in /etc/hosts every hour, as masters may be added."""
    machine.run("systemctl", "enable", "--now", ADDRESSES_TIMER)
    return "the masters' addresses are updated every hour"


def addresses(machine: Machine, boot: NodeBoot) -> str:
    """Update the masters' addresses in /etc/hosts from the join information.

    Returns:
        Always "": the hourly task then logs nothing.

    Raises:
        BootError: no master has published join information; /etc/hosts is not changed.
    """
    try:
        _write_hosts(machine, boot, _join_information(machine, boot))
    except Pending as pending:
        raise BootError(str(pending), "`systemctl status cfngen-join`, on a master") from pending
    return ""


def _write_hosts(machine: Machine, boot: NodeBoot, information: JoinInformation) -> None:
    # The endpoint's name is in no DNS zone: only /etc/hosts resolves it.
    hosts.of_node(machine, boot, information["endpoint"], information["addresses"])


def _join_information(machine: Machine, boot: NodeBoot) -> JoinInformation:
    """Return the join information.

    Raises:
        Pending: no master has published it yet.
    """
    information = join_secret.read(machine, boot)
    if "token" not in information:
        raise Pending("no master has published the join information yet")
    return information


def _join_once(machine: Machine, boot: NodeBoot) -> str:
    """Run `kubeadm join` with the current join information.

    Raises:
        Pending: the information is missing or expired, or a master has an older version.
    """
    information = _join_information(machine, boot)
    if information["expires"] <= machine.time(60):
        raise Pending(f"the published token expired at {information['expires']} and no master has renewed it")
    versions.check_masters_version(boot, information)
    _write_hosts(machine, boot, information)
    discovery = {
        "apiServerEndpoint": information["endpoint"],
        "token": information["token"],
        "caCertHashes": [information["caHash"]],
    }
    kubelet.stop_and_remove_files(machine)
    # kubeadm creates this folder on masters only, and without it the kubelet logs an error every second.
    machine.run("mkdir", "-p", kubelet.MANIFESTS_FOLDER)
    machine.remove("/etc/kubernetes/pki/ca.crt")
    # The token is passed in a file that only root may read, as arguments are visible to every process.
    machine.write(
        JOIN_CONFIG_FILE, json.dumps({**boot.config["join"], "discovery": {"bootstrapToken": discovery}}), 0o600
    )
    try:
        machine.run("kubeadm", "join", "--config", JOIN_CONFIG_FILE)
    finally:
        machine.remove(JOIN_CONFIG_FILE)
    kubelet.mark_set_up(machine, boot)
    return f"joined {information['endpoint']}"


def ready(machine: Machine, boot: NodeBoot) -> str:
    """Wait until this node is Ready.

    If the user has to install the network plug-in (`podNetwork.awaited` is false), the node may still lack the plug-in:
    the wait then ends when nothing else is missing.
    """
    name = boot.facts["instanceId"]

    def probe() -> str:
        node_query = ("get", "node", name, "-o", "json")
        code, text = kubectl(machine, *node_query, expect=(0, 1), kubeconfig=kubelet.KUBELET_CONF)
        node = {} if code else json.loads(text)
        conditions = {condition["type"]: condition for condition in node.get("status", {}).get("conditions", [])}
        unknown = {"status": "", "message": "the API server has no such node, or does not answer"}
        ready_condition = conditions.get("Ready", unknown)
        message = ready_condition.get("message", "")
        if ready_condition["status"] == "True":
            return f"node {name} is Ready"
        if NO_NETWORK_PLUGIN in message and not boot.config["podNetwork"]["awaited"]:
            return f"node {name} has joined; it becomes Ready once you install a network plug-in"
        raise Pending(message)

    hint = "`journalctl -u kubelet -u containerd`; without a pod CIDR check the controller managers on the master"
    return machine.wait(f"node {name} to be Ready", probe, hint, boot.remaining(machine))
