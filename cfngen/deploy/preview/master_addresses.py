"""Checks that the private addresses of new masters are free.

EC2 assigns any free address of a subnet to nodes and, with the network plug-in `amazon-vpc`, to pods. That may be an
address that the cluster file reserves for a master that is added later. The update would then fail half-way with
"Address … is in use", after the first master has been replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.stacks import StackView, list_resource_tree
from cfngen.errors import CfngenError


class UsedAddress(NamedTuple):
    """An address that a master needs, but that a network interface has.

    Attributes:
        address: the private IPv4 address.
        master_letter: letter of the master that needs it.
        interface: the network interface, as EC2 describes it.
    """

    address: str
    master_letter: str
    interface: AwsObject


class AddressesInUseError(CfngenError):
    """Addresses of new masters are in use.

    Attributes:
        holders: by address, a description of the instance that uses the address, or of the network interface if it is
            not attached to an instance.
    """

    code = "address-in-use"

    def __init__(self, used_addresses: Sequence[UsedAddress]) -> None:
        self.holders = {used.address: describe_holder(used.interface) for used in used_addresses}
        sentences = [
            f"master {used.master_letter} needs the address {used.address}, which {self.holders[used.address]} uses"
            for used in used_addresses
        ]
        # The hint shows the command for the first address.
        subnet, cidr = used_addresses[0].interface.get("SubnetId", ""), f"{used_addresses[0].address}/32"
        # One literal, since the tests read the commands of the AWS CLI from the source.
        command = (
            f"aws ec2 create-subnet-cidr-reservation --subnet-id {subnet} --reservation-type explicit --cidr {cidr}"
        )
        super().__init__(
            f"nothing was changed, since the deployment would fail: {'; '.join(sentences)}",
            hint=f"set controlPlane.addresses to free addresses. Or free these: `{command}` prevents EC2 from "
            "assigning the address again; then drain and terminate the instance that uses it.",
        )


def check(account: Account, cluster: Cluster, values: Mapping[str, str], existing: StackView | None) -> None:
    """Check that the addresses of masters are free, if the masters are new or get another address.

    Args:
        account: the account and region.
        cluster: the cluster.
        values: values of the root's parameters.
        existing: the root stack; None if it does not exist yet.

    Raises:
        AddressesInUseError: an address is in use. Errors of AWS are ignored.
    """
    deployed_parameters = existing.parameters if existing else {}
    letters_by_parameter = {str(MasterId(slot.letter, "Address")): slot.letter for slot in cluster.slots}
    letters_by_new_address = {
        value: letters_by_parameter[name]
        for name, value in values.items()
        if name in letters_by_parameter and deployed_parameters.get(name) != value
    }
    vpc_id = values.get("VpcId") or (existing.outputs.get("VpcId", "") if existing else "")
    if not (letters_by_new_address and vpc_id):
        return
    try:
        with translate_aws_errors():
            filters = [{"Name": "vpc-id", "Values": [vpc_id]}]
            pages = account.client("ec2").get_paginator("describe_network_interfaces").paginate(Filters=filters)
            interfaces = [interface for page in pages for interface in page["NetworkInterfaces"]]
            used_addresses = list(find_used_addresses(letters_by_new_address, interfaces))
            stack_resource_ids = _read_physical_ids(account, existing) if used_addresses and existing else {}
    except AwsError:
        return
    # An address is no conflict if the master's own network interface has it already: an earlier update that failed and
    # was not rolled back may have created the interface.
    conflicts = [
        used
        for used in used_addresses
        if stack_resource_ids.get(str(MasterId(used.master_letter, "NetworkInterface")))
        != used.interface["NetworkInterfaceId"]
    ]
    if conflicts:
        raise AddressesInUseError(conflicts)


def find_used_addresses(letters_by_address: Mapping[str, str], interfaces: list[AwsObject]) -> Iterator[UsedAddress]:
    """Yield each needed address that a network interface has.

    Args:
        letters_by_address: by address, the letter of the master that needs it.
        interfaces: network interfaces, as EC2 describes them.
    """
    for interface in interfaces:
        private_ips = {
            private_ip_address["PrivateIpAddress"] for private_ip_address in interface.get("PrivateIpAddresses", ())
        }
        prefixes = [IPv4Network(ipv4_prefix["Ipv4Prefix"]) for ipv4_prefix in interface.get("Ipv4Prefixes", ())]
        for address, letter in letters_by_address.items():
            if address in private_ips or any(IPv4Address(address) in prefix for prefix in prefixes):
                yield UsedAddress(address, letter, interface)


def _read_physical_ids(account: Account, existing: StackView) -> dict[str, str]:
    """Return the physical ids of all resources of the cluster's stacks by logical id."""
    return {
        resource.view.logical_id: resource.view.physical_id
        for resource in list_resource_tree(account, existing.id)
        if resource.exists
    }


def describe_holder(interface: AwsObject) -> str:
    """Return in words the instance that a network interface is attached to, or the interface itself."""
    identifier = str(interface["NetworkInterfaceId"])
    instance = interface.get("Attachment", {}).get("InstanceId")
    if instance:
        return f"the instance {instance} ({identifier})"
    description = interface.get("Description")
    return f"the network interface {identifier}" + (f" ({description})" if description else "")
