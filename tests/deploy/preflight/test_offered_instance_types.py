"""Instance types that a zone does not offer: refused before anything changes."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.deploy.messages.message import Message, Notice
from cfngen.deploy.preflight.offered_instance_types import InstanceTypesNotOfferedError, MissingZonesError, check

FILE: dict[str, Any] = {
    "network": {"subnets": [{"zone": "us-west-2a"}, {"zone": "us-west-2b"}, {"zone": "us-west-2c"}]},
    "controlPlane": {"instanceType": "m7i.large", "count": 3},
    "nodeGroups": [{"name": "general", "instanceType": "m5.large"}, {"name": "fast", "instanceType": "c7i.large"}],
}


def ignore(message: Message) -> None:
    """Take a message that a test does not look at."""


def offered(aws: Answers, **zones: str) -> Cluster:
    """Let each type (with _ for its dot) be offered in the zones with these letters."""
    aws.given["ec2:DescribeInstanceTypeOfferings"] = {
        "InstanceTypeOfferings": [
            {"InstanceType": name.replace("_", "."), "Location": f"us-west-2{letter}"}
            for name, letters in zones.items()
            for letter in letters
        ]
    }
    aws.given["ec2:DescribeAvailabilityZones"] = {
        "AvailabilityZones": [{"ZoneName": f"us-west-2{letter}"} for letter in "abcd"]
    }
    return parse(FILE)


def test_a_zone_that_the_account_does_not_have_is_named_with_those_that_it_has(aws: Answers) -> None:
    offered(aws, m7i_large="abcd", m5_large="abcd", c7i_large="abcd")
    subnets = [{"zone": "us-west-2a"}, {"zone": "us-west-2b"}, {"zone": "us-west-2e"}]
    with pytest.raises(MissingZonesError) as error:
        check(aws.account, parse({**FILE, "network": {"subnets": subnets}}), {}, ignore)
    assert tuple(map(str, error.value.problems)) == (
        (
            "network.subnets[2].zone: us-west-2 has no zone us-west-2e for this account; its zones are us-west-2a, "
            "us-west-2b, us-west-2c and us-west-2d"
        ),
    )


def test_a_type_in_every_zone_is_no_problem(aws: Answers) -> None:
    check(aws.account, offered(aws, m7i_large="abc", m5_large="abc", c7i_large="abc"), {}, ignore)
    [call] = aws.named("ec2:DescribeInstanceTypeOfferings")
    assert call["Filters"] == [{"Name": "instance-type", "Values": ["c7i.large", "m5.large", "m7i.large"]}]


def test_every_master_needs_its_zone_and_a_group_all_of_its_zones(aws: Answers) -> None:
    cluster = offered(aws, m7i_large="ab", m5_large="b", c7i_large="d")
    with pytest.raises(InstanceTypesNotOfferedError) as error:
        check(aws.account, cluster, {}, ignore)
    assert tuple(map(str, error.value.problems)) == (
        (
            "controlPlane.instanceType: m7i.large is not offered in us-west-2c; use another type, or a zone that has "
            "it: us-west-2a and us-west-2b"
        ),
        (
            "nodeGroups[1].instanceType: c7i.large is not offered in us-west-2a, us-west-2b and us-west-2c; use "
            "another type, or a zone that has it: us-west-2d"
        ),
        (
            "nodeGroups[0].instanceType: us-west-2a and us-west-2c offer no m5.large; use another type, or remove the "
            "zone from the group"
        ),
    )


@pytest.mark.parametrize("types", [{"instanceType": "m7a.large"}, {"instanceTypes": ["m7a.large", "m7i.large"]}])
def test_one_type_and_several_are_judged_by_one_rule(aws: Answers, types: dict[str, Any]) -> None:
    cluster = parse({**SEVERAL, "nodeGroups": [{"name": "general", **types}]})
    offered(aws, t3_medium="ab", m7a_large="ab", m7i_large="ab")
    check(aws.account, cluster, {}, ignore)
    offered(aws, t3_medium="ab", m7a_large="a", m7i_large="a")
    with pytest.raises(InstanceTypesNotOfferedError, match=r": us-west-2b offers no"):
        check(aws.account, cluster, {}, ignore)


def test_a_type_that_the_region_does_not_have(aws: Answers) -> None:
    with pytest.raises(InstanceTypesNotOfferedError, match=r"c7i.large is not offered in .*; use another type$"):
        check(aws.account, offered(aws, m7i_large="abc", m5_large="abc"), {}, ignore)


def test_a_bastion_needs_its_zone(aws: Answers) -> None:
    offered(aws, m7i_large="abc", m5_large="abc", c7i_large="abc", t4g_nano="b")
    bastion = {"instanceType": "t4g.nano", "zone": "us-west-2a", "allowedCidrs": ["203.0.113.0/24"]}
    cluster = parse({**FILE, "bastion": bastion, "ssh": {"keyName": "laptop"}})
    with pytest.raises(InstanceTypesNotOfferedError, match=r"^bastion.instanceType: t4g.nano is not offered in us-w"):
        check(aws.account, cluster, {}, ignore)
    check(aws.account, cluster, {"ZoneA": "us-west-2b"}, ignore)


def test_types_and_zones_of_the_parameters_count(aws: Answers) -> None:
    cluster = offered(aws, m7i_large="abd", m5_large="abcd", c7i_large="abcd", m6i_large="abc")
    check(aws.account, cluster, {"MasterInstanceType": "m6i.large"}, ignore)
    check(aws.account, cluster, {"ZoneC": "us-west-2d"}, ignore)
    with pytest.raises(InstanceTypesNotOfferedError, match=r"^nodeGroups\[0\].instanceType: r5.large is not offered"):
        check(aws.account, cluster, {"ZoneC": "us-west-2d", "NodeGroupGeneralInstanceType": "r5.large"}, ignore)


def test_who_may_not_look_is_told_and_not_kept_from_deploying(aws: Answers) -> None:
    aws.given["ec2:DescribeInstanceTypeOfferings"] = RefusedError("UnauthorizedOperation")
    told: list[Message] = []
    check(aws.account, parse(FILE), {}, told.append)
    [notice] = told
    assert isinstance(notice, Notice)
    assert notice.text.startswith("which instance types the zones offer cannot be read, so what depends on it was not")


SEVERAL: dict[str, Any] = {
    "network": {"subnets": [{"zone": "us-west-2a"}, {"zone": "us-west-2b"}]},
    "nodeGroups": [{"name": "mixed", "instanceTypes": ["m7i.large", "m7a.large", "m6i.large"]}],
}


def test_of_several_types_each_zone_needs_one(aws: Answers) -> None:
    offered(aws, t3_medium="ab", m7i_large="a", m7a_large="b", m6i_large="ab")
    check(aws.account, parse(SEVERAL), {}, ignore)
    offered(aws, t3_medium="ab", m7i_large="a", m7a_large="a", m6i_large="a")
    with pytest.raises(InstanceTypesNotOfferedError) as error:
        check(aws.account, parse(SEVERAL), {}, ignore)
    assert tuple(map(str, error.value.problems)) == (
        (
            "nodeGroups[0].instanceTypes: us-west-2b offers none of the types; add a type that is offered there, or "
            "remove the zone from the group"
        ),
    )


def test_of_several_types_each_needs_a_zone(aws: Answers) -> None:
    offered(aws, t3_medium="ab", m7i_large="ab", m7a_large="c")
    with pytest.raises(InstanceTypesNotOfferedError) as error:
        check(aws.account, parse(SEVERAL), {}, ignore)
    assert tuple(map(str, error.value.problems)) == (
        (
            "nodeGroups[0].instanceTypes[1]: m7a.large is not offered in us-west-2a and us-west-2b; use another type, "
            "or a zone that has it: us-west-2c"
        ),
        "nodeGroups[0].instanceTypes[2]: m6i.large is not offered in us-west-2a and us-west-2b; use another type",
    )


def test_requirements_need_a_type_in_each_zone_and_no_more(aws: Answers) -> None:
    requirements = {"vcpus": {"min": 2, "max": 2}, "memory": {"min": 8, "max": 8}}
    cluster = parse({**SEVERAL, "nodeGroups": [{"instanceRequirements": requirements}]})
    offered(aws, t3_medium="ab", m7i_large="a", m7a_large="b")
    check(aws.account, cluster, {}, ignore)
    offered(aws, t3_medium="ab", m7i_large="a")
    with pytest.raises(InstanceTypesNotOfferedError, match=r"nodeGroups\[0\].instanceRequirements: us-west-2b offers"):
        check(aws.account, cluster, {}, ignore)
