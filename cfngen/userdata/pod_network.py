"""What an instance needs for pods to reach each other: files and services, by the network plug-in.

With VPC routes there is no program: containerd writes a CNI configuration for the node's range, and a unit masquerades
what leaves. The other plug-ins bring both along; what they need is that the distribution leaves their interfaces,
routes and rules alone. Those settings are the ones that kops found needed on the same distributions
(nodeup/pkg/model/networking), and the EKS images have (awslabs/amazon-eks-ami).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.userdata.lines import text_of

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject, PodNetwork

CNI_FOLDER = "/etc/cni/net.d"
CNI_TEMPLATE = "/etc/containerd/cni.template"
UNIT = "cfngen-masquerade.service"
# Plug-ins that create routes and rules on the instance, which systemd-networkd would otherwise remove.
ROUTE_MAKING_PLUGINS = ("cilium", "amazon-vpc")
_UNITS = "/etc/systemd/system"


def files(cluster: Cluster) -> dict[str, str]:
    """Return the files of every instance, by path."""
    # Otherwise systemd changes the MAC address of new virtual interfaces, including the host's end of a pod's. If the
    # pod has cached the old one, it has no network for half a minute (amazon-vpc-cni-k8s#2103, flatcar/init#33). The
    # instance's own interfaces have a permanent address and are not affected.
    files_by_path = {
        "/etc/systemd/network/99-default.link.d/40-cfngen.conf": text_of("[Link]", "MACAddressPolicy=none")
    }
    if network_plugin(cluster).routes:
        files_by_path[CNI_TEMPLATE] = json.dumps(_cni(), indent=1) + "\n"
        files_by_path[f"{_UNITS}/{UNIT}"] = _masquerade_unit(cluster)
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
    """Return where containerd finds the CNI configuration: fields of the CRI runtime's `cni`.

    With VPC routes the kubelet tells containerd the node's range, and containerd fills it into the template.
    """
    template = {"conf_template": CNI_TEMPLATE} if network_plugin(cluster).routes else {}
    return {"conf_dir": CNI_FOLDER, **template}


def services(cluster: Cluster) -> tuple[str, ...]:
    """Return the services to start besides containerd."""
    return (UNIT.removesuffix(".service"),) if network_plugin(cluster).routes else ()


def configuration(cluster: Cluster) -> PodNetwork:
    """Return what the boot program must know about the pod network: the configuration's `podNetwork`."""
    environment = cluster.network.plugin_values.get("env")
    prefixes = isinstance(environment, Mapping) and str(environment.get("ENABLE_PREFIX_DELEGATION")).lower() == "true"
    return {
        "interfaces": network_plugin(cluster).interfaces,
        "prefixes": prefixes,
        # Without a plug-in nodes never become Ready, and if the user installs one, they may need the nodes first.
        "awaited": cluster.network.plugin != "none" or bool(cluster.addons.charts),
    }


def _cni() -> JsonObject:
    """Return the template of the CNI configuration: a veth pair for each pod, an address of the node's range.

    The packets of other nodes' pods come and go by the VPC's routes, so nothing more is needed.
    """
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": "{{.PodCIDR}}"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
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
    unmasqueraded = [
        *([non_masquerade] if non_masquerade else []),
        *([] if non_masquerade and pods.subnet_of(non_masquerade) else [pods]),
    ]
    # The Amazon-provided DNS server, at the VPC's base address plus two, answers only addresses of the VPC, not pods'.
    resolver = [vpc[2]] if non_masquerade and vpc.overlaps(non_masquerade) else []
    chain, rule = "CFNGEN-MASQUERADE", f"POSTROUTING -s {pods} -m addrtype ! --dst-type LOCAL"
    commands = [
        f"-iptables -w -t nat -N {chain}",
        f"iptables -w -t nat -F {chain}",
        *(f"iptables -w -t nat -A {chain} -d {cidr} -j MASQUERADE" for cidr in resolver),
        *(f"iptables -w -t nat -A {chain} -d {cidr} -j RETURN" for cidr in unmasqueraded),
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
