"""Who acts on EC2's recommendation to rebalance a Spot Instance: cfngen, an add-on, EC2 Auto Scaling, or nobody.

EC2 sends the recommendation when a Spot Instance is likely to be interrupted ("EC2 instance rebalance recommendations",
EC2 User Guide). Exactly one of them should act:

- With Capacity Rebalancing, EC2 Auto Scaling launches a replacement and then terminates the instance, which the
  lifecycle hook delays until cfngen's drain service has moved the pods ("Use Capacity Rebalancing to handle Amazon EC2
  Spot interruptions", Auto Scaling User Guide). Whoever drains earlier moves pods before the replacement exists.
- Without it, nothing replaces the instance before it is interrupted.
"""

from __future__ import annotations

from typing import Literal

from cfngen.cluster.model import Cluster

Action = Literal["ignore", "cordon", "drain"]


def handler_action(cluster: Cluster) -> Action:
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
