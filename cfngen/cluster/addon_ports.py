"""The ports on masters that add-ons listen on, and which of them must be open to nodes.

Templates and checks both use this table. Masters may reach every port of every instance, and nodes every port of nodes.
Nodes, and pods on them, may reach single ports of masters only (`cfngen.templates.security_groups`). The ports are
those of the charts in the catalogue, as cfngen installs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from cfngen.cluster.model import Addon, Cluster
from cfngen.cluster.network_plugins import Opening, network_plugin


@dataclass(frozen=True)
class Listener:
    """A TCP port on masters that an add-on listens on, or that an add-on connects to.

    Attributes:
        name: part of the security group rule's logical id.
        port: the port number.
        purpose: description of the security group rule.
        callers: who connects: `host` (the kubelet of the same instance), `masters` (API servers) or `nodes` (pods on
            nodes).
        network: whether the pod that listens uses the instance's network (`host`) or has its own address (`pods`).
        switch: path of the chart's value that enables the port.
        default: whether the port is enabled if that value is not set.
    """

    name: str
    port: int
    purpose: str
    callers: Literal["host", "masters", "nodes"]
    network: Literal["host", "pods"] = "host"
    switch: tuple[str, ...] = ()
    default: bool = True

    def on(self, values: Mapping[str, object]) -> bool:
        """Return whether the port is open, by the user's values for the chart."""
        value: object = values
        for key in self.switch:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value if isinstance(value, bool) else self.default


def _metrics(name: str, *, port: int, program: str, switch: tuple[str, ...]) -> Listener:
    """Return a metrics port that is open only where the chart's values turn it on."""
    purpose = f"Metrics of {program} on masters"
    return Listener(name, port=port, purpose=purpose, callers="nodes", switch=switch, default=False)


# By field of `Addons`; empty for add-ons that listen on no port of a master.
LISTENERS: Mapping[str, tuple[Listener, ...]] = {
    "aws_ebs_csi_driver": (
        Listener("EbsHealth", port=9808, purpose="Health of the EBS CSI controller", callers="host"),
        *(
            _metrics(
                f"Ebs{part}Metrics",
                port=port,
                program=f"the EBS CSI {part.lower()}",
                switch=("controller", "enableMetrics"),
            )
            for part, port in (
                ("Controller", 3301),
                ("Provisioner", 3302),
                ("Attacher", 3303),
                ("Resizer", 3304),
                ("Probe", 3305),
            )
        ),
    ),
    "metrics_server": (),
    "cluster_autoscaler": (
        Listener("AutoscalerHealth", port=8085, purpose="Health of cluster-autoscaler", callers="host"),
        _metrics("AutoscalerMetrics", port=8085, program="cluster-autoscaler", switch=("serviceMonitor", "enabled")),
    ),
    "node_termination_handler": (),
    "aws_load_balancer_controller": (
        Listener(
            "LoadBalancerWebhook", port=9443, purpose="Webhook of the load balancer controller", callers="masters"
        ),
        Listener("LoadBalancerHealth", port=61779, purpose="Health of the load balancer controller", callers="host"),
        Listener(
            "LoadBalancerOwnMetrics", port=8080, purpose="Metrics of the load balancer controller", callers="host"
        ),
        _metrics(
            "LoadBalancerMetrics",
            port=8080,
            program="the load balancer controller",
            switch=("serviceMonitor", "enabled"),
        ),
    ),
    "external_dns": (
        Listener("ExternalDnsHealth", port=7979, purpose="Health of external-dns", callers="host"),
        _metrics("ExternalDnsMetrics", port=7979, program="external-dns", switch=("serviceMonitor", "enabled")),
    ),
    "cert_manager": (),
    "headlamp": (),
    "fluent_bit": (),
    "prometheus": (
        Listener(
            "NodeExporterMetrics",
            port=9100,
            purpose="Metrics of masters (node-exporter)",
            callers="nodes",
            switch=("nodeExporter", "enabled"),
        ),
        Listener(
            "DnsMetrics",
            port=9153,
            purpose="Metrics of cluster DNS pods on masters",
            callers="nodes",
            network="pods",
            switch=("coreDns", "enabled"),
        ),
    ),
}


def listeners(cluster: Cluster) -> Iterator[Listener]:
    """Yield the ports on masters that the enabled add-ons listen on."""
    for field, declared in LISTENERS.items():
        addon: Addon = getattr(cluster.addons, field)
        if addon.enabled:
            yield from (listener for listener in declared if listener.on(addon.values))


def openings(cluster: Cluster) -> tuple[Opening, ...]:
    """Return the ports of masters that must be open to nodes for add-ons.

    The port of a pod with its own address must be open only if the network plug-in uses no tunnel: with a tunnel,
    security groups only see the tunnel's port. The ports of a plug-in that the user installs are not known.
    """
    plugin = network_plugin(cluster)
    ports_visible = plugin.routes or plugin.interfaces
    return tuple(
        Opening(listener.name, protocol="tcp", port=listener.port, purpose=listener.purpose)
        for listener in listeners(cluster)
        if listener.callers == "nodes" and (listener.network == "host" or ports_visible)
    )
