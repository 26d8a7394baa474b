"""Names that are fixed, and that something else in the account may have: looked up before anything is created."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from answers import Answers
from cloud import Cloud
from deployments import Operator
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.deploy.aws.stacks import StackTree
from cfngen.deploy.preflight.existing.objects import ForeignObjectsError
from cfngen.deploy.preflight.existing.services import find_load_balancer_problems

ARN = "arn:aws:elasticloadbalancing:us-west-2:123456789012:loadbalancer/net/{}/0123456789abcdef"
SEVERAL: dict[str, Any] = {
    "name": "one",
    "controlPlane": {"count": 3},
    "network": {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]},
}


def taken(aws: Answers, file: dict[str, Any], *names: str, own: tuple[str, ...] = ()) -> list[str]:
    """What is told of a cluster where load balancers have these names, some of them the stack's own."""

    def answer(arguments: dict[str, Any]) -> Any:
        asked = set(arguments["Names"])
        found = [{"LoadBalancerName": name, "LoadBalancerArn": ARN.format(name)} for name in names if name in asked]
        return {"LoadBalancers": found} if found else RefusedError("LoadBalancerNotFound")

    aws.given["elbv2:DescribeLoadBalancers"] = answer
    tree = SimpleNamespace(physical_ids={name: ARN.format(name) for name in own}) if own else None
    return list(map(str, find_load_balancer_problems(aws.account, parse(file), cast("StackTree | None", tree))))


def test_a_load_balancer_of_another_has_the_name_of_the_apis(aws: Answers) -> None:
    [problem] = taken(aws, SEVERAL, "one-api", "one-int")
    assert problem.startswith("name: account 123456789012 has a load balancer one-api in us-west-2 already, which is")
    assert f"--load-balancer-arn {ARN.format('one-api')}` if nothing uses it, or choose another name" in problem
    both = {**SEVERAL, "api": {"internal": True}}
    assert len(taken(aws, both, "one-api", "one-int")) == 2
    [problem] = taken(aws, both, "one-api", "one-int", own=("one-api",))
    assert "has a load balancer one-int" in problem


@pytest.mark.parametrize(("names", "own"), [((), ()), (("one-api",), ("one-api",)), (("two-api",), ())])
def test_a_name_that_is_free_or_the_stacks_own_is_no_problem(
    aws: Answers, names: tuple[str, ...], own: tuple[str, ...]
) -> None:
    assert taken(aws, SEVERAL, *names, own=own) == []


def test_a_cluster_without_load_balancers_is_not_looked_for(aws: Answers) -> None:
    assert taken(aws, {"name": "one"}, "one-api") == []
    assert not aws.named("elbv2:DescribeLoadBalancers")


def test_a_plan_refuses_a_name_that_is_taken(cloud: Cloud) -> None:
    operator = Operator(cloud)
    account = operator.account
    subnets = account.client("ec2").describe_subnets()["Subnets"]
    account.client("elbv2").create_load_balancer(
        Name="one-api", Type="network", Scheme="internal", Subnets=[subnets[0]["SubnetId"]]
    )
    with pytest.raises(ForeignObjectsError, match=r"^name: account .* has a load balancer one-api"):
        operator.plan(SEVERAL)
