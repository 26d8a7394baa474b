"""Status, validation and kubeconfig of a cluster of three masters, with all of them and with one lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deployed import Place, place

from cfngen.cluster.load import parse
from cfngen.deploy.access import cluster_access
from cfngen.deploy.aws import stacks
from cfngen.deploy.status.derived_status import read_status
from cfngen.deploy.status.validation import validate
from cfngen.sandbox.cloudformation import client

THREE = parse(
    {"network": {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]}, "controlPlane": {"count": 3}}
)


@pytest.fixture
def where() -> Iterator[Place]:
    with place(THREE) as made:
        stack = made.create()
        assert stack.status == "CREATE_COMPLETE", stack.reason
        yield made


def lose(where: Place, letter: str) -> str:
    [instance] = where.instances(f"Master{letter}AutoScalingGroup")
    # It dies, since a master that its group terminates waits while etcd needs it.
    client("ec2", "us-west-2").terminate_instances(InstanceIds=[instance])
    scaling = client("autoscaling", "us-west-2")
    for group in scaling.describe_auto_scaling_groups()["AutoScalingGroups"]:
        if f"Master{letter}AutoScalingGroup" in group["AutoScalingGroupName"]:
            name = group["AutoScalingGroupName"]
            scaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, DesiredCapacity=0)
    where.world.advance(120)
    return instance


def test_a_new_cluster_of_three_is_valid(where: Place):
    validation = validate(where.account, where.name, where.cluster, find_url_override=where.override)
    assert (validation.valid, validation.problems) == (True, ())
    assert [(member.group, member.zone[-1]) for member in validation.members if member.role == "master"] == [
        ("a", "a"),
        ("b", "b"),
        ("c", "c"),
    ]


def test_the_status_shows_every_slot(where: Place):
    status = read_status(where.account, where.name, where.cluster, find_url_override=where.override)
    assert [(master.slot, master.state) for master in status.masters] == [(letter, "running") for letter in "abc"]
    assert {volume.slot for volume in status.volumes} == set("abc")
    assert status.api.ready is True


def test_the_endpoint_is_the_load_balancer_by_name(where: Place):
    stack = stacks.require_root_stack(where.account, where.name)
    found = cluster_access.find_api_endpoint(stack, stacks.read_outputs(where.account, stack))
    [balancer] = client("elbv2", "us-west-2").describe_load_balancers()["LoadBalancers"]
    assert found.url == f"https://{balancer['DNSName']}"


def test_one_lost_master_is_a_problem_and_the_api_still_answers(where: Place):
    lose(where, "B")
    validation = validate(where.account, where.name, where.cluster, find_url_override=where.override)
    assert validation.version == "1.36.3"
    assert [problem.area for problem in validation.problems if problem.area == "api"] == []
    status = read_status(where.account, where.name, where.cluster, find_url_override=where.override)
    assert status.api.ready is True


def test_two_lost_masters_take_the_api(where: Place):
    for letter in "BC":
        lose(where, letter)
    validation = validate(where.account, where.name, where.cluster, find_url_override=where.override)
    assert "api" in {problem.area for problem in validation.problems}
