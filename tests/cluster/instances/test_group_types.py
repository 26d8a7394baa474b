"""The types of a node group: one, a list, or those that are known to have what is required."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cfngen.cluster.instances.group_types import cpu_manufacturer, may_be_spot, type_list, types_of
from cfngen.cluster.instances.instance_types import facts_of
from cfngen.cluster.load import ClusterFileError, parse


def types(architecture: str = "amd64", **group: Any) -> tuple[str, ...]:
    cluster = parse({"nodeGroups": [{"image": {"architecture": architecture}, **group}]})
    return types_of(cluster, cluster.node_groups[0])


def required(architecture: str = "amd64", **requirements: Any) -> tuple[str, ...]:
    some = {"vcpus": {"min": 2, "max": 4}, "memory": {"min": 4, "max": 16}}
    return types(architecture, instanceRequirements={**some, **requirements})


def families(names: tuple[str, ...]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def test_one_type_and_a_list() -> None:
    assert types(instanceType="m7i.large") == ("m7i.large",)
    assert types(instanceTypes=["m7i.xlarge", "m7a.large"]) == ("m7i.xlarge", "m7a.large")


def test_requirements_are_what_every_type_has() -> None:
    names = required()
    facts = [facts_of(name) for name in names]
    assert {"m7i.large", "c7a.xlarge"} <= set(names)
    assert all(each and 2 <= each.vcpus <= 4 and 4096 <= each.memory_mib <= 16384 for each in facts)
    assert all(each and each.architecture == "amd64" and each.is_current_generation for each in facts)
    assert not any(each and (each.is_burstable or each.is_bare_metal or each.gpu_count) for each in facts)
    assert list(names) == sorted(names, key=lambda name: (facts_of(name).vcpus, facts_of(name).memory_mib, name))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("requirements", "family", "is_among"),
    [
        ({}, "t3", False),
        ({"burstable": "included"}, "t3", True),
        ({"burstable": "required"}, "t3", True),
        ({"burstable": "required"}, "m7i", False),
        ({"generations": ["previous"]}, "m7i", False),
        ({"generations": ["current", "previous"]}, "m7i", True),
        ({"localStorage": "excluded"}, "m6id", False),
        ({"localStorage": "required"}, "m6id", True),
        ({"localStorage": "required"}, "m6i", False),
        ({"cpuManufacturers": ["amd"]}, "m7a", True),
        ({"cpuManufacturers": ["amd"]}, "m7i", False),
        ({"cpuManufacturers": ["intel"]}, "m7a", False),
        ({"allowedTypes": ["m7*"]}, "m7a", True),
        ({"allowedTypes": ["m7*"]}, "c7a", False),
        ({"excludedTypes": ["m7i.*"]}, "m7i", False),
        ({"excludedTypes": ["m7i.*"]}, "m7i-flex", True),
        # Accelerators are never a surprise, those that are no GPUs included.
        ({}, "g4dn", False),
        ({}, "inf2", False),
        ({"accelerators": {}}, "g4dn", True),
        ({"accelerators": {}}, "m7i", False),
        ({"accelerators": {"names": ["t4"]}}, "g4dn", True),
        ({"accelerators": {"names": ["t4"]}}, "g5", False),
        ({"accelerators": {"manufacturers": ["nvidia"], "count": {"max": 1}}}, "g6", True),
    ],
)
def test_what_a_requirement_lets_in(requirements: dict[str, Any], family: str, is_among: bool) -> None:
    assert (family in families(required(**requirements))) == is_among


def test_types_are_those_of_the_image_and_of_the_region() -> None:
    assert {"m7g", "c7g"} <= families(required("arm64"))
    assert not families(required("arm64")) & {"m7i", "m7a"}
    requirements = {"vcpus": {"min": 2}, "memory": {"min": 4}}
    cluster = parse({"region": "eu-central-2", "nodeGroups": [{"instanceRequirements": requirements}]})
    assert not families(types_of(cluster, cluster.node_groups[0])) & {"a1", "hpc7a"}


@pytest.mark.parametrize(
    ("name", "manufacturer"),
    [
        ("m7i.large", "intel"),
        ("m7i-flex.large", "intel"),
        ("c7a.large", "amd"),
        ("m5ad.large", "amd"),
        ("g5.xlarge", "amd"),
        ("g4dn.xlarge", "intel"),
    ],
)
def test_who_makes_the_cpu(name: str, manufacturer: str) -> None:
    assert cpu_manufacturer(name, "amd64") == manufacturer


def test_aws_makes_the_cpus_of_arm64() -> None:
    assert "m7g" in families(required("arm64", cpuManufacturers=["amazon-web-services"]))


def test_types_in_words() -> None:
    assert type_list(["m7i.large"]) == "m7i.large"
    assert type_list(["m7i.large", "m7a.large"]) == "m7i.large or m7a.large"
    assert type_list(["m7i.large", "m7a.large", "m6i.large"]) == "m7i.large, m7a.large or m6i.large"
    many = ["m7i.2xlarge", "m7a.large", "m6i.xlarge", "c7i.large"]
    assert type_list(many) == "one of 4 types, c7i.large to m7i.2xlarge"


@pytest.mark.parametrize(
    ("group", "is_spot"),
    [
        ({}, False),
        ({"spotPrice": "0.1"}, True),
        ({"instanceTypes": ["m7i.large", "m7a.large"]}, False),
        ({"instanceTypes": ["m7i.large", "m7a.large"], "spotPrice": "0.1"}, True),
        ({"instancesDistribution": {"onDemandPercentage": 99}}, True),
    ],
)
def test_where_spot_instances_are(group: dict[str, Any], is_spot: bool) -> None:
    assert may_be_spot(parse({"nodeGroups": [group]}).node_groups[0]) == is_spot


@pytest.mark.parametrize(
    ("requirements", "advice"),
    [
        ({"allowedTypes": ["m99.*"]}, "c5a.large without allowedTypes"),
        ({"excludedTypes": ["*"]}, "c5a.large without excludedTypes"),
        ({"cpuManufacturers": ["intel"], "allowedTypes": ["m7a.*"]}, "m7a.large without cpuManufacturers"),
        ({"accelerators": {"names": ["t4"]}, "allowedTypes": ["m7i.*"]}, "m7i.large without accelerators"),
        ({"generations": ["previous"], "allowedTypes": ["m7i.*"]}, "m7i.large without generations"),
        ({"burstable": "excluded", "allowedTypes": ["t3.*"]}, "t3.medium without burstable"),
        ({"bareMetal": "required", "allowedTypes": ["m7i.*"]}, "m7i.large without bareMetal"),
        ({"localStorage": "excluded", "allowedTypes": ["m5d.*"]}, "m5d.large without localStorage"),
        ({"vcpus": {"min": 2, "max": 2}, "memory": {"min": 100}}, "x1e.xlarge without vcpus.max"),
        ({"memory": {"min": 4, "max": 4}, "allowedTypes": ["m7i.*"]}, "m7i.large without memory.max"),
        ({"allowedTypes": ["m7g.*"]}, "m7g.large with image.architecture: arm64"),
        ({"vcpus": {"min": 1000}, "memory": {"min": 30000}}, "ask for less"),
    ],
)
def test_requirements_that_no_type_fulfils_are_told_which_one_to_drop(
    requirements: dict[str, Any], advice: str
) -> None:
    with pytest.raises(ClusterFileError, match=re.escape(advice)):
        required(**requirements)
