"""Which other instance types are proposed where EC2 has no capacity for one, or a zone does not offer it."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers, filtered
from recorded import RefusedError

from cfngen.deploy.aws.instance_types import find_similar_types

ZONE = "us-west-2a"


def described(name: str, memory_gib: int, **more: Any) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "VCpuInfo": {"DefaultVCpus": 2},
        "MemoryInfo": {"SizeInMiB": memory_gib * 1024},
        **more,
    }


def similar(wanted: str, *others: dict[str, Any], not_offered: str = "") -> tuple[tuple[str, ...], Answers]:
    """What is proposed in place of a type with 8 GiB, and what EC2 was asked."""
    types = [described(wanted, 8), *others]
    offered = [{"InstanceType": item["InstanceType"], "Location": ZONE} for item in types]
    aws = Answers(
        {
            "ec2:DescribeInstanceTypes": lambda sent: {
                "InstanceTypes": types[:1] if "InstanceTypes" in sent else types
            },
            "ec2:DescribeInstanceTypeOfferings": {
                "InstanceTypeOfferings": [item for item in offered if item["InstanceType"] != not_offered]
            },
        }
    )
    return find_similar_types(aws.account, wanted, ZONE), aws


def test_types_with_the_least_memory_come_first_and_of_these_those_of_the_same_class() -> None:
    others = [
        *(described("r7i.large", 16), described("t3.large", 8), described("c7i.xlarge", 8), described("m6i.large", 8)),
        *(described("c7i.large", 4), described("m5.large", 8)),
        described("g6.large", 8, GpuInfo={"Gpus": []}),
        described("inf2.large", 8, InferenceAcceleratorInfo={"Accelerators": []}),
    ]
    proposed, _ = similar("m7i.large", *others, not_offered="m5.large")
    assert proposed == ("m6i.large", "c7i.xlarge", "t3.large")
    assert similar("m7i.large", *others[:2])[0] == ("t3.large", "r7i.large")


@pytest.mark.parametrize(("wanted", "processor"), [("m7i.large", "x86_64"), ("m7g.large", "arm64")])
def test_ec2_is_asked_for_types_on_which_the_same_image_boots(wanted: str, processor: str) -> None:
    _, aws = similar(wanted)
    first, second = aws.named("ec2:DescribeInstanceTypes")
    assert first["InstanceTypes"] == [wanted]
    expected = {
        "current-generation": ["true"],
        "bare-metal": ["false"],
        "hypervisor": ["nitro"],
        "vcpu-info.default-vcpus": ["2"],
        "processor-info.supported-architecture": [processor],
    }
    assert {name: filtered(second, name) for name in expected} == expected
    [offerings] = aws.named("ec2:DescribeInstanceTypeOfferings")
    assert (filtered(offerings, "location"), offerings["LocationType"]) == ([ZONE], "availability-zone")


def test_nothing_is_proposed_where_ec2_does_not_answer() -> None:
    aws = Answers({"ec2:DescribeInstanceTypes": RefusedError("UnauthorizedOperation")})
    assert find_similar_types(aws.account, "m7i.large", ZONE) == ()
