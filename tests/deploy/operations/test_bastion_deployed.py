"""A bastion that is added to a living cluster, replaced, and taken away again: no other instance is touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from cloud import Cloud
from clusters import running_instances
from deployments import ALLOWED, Operator

from cfngen.deploy.aws.addresses import find_lost_addresses
from cfngen.deploy.aws.groups import find_groups
from cfngen.deploy.aws.stacks import ResourceView, find_stack, list_resource_tree
from cfngen.deploy.messages.message import Danger
from cfngen.deploy.operations.deletion.execution import delete, preview_with_refusal
from cfngen.deploy.plan.deletion.plan import DeletionRequest

pytestmark = pytest.mark.drill

KEY = {"publicKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmqaeAWN0f4SVnzVUBz0zOZyTtT6s4VKVJZ2fS8G0jM admin"}
PUBLIC = {"name": "one", "ssh": KEY, "nodeGroups": [{"name": "nodes", "minSize": 1, "maxSize": 2}]}
PRIVATE = {**PUBLIC, "network": {"topology": "private", "plugin": "cilium"}}
FULLY_PRIVATE = {
    **PUBLIC,
    "network": {"topology": "private", "plugin": "cilium", "nat": "none"},
    "api": {"public": False},
    "assets": {"mirror": "https://mirror.example.com"},
}
BASTION = {"allowedCidrs": ["203.0.113.0/24"]}


def instances(cloud: Cloud) -> dict[str, str]:
    """The Name tag of each running instance, by its id."""
    return {
        instance_id: next(tag["Value"] for tag in instance["Tags"] if tag["Key"] == "Name")
        for instance_id, instance in running_instances(cloud.cluster.region).items()
    }


def bastions(cloud: Cloud) -> list[str]:
    return [instance_id for instance_id, name in instances(cloud).items() if name == "one-bastion"]


def views(operator: Operator) -> list[ResourceView]:
    stack = find_stack(operator.account, "one")
    assert stack is not None
    return [resource.view for resource in list_resource_tree(operator.account, stack.id)]


def addresses(cloud: Cloud) -> set[str]:
    return {address["PublicIp"] for address in cloud.client("ec2").describe_addresses()["Addresses"]}


def outputs(operator: Operator) -> Mapping[str, str]:
    stack = find_stack(operator.account, "one")
    assert stack is not None
    return stack.outputs


@pytest.mark.parametrize("file", [PUBLIC, PRIVATE], ids=["public", "private"])
def test_it_comes_and_goes_and_no_other_instance_is_touched(cloud: Cloud, file: dict[str, Any]) -> None:
    operator = Operator(cloud)
    assert operator.deploy(file).succeeded
    before, before_addresses = instances(cloud), addresses(cloud)
    with_bastion = {**file, "bastion": BASTION}
    plan = operator.plan(with_bastion)
    assert plan.danger is Danger.NONE
    assert {stack.path for stack in plan.stacks if stack.path} == {("BastionStack",)}
    [added] = [stack for stack in plan.stacks if stack.path]
    assert added.impact is not None
    assert added.impact.text == "new bastion: t3.micro in us-west-2a, reached by SSH from 203.0.113.0/24"
    assert operator.deploy(with_bastion).succeeded
    [bastion] = bastions(cloud)
    assert instances(cloud) == {**before, bastion: "one-bastion"}
    [address] = addresses(cloud) - before_addresses
    assert outputs(operator)["BastionAddress"] == address
    assert outputs(operator)["BastionCommand"] == f"ssh -J ubuntu@{address} ubuntu@172.20.0.9"
    assert operator.deploy(with_bastion).action == "none"

    removal = operator.plan(file)
    assert removal.danger is Danger.DISRUPTIVE
    assert operator.deploy(file).succeeded
    assert instances(cloud) == before
    assert addresses(cloud) == before_addresses


def test_a_bastion_of_a_fully_private_cluster_gets_a_public_subnet(cloud: Cloud) -> None:
    operator = Operator(cloud)
    assert operator.deploy(FULLY_PRIVATE).succeeded
    before = instances(cloud)
    assert operator.deploy({**FULLY_PRIVATE, "bastion": BASTION}).succeeded
    [bastion] = bastions(cloud)
    assert instances(cloud) == {**before, bastion: "one-bastion"}
    assert operator.deploy(FULLY_PRIVATE).succeeded
    assert instances(cloud) == before


def test_a_lost_instance_is_replaced(cloud: Cloud) -> None:
    operator = Operator(cloud)
    assert operator.deploy({**PUBLIC, "bastion": BASTION}).succeeded
    [lost] = bastions(cloud)
    cloud.client("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=lost, ShouldDecrementDesiredCapacity=False
    )
    cloud.clock.sleep(600)
    [healed] = bastions(cloud)
    assert healed != lost
    assert find_lost_addresses(operator.account, views(operator), {}) == ()
    [group] = [
        group for group in find_groups(operator.account, cloud.cluster, views(operator)) if group.role == "bastion"
    ]
    assert (group.title, group.in_service, group.desired) == ("the bastion", 1, 1)


def test_another_type_replaces_the_bastion_only(cloud: Cloud) -> None:
    operator = Operator(cloud)
    assert operator.deploy({**PUBLIC, "bastion": BASTION}).succeeded
    before, [old] = instances(cloud), bastions(cloud)
    larger = {**PUBLIC, "bastion": {**BASTION, "instanceType": "t3.small"}}
    plan = operator.plan(larger)
    texts = [impact.text for impact in plan.consequences]
    assert any(text.startswith("the bastion is replaced: SSH sessions through it break") for text in texts), texts
    assert operator.deploy(larger).succeeded
    [new] = bastions(cloud)
    assert new != old
    assert instances(cloud).keys() - {new} == before.keys() - {old}


def test_in_another_zone_it_keeps_its_public_address(cloud: Cloud) -> None:
    network = {"subnets": [{"zone": "us-west-2a"}, {"zone": "us-west-2b"}]}
    operator = Operator(cloud)
    assert operator.deploy({**PUBLIC, "network": network, "bastion": BASTION}).succeeded
    before, [old], address = instances(cloud), bastions(cloud), outputs(operator)["BastionAddress"]
    done = operator.deploy({**PUBLIC, "network": network, "bastion": {**BASTION, "zone": "us-west-2b"}})
    assert done.succeeded
    [new] = bastions(cloud)
    assert instances(cloud).keys() - {new} == before.keys() - {old}
    assert outputs(operator)["BastionAddress"] == address
    assert find_lost_addresses(operator.account, views(operator), {}) == ()


def test_the_whole_internet_is_told_in_the_plan(cloud: Cloud) -> None:
    operator = Operator(cloud)
    assert operator.deploy({**PUBLIC, "bastion": BASTION}).succeeded
    plan = operator.plan({**PUBLIC, "bastion": {"allowedCidrs": ["203.0.113.0/24", "0.0.0.0/0"]}})
    assert "SSH of the bastion becomes reachable from 0.0.0.0/0 in addition: from the whole internet" in [
        impact.text for impact in plan.consequences
    ]


def test_deletion_leaves_nothing_of_it_but_what_was_there_before(cloud: Cloud) -> None:
    existing = cloud.client("ec2").allocate_address(Domain="vpc")
    named = {"allocationId": existing["AllocationId"], "address": "52.10.20.31"}
    operator = Operator(cloud)
    flags = {
        **ALLOWED,
        "BastionElasticIpAllocationId": existing["AllocationId"],
        "BastionElasticIpAddress": existing["PublicIp"],
    }
    wanted = {**PRIVATE, "bastion": {**BASTION, "elasticIp": named}}
    assert operator.deploy(wanted, flags=flags).succeeded
    assert outputs(operator)["BastionAddress"] == existing["PublicIp"]
    request = DeletionRequest("one", "one")
    announced = {
        (resource.kind, resource.id) for resource in preview_with_refusal(operator.account, request)[0].retained
    }
    assert ("Elastic IP", existing["AllocationId"]) in announced
    deleted = delete(operator.account, request, operator.waiting)
    assert (deleted.succeeded, deleted.orphans) == (True, ())
    assert all(not counted.left for counted in deleted.counted)
    assert bastions(cloud) == []
    assert addresses(cloud) == {existing["PublicIp"]}


def test_a_new_cluster_is_told_by_its_bastion(cloud: Cloud) -> None:
    plan = Operator(cloud).plan({**PRIVATE, "bastion": BASTION})
    assert plan.creation is not None
    items = {item.what: (item.count, item.detail) for item in plan.creation.items}
    assert items["bastion"] == (1, "t3.micro")
    assert items["public address of the bastion (Elastic IP)"] == (1, "")
    costs = {cost.what: (cost.quantity, cost.detail) for cost in plan.creation.costs}
    assert costs["t3.micro"] == (1, "bastion")
    assert costs["public IPv4"] == (3, "the API's, the bastion's and the NAT gateways'")
