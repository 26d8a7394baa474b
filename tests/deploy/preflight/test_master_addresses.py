"""A master that is added later finds its address taken: said before the update, with who has it."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers
from cloud import Cloud
from deployments import Operator, groups
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.deploy.aws import addresses, stacks
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.stacks import StackTree, StackView
from cfngen.deploy.messages.message import Message, Notice
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.preflight import masters
from cfngen.deploy.preflight.masters import AddressesInUseError

THREE = {"name": "one", "controlPlane": {"count": 3}, "nodeGroups": groups("general")}
VALUES = {"MasterAAddress": "172.20.0.9", "MasterBAddress": "172.20.0.10", "MasterCAddress": "172.20.0.11"}


@pytest.fixture
def subnet(account: Account) -> Any:
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="172.20.0.0/16")["Vpc"]["VpcId"]
    return ec2.create_subnet(VpcId=vpc, CidrBlock="172.20.0.0/24", AvailabilityZone="us-west-2a")["Subnet"]


def stack(vpc: str) -> StackView:
    """A stack with one master."""
    first = {"MasterAAddress": VALUES["MasterAAddress"]}
    return StackView("one", "one", StackStatus("CREATE_COMPLETE"), parameters=first, outputs={"VpcId": vpc})


def interface(account: Account, subnet: Any, address: str, **more: Any) -> str:
    made = account.client("ec2").create_network_interface(SubnetId=subnet["SubnetId"], PrivateIpAddress=address, **more)
    return str(made["NetworkInterface"]["NetworkInterfaceId"])


def check(account: Account, subnet: Any, values: dict[str, str] | None = None) -> None:
    # Whether the stack itself has the interface is asked of CloudFormation, which knows no such stack here.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacks, "list_resource_tree", lambda account, identifier: ())
        deployed = StackTree(account, stack(subnet["VpcId"]))
        masters.check(account, parse(THREE), values or VALUES, deployed, lambda message: None)


def test_free_addresses_are_fine_and_so_are_those_that_masters_have(account: Account, subnet: Any) -> None:
    interface(account, subnet, "172.20.0.9")
    interface(account, subnet, "172.20.0.99")
    check(account, subnet)


def test_a_network_interface_that_has_an_address_is_named(account: Account, subnet: Any) -> None:
    taken = interface(account, subnet, "172.20.0.11", Description="a database")
    with pytest.raises(
        AddressesInUseError, match=rf"master c needs .*172\.20\.0\.11.*{taken} \(a database\)"
    ) as raised:
        check(account, subnet)
    assert f"--subnet-id {subnet['SubnetId']} --reservation-type explicit --cidr 172.20.0.11/32" in raised.value.hint
    assert "controlPlane.addresses" in raised.value.hint


def test_an_address_of_a_pod_counts_too(account: Account, subnet: Any) -> None:
    """With the network plug-in `amazon-vpc` pods have further addresses of an instance's interface, or prefixes."""
    ec2 = account.client("ec2")
    made = ec2.create_network_interface(
        SubnetId=subnet["SubnetId"],
        PrivateIpAddresses=[
            {"Primary": True, "PrivateIpAddress": "172.20.0.50"},
            {"Primary": False, "PrivateIpAddress": "172.20.0.10"},
        ],
    )
    pods = made["NetworkInterface"]["NetworkInterfaceId"]
    with pytest.raises(AddressesInUseError) as raised:
        check(account, subnet)
    assert raised.value.holders == {"172.20.0.10": f"the network interface {pods}"}


def test_an_address_of_an_instances_prefix_counts_too(account: Account, subnet: Any) -> None:
    described = {
        "NetworkInterfaceId": "eni-1", "SubnetId": "subnet-1", "Attachment": {"InstanceId": "i-1"},
        "PrivateIpAddresses": [{"PrivateIpAddress": "172.20.0.50"}], "Ipv4Prefixes": [{"Ipv4Prefix": "172.20.0.0/28"}],
    }  # fmt: skip
    assert list(addresses.find_used_addresses({"172.20.0.10": "B"}, [described])) == [("172.20.0.10", "B", described)]


@pytest.mark.drill
def test_one_master_does_not_become_three_over_somebodys_address(cloud: Cloud) -> None:
    operator = Operator(cloud)
    operator.deploy({**THREE, "controlPlane": {"count": 1}})
    ec2 = cloud.client("ec2")
    [subnet] = ec2.describe_subnets(Filters=[{"Name": "cidr-block", "Values": ["172.20.0.0/24"]}])["Subnets"]
    made = ec2.create_network_interface(SubnetId=subnet["SubnetId"], PrivateIpAddress="172.20.0.10")
    taken = made["NetworkInterface"]["NetworkInterfaceId"]
    with pytest.raises(AddressesInUseError, match=taken):
        operator.deploy(THREE)
    ec2.delete_network_interface(NetworkInterfaceId=taken)
    assert operator.deploy(THREE).status == "UPDATE_COMPLETE"
    # A master's own interface is in nobody's way.
    assert operator.deploy(THREE).action == "none"


def test_addresses_that_may_not_be_read_are_said_and_keep_nobody_from_deploying(aws: Answers) -> None:
    aws.given["ec2:DescribeNetworkInterfaces"] = RefusedError("UnauthorizedOperation")
    told: list[Message] = []
    masters.check(aws.account, parse(THREE), VALUES, StackTree(aws.account, stack("vpc-1")), told.append)
    [notice] = told
    assert isinstance(notice, Notice)
    assert notice.text.startswith("who uses the masters' addresses cannot be read, so what depends on it was not")
