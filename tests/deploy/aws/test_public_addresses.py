"""A master that a rollback has left without its Elastic IP: who says so, and the command that gives it back."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from cloud import Cloud
from deployments import ALLOWED, Operator, groups

from cfngen.cli.render.status import status_lines
from cfngen.cluster.load import parse
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.addresses import LostAddress, find_lost_addresses
from cfngen.deploy.aws.stacks import ResourceView, find_stack, list_resource_tree
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.operations.recovery import rollback
from cfngen.deploy.status.derived_status import read_status

ONE = {"name": "one", "nodeGroups": groups("general")}
GROUP = "MasterAAutoScalingGroup"


def views(interface: str, address: str = "", status: str = "CREATE_COMPLETE") -> list[ResourceView]:
    """A master's interface and association, and the Elastic IP if the stack has made it."""
    found = [
        ResourceView("MasterANetworkInterface", interface, "AWS::EC2::NetworkInterface", "CREATE_COMPLETE"),
        ResourceView("MasterAElasticIpAssociation", "eipassoc-gone", "AWS::EC2::EIPAssociation", "UPDATE_COMPLETE"),
    ]
    return [*found, ResourceView("MasterAElasticIp", address, "AWS::EC2::EIP", status)] if address else found


@pytest.fixture
def interfaces(account: Account) -> list[str]:
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    ec2.attach_internet_gateway(
        VpcId=vpc, InternetGatewayId=ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    )
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.20.0.0/24")["Subnet"]["SubnetId"]
    return [ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"] for _ in range(2)]


@pytest.fixture
def address(account: Account) -> dict[str, str]:
    return dict(account.client("ec2").allocate_address(Domain="vpc"))


def associate(account: Account, address: dict[str, str], interface: str) -> None:
    account.client("ec2").associate_address(AllocationId=address["AllocationId"], NetworkInterfaceId=interface)


def test_an_address_that_is_where_it_should_be_is_not_lost(
    account: Account, interfaces: list[str], address: dict[str, str]
) -> None:
    associate(account, address, interfaces[0])
    assert find_lost_addresses(account, views(interfaces[0], address["PublicIp"]), {}) == ()


@pytest.mark.parametrize("physical_id", ["{PublicIp}", "{PublicIp}|{AllocationId}"])
def test_an_address_of_the_stack_that_is_associated_with_nothing_is_lost(
    account: Account, interfaces: list[str], address: dict[str, str], physical_id: str
) -> None:
    [lost] = find_lost_addresses(account, views(interfaces[0], physical_id.format(**address)), {})
    assert lost.text == f"master a has lost its Elastic IP: {address['PublicIp']} is not associated"
    assert lost.command == (
        f"aws ec2 associate-address --region us-west-2 --allocation-id {address['AllocationId']} "
        f"--network-interface-id {interfaces[0]}"
    )


def test_an_existing_address_that_another_interface_has_is_lost(
    account: Account, interfaces: list[str], address: dict[str, str]
) -> None:
    associate(account, address, interfaces[1])
    named = {"ApiElasticIpAllocationId": address["AllocationId"]}
    [lost] = find_lost_addresses(account, views(interfaces[0]), named)
    assert (lost.interface, lost.associated_with) == tuple(interfaces)
    assert f"is associated with {interfaces[1]}" in lost.text
    assert lost.command.endswith("--allow-reassociation")


def test_nothing_is_lost_where_a_master_has_no_interface_or_its_address_is_gone(
    account: Account, interfaces: list[str], address: dict[str, str]
) -> None:
    assert find_lost_addresses(account, views("", address["PublicIp"]), {}) == ()
    assert find_lost_addresses(account, views("eni-0123456789abcdef0", address["PublicIp"]), {}) == ()
    assert find_lost_addresses(account, views(interfaces[0], address["PublicIp"], "DELETE_COMPLETE"), {}) == ()
    assert find_lost_addresses(account, [], {}) == ()


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def lost(operator: Operator) -> tuple[LostAddress, ...]:
    account = operator.account
    stack = find_stack(account, "one")
    return find_lost_addresses(
        account, [tree_stack.view for tree_stack in list_resource_tree(account, stack.id)], stack.parameters
    )


def give_back(operator: Operator, command: str) -> None:
    """Do what the command does that an operator is told."""
    words = shlex.split(command)
    assert words[:3] == ["aws", "ec2", "associate-address"]
    options = dict(zip(words[3::2], words[4::2], strict=False))
    operator.cloud.client("ec2").associate_address(
        AllocationId=options["--allocation-id"], NetworkInterfaceId=options["--network-interface-id"]
    )


def to_another_address(operator: Operator, times: int = 1) -> Any:
    """Deploy the cluster with an Elastic IP of the operator's, which fails after EC2 has moved the master to it."""
    made = operator.cloud.client("ec2").allocate_address(Domain="vpc")
    operator.cloud.engine.fail(GROUP, "no capacity", during="UPDATE", times=times)
    # The emulator's addresses are of 127.0.0.0/8, which no cluster file takes.
    file = {**ONE, "api": {"elasticIp": {"allocationId": made["AllocationId"], "address": "52.1.2.3"}}}
    flags = {**ALLOWED, "ApiElasticIp": made["PublicIp"]}
    return operator.deploy(file, flags=flags)


@pytest.mark.drill
def test_a_deployment_that_was_taken_back_says_which_command_gives_the_address_back(operator: Operator) -> None:
    operator.deploy(ONE)
    assert lost(operator) == ()
    assert to_another_address(operator).status == "UPDATE_ROLLBACK_COMPLETE"
    [missing] = lost(operator)
    [notice] = [each for each in operator.reported(Notice) if "Elastic IP" in each.text]
    assert notice.text == missing.text
    assert missing.command in notice.hint
    status = read_status(operator.account, "one", parse(ONE))
    assert status.lost_addresses == (missing,)
    assert status.next_command == missing.command
    assert f"    {missing.command}" in status_lines(status)
    give_back(operator, missing.command)
    assert lost(operator) == ()
    assert read_status(operator.account, "one", parse(ONE)).lost_addresses is None
    # The stack goes on as if nothing had been.
    assert operator.deploy({**ONE, "nodeGroups": groups("general", labels={"a": "b"})}).status == "UPDATE_COMPLETE"
    assert lost(operator) == ()


@pytest.mark.drill
def test_a_rollback_says_so_too(operator: Operator) -> None:
    operator.deploy(ONE)
    assert to_another_address(operator, times=2).status == "UPDATE_ROLLBACK_FAILED"
    operator.messages.clear()
    assert rollback(operator.account, "one", "one", operator.waiting).status.name == "UPDATE_ROLLBACK_COMPLETE"
    [missing] = lost(operator)
    [notice] = [each for each in operator.reported(Notice) if "Elastic IP" in each.text]
    assert (notice.text, missing.command in notice.hint) == (missing.text, True)
