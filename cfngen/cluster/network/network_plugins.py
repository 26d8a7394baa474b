"""The table of network plug-ins: where pods get their addresses from, and which ports each plug-in needs.

Templates, user data and checks use this table. The ports are from the plug-ins' documentation, for the way in which
cfngen installs the plug-ins: Cilium's system requirements (VXLAN, health checks), Calico's network requirements (VXLAN,
Typha), flannel's backends (VXLAN).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.base import Plugin

# Prefix length of the range that each node gets of podCidr.
NODE_PREFIX = 24


@dataclass(frozen=True)
class MasterPort:
    """A port of masters that must be open to nodes; the templates make a security group rule of it.

    Attributes:
        rule_purpose: what the port is for, in PascalCase; part of the rule's logical id (`RuleId.purpose`).
        protocol: `tcp`, `udp` or `icmp`.
        port: the port number; for ICMP the message type.
    """

    rule_purpose: str
    protocol: str
    port: int
    description: str


@dataclass(frozen=True)
class NetworkPlugin:
    """The properties of a network plug-in that templates, user data and checks need.

    The defaults describe a plug-in with an overlay network that kube-controller-manager allocates addresses for.

    Attributes:
        uses_vpc_routes: whether pods are reached by VPC routes, which the cloud controller manager creates; instances
            then forward packets that are not addressed to them.
        uses_pod_cidr: whether pods' addresses come from `network.podCidr`.
        gives_nodes_pod_cidrs: whether kube-controller-manager gives each node a /24 of `network.podCidr`.
        node_block_prefix: prefix length of the smallest block of `network.podCidr` that a node gets, e.g. 24 for a /24;
            0 if nodes get none.
        gives_pods_vpc_addresses: whether pods have addresses of the VPC, assigned to the instance's network interfaces.
        is_installed_by_cfngen: whether cfngen installs the plug-in, as Helm releases.
        master_ports: ports of masters that must be open to nodes. For a plug-in without a tunnel these are the DNS
            ports: the cluster's DNS pods tolerate the masters' taint, and start there while no node has joined.
        host_ports: TCP ports that the plug-in's programs listen on, on each instance.
    """

    uses_vpc_routes: bool = False
    uses_pod_cidr: bool = True
    gives_nodes_pod_cidrs: bool = True
    node_block_prefix: int = 24
    gives_pods_vpc_addresses: bool = False
    is_installed_by_cfngen: bool = True
    master_ports: tuple[MasterPort, ...] = ()
    host_ports: tuple[int, ...] = ()


_CLUSTER_DNS_PORTS = (
    MasterPort("DnsTcp", "tcp", 53, "Pods to cluster DNS pods on masters"),
    MasterPort("DnsUdp", "udp", 53, "Pods to cluster DNS pods on masters"),
)
PLUGINS: Mapping[Plugin, NetworkPlugin] = {
    "vpc-routes": NetworkPlugin(uses_vpc_routes=True, is_installed_by_cfngen=False, master_ports=_CLUSTER_DNS_PORTS),
    "cilium": NetworkPlugin(
        master_ports=(
            MasterPort("Vxlan", "udp", 8472, "Pods to pods on masters, in the tunnel of Cilium (VXLAN)"),
            MasterPort("CiliumHealth", "tcp", 4240, "Health checks of Cilium between instances"),
            MasterPort("CiliumPing", "icmp", 8, "Health checks of Cilium between instances (echo request)"),
        ),
        host_ports=(4240, 4244, 9234, 9878, 9879, 9890, 9891, 9963, 9964),
    ),
    # Calico allocates addresses itself, in blocks of /26 that it assigns to nodes on demand.
    "calico": NetworkPlugin(
        gives_nodes_pod_cidrs=False,
        node_block_prefix=26,
        master_ports=(
            MasterPort("Vxlan", "udp", 4789, "Pods to pods on masters, in the tunnel of Calico (VXLAN)"),
            MasterPort("CalicoTypha", "tcp", 5473, "Agents of Calico to Typha, which may run on masters"),
        ),
        host_ports=(5473, 9098, 9099),
    ),
    "flannel": NetworkPlugin(
        master_ports=(MasterPort("Vxlan", "udp", 8472, "Pods to pods on masters, in the tunnel of flannel (VXLAN)"),),
        host_ports=(8081,),
    ),
    "amazon-vpc": NetworkPlugin(
        uses_pod_cidr=False,
        gives_nodes_pod_cidrs=False,
        node_block_prefix=0,
        gives_pods_vpc_addresses=True,
        master_ports=_CLUSTER_DNS_PORTS,
        host_ports=(8162, 8163, 50051, 50052, 61678, 61679),
    ),
    # The user installs a plug-in: most need a range for each node, and their ports are not known here.
    "none": NetworkPlugin(is_installed_by_cfngen=False),
}


def awaits_plugin_of_user(cluster: Cluster) -> bool:
    """Return whether nodes get a network plug-in only after the deployment, from the user.

    Otherwise cfngen installs one, or charts of the cluster file, of which one may be a plug-in.
    """
    return cluster.network.plugin == "none" and not cluster.addons.charts


def network_plugin(cluster: Cluster) -> NetworkPlugin:
    """Return the properties of the cluster's network plug-in."""
    return PLUGINS[cluster.network.plugin]


def delegates_prefixes(cluster: Cluster) -> bool:
    """Return whether the Amazon VPC plug-in gets prefixes (/28) for pods, in place of single addresses."""
    environment = cluster.network.plugin_values.get("env")
    return isinstance(environment, Mapping) and str(environment.get("ENABLE_PREFIX_DELEGATION")).lower() == "true"
