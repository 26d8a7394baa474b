"""Elastic IPs: which exist, and which are no longer associated with their master, or with the bastion.

A private address has at most one Elastic IP: when an update associates another one, EC2 drops the former association.
A rollback of the update removes the new association, but CloudFormation believes that the former one still exists and
does not create it again. The master is then left without a public address: the API cannot be reached, and the master
cannot reach EC2 to associate the address itself. Neither a change set nor the stack shows this; only the network
interface does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from cfngen.cluster.naming.logical_ids import (
    BASTION_ASSOCIATION,
    BASTION_ELASTIC_IP,
    BASTION_NETWORK_INTERFACE,
    MasterId,
)
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, suppress_codes, translate_aws_errors
from cfngen.deploy.aws.stacks import ResourceView
from cfngen.deploy.aws.types import AwsObject


def find_elastic_ip(account: Account, allocation_id: str) -> str:
    """Return the address of an Elastic IP; empty if there is none. Errors of boto3 are not translated."""
    addresses = account.items("ec2.describe_addresses", "Addresses", filters={"allocation-id": [allocation_id]})
    return next((str(address["PublicIp"]) for address in addresses), "")


@dataclass(frozen=True)
class LostAddress:
    """An Elastic IP that should be associated with the network interface of a master or the bastion, but is not.

    Attributes:
        slot: the master's letter; empty for the bastion.
        address: the Elastic IP.
        allocation: its allocation id.
        interface: id of the network interface.
        associated_with: id of the network interface that it is associated with instead; empty if none.
        region: the AWS region.
    """

    slot: str
    address: str
    allocation: str
    interface: str
    associated_with: str
    region: str

    @property
    def text(self) -> str:
        """The problem, in one sentence."""
        location = f"is associated with {self.associated_with}" if self.associated_with else "is not associated"
        owner = f"master {self.slot}" if self.slot else "the bastion"
        return f"{owner} has lost its Elastic IP: {self.address} {location}"

    @property
    def command(self) -> str:
        """The AWS CLI command that associates the address again."""
        reassociation = " --allow-reassociation" if self.associated_with else ""
        return (
            f"aws ec2 associate-address --region {self.region} --allocation-id {self.allocation} "
            f"--network-interface-id {self.interface}{reassociation}"
        )


class _Owner(NamedTuple):
    """A master, or the bastion, that has an Elastic IP.

    Attributes:
        slot: the master's letter; empty for the bastion.
        interface: id of the network interface; empty if it does not exist.
        elastic_ip: logical id of the Elastic IP, if the stack has created it.
        parameter: parameter with the allocation id of an existing Elastic IP.
    """

    slot: str
    interface: str
    elastic_ip: str
    parameter: str


def find_lost_addresses(
    account: Account, resources: Iterable[ResourceView], parameters: Mapping[str, str]
) -> tuple[LostAddress, ...]:
    """Return the Elastic IPs that should be associated with a cluster's masters and bastion, but are not."""
    physical_ids = {resource.logical_id: resource.physical_id for resource in resources if _exists(resource)}
    owners = list(_find_owners(physical_ids))
    filters = {"network-interface-id": sorted(owner.interface for owner in owners if owner.interface)}
    if not filters["network-interface-id"]:
        return ()
    with translate_aws_errors():
        network_interfaces = list(
            account.items("ec2.describe_network_interfaces", "NetworkInterfaces", filters=filters)
        )
        # Addresses that the stack created are found by IP; the one in the cluster file is found by its allocation id.
        addresses = list(account.items("ec2.describe_addresses", "Addresses"))
    public_ip_by_interface = {
        network_interface["NetworkInterfaceId"]: network_interface.get("Association", {}).get("PublicIp", "")
        for network_interface in network_interfaces
    }
    return tuple(
        _yield_lost_addresses(
            account.region,
            owners=owners,
            public_ip_by_interface=public_ip_by_interface,
            physical_ids=physical_ids,
            addresses=addresses,
            parameters=parameters,
        )
    )


