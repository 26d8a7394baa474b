"""What each network plug-in needs: addresses, controllers, ports.

Templates, user data and checks use this table. The ports are from the plug-ins' documentation, for the way in which
cfngen installs them: Cilium's system requirements (VXLAN, health checks), Calico's network requirements (VXLAN,
Typha), flannel's backends (VXLAN).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cfngen.cluster.model import Cluster, Plugin


@dataclass(frozen=True)
class Opening:
    """A port of masters that must be open to nodes.

    Attributes:
        name: part of the security group rule's logical id.
        protocol: `tcp`, `udp` or `icmp`.
        port: the port number; for ICMP the message type.
        purpose: description of the security group rule.
    """

    name: str
    protocol: str
    port: int
    purpose: str


@dataclass(frozen=True)
class NetworkPlugin:
    """The properties of a network plug-in that templates, user data and checks need.

    Attributes:
        routes: whether pods use VPC routes, written by the cloud controller manager; instances then forward packets
            that are not addressed to them.
        pod_range: whether pods' addresses come from `network.podCidr`.
        node_ranges: whether kube-controller-manager gives each node a /24 of `network.podCidr`.
        least_prefix: prefix length of the smallest block of `network.podCidr` that a node gets; 0 if nodes get none.
        interfaces: whether pods have VPC addresses, assigned to the instance's network interfaces.
        installed: whether cfngen installs the plug-in, as Helm releases.
        openings: ports of masters that must be open to nodes. For a plug-in without a tunnel these are the DNS ports:
            the cluster's DNS pods tolerate the masters' taint, and start there while no node has joined.
        taken: TCP ports that the plug-in's programs listen on, on each instance.
    """

    routes: bool = False
    pod_range: bool = True
    node_ranges: bool = True
    least_prefix: int = 24
    interfaces: bool = False
    installed: bool = True
    openings: tuple[Opening, ...] = ()
    taken: tuple[int, ...] = ()


_DNS = (
    Opening("DnsTcp", protocol="tcp", port=53, purpose="Pods to cluster DNS pods on masters"),
    Opening("DnsUdp", protocol="udp", port=53, purpose="Pods to cluster DNS pods on masters"),
)
PLUGINS: Mapping[Plugin, NetworkPlugin] = {
    "vpc-routes": NetworkPlugin(routes=True, installed=False, openings=_DNS),
    "cilium": NetworkPlugin(
        openings=(
            Opening(
                "Vxlan", protocol="udp", port=8472, purpose="Pods to pods on masters, in the tunnel of Cilium (VXLAN)"
            ),
            Opening("CiliumHealth", protocol="tcp", port=4240, purpose="Health checks of Cilium between instances"),
            Opening(
                "CiliumPing",
                protocol="icmp",
                port=8,
                purpose="Health checks of Cilium between instances (echo request)",
            ),
        ),
        taken=(4240, 4244, 9234, 9878, 9879, 9890, 9891, 9963, 9964),
    ),
    # Calico allocates addresses itself, in blocks of /26 that it assigns to nodes on demand.
    "calico": NetworkPlugin(
        node_ranges=False,
        least_prefix=26,
        openings=(
            Opening(
                "Vxlan", protocol="udp", port=4789, purpose="Pods to pods on masters, in the tunnel of Calico (VXLAN)"
            ),
            Opening(
                "CalicoTypha", protocol="tcp", port=5473, purpose="Agents of Calico to Typha, which may run on masters"
            ),
        ),
        taken=(5473, 9098, 9099),
    ),
    "flannel": NetworkPlugin(
        openings=(
            Opening(
                "Vxlan", protocol="udp", port=8472, purpose="Pods to pods on masters, in the tunnel of flannel (VXLAN)"
            ),
        ),
        taken=(8081,),
    ),
    "amazon-vpc": NetworkPlugin(
        pod_range=False,
        node_ranges=False,
        least_prefix=0,
        interfaces=True,
        openings=_DNS,
        taken=(8162, 8163, 50051, 50052, 61678, 61679),
    ),
    # The user installs a plug-in: most need a range for each node, and their ports are not known here.
    "none": NetworkPlugin(installed=False),
}


def network_plugin(cluster: Cluster) -> NetworkPlugin:
    """Return the properties of the cluster's network plug-in."""
    return PLUGINS[cluster.network.plugin]
