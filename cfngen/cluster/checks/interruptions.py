"""Checks of what happens before Spot Instances are interrupted: exactly one may act on each signal, and in time."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.group_types import may_be_spot
from cfngen.cluster.interruptions import handler_action
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem

_HANDLER: Path = ("addons", "nodeTerminationHandler")
# Seconds for which cfngen drains a Spot Instance after EC2's notice, which comes two minutes before the interruption
# (SPOT_DRAIN_SECONDS of `cfngen.boot.node.drain`).
_SPOT_DRAIN_SECONDS = 100


def _check_group_actions(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        if group.rebalance_recommendation == "ignore":
            continue
        group_path: Path = ("nodeGroups", index)
        path: Path = (*group_path, "rebalanceRecommendation")
        if not may_be_spot(group):
            message = "EC2 recommends to rebalance Spot Instances only, and this group has none; remove the key"
            yield Problem(path, message)
        elif group.capacity_rebalance:
            message = (
                "with capacityRebalance, EC2 Auto Scaling launches a replacement first, and the node is drained when "
                "it is terminated; remove one of the two keys"
            )
            yield Problem(path, message, related_paths=((*group_path, "capacityRebalance"),))
        elif not group.drain_timeout:
            message = "needs cfngen's drain service, which drainTimeout: 0 disables; set drainTimeout to 1 or more"
            yield Problem(path, message, related_paths=((*group_path, "drainTimeout"),))
        elif handler_action(cluster) != "ignore":
            message = (
                "addons.nodeTerminationHandler acts on rebalance recommendations, too; let only one of the two do so, "
                "and set the other to ignore"
            )
            yield Problem(path, message, related_paths=((*_HANDLER, "rebalanceRecommendation"), (*_HANDLER, "values")))


def _check_handler_action(cluster: Cluster) -> Iterator[Problem]:
    action = handler_action(cluster)
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
            yield Problem((*_HANDLER, "podGracePeriod"), message, related_paths=(("nodeGroups", index, "spotPrice"),))
            return


PROBLEM_CHECKS = (_check_group_actions, _check_handler_action, _check_handler_enabled, _check_pod_grace_period)
