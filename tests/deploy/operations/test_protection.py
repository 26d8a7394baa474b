"""A cluster that is protected against accidents, and is protected again after whatever was allowed once."""

from __future__ import annotations

import json

import pytest

from cfngen.deploy.aws import protection
from cfngen.deploy.aws.account import connect
from cfngen.deploy.aws.stacks import find_stack, list_resources
from cfngen.deploy.operations import stack_protection

pytestmark = pytest.mark.drill


@pytest.fixture
def account(cloud):
    cloud.account.create("cluster")
    return connect(cloud.session, "us-west-2", clock=cloud.clock, attempts=1)


@pytest.fixture
def root(account):
    return find_stack(account, "k8s")


@pytest.fixture
def said():
    return []


def nested(account, logical_id):
    return next(
        resource.physical_id for resource in list_resources(account, "k8s") if resource.logical_id == logical_id
    )


def give_the_master_another_address(cloud):
    """An update that replaces the master's network interface."""
    keep = [
        {"ParameterKey": name, "UsePreviousValue": True}
        for name in find_stack(connect(cloud.session, "us-west-2", clock=cloud.clock), "k8s").parameters
        if name != "MasterAAddress"
    ]
    cloud.client("cloudformation").update_stack(
        StackName="k8s",
        UsePreviousTemplate=True,
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[*keep, {"ParameterKey": "MasterAAddress", "ParameterValue": "172.20.0.77"}],
    )
    cloud.engine.wait(cloud.engine.stack("k8s"))


def test_an_update_may_not_replace_what_others_know(cloud, account, root, said):
    stack_protection.protect_stack(account, root, report=said.append)
    master = nested(account, "MasterStack")
    before = {resource.logical_id: resource.physical_id for resource in list_resources(account, master)}
    give_the_master_another_address(cloud)
    assert find_stack(account, "k8s").status.name == "UPDATE_ROLLBACK_COMPLETE"
    after = {resource.logical_id: resource.physical_id for resource in list_resources(account, master)}
    assert after["MasterANetworkInterface"] == before["MasterANetworkInterface"]


INTERFACE = {
    "Parameters": {"Subnet": {"Type": "String"}, "Text": {"Type": "String", "Default": "made"}},
    "Resources": {
        "Held": {
            "Type": "AWS::EC2::NetworkInterface",
            "Properties": {"SubnetId": {"Ref": "Subnet"}, "Description": {"Ref": "Text"}},
        }
    },
}


@pytest.mark.parametrize(
    ("policy", "parameters", "outcome"),
    [
        (protection.STATEFUL_STACK_POLICY, {"Subnet": 1}, "UPDATE_ROLLBACK_COMPLETE"),
        (protection.STATEFUL_STACK_POLICY, {"Subnet": 0, "Text": "changed"}, "UPDATE_COMPLETE"),
        (protection.ALLOW_ALL_POLICY, {"Subnet": 1}, "UPDATE_COMPLETE"),
    ],
)
def test_an_interface_may_change_and_may_not_be_replaced(cloud, policy, parameters, outcome):
    client = cloud.client("cloudformation")
    subnets = [subnet["SubnetId"] for subnet in cloud.client("ec2").describe_subnets()["Subnets"]]

    def given(**values):
        return [
            {"ParameterKey": key, "ParameterValue": subnets[value] if key == "Subnet" else value}
            for key, value in values.items()
        ]

    client.create_stack(StackName="one", TemplateBody=json.dumps(INTERFACE), Parameters=given(Subnet=0))
    cloud.engine.wait(cloud.engine.stack("one"))
    client.set_stack_policy(StackName="one", StackPolicyBody=json.dumps(policy))
    client.update_stack(StackName="one", UsePreviousTemplate=True, Parameters=given(**parameters))
    cloud.engine.wait(cloud.engine.stack("one"))
    assert client.describe_stacks(StackName="one")["Stacks"][0]["StackStatus"] == outcome
