"""What a change of a node group's types, shares of Spot Instances, lifetime and reservations means."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import default_cluster

from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact import ImpactAssessment
from cfngen.deploy.plan.plan import Change, PropertyChange, Replacement

GROUP = "NodeGroupNodesAutoScalingGroup"
TYPE = "AWS::AutoScaling::AutoScalingGroup"
ROLLED = "node group `nodes`: its instances are replaced one at a time; pods are not drained first"


def policy(*types: str, version: str = "1", **distribution: Any) -> dict[str, Any]:
    overrides = [{"InstanceType": name} for name in types]
    specification = {"LaunchTemplateId": "lt-1", "Version": version}
    return {
        "LaunchTemplate": {"LaunchTemplateSpecification": specification, "Overrides": overrides},
        "InstancesDistribution": distribution,
    }


def meaning(before: dict[str, Any], after: dict[str, Any]) -> Impact:
    """The impact of an update of the group's properties."""
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    properties = tuple(
        PropertyChange(f"/Properties/{name}/", None, None, known=False, certain=True) for name in sorted(names)
    )
    change = Change(GROUP, "id", TYPE, "update", Replacement.NO, "", properties)
    resource_change = ResourceChange(
        "Modify", GROUP, "id", TYPE, before={"Properties": before}, after={"Properties": after}
    )
    impact = ImpactAssessment(default_cluster()).of_resource(change, resource_change, instance_count=2)
    assert impact is not None
    return impact


ONE = {"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "1"}}
LIST = {"MixedInstancesPolicy": policy("m7i.large", "m7a.large")}


def test_from_one_type_to_a_list_nodes_are_replaced() -> None:
    impact = meaning(ONE, LIST)
    assert impact.danger is Danger.DISRUPTIVE
    assert impact.text == (
        f"{ROLLED}; instances of node group `nodes` are of m7i.large or m7a.large, all of them On-Demand Instances"
    )


def test_types_of_another_architecture_are_told_as_the_danger() -> None:
    impact = meaning(LIST, {"MixedInstancesPolicy": policy("m7g.large", "m8g.large")})
    assert "node group `nodes`: CPU architecture amd64 becomes arm64; pods whose images" in impact.dangerous_part


def test_from_a_list_to_one_type() -> None:
    assert meaning(LIST, ONE).text.endswith(
        "node group `nodes` has one instance type again, that of its launch template"
    )


def test_another_version_of_the_launch_template_says_nothing_about_types() -> None:
    newer = {"MixedInstancesPolicy": policy("m7i.large", "m7a.large", version="2")}
    assert meaning(LIST, newer).text == ROLLED


@pytest.mark.parametrize(
    ("base", "percentage", "shares"),
    [
        (0, 0, "all of them Spot Instances, which AWS may reclaim at any time"),
        (0, 25, "75 % Spot Instances, which AWS may reclaim at any time"),
        (2, 25, "75 % of those above the first 2 Spot Instances, which AWS may reclaim at any time"),
    ],
)
def test_shares_of_spot_instances(base: int, percentage: int, shares: str) -> None:
    distribution = {"OnDemandBaseCapacity": base, "OnDemandPercentageAboveBaseCapacity": percentage}
    after = {"MixedInstancesPolicy": policy("m7i.large", "m7a.large", **distribution)}
    assert meaning(LIST, after).text.endswith(f"are of m7i.large or m7a.large, {shares}")


@pytest.mark.parametrize(
    ("after", "text"),
    [
        (
            {"CapacityRebalance": "true"},
            (
                "from now on Spot Instances of node group `nodes` are replaced when AWS sees a high risk of an "
                "interruption"
            ),
        ),
        ({"MaxInstanceLifetime": "604800"}, "nodes of node group `nodes` are replaced once they are 7 days old"),
        (
            {"CapacityRebalance": "false"},
            "from now on Spot Instances of node group `nodes` are replaced only after an interruption",
        ),
        ({"MaxInstanceLifetime": "86400"}, "nodes of node group `nodes` are replaced once they are 1 day old"),
        ({"MaxInstanceLifetime": "0"}, "nodes of node group `nodes` are no longer replaced because of their age"),
    ],
)
def test_what_replaces_no_instance_now(after: dict[str, Any], text: str) -> None:
    impact = meaning({}, after)
    assert (impact.text, impact.danger) == (text, Danger.NONE)


@pytest.mark.parametrize(
    ("preference", "text"),
    [
        ("capacity-reservations-only", "start in its Capacity Reservations only"),
        ("capacity-reservations-first", "use its Capacity Reservations first"),
        ("none", "use no Capacity Reservations"),
        ("default", "use open Capacity Reservations that match"),
        (None, "use open Capacity Reservations that match"),
    ],
)
def test_whether_future_instances_use_reservations(preference: str | None, text: str) -> None:
    other = "none" if preference != "none" else "default"
    before, after = (
        {"CapacityReservationSpecification": {"CapacityReservationPreference": value}} if value else {}
        for value in (other, preference)
    )
    impact = meaning(before, after)
    sentence = f"future instances of node group `nodes` {text}; none is replaced for that"
    assert (impact.text, impact.danger) == (sentence, Danger.NONE)
