"""What an operator lives through with our templates when a cluster changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from clusters import (
    ALLOWED,
    BUCKET,
    PREFIX,
    Account,
    golden,
    inventory,
    leftovers,
    prepared,
    resources,
    running_instances,
    templates_of,
)

from cfngen.cluster.model import Cluster
from cfngen.sandbox.cloudformation import Stack, client
from cfngen.templates.nodes import HEARTBEAT_TIMEOUT_SECONDS

REGION = "us-west-2"
GROUP = "NodeGroupNodesAutoScalingGroup"


def ready(**outcomes: str | None) -> tuple[Account, Stack]:
    where = prepared(golden("default"), **outcomes)
    stack = where.create("cluster")
    assert stack.status == "CREATE_COMPLETE", stack.reason
    return where, stack


def publish(where: Account, cluster: Cluster) -> None:
    """Put the templates of a changed cluster where those of the present one are."""
    for each in templates_of(cluster):
        key = f"{PREFIX}{each.name}.json"
        client("s3", REGION).put_object(Bucket=BUCKET, Key=key, Body=json.dumps(each.body).encode())


def updated(where: Account, **parameters: str) -> Stack:
    """Update through a change set with nested ones, as deploying does."""
    cloud = where.cloud
    given = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX, **parameters}
    change_set = cloud.create_change_set(
        "k8s", f"c{len(cloud.stack('k8s').events)}", url=where.url("cluster"), parameters=given,
        capabilities=["CAPABILITY_IAM"], nested=True,
    )  # fmt: skip
    cloud.advance(60)
    assert change_set.status == "CREATE_COMPLETE", change_set.reason
    return cloud.wait(cloud.execute_change_set(change_set.id))


def changed_groups(*names: str) -> Cluster:
    """The default cluster with node groups of these names."""
    cluster = golden("default")
    [one] = cluster.node_groups
    return cluster.model_copy(update={"node_groups": tuple(one.model_copy(update={"name": name}) for name in names)})


def said(stack: Stack, logical_id: str) -> list[str]:
    return [event.reason for event in stack.events if event.logical_id == logical_id and event.reason]


def types() -> list[str]:
    return sorted(running_instance["InstanceType"] for running_instance in running_instances(REGION).values())


def test_another_instance_type_rolls_nodes_one_at_a_time() -> None:
    where, stack = ready()
    before = {key: each.id for key, each in stack.children.items()}
    started = where.cloud.clock.now
    updated(where, NodeGroupNodesInstanceType="m7i.large")
    assert stack.status == "UPDATE_COMPLETE"
    assert where.cloud.clock.now == started + 60 + 4 * 90
    assert types() == ["m7i.large"] * 4 + ["t3.medium"] * 2  # the last one's lifecycle hook is not waited for
    where.cloud.advance(HEARTBEAT_TIMEOUT_SECONDS)
    assert types() == ["m7i.large"] * 4 + ["t3.medium"]
    child = stack.children["NodeGroupNodesStack"]
    assert sum("replacing with 1 new instance(s)" in each for each in said(child, GROUP)) == 4
    assert {key: each.id for key, each in stack.children.items()} == before
    untouched = {each.status for key, each in stack.children.items() if key != "NodeGroupNodesStack"}
    assert (untouched, child.status) == ({"CREATE_COMPLETE"}, "UPDATE_COMPLETE")


def test_a_node_group_comes_and_goes() -> None:
    where, stack = ready()
    before = inventory(REGION)
    publish(where, changed_groups("nodes", "more"))
    updated(where)
    assert stack.status == "UPDATE_COMPLETE"
    assert stack.children["NodeGroupMoreStack"].status == "CREATE_COMPLETE"
    assert set(leftovers(where, before)) >= {"launch templates", "instances", "Auto Scaling groups"}
    publish(where, golden("default"))
    updated(where)
    assert stack.status == "UPDATE_COMPLETE"
    assert "NodeGroupMoreStack" not in stack.children
    assert leftovers(where, before) == {}


def test_nodes_that_do_not_come_up_put_root_and_nested_stacks_back() -> None:
    where, stack = ready()
    where.machines.outcomes = {GROUP: "FAILURE"}
    arguments = {"ApiAllowedCidr": "198.51.100.0/24", "NodeGroupNodesInstanceType": "m7i.large"}
    recover(where, stack)
    updated(where, **arguments)
    child, groups = stack.children["NodeGroupNodesStack"], stack.children["SecurityGroupsStack"]
    assert {each.status for each in (stack, child, groups)} == {"UPDATE_ROLLBACK_COMPLETE"}
    assert "Unable to satisfy 100% MinSuccessfulInstancesPercent requirement" in " ".join(said(child, GROUP))
    where.cloud.advance(HEARTBEAT_TIMEOUT_SECONDS)
    assert types() == ["t3.medium"] * 5
    assert resources(stack)["MasterApiFromAllowedCidr"].properties["CidrIp"] == ALLOWED
    wanted = [{"Name": "group-id", "Values": [resources(stack)["MasterSecurityGroup"].physical_id]}]
    rules = client("ec2", REGION).describe_security_group_rules(Filters=wanted)["SecurityGroupRules"]
    assert {rule["CidrIpv4"] for rule in rules if not rule["IsEgress"] and "CidrIpv4" in rule} == {ALLOWED}


def recover(where: Account, stack: Stack) -> None:
    """Let instances come up again as soon as the update has failed."""

    def look() -> None:
        if "ROLLBACK" in stack.children["NodeGroupNodesStack"].status:
            where.machines.outcomes = {}
        elif not stack.finished or stack.status == "CREATE_COMPLETE":
            where.cloud.clock.schedule(10, look)

    where.cloud.clock.schedule(10, look)


@pytest.mark.parametrize(
    ("parameters", "child", "changed"),
    [
        ({"MasterVolumeSize": "100"}, "MasterStack", {"MasterAVolume"}),
        ({"ApiAllowedCidr": "198.51.100.0/24"}, "SecurityGroupsStack", {"MasterApiFromAllowedCidr"}),
        ({"NodeGroupNodesMaxSize": "9"}, "NodeGroupNodesStack", {GROUP}),
        ({"MasterInstanceType": "m7i.large"}, "MasterStack", {"MasterALaunchTemplate", "MasterAAutoScalingGroup"}),
    ],
)
def test_a_parameter_changes_what_it_is_about(parameters: dict[str, str], child: str, changed: set[str]) -> None:
    where, stack = ready()
    updated(where, **parameters)
    assert stack.status == "UPDATE_COMPLETE"
    operations = {identity for identity, kind in stack.children[child].operations if kind == "UPDATE_STACK"}
    events = [event for event in stack.children[child].events if event.operation_id in operations]
    assert {event.logical_id for event in events if event.status == "UPDATE_COMPLETE"} == {
        *changed, stack.children[child].name
    }  # fmt: skip


def test_another_address_of_the_master_takes_the_public_one_along() -> None:
    where, stack = ready()
    before = resources(stack)["MasterANetworkInterface"].physical_id
    updated(where, MasterAAddress="172.20.0.77")
    assert stack.status == "UPDATE_COMPLETE"
    master_anetwork_interface = resources(stack)["MasterANetworkInterface"]
    assert master_anetwork_interface.physical_id != before
    assert master_anetwork_interface.properties["PrivateIpAddress"] == "172.20.0.77"
    [address] = client("ec2", REGION).describe_addresses()["Addresses"]
    assert address["NetworkInterfaceId"] == master_anetwork_interface.physical_id


def test_tags_of_the_root_reach_every_resource_that_takes_them() -> None:
    where, stack = ready()
    stack = where.cloud.wait(
        where.cloud.update_stack(
            "k8s", previous_template=True, previous_parameters=list(stack.revision.parameter_strings),
            capabilities=["CAPABILITY_IAM"], tags={"owner": "someone else"},
        )
    )  # fmt: skip
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    for each in resources(stack).values():
        if "Tags" in each.properties:
            found: dict[str, Any] = {tag["Key"]: tag["Value"] for tag in each.properties["Tags"]}
            assert found["owner"] == "someone else", each.logical_id


@pytest.mark.parametrize("case", ["default", "several-groups", "volumes"])
def test_the_same_templates_again_are_no_change(case: str) -> None:
    where = prepared(golden(case))
    cloud = where.cloud
    asked = {
        "url": where.url("cluster"),
        "parameters": {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX},
        "capabilities": ["CAPABILITY_IAM"],
        "nested": True,
    }
    cloud.create_change_set("k8s", "creation", kind="CREATE", **asked)
    cloud.advance(60)
    stack = cloud.wait(cloud.execute_change_set("creation", "k8s"))
    assert stack.status == "CREATE_COMPLETE", stack.reason
    again = cloud.create_change_set("k8s", "again", **asked)
    cloud.advance(60)
    assert again.reason.startswith("The submitted information didn't contain changes.")


def test_a_change_set_says_what_is_certain_and_what_is_not() -> None:
    where, stack = ready()
    arguments = {"TemplateBucket": BUCKET, "TemplatePrefix": PREFIX, "ApiAllowedCidr": ALLOWED}
    change_set = where.cloud.create_change_set(
        "k8s", "c", url=where.url("cluster"), parameters={**arguments, "SubnetACidr": "172.20.0.0/25"},
        capabilities=["CAPABILITY_IAM"], tags=stack.tags, nested=True,
    )  # fmt: skip
    where.cloud.advance(60)
    found = {each.logical_id: each for change in change_set.changes if change.child for each in change.child.changes}
    replaced = {key for key, each in found.items() if each.replacement == "True"}
    perhaps = {key for key, each in found.items() if each.replacement == "Conditional"}
    assert replaced == {"SubnetA"}
    assert {"MasterANetworkInterface", "MasterSecurityGroup", GROUP} <= perhaps
    assert "MasterAVolume" not in found


def test_an_imported_key_stands_in_the_way_of_other_tags() -> None:
    where = prepared(golden("imported-key"))
    stack = where.create("cluster")
    where.cloud.wait(
        where.cloud.update_stack(
            "k8s", previous_template=True, previous_parameters=list(stack.revision.parameter_strings),
            capabilities=["CAPABILITY_IAM"], tags={"owner": "someone else"},
        )
    )  # fmt: skip
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    events = [event for each in stack.children.values() for event in each.events]
    assert any("custom-named resource requires replacing" in event.reason for event in events)