def _find_owners(physical_ids: Mapping[str, str]) -> Iterator[_Owner]:
    # A master has an association only if it has an Elastic IP.
    for logical_id in sorted(physical_ids):
        association = MasterId.parse(logical_id)
        if association and association.part == "ElasticIpAssociation":
            yield _Owner(
                slot=association.letter,
                interface=physical_ids.get(str(association.sibling("NetworkInterface")), ""),
                elastic_ip=str(association.sibling("ElasticIp")),
                parameter="ApiElasticIpAllocationId",
            )
    if BASTION_ASSOCIATION in physical_ids:
        interface = physical_ids.get(BASTION_NETWORK_INTERFACE, "")
        yield _Owner("", interface, BASTION_ELASTIC_IP, parameter="BastionElasticIpAllocationId")


def _exists(resource: ResourceView) -> bool:
    return bool(resource.physical_id) and resource.status != "DELETE_COMPLETE"


def _yield_lost_addresses(
    region: str,
    *,
    owners: Iterable[_Owner],
    public_ip_by_interface: Mapping[str, str],
    physical_ids: Mapping[str, str],
    addresses: Iterable[Mapping[str, str]],
    parameters: Mapping[str, str],
) -> Iterator[LostAddress]:
    """Yield the Elastic IPs that are not associated with the network interface of their owner.

    Args:
        public_ip_by_interface: the public IP that each network interface has now, by the interface's id.
        physical_ids: physical ids of the cluster's resources, by logical id.
    """
    elastic_ip_by_address = {address["PublicIp"]: address for address in addresses}
    elastic_ip_by_allocation_id = {address.get("AllocationId", ""): address for address in addresses}
    for owner in owners:
        interface = owner.interface
        # The physical id is the IP, or, as in the CloudFormation registry, the IP, `|` and the allocation id.
        stack_ip = physical_ids.get(owner.elastic_ip, "").partition("|")[0]
        if stack_ip:
            elastic_ip = elastic_ip_by_address.get(stack_ip)
        else:
            # "-" is no allocation id: without this parameter, no address is found.
            elastic_ip = elastic_ip_by_allocation_id.get(parameters.get(owner.parameter, "-"))
        if (
            elastic_ip is None
            or interface not in public_ip_by_interface
            or public_ip_by_interface[interface] == elastic_ip["PublicIp"]
        ):
            continue
        yield LostAddress(
            slot=owner.slot,
            address=elastic_ip["PublicIp"],
            allocation=elastic_ip["AllocationId"],
            interface=interface,
            associated_with=elastic_ip.get("NetworkInterfaceId", ""),
            region=region,
        )


class UsedAddress(NamedTuple):
    """An address that a master needs, but that a network interface has."""

    address: str
    master_letter: str
    interface: AwsObject


def find_used_addresses(letters_by_address: Mapping[str, str], interfaces: list[AwsObject]) -> Iterator[UsedAddress]:
    """Yield each needed address that a network interface has."""
    for interface in interfaces:
        private_ips = {
            private_ip_address["PrivateIpAddress"] for private_ip_address in interface.get("PrivateIpAddresses", ())
        }
        prefixes = [IPv4Network(ipv4_prefix["Ipv4Prefix"]) for ipv4_prefix in interface.get("Ipv4Prefixes", ())]
        for address, letter in letters_by_address.items():
            if address in private_ips or any(IPv4Address(address) in prefix for prefix in prefixes):
                yield UsedAddress(address, letter, interface)


def read_allocation_ids(account: Account, addresses: Collection[str]) -> dict[str, str]:
    """Return the allocation ids of Elastic IPs by address; none if the caller may not describe addresses."""
    filters = {"public-ip": sorted(filter(None, addresses))}
    with suppress_codes(ACCESS_DENIED_CODES):
        described = account.items("ec2.describe_addresses", "Addresses", filters=filters)
        return {address["PublicIp"]: address["AllocationId"] for address in described if address.get("AllocationId")}
    return {}


def describe_holder(interface: AwsObject) -> str:
    """Return in words the instance that a network interface is attached to, or the interface itself."""
    identifier = str(interface["NetworkInterfaceId"])
    instance = interface.get("Attachment", {}).get("InstanceId")
    if instance:
        return f"the instance {instance} ({identifier})"
    description = interface.get("Description")
    return f"the network interface {identifier}" + (f" ({description})" if description else "")
