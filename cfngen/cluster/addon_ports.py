"""Which ports of masters the add-ons listen on, and which of them nodes must reach.

One table that templates and checks read. Masters reach every port of every instance, and nodes those of nodes; what
nodes, and pods on them, may send to masters are single ports (`cfngen.templates.security_groups`). Ports are those of
the charts in the catalogue, as cfngen installs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cfngen.cluster.model import Addon, Cluster
from cfngen.cluster.network_plugins import Opening, network_plugin


@dataclass(frozen=True)
class Listener:
    """A TCP port on masters that pods of an add-on listen on, or that an add-on asks.

    Attributes:
        name: part of the rule's logical id.
        port: the port.
        purpose: what for; it describes the rule.
        callers: who connects: `host` (the kubelet beside it), `masters` (API servers) or `nodes` (pods there).
        network: whether the port is the instance's, or that of a pod with an address of its own.
        switch: key of the chart's values that turns it on.
        default: what holds where the values do not say.
    """

    name: str
    port: int
    purpose: str
    callers: Literal["host", "masters", "nodes"]
    network: Literal["host", "pods"] = "host"
    switch: tuple[str, ...] = ()
    default: bool = True

    def on(self, values: Mapping[str, Any]) -> bool:
        """Return whether it is there, by the user's values for the chart."""
        value: Any = values
        for key in self.switch:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value if isinstance(value, bool) else self.default


def _metrics(name: str, port: int, of: str, *switch: str) -> Listener:
    """Return a port that is scraped only where the chart's values ask for it."""
    return Listener(name, port, f"Metrics of {of} on masters", "nodes", switch=switch, default=False)


# By field of `Addons`. Those that run on nodes only, and listen on no port of a master, have none.
LISTENERS: Mapping[str, tuple[Listener, ...]] = {
    "aws_ebs_csi_driver": (
        Listener("EbsHealth", 9808, "Health of the EBS CSI controller", "host"),
        *(
            _metrics(f"Ebs{part}Metrics", port, f"the EBS CSI {part.lower()}", "controller", "enableMetrics")
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
        Listener("AutoscalerHealth", 8085, "Health of cluster-autoscaler", "host"),
        _metrics("AutoscalerMetrics", 8085, "cluster-autoscaler", "serviceMonitor", "enabled"),
    ),
    "node_termination_handler": (),
    "aws_load_balancer_controller": (
        Listener("LoadBalancerWebhook", 9443, "Webhook of the load balancer controller", "masters"),
        Listener("LoadBalancerHealth", 61779, "Health of the load balancer controller", "host"),
        Listener("LoadBalancerOwnMetrics", 8080, "Metrics of the load balancer controller", "host"),
        _metrics("LoadBalancerMetrics", 8080, "the load balancer controller", "serviceMonitor", "enabled"),
    ),
    "external_dns": (
        Listener("ExternalDnsHealth", 7979, "Health of external-dns", "host"),
        _metrics("ExternalDnsMetrics", 7979, "external-dns", "serviceMonitor", "enabled"),
    ),
    "cert_manager": (),
    "headlamp": (),
    "fluent_bit": (),
    "prometheus": (
        Listener(
            "NodeExporterMetrics",
            9100,
            "Metrics of masters (node-exporter)",
            "nodes",
            switch=("nodeExporter", "enabled"),
        ),
        Listener(
            "DnsMetrics",
            9153,
            "Metrics of cluster DNS pods on masters",
            "nodes",
            network="pods",
            switch=("coreDns", "enabled"),
        ),
    ),
}


def listeners(cluster: Cluster) -> Iterator[Listener]:
    """Yield what the add-ons that are on listen on, on masters."""
    for field, declared in LISTENERS.items():
        addon: Addon = getattr(cluster.addons, field)
        if addon.enabled:
            yield from (listener for listener in declared if listener.on(addon.values))


def openings(cluster: Cluster) -> tuple[Opening, ...]:
    """Return what nodes must be able to send to masters for the sake of add-ons.

    A tunnel carries what goes to a pod's own address, so that security groups see the tunnel's port only; and how a
    plug-in of the user's own carries it nobody knows here.
    """
    plugin = network_plugin(cluster)
    ports_visible = plugin.routes or plugin.interfaces
    return tuple(
        Opening(listener.name, "tcp", listener.port, listener.purpose)
        for listener in listeners(cluster)
        if listener.callers == "nodes" and (listener.network == "host" or ports_visible)
    )
