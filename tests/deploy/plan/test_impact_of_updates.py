"""A plan says at what pace a group's nodes are replaced: the cluster file and the nodes that run now decide that."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.plan.impact import ImpactAssessment
from cfngen.deploy.plan.plan import Change, PropertyChange, Replacement

LOGICAL_ID = "NodeGroupNodesAutoScalingGroup"
KIND = "AWS::AutoScaling::AutoScalingGroup"


@pytest.mark.parametrize(
    ("group", "nodes", "pace"),
    [
        ({}, 4, "one at a time"),
        ({}, None, "one at a time"),
        # Without an answer about its instances, the group has as many as it begins with.
        (
            {"minSize": 2, "maxSize": 9, "update": {"pause": 15}},
            None,
            "one at a time, in 2 batches of at most 60 minutes each (120 minutes in all)",
        ),
        # Of a usual update it is said only where it takes long.
        ({}, 9, "one at a time"),
        ({}, 10, "one at a time, in 10 batches of at most 45 minutes each (8 hours in all)"),
        ({"update": {"pause": 15}}, 2, "one at a time, in 2 batches of at most 60 minutes each (120 minutes in all)"),
        ({"update": {"pause": 1}}, 3, "one at a time, in 3 batches of at most 46 minutes each (3 hours in all)"),
        ({"update": {"pause": 15}}, 1, "one at a time"),
        (
            {"minSize": 0, "maxSize": 1, "update": {"maxSurge": 1}},
            1,
            "one at a time, without a surge: it has 1 node already, and its maximum is 1",
        ),
        ({"minSize": 100}, 100, "one at a time, in 100 batches of at most 45 minutes each (75 hours in all)"),
        (
            {"update": {"maxUnavailable": 2}},
            4,
            "2 at a time, in 2 batches of at most 45 minutes each (90 minutes in all)",
        ),
        ({"update": {"maxUnavailable": 20}}, 4, "4 at a time"),
        (
            {"minSize": 100, "maxSize": 110, "update": {"maxUnavailable": 0, "maxSurge": 10}},
            100,
            "10 at a time, after 10 more have been launched, in 10 batches of at most 45 minutes each (8 hours in all)",
        ),
        (
            {"minSize": 2, "maxSize": 90, "update": {"maxSurge": 1, "pause": 10}},
            2,
            "2 at a time, after 1 more has been launched, in 2 batches of at most 55 minutes each (110 minutes in all)",
        ),
        (
            {"minSize": 2, "maxSize": 9, "update": {"maxUnavailable": 0, "maxSurge": 1}},
            2,
            (
                "one at a time, after 1 more has been launched, in 2 batches of at most 45 minutes each (90 minutes "
                "in all)"
            ),
        ),
        # None has to stay in service, so those that are there are replaced first.
        (
            {"minSize": 2, "maxSize": 9, "update": {"maxUnavailable": 3, "maxSurge": 1}},
            4,
            "4 at a time, without a surge: it has 4 nodes already, and its maximum is 9",
        ),
        (
            {"minSize": 2, "maxSize": 90, "update": {"maxUnavailable": 0, "maxSurge": 5}},
            50,
            (
                "5 at a time, without a surge: it has 50 nodes already, and its maximum is 90, in 10 batches of at "
                "most 45 minutes each (8 hours in all)"
            ),
        ),
    ],
)
def test_pace_of_a_rolling_update(group: dict[str, Any], nodes: int | None, pace: str) -> None:
    properties = (PropertyChange("/Properties/LaunchTemplate/Version", "1", "2"),)
    change = Change(LOGICAL_ID, "id", KIND, "update", Replacement.NO, "", properties)
    entry = ResourceChange("Modify", LOGICAL_ID, "id", KIND)
    found = ImpactAssessment(parse({"nodeGroups": [group]})).of_resource(change, entry, instance_count=nodes)
    assert found is not None
    assert found.text == f"node group `nodes`: its instances are replaced {pace}; pods are not drained first"
