"""What Auto Scaling groups of nodes launch: one type, a list, what is required, and in which reservations."""

from __future__ import annotations

from typing import Any

from cfngen.cluster.load import parse
from cfngen.templates import generate

TYPES = ["m7i.large", "m7a.large"]


def of_group(**group: Any) -> tuple[dict[str, Any], dict[str, Any], set[str]]:
    """The Auto Scaling group, the launch template's data, and the root's parameters that are the group's."""
    documents = {each.name: each.body for each in generate(parse({"nodeGroups": [{"name": "n", **group}]}))}
    resources = documents["nodes-n"]["Resources"]
    scaling_group = resources["NodeGroupNAutoScalingGroup"]["Properties"]
    data = resources["NodeGroupNLaunchTemplate"]["Properties"]["LaunchTemplateData"]
    prefix = "NodeGroupN"
    parameters = {name.removeprefix(prefix) for name in documents["cluster"]["Parameters"] if name.startswith(prefix)}
    return scaling_group, data, parameters


def test_a_spot_price_alone_is_the_launch_templates() -> None:
    group, data, parameters = of_group(spotPrice="0.05", capacityRebalance=True)
    assert data["InstanceMarketOptions"]["SpotOptions"]["MaxPrice"] == {"Ref": "NodeGroupNSpotPrice"}
    assert "MixedInstancesPolicy" not in group
    assert group["CapacityRebalance"] is True
    assert {"InstanceType", "SpotPrice"} <= parameters


def test_a_list_is_the_policys_and_no_parameter_replaces_it() -> None:
    group, data, parameters = of_group(instanceTypes=TYPES)
    policy = group["MixedInstancesPolicy"]
    assert "LaunchTemplate" not in group
    assert policy["LaunchTemplate"]["Overrides"] == [{"InstanceType": name} for name in TYPES]
    assert policy["LaunchTemplate"]["LaunchTemplateSpecification"] == {
        "LaunchTemplateId": {"Ref": "NodeGroupNLaunchTemplate"},
        "Version": {"Fn::GetAtt": ["NodeGroupNLaunchTemplate", "LatestVersionNumber"]},
    }
    assert policy["InstancesDistribution"] == {
        "OnDemandAllocationStrategy": "prioritized",
        "OnDemandBaseCapacity": 0,
        "OnDemandPercentageAboveBaseCapacity": 100,
    }
    assert "InstanceType" not in data
    assert parameters & {"InstanceType", "SpotPrice"} == set()


def test_with_a_list_the_spot_price_is_the_policys() -> None:
    group, data, parameters = of_group(instanceTypes=TYPES, spotPrice="0.05")
    distribution = group["MixedInstancesPolicy"]["InstancesDistribution"]
    assert distribution["SpotMaxPrice"] == {"Ref": "NodeGroupNSpotPrice"}
    assert distribution["OnDemandPercentageAboveBaseCapacity"] == 0
    assert distribution["SpotAllocationStrategy"] == "price-capacity-optimized"
    assert "InstanceMarketOptions" not in data
    assert "SpotPrice" in parameters


def test_without_a_price_an_earlier_one_is_removed() -> None:
    group, _, parameters = of_group(instanceTypes=TYPES, instancesDistribution={"onDemandPercentage": 20})
    assert group["MixedInstancesPolicy"]["InstancesDistribution"]["SpotMaxPrice"] == ""
    assert "SpotPrice" not in parameters


def test_shares_of_one_type_keep_its_parameter() -> None:
    group, data, parameters = of_group(instanceType="c7i.large", instancesDistribution={"onDemandPercentage": 50})
    assert data["InstanceType"] == {"Ref": "NodeGroupNInstanceType"}
    assert group["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"] == [{"InstanceType": data["InstanceType"]}]
    assert "InstanceType" in parameters


def test_requirements_leave_accelerators_out() -> None:
    group, data, _ = of_group(instanceRequirements={"vcpus": {"min": 2, "max": 8}, "memory": {"min": 4}})
    [override] = group["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]
    assert override["InstanceRequirements"] == {
        "VCpuCount": {"Min": 2, "Max": 8},
        "MemoryMiB": {"Min": 4096},
        "InstanceGenerations": ["current"],
        "BurstablePerformance": "excluded",
        "BareMetal": "excluded",
        "LocalStorage": "included",
        "AcceleratorCount": {"Max": 0},
    }
    assert "InstanceType" not in data


def test_requirements_have_the_image_of_their_architecture() -> None:
    documents = generate(
        parse(
            {
                "nodeGroups": [
                    {
                        "image": {"architecture": "arm64"},
                        "instanceRequirements": {"vcpus": {"min": 2}, "memory": {"min": 4}},
                    }
                ]
            }
        )
    )
    [nodes] = [each.body for each in documents if each.name == "nodes-nodes"]
    assert "NodeImageUbuntu2404Arm64" in nodes["Parameters"]


def test_reservations_and_lifetimes() -> None:
    group, _, _ = of_group(capacityReservation={"id": "cr-0123456789abcdef0"}, maxInstanceLifetime=7)
    assert group["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-first",
        "CapacityReservationTarget": {"CapacityReservationIds": ["cr-0123456789abcdef0"]},
    }
    assert group["MaxInstanceLifetime"] == 604_800
    group, _, _ = of_group(capacityReservation={"preference": "none"})
    assert group["CapacityReservationSpecification"] == {"CapacityReservationPreference": "none"}
