"""Checks of add-ons: required values, releases and ports, and who acts when Spot Instances are interrupted.

EC2 recommends to rebalance a Spot Instance that is likely to be interrupted ("EC2 instance rebalance recommendations",
EC2 User Guide). Exactly one should act on it: cfngen, the node termination handler, or EC2 Auto Scaling.

- With Capacity Rebalancing, EC2 Auto Scaling launches a replacement and then terminates the instance, which the
  lifecycle hook delays until cfngen's drain service has moved the pods ("Use Capacity Rebalancing to handle Amazon EC2
  Spot interruptions", Auto Scaling User Guide). Draining earlier would move pods before the replacement exists.
- Without it, nothing replaces the instance before it is interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from cfngen.cluster.checks.sections import KeyCheck
from cfngen.cluster.instances.group_types import may_be_spot
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.problems import Problem
from cfngen.cluster.security_groups.addon_ports import LISTENERS

# Names of cfngen's own Helm releases, enabled or not. A user's chart must not have one of these names: its release
# would replace the resources of cfngen's.
CFNGEN_RELEASES = frozenset({
    "aws-ebs-csi-driver", "aws-load-balancer-controller", "aws-node-termination-handler", "aws-vpc-cni",
    "calico", "calico-crds", "cert-manager", "cilium", "cluster-autoscaler", "external-dns", "flannel",
    "fluent-bit", "headlamp", "metrics-server", "nvidia-device-plugin", "prometheus",
})  # fmt: skip
_HANDLER: Path = ("addons", "nodeTerminationHandler")
# Seconds for which cfngen drains a Spot Instance after EC2's notice, which comes two minutes before the interruption
# (SPOT_DRAIN_SECONDS of `cfngen.boot.node.drain`).
_SPOT_DRAIN_SECONDS = 100
Action = Literal["ignore", "cordon", "drain"]


def _check_release_names(cluster: Cluster) -> Iterator[Problem]:
    first_index_by_name: dict[str, int] = {}
    for index, chart in enumerate(cluster.addons.charts):
        path = ("addons", "charts", index, "name")
        earlier_index = first_index_by_name.setdefault(chart.name, index)
        if earlier_index != index:
            message = f"{chart.name} is also the name of charts[{earlier_index}]; give each release a different name"
            yield Problem(path, message, related_paths=(("addons", "charts", earlier_index, "name"),))
        elif chart.name in CFNGEN_RELEASES:
            yield Problem(path, f"{chart.name} is the name of a Helm release that cfngen installs; use another name")


def _check_api_port_free(cluster: Cluster) -> Iterator[Problem]:
    """Check that no enabled add-on listens on the API's port on masters.

    Only pods with the network of their instance (`host`) can take the port.
    """
    port = cluster.api.port
    for field, listeners in LISTENERS.items():
        host_ports = {listener.port for listener in listeners if listener.network == "host"}
        if getattr(cluster.addons, field).enabled and port in host_ports:
            # The add-on's key in the cluster file, in camelCase.
            key = type(cluster.addons).model_fields[field].alias or field
            message = f"{port} is used by addons.{key}, whose pods use the masters' network; use 443 or 6443"
            yield Problem(("api", "port"), message, related_paths=(("addons", key, "enabled"),))


def _check_group_actions(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        if group.rebalance_recommendation == "ignore":
            continue
        group_path: Path = ("nodeGroups", index)
        path: Path = (*group_path, "rebalanceRecommendation")
        if not may_be_spot(group):
            message = "EC2 recommends to rebalance Spot Instances only, and this group has none; remove the key"
            related_paths = ((*group_path, "spotPrice"), (*group_path, "instancesDistribution"))
            yield Problem(path, message, related_paths=related_paths)
        elif group.capacity_rebalance:
            message = (
                "with capacityRebalance, EC2 Auto Scaling launches a replacement first, and the node is drained when "
                "it is terminated; remove one of the two keys"
            )
            yield Problem(path, message, related_paths=((*group_path, "capacityRebalance"),))
        elif not group.drain_timeout:
            message = "needs cfngen's drain service, which drainTimeout: 0 disables; set drainTimeout to 1 or more"
            yield Problem(path, message, related_paths=((*group_path, "drainTimeout"),))
        elif termination_handler_action(cluster) != "ignore":
            message = (
                "addons.nodeTerminationHandler acts on rebalance recommendations, too; let only one of the two do so, "
                "and set the other to ignore"
            )
            keys = ("enabled", "rebalanceRecommendation", "values")
            yield Problem(path, message, related_paths=tuple((*_HANDLER, key) for key in keys))


def _check_handler_action(cluster: Cluster) -> Iterator[Problem]:
    action = termination_handler_action(cluster)
    if action == "ignore":
        return
    is_chart_value = action != cluster.addons.node_termination_handler.rebalance_recommendation
    path: Path = (*_HANDLER, "values" if is_chart_value else "rebalanceRecommendation")
    for index, group in enumerate(cluster.node_groups):
        if group.capacity_rebalance:
            message = (
                f"the handler would {action} nodes of {group.name} before EC2 Auto Scaling has replaced them, which "
                "capacityRebalance asks for; remove one of the two"
            )
            yield Problem(path, message, related_paths=(("nodeGroups", index, "capacityRebalance"),))


def _check_handler_enabled(cluster: Cluster) -> Iterator[Problem]:
    handler = cluster.addons.node_termination_handler
    if handler.enabled:
        return
    for field, info in type(handler).model_fields.items():
        if field not in ("enabled", "values") and getattr(handler, field) != info.get_default(
            call_default_factory=True
        ):
            message = "has no effect, as the handler is not installed; set enabled: true, or remove the key"
            yield Problem((*_HANDLER, info.alias or field), message, related_paths=((*_HANDLER, "enabled"),))


def _check_pod_grace_period(cluster: Cluster) -> Iterator[Problem]:
    handler = cluster.addons.node_termination_handler
    seconds = handler.pod_grace_period
    if not (handler.enabled and handler.spot_interruptions and seconds and seconds > _SPOT_DRAIN_SECONDS):
        return
    for index, group in enumerate(cluster.node_groups):
        if may_be_spot(group):
            message = (
                f"{seconds} seconds are more than EC2 leaves the pods of node group {group.name}: it interrupts Spot "
                f"Instances two minutes after its notice; set {_SPOT_DRAIN_SECONDS} or less, or set spotInterruptions "
                "to false, and pods keep their own periods"
            )
            related_paths = tuple(("nodeGroups", index, key) for key in ("spotPrice", "instancesDistribution"))
            yield Problem((*_HANDLER, "podGracePeriod"), message, related_paths=related_paths)
            return


def termination_handler_action(cluster: Cluster) -> Action:
    """Return what the node termination handler does when it reads a rebalance recommendation.

    The chart's values of the cluster file count as well: they are merged over cfngen's.
    """
    handler = cluster.addons.node_termination_handler
    if not handler.enabled:
        return "ignore"
    drains = handler.values.get("enableRebalanceDraining", handler.rebalance_recommendation == "drain")
    if _is_true(drains):
        return "drain"
    monitors = handler.values.get("enableRebalanceMonitoring", handler.rebalance_recommendation != "ignore")
    return "cordon" if _is_true(monitors) else "ignore"


def _is_true(value: object) -> bool:
    """Return whether the handler takes a value as true: the chart quotes it, and Go's strconv.ParseBool reads it."""
    return str(value) in ("True", "true", "TRUE", "T", "t", "1")


