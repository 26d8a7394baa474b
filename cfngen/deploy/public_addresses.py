"""Elastic IPs that masters have lost.

When the API gets another Elastic IP, EC2 ends the association of the former one, since an interface's address has one
public address at a time. A rollback ends the new association; the former one CloudFormation believes to be there still,
and makes no other. The master then has no public address, nobody reaches the API, and the master has no way out: it
cannot ask EC2 for its address itself, so the boot program is of no help here. Neither a change set nor the stack shows
that; the interface itself does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.messages import Notice, Report
from cfngen.deploy.stacks import ResourceView, StackView, tree
from cfngen.deploy.status import StackHealth

_ASSOCIATION = re.compile(r"Master([A-Z])ElasticIpAssociation")


@dataclass(frozen=True)
class LostAddress:
    """An Elastic IP that a master's network interface should have and has not.

    Attributes:
        slot: the master's letter.
        address: the Elastic IP.
        allocation: its allocation id.
        interface: id of the master's network interface.
        elsewhere: id of the network interface that has it instead; empty if none has.
        region: where they are.
    """

    slot: str
    address: str
    allocation: str
    interface: str
    elsewhere: str
    region: str

    @property
    def text(self) -> str:
        """What is wrong, in one sentence."""
        where = f"belongs to {self.elsewhere}" if self.elsewhere else "is associated with nothing"
        return f"master {self.slot} is without its Elastic IP: {self.address} {where}"

    @property
    def command(self) -> str:
        """The command that gives the address back."""
        moved = " --allow-reassociation" if self.elsewhere else ""
        return (
            f"aws ec2 associate-address --region {self.region} --allocation-id {self.allocation} "
            f"--network-interface-id {self.interface}{moved}"
        )


def lost_addresses(
    account: Account, resources: Iterable[ResourceView], parameters: Mapping[str, str]
) -> tuple[LostAddress, ...]:
    """Return the Elastic IPs that the masters of a cluster should have and have not.

    Args:
        account: where they are.
        resources: of all the cluster's stacks; their logical ids are unique.
        parameters: values of the root's parameters.

    Raises:
        AwsError: a call failed.
    """
    existing = {resource.logical_id: resource.physical_id for resource in resources if _exists(resource)}
    slots = [match[1] for name in sorted(existing) if (match := _ASSOCIATION.fullmatch(name))]
    interfaces = {letter: existing.get(f"Master{letter}NetworkInterface", "") for letter in slots}
    if not any(interfaces.values()):
        return ()
    with translate_aws_errors():
        client = account.client("ec2")
        filters = [{"Name": "network-interface-id", "Values": sorted(filter(None, interfaces.values()))}]
        described = client.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
        # Those that the stack has made, by their addresses, and the one that the cluster file names, by its allocation.
        addresses = client.describe_addresses()["Addresses"]
    public = {each["NetworkInterfaceId"]: each.get("Association", {}).get("PublicIp", "") for each in described}
    return tuple(_lost(account.region, interfaces, public, existing, addresses, parameters))


def tell(account: Account, stack: StackView, report: Report) -> None:
    """Say which masters are without their Elastic IP after something was taken back, as far as that can be read.

    While an update is kept half-way, what the stack says and what the interface should have are two things.

    Args:
        account: where they are.
        stack: the root stack as it is now.
        report: is told.
    """
    if not stack.status.taken_back and stack.status.standing is not StackHealth.STUCK:
        return
    try:
        with translate_aws_errors():
            views = [each.view for each in tree(account, stack.id)]
        lost = lost_addresses(account, views, stack.parameters)
    except AwsError:
        return  # `status` looks again
    for each in lost:
        report(Notice(each.text, f"`{each.command}` gives it back: CloudFormation takes it to be there."))


def _exists(resource: ResourceView) -> bool:
    return bool(resource.physical_id) and resource.status != "DELETE_COMPLETE"


def _lost(
    region: str,
    interfaces: Mapping[str, str],
    public: Mapping[str, str],
    existing: Mapping[str, str],
    addresses: Iterable[Mapping[str, str]],
    parameters: Mapping[str, str],
) -> Iterator[LostAddress]:
    by_address = {address["PublicIp"]: address for address in addresses}
    by_allocation = {address.get("AllocationId", ""): address for address in addresses}
    for letter, interface in interfaces.items():
        # Ref is the address; the registry's identifier is the address, a bar, and the allocation id.
        own = existing.get(f"Master{letter}ElasticIp", "").partition("|")[0]
        allocated = by_address.get(own) if own else by_allocation.get(parameters.get("ApiElasticIpAllocationId", "-"))
        if allocated is None or interface not in public or public[interface] == allocated["PublicIp"]:
            continue
        yield LostAddress(
            letter.lower(),
            allocated["PublicIp"],
            allocated["AllocationId"],
            interface,
            allocated.get("NetworkInterfaceId", ""),
            region,
        )
