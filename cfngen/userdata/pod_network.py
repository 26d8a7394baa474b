"""The files and services of an instance that let pods reach each other; they depend on the network plug-in.

With VPC routes no plug-in runs: containerd writes a CNI configuration for the node's range of pod addresses, and a
systemd unit masquerades packets that leave the cluster. The other plug-ins do both themselves, but the distribution
must not change their interfaces, routes and rules. The settings for this are those of kops on the same distributions
(nodeup/pkg/model/networking) and of the EKS images (awslabs/amazon-eks-ami).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import awaits_plugin_of_user, delegates_prefixes, network_plugin
from cfngen.userdata.lines import text_of

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject, PodNetwork

# Folder in which containerd finds the CNI configuration, and template from which containerd writes it with VPC routes.
CNI_FOLDER = "/etc/cni/net.d"
CNI_TEMPLATE = "/etc/containerd/cni.template"
MASQUERADE_UNIT_NAME = "cfngen-masquerade.service"
# Plug-ins that create routes and rules on the instance, which systemd-networkd would otherwise remove.
ROUTE_MAKING_PLUGINS = ("cilium", "amazon-vpc")
_UNITS = "/etc/systemd/system"


def files(cluster: Cluster) -> dict[str, str]:
    """Return the files of every instance, by path."""
    # Without this file systemd changes the MAC address of new virtual interfaces, also of the host's end of a pod's
    # veth pair. A pod that has cached the old address has no network for half a minute (amazon-vpc-cni-k8s#2103,
    # flatcar/init#33). The instance's network interfaces have permanent addresses and are not affected.
    files_by_path = {
        "/etc/systemd/network/99-default.link.d/40-cfngen.conf": text_of("[Link]", "MACAddressPolicy=none")
    }
    if network_plugin(cluster).uses_vpc_routes:
        files_by_path[CNI_TEMPLATE] = json.dumps(_cni(), indent=1) + "\n"
        files_by_path[f"{_UNITS}/{MASQUERADE_UNIT_NAME}"] = _masquerade_unit(cluster)
    if cluster.network.plugin in ROUTE_MAKING_PLUGINS:
        # When it restarts, systemd-networkd would remove routes and rules that it does not know; cloud-init's hotplug
        # would configure the plug-in's interfaces.
        files_by_path["/etc/systemd/networkd.conf.d/40-cfngen.conf"] = text_of(
            "[Network]", "ManageForeignRoutes=no", "ManageForeignRoutingPolicyRules=no"
        )
        files_by_path["/etc/cloud/cloud.cfg.d/99-cfngen-network.cfg"] = (
            "updates: {network: {when: [boot-new-instance]}}\n"
        )
    return files_by_path


def containerd(cluster: Cluster) -> dict[str, str]:
    """Return the fields of containerd's setting `cni`: where it finds the CNI configuration.

    With VPC routes the kubelet tells containerd the node's range, and containerd fills it into the template.
    """
    template = {"conf_template": CNI_TEMPLATE} if network_plugin(cluster).uses_vpc_routes else {}
    return {"conf_dir": CNI_FOLDER, **template}


def services(cluster: Cluster) -> tuple[str, ...]:
    """Return the systemd services that the pod network needs besides containerd, by name without `.service`."""
    return (MASQUERADE_UNIT_NAME.removesuffix(".service"),) if network_plugin(cluster).uses_vpc_routes else ()


def configuration(cluster: Cluster) -> PodNetwork:
    """Return the boot program's settings of the pod network."""
    return {
        "interfaces": network_plugin(cluster).gives_pods_vpc_addresses,
        "prefixes": delegates_prefixes(cluster),
        # Without a network plug-in nodes never become Ready, and users who install one themselves may need the nodes
        # for that.
        "awaited": not awaits_plugin_of_user(cluster),
    }


def _cni() -> JsonObject:
    """Return the template of the CNI configuration, with a veth pair and an address of the node's range for each pod.

    Packets to and from pods on other nodes follow the VPC's routes, so no overlay network is needed.
    """
    ipam = {"type": "host-local", "ranges": [[{"subnet": "{{.PodCIDR}}"}]], "routes": [{"dst": "0.0.0.0/0"}]}
    return {
        "cniVersion": "1.0.0",
        "name": "kubernetes",
        "plugins": [{"type": "ptp", "ipam": ipam}, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def _masquerade_unit(cluster: Cluster) -> str:
    """Return the unit that masquerades pods' traffic with their node's address.

    Packets to other pods, to `network.nonMasqueradeCidr` and to the node itself keep the pod's address. Packets to the
    rest of the VPC do not: a subnet with another route table has no route back to the pod.
    """
    pods, vpc, non_masquerade = cluster.network.pod_cidr, cluster.network.vpc.cidr, cluster.network.non_masquerade_cidr
    unmasqueraded_cidrs = [non_masquerade] if non_masquerade else []
    if not non_masquerade or not pods.subnet_of(non_masquerade):
        unmasqueraded_cidrs.append(pods)
    # The Amazon-provided DNS server, at the VPC's base address plus two, answers addresses of the VPC, but not those of
    # pods: packets to it are masqueraded even if it is in `network.nonMasqueradeCidr`.
    dns_servers = [vpc[2]] if non_masquerade and vpc.overlaps(non_masquerade) else []
    chain = "CFNGEN-MASQUERADE"
    rule = f"POSTROUTING -s {pods} -m addrtype ! --dst-type LOCAL"
    # In a systemd unit a command that starts with `-` may fail: the chain may exist, the rule may not exist yet.
    commands = [
        f"-iptables -w -t nat -N {chain}",
        f"iptables -w -t nat -F {chain}",
        *(f"iptables -w -t nat -A {chain} -d {address} -j MASQUERADE" for address in dns_servers),
        *(f"iptables -w -t nat -A {chain} -d {cidr} -j RETURN" for cidr in unmasqueraded_cidrs),
        f"iptables -w -t nat -A {chain} -j MASQUERADE",
        f"-iptables -w -t nat -D {rule} -j {chain}",
        f"iptables -w -t nat -A {rule} -j {chain}",
    ]
    return text_of(
        "[Unit]",
        "Description=Masquerading of pods' traffic to other networks",
        "After=network.target",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        *(f"ExecStart={command}" for command in commands),
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    )