KUBE_UP_OUTPUTS = """\
[OUTPUT]
    Name es
    Match *
    Host elasticsearch-logging.kube-system
    Port 9200
    Logstash_Format On
    Suppress_Type_Name On
    Retry_Limit False
"""
"""Where kube-up sent logs (cluster/addons/fluentd-elasticsearch), as Elasticsearch 7 and later take them."""

PROBLEM_CHECKS = (
    KeyCheck(
        "addons.externalDns.zones",
        when=lambda cluster: cluster.addons.external_dns.enabled and not cluster.addons.external_dns.zones,
        message="is empty, so externalDns cannot write any records; add the ids of hosted zones, or disable "
        "externalDns",
        related=("addons.externalDns.enabled",),
    ),
    KeyCheck(
        "addons.fluentBit.values",
        when=lambda cluster: (
            cluster.addons.fluent_bit.enabled and not lookup(cluster.addons.fluent_bit.values, ("config", "outputs"))
        ),
        message="does not say where logs go; set config.outputs to a text with fluent-bit's [OUTPUT] sections, or "
        "disable fluentBit",
        related=("addons.fluentBit.enabled",),
    ),
    _check_release_names,
    _check_api_port_free,
    _check_group_actions,
    _check_handler_action,
    _check_handler_enabled,
    _check_pod_grace_period,
)
WARNING_CHECKS = (
    KeyCheck(
        "addons.fluentBit.values.config.outputs",
        when=lambda cluster: (
            cluster.addons.fluent_bit.enabled
            and lookup(cluster.addons.fluent_bit.values, ("config", "outputs")) == KUBE_UP_OUTPUTS
        ),
        message="is kube-up's: logs go to the service elasticsearch-logging in kube-system, which cfngen does not "
        "install; install Elasticsearch there, or say where logs go",
    ),
)
