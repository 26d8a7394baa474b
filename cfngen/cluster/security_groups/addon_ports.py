"""The ports on masters that add-ons listen on, and which of them must be open to nodes.

Templates and checks both use this table. In the security groups (`cfngen.templates.security_groups`) masters may reach
every port of every instance, and nodes every port of nodes; of masters, nodes and their pods may reach single ports
only. The ports come from the charts in the catalogue, as cfngen installs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from cfngen.cluster.iam.service_accounts import (
    CLUSTER_AUTOSCALER,
    EBS_CSI_DRIVER,
    EXTERNAL_DNS,
    LOAD_BALANCER_CONTROLLER,
    has_role,
)
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import MasterPort, network_plugin
from cfngen.cluster.sections.services import Addon, PodIdentityWebhook


@dataclass(frozen=True)
class Listener:
    """A TCP port on masters that an add-on listens on, or that an add-on connects to.

    Attributes:
        rule_purpose: what the port is for, in PascalCase; part of the logical id of the security group rule.
        description: what the port is for, as description of the security group rule.
        callers: who connects: `same_instance` (the kubelet of the same instance), `masters` (API servers) or `nodes`
            (pods on nodes).
        network: whether the pod that listens uses the instance's network (`host`) or has its own address (`pods`).
        enabling_value: path of the chart's value that enables the port, e.g. `("serviceMonitor", "enabled")`; empty if
            no value does.
        is_enabled_by_default: whether the port is enabled if that value is not set.
    """

    rule_purpose: str
    port: int
    description: str
    callers: Literal["same_instance", "masters", "nodes"]
    network: Literal["host", "pods"] = "host"
    enabling_value: tuple[str, ...] = ()
    is_enabled_by_default: bool = True

    def is_enabled(self, chart_values: Mapping[str, object]) -> bool:
        """Return whether the add-on listens on the port, given the user's values for its chart."""
        value: object = chart_values
        for key in self.enabling_value:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value if isinstance(value, bool) else self.is_enabled_by_default


def _metrics_listener(rule_purpose: str, port: int, program: str, *, enabling_value: tuple[str, ...]) -> Listener:
    """Return the port of a program's metrics, on which it listens only if a value of the chart enables it."""
    return Listener(
        rule_purpose,
        port=port,
        description=f"Metrics of {program} on masters",
        callers="nodes",
        enabling_value=enabling_value,
        is_enabled_by_default=False,
    )


# The webhook's port is the one on which EKS's API servers call theirs. The program has no option to listen only on the
# loopback address, and none to do without metrics.
POD_IDENTITY_PORT = 23443
POD_IDENTITY_METRICS_PORT = 23444

# Keys are the fields of `Addons`; an add-on without values listens on no port of a master.
LISTENERS: Mapping[str, tuple[Listener, ...]] = {
    "aws_ebs_csi_driver": (
        Listener("EbsHealth", 9808, "Health of the EBS CSI controller", "same_instance"),
        *(
            _metrics_listener(
                f"Ebs{part}Metrics", port, f"the EBS CSI {part.lower()}", enabling_value=("controller", "enableMetrics")
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
        Listener("AutoscalerHealth", 8085, "Health of cluster-autoscaler", "same_instance"),
        _metrics_listener(
            "AutoscalerMetrics", 8085, "cluster-autoscaler", enabling_value=("serviceMonitor", "enabled")
        ),
    ),
    "node_termination_handler": (),
    "aws_load_balancer_controller": (
        Listener("LoadBalancerWebhook", 9443, "Webhook of the load balancer controller", "masters"),
        Listener("LoadBalancerHealth", 61779, "Health of the load balancer controller", "same_instance"),
        Listener("LoadBalancerOwnMetrics", 8080, "Metrics of the load balancer controller", "same_instance"),
        _metrics_listener(
            "LoadBalancerMetrics", 8080, "the load balancer controller", enabling_value=("serviceMonitor", "enabled")
        ),
    ),
    "external_dns": (
        Listener("ExternalDnsHealth", 7979, "Health of external-dns", "same_instance"),
        _metrics_listener("ExternalDnsMetrics", 7979, "external-dns", enabling_value=("serviceMonitor", "enabled")),
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
            enabling_value=("nodeExporter", "enabled"),
        ),
        Listener(
            "DnsMetrics",
            9153,
            "Metrics of cluster DNS pods on masters",
            "nodes",
            network="pods",
            enabling_value=("coreDns", "enabled"),
        ),
    ),
    "nvidia_device_plugin": (),
    "pod_identity_webhook": (
        Listener("PodIdentityWebhook", POD_IDENTITY_PORT, "Pod identity webhook", "same_instance"),
        Listener(
            "PodIdentityMetrics", POD_IDENTITY_METRICS_PORT, "Metrics of the pod identity webhook", "same_instance"
        ),
    ),
}


# The service accounts of add-ons that use the masters' network only if they have no role of their own.
_ACCOUNTS = {
    "aws_ebs_csi_driver": EBS_CSI_DRIVER,
    "cluster_autoscaler": CLUSTER_AUTOSCALER,
    "aws_load_balancer_controller": LOAD_BALANCER_CONTROLLER,
    "external_dns": EXTERNAL_DNS,
}


def listeners(cluster: Cluster) -> Iterator[Listener]:
    """Yield the ports on masters that the enabled add-ons listen on."""
    for field, addon_listeners in LISTENERS.items():
        addon: Addon | PodIdentityWebhook = getattr(cluster.addons, field)
        chart_values = addon.values if isinstance(addon, Addon) else {}
        has_own_network = field in _ACCOUNTS and has_role(cluster, _ACCOUNTS[field])
        if addon.enabled:
            for listener in addon_listeners:
                if listener.is_enabled(chart_values):
                    yield replace(listener, network="pods") if has_own_network else listener


def master_ports(cluster: Cluster) -> tuple[MasterPort, ...]:
    """Return the ports of masters that must be open to nodes for add-ons.

    The port of a pod with its own address must be open only if the network plug-in uses no tunnel: with a tunnel,
    security groups only see the tunnel's port. The ports of a plug-in that the user installs are not known.
    """
    plugin = network_plugin(cluster)
    has_no_tunnel = plugin.uses_vpc_routes or plugin.gives_pods_vpc_addresses
    return tuple(
        MasterPort(listener.rule_purpose, protocol="tcp", port=listener.port, description=listener.description)
        for listener in listeners(cluster)
        if listener.callers == "nodes" and (listener.network == "host" or has_no_tunnel)
    )
