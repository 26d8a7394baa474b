"""One owner for each signal: what capacity rebalancing refuses, and which values of the handler's chart count."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.checks.addons import termination_handler_action
from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError
from cfngen.cluster.sections.instances import NodeGroup

needs_capacity_rebalancing = pytest.mark.skipif(
    "capacity_rebalance" not in NodeGroup.model_fields, reason="node groups have no capacity rebalancing yet"
)
REBALANCED = {"name": "spot", "spotPrice": "0.05", "capacityRebalance": True}


def refusals(configuration: dict[str, Any]) -> str:
    try:
        parse(configuration)
    except ClusterFileError as error:
        return str(error)
    return ""


def handler(**settings: Any) -> dict[str, Any]:
    return {"nodeTerminationHandler": {"enabled": True, **settings}}


@needs_capacity_rebalancing
@pytest.mark.parametrize("action", ["cordon", "drain"])
def test_nobody_drains_before_auto_scaling_has_launched_a_replacement(action: str) -> None:
    message = "EC2 Auto Scaling launches a replacement first, and the node is drained when it is terminated"
    assert message in refusals({"nodeGroups": [{**REBALANCED, "rebalanceRecommendation": action}]})
    message = f"the handler would {action} nodes of spot before EC2 Auto Scaling has replaced them"
    by_key = {"nodeGroups": [REBALANCED], "addons": handler(rebalanceRecommendation=action)}
    assert f"addons.nodeTerminationHandler.rebalanceRecommendation: {message}" in refusals(by_key)
    value = "enableRebalanceDraining" if action == "drain" else "enableRebalanceMonitoring"
    by_value = {"nodeGroups": [REBALANCED], "addons": handler(values={value: True})}
    assert f"addons.nodeTerminationHandler.values: {message}" in refusals(by_value)


@needs_capacity_rebalancing
def test_capacity_rebalancing_goes_with_a_handler_that_ignores_recommendations() -> None:
    assert refusals({"nodeGroups": [REBALANCED], "addons": handler(podGracePeriod=60)}) == ""


@pytest.mark.parametrize(
    ("settings", "action"),
    [
        ({}, "ignore"),
        ({"rebalanceRecommendation": "cordon"}, "cordon"),
        ({"rebalanceRecommendation": "drain"}, "drain"),
        ({"values": {"enableRebalanceMonitoring": True}}, "cordon"),
        ({"values": {"enableRebalanceDraining": "true"}}, "drain"),
        ({"rebalanceRecommendation": "drain", "values": {"enableRebalanceDraining": False}}, "cordon"),
        (
            {
                "rebalanceRecommendation": "drain",
                "values": {"enableRebalanceDraining": False, "enableRebalanceMonitoring": "false"},
            },
            "ignore",
        ),
        ({"enabled": False, "values": {"enableRebalanceDraining": True}}, "ignore"),
    ],
)
def test_values_of_the_chart_decide_what_the_handler_does(settings: dict[str, Any], action: str) -> None:
    assert termination_handler_action(parse({"addons": handler(**settings)})) == action
