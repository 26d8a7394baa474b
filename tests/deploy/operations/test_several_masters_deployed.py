"""Deploying, explaining and deleting a cluster of several masters, from beginning to end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from cloud import Cloud, cloud_of
from clusters import ALLOWED, BUCKET, PREFIX, golden, inventory, resources
from deleting import Operator as Remover
from deployments import Operator, groups

from cfngen.cluster.load import parse
from cfngen.deploy.aws import kubernetes_made
from cfngen.deploy.aws.account import connect
from cfngen.deploy.aws.inventory import read_inventory
from cfngen.deploy.aws.protection import STATEFUL_STACK_POLICY
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Danger
from cfngen.deploy.preflight import blockers
from cfngen.deploy.preflight.immutable_settings import ImmutableSettingError
from cfngen.deploy.preflight.quotas import checks
from cfngen.deploy.preflight.quotas.demand import count_demand
from cfngen.deploy.watching.diagnosis import diagnose
from cfngen.deploy.watching.expectations import expect_operation
from cfngen.sandbox.moto_patches.dependencies import refuse_dependency_violations as dependencies
from cfngen.templates import generate

pytestmark = pytest.mark.drill

ZONES = {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]}
BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"


def wanted(count: int) -> Mapping[str, Any]:
    return {"name": "one", "network": ZONES, "controlPlane": {"count": count}, "nodeGroups": groups("general")}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


@pytest.fixture
def three() -> Iterator[Cloud]:
    with cloud_of(golden("three-masters")) as cloud:
        yield cloud


def test_three_masters_take_three_addresses_and_a_load_balancer(cloud: Cloud):
    documents = generate(parse(wanted(3)))
    found = count_demand(documents, {})
    assert (found.count_by_resource_type["AWS::EC2::EIP"], found.count_by_resource_type[BALANCER]) == (3, 1)
    account = connect(cloud.session, "us-west-2", clock=cloud.clock, attempts=1)
    answers = {each.name: each for each in checks.check_quotas(account, count_demand(documents, {}))}
    addresses, balancers = answers["Elastic IPs"], answers["Network load balancers"]
    assert (addresses.needed, addresses.limit, addresses.sufficient) == (3, 5, True)
    assert (balancers.needed, balancers.used, balancers.sufficient) == (1, 0, True)


def test_five_masters_beside_another_address_are_one_too_many(cloud: Cloud):
    cloud.client("ec2").allocate_address(Domain="vpc")
    account = connect(cloud.session, "us-west-2", clock=cloud.clock, attempts=1)
    answers = {each.name: each for each in checks.check_quotas(account, count_demand(generate(parse(wanted(5))), {}))}
    assert answers["Elastic IPs"].sufficient is False
    assert "--desired-value 6" in answers["Elastic IPs"].hint


def test_masters_are_waited_for_together():
    bodies = {(): next(each.body for each in generate(parse(wanted(3))) if each.name == "standalone")}
    found = expect_operation(bodies, "create")
    conditions = [found.find((), f"Master{letter}WaitCondition") for letter in "ABC"]
    assert [each.signals for each in conditions if each] == [1, 1, 1]
    alone = expect_operation(
        {(): next(each.body for each in generate(parse(wanted(1))) if each.name == "standalone")}, "create"
    )
    # The load balancer's minutes, and the moments in which one group follows the other; not three boots.
    assert found.seconds < alone.seconds + 300


def test_masters_are_updated_one_after_the_other():
    bodies = {(): next(each.body for each in generate(parse(wanted(3))) if each.name == "standalone")}
    rolled = {((), f"Master{letter}AutoScalingGroup"): "update" for letter in "ABC"}
    found = expect_operation(bodies, rolled)
    assert found.seconds >= 3 * 300
    assert [each.signals for each in found.resources] == [1, 1, 1]


def test_a_master_that_fails_at_creation_is_named():
    with cloud_of(golden("three-masters"), MasterBAutoScalingGroup="FAILURE") as cloud:
        given = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}
        asked = cloud.account.templates["cluster"]["Parameters"]
        root = cloud.engine.create_stack(
            "prod",
            url=cloud.account.url("cluster"),
            parameters={key: value for key, value in given.items() if key in asked},
            capabilities=["CAPABILITY_IAM"],
        )
        cloud.engine.wait(root)
        launched = next(
            each.reason.rpartition(" ")[2]
            for stack in cloud.engine.stacks()
            for each in stack.events
            if each.logical_id == "MasterBWaitCondition" and "FAILURE signal" in each.reason
        )
        found = diagnose(connect(cloud.session, "us-west-2", clock=cloud.clock), root.id)
    assert found.cause is not None
    assert found.cause.event.logical_id == "MasterBWaitCondition"
    assert [each.id for each in found.cause.instances] == [launched]
    assert found.cause.explanation


def test_the_load_balancer_is_protected_like_the_address_it_stands_for():
    denied = [each for each in STATEFUL_STACK_POLICY["Statement"] if each["Effect"] == "Deny"]
    assert all(BALANCER in each["Condition"]["StringEquals"]["ResourceType"] for each in denied)


def test_the_load_balancer_goes_with_its_stack_and_is_nobodys_leftover(three: Cloud):
    with dependencies():
        before = inventory("us-west-2")
        stack = three.account.create("cluster", name="prod")
        assert stack.status == "CREATE_COMPLETE", stack.reason
        stack.tags.update({"cfngen:cluster": "prod"})
        account = connect(three.session, "us-west-2", clock=three.clock)
        where = read_inventory(account, find_stack(account, stack.name), cluster="prod")
        assert kubernetes_made.find_orphans(account, where) == ()
        deleted = Remover(account).deletes("prod", cluster="prod")
        assert (deleted.succeeded, deleted.orphans) == (True, ())
        counted = {each.kind: each for each in deleted.counted}
        assert (counted["load balancers"].gone, counted["load balancers"].left) == (1, ())
        assert (counted["target groups"].gone, counted["target groups"].left) == (1, ())
        after = inventory("us-west-2")
        assert {kind for kind in after if after[kind] - before[kind]} <= {"snapshots", "buckets"}


def test_interfaces_of_the_load_balancer_are_in_nobodys_way(three: Cloud):
    stack = three.account.create("cluster", name="prod")
    found = resources(stack)
    for name in ("prod-api", "somebody-elses"):
        three.client("ec2").create_network_interface(
            SubnetId=found["SubnetA"].physical_id, Description=f"ELB net/{name}/0123456789abcdef"
        )
    account = connect(three.session, "us-west-2", clock=three.clock)
    where = read_inventory(account, find_stack(account, stack.name), cluster="prod")
    assert [blocker.what for blocker in blockers.find_blockers(account, where, ())] == [
        "network interface, ELB net/somebody-elses/0123456789abcdef"
    ]


def test_one_master_becomes_three(operator: Operator):
    operator.deploy(wanted(1))
    found = operator.plan(wanted(3))
    assert found.consequences[0].text.startswith("1 master becomes 3")
    assert found.consequences[0].danger is Danger.DANGEROUS
    said = {each.logical_id: each.impact.text for each in found.changes if each.impact}
    assert "the API is unavailable" in said["MasterAAutoScalingGroup"]
    assert "joins" in said["MasterBAutoScalingGroup"]
    assert not [each for each in found.changes if each.type == "AWS::EC2::Volume" and each.action != "add"]
    finished = operator.deploy(wanted(3), on_failure="keep")
    assert finished.succeeded
    assert ".elb." in finished.outputs["ApiEndpoint"]


def test_fewer_masters_are_refused_and_nothing_is_touched(operator: Operator):
    operator.deploy(wanted(3))
    before = inventory("us-west-2")
    with pytest.raises(ImmutableSettingError, match=r"^controlPlane\.count: is 3 and cannot be changed to 1"):
        operator.deploy(wanted(1))
    assert inventory("us-west-2") == before


def test_a_plan_of_a_rolling_update_says_that_the_api_stays(operator: Operator):
    operator.deploy(wanted(3))
    found = operator.plan({**wanted(3), "controlPlane": {"count": 3, "instanceType": "t3.large"}})
    said = {each.logical_id: each.impact.text for each in found.changes if each.impact}
    for letter in "abc":
        text = said[f"Master{letter.upper()}AutoScalingGroup"]
        assert text == f"master {letter} is replaced, one master at a time; the API stays up while the others work"
    [advice] = [impact.text for impact in found.predicted if "--on-failure keep" in impact.text]
    assert advice.startswith("If a master fails, the rollback replaces those before it again")


def test_the_plan_of_a_creation_counts_masters_and_what_they_cost(operator: Operator):
    found = operator.plan(wanted(3)).creation
    assert found is not None
    items = {each.what: each.count for each in found.items}
    assert items["master"] == 3
    assert items["network load balancer of the API"] == 1
    assert items["public address of a master (Elastic IP)"] == 3
    costs = {each.what: each.quantity for each in found.costs}
    # Three of masters, three of the load balancer's zones, two of nodes.
    assert costs["public IPv4"] == 8
    assert costs["Elastic Load Balancing"] == 1
