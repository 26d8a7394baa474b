"""Checks that the private addresses of new masters are free, and how large the masters' volumes really are.

EC2 assigns any free address of a subnet to nodes and, with the network plug-in `amazon-vpc`, to pods. That may be an
address that the cluster file reserves for a master that is added later. The update would then fail half-way with
"Address … is in use", after the first master has been replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.addresses import describe_holder, find_used_addresses
from cfngen.deploy.aws.errors import AwsError, DeniedError, translate_aws_errors
from cfngen.deploy.aws.kubernetes_made import find_in_vpc
from cfngen.deploy.aws.stacks import StackTree, StackView
from cfngen.deploy.aws.volumes import read_volume_sizes
from cfngen.deploy.messages.message import Danger, Impact, Notice, Report
from cfngen.deploy.preflight.findings import unread
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from cfngen.deploy.aws.addresses import UsedAddress


class AddressesInUseError(CfngenError):
    """Addresses of new masters are in use.

    Attributes:
        holders: by address, a description of the instance that uses the address, or of the network interface if it is
            not attached to an instance.
    """

    code = "address-in-use"

    def __init__(self, used_addresses: Sequence[UsedAddress], region: str) -> None:
        self.holders = {used.address: describe_holder(used.interface) for used in used_addresses}
        sentences = [
            f"master {used.master_letter} needs the address {used.address}, which {self.holders[used.address]} uses"
            for used in used_addresses
        ]
        # The hint shows the command for the first address.
        subnet, cidr = used_addresses[0].interface.get("SubnetId", ""), f"{used_addresses[0].address}/32"
        # One literal, since the tests read the commands of the AWS CLI from the source.
        command = (
            f"aws ec2 create-subnet-cidr-reservation --region {region} --subnet-id {subnet} "
            f"--reservation-type explicit --cidr {cidr}"
        )
        super().__init__(
            f"nothing was changed, since the deployment would fail: {'; '.join(sentences)}",
            hint=f"set controlPlane.addresses to free addresses. Or free these: `{command}` prevents EC2 from "
            "assigning the address again; then drain and terminate the instance that uses it.",
        )


def check(
    account: Account, cluster: Cluster, values: Mapping[str, str], deployed: StackTree | None, report: Report
) -> None:
    """Check that the addresses of masters are free, if the masters are new or get another address.

    Args:
        deployed: the cluster's stacks; None if they do not exist yet.
        report: receives a notice if the used addresses cannot be read.

    Raises:
        AddressesInUseError: an address is in use.
    """
    letters_by_new_address = _letters_by_new_address(cluster, values, deployed.root if deployed else None)
    vpc_id = values.get("VpcId") or (deployed.root.outputs.get("VpcId", "") if deployed else "")
    if not (letters_by_new_address and vpc_id):
        return
    try:
        with translate_aws_errors():
            interfaces = find_in_vpc(account, vpc_id)
            used_addresses = list(find_used_addresses(letters_by_new_address, list(interfaces)))
            stack_resource_ids = deployed.physical_ids if used_addresses and deployed else {}
    except AwsError as error:
        report(unread("who uses the masters' addresses", error).notice)
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
        raise AddressesInUseError(conflicts, account.region)


def _letters_by_new_address(cluster: Cluster, values: Mapping[str, str], existing: StackView | None) -> dict[str, str]:
    """Return the letters of the masters whose address is not deployed yet, by that address."""
    deployed_parameters = existing.parameters if existing else {}
    letters_by_parameter = {str(MasterId(slot.letter, "Address")): slot.letter for slot in cluster.slots}
    return {
        value: letters_by_parameter[name]
        for name, value in values.items()
        if name in letters_by_parameter and deployed_parameters.get(name) != value
    }


SIZE_PARAMETER = "MasterVolumeSize"
_CLUSTER_FILE_KEY = "controlPlane.volume.size"


@dataclass(frozen=True)
class VolumeFindings:
    """Messages about volumes whose size differs from the one that the stack records."""

    impacts: tuple[Impact, ...] = ()
    notices: tuple[Notice, ...] = ()


def check_volume_sizes(deployed: StackTree, values: Mapping[str, str]) -> VolumeFindings:
    """Compare the real sizes of the volumes with the stack's parameter and with the requested size.

    EBS cannot shrink a volume ("Request modifications to your EBS volumes", EC2 User Guide). A rollback that would have
    to shrink one completes only if it skips the volume. From then on the stack records the former size.

    Raises:
        AwsError: a call fails, other than by missing permissions for DescribeVolumes.
    """
    recorded = deployed.root.parameters.get(SIZE_PARAMETER, "")
    requested = values.get(SIZE_PARAMETER, "")
    if not recorded.isdecimal() or not requested.isdecimal():
        return VolumeFindings()
    try:
        actual_sizes = read_volume_sizes(deployed)
    except DeniedError:
        return VolumeFindings(
            notices=(Notice("the actual sizes of the data volumes are unknown: ec2:DescribeVolumes is denied"),)
        )
    larger_sizes = {volume_id: size for volume_id, size in actual_sizes.items() if size > int(recorded)}
    if not larger_sizes:
        return VolumeFindings()
    max_size = max(larger_sizes.values())
    sizes_text = " and ".join(f"{volume_id} has {size} GiB" for volume_id, size in sorted(larger_sizes.items()))
    text = f"{sizes_text} already, though the stack records {recorded}: a rollback could not shrink it"
    if int(requested) == int(recorded):
        hint = (
            f"set {_CLUSTER_FILE_KEY} to {max_size}, so that the stack records the actual size; "
            "a smaller size would fail, since EBS cannot shrink volumes."
        )
        return VolumeFindings(notices=(Notice(text, hint),))
    if int(requested) < max_size:
        refusal = f"{text}. EBS cannot shrink volumes: {_CLUSTER_FILE_KEY} must be at least {max_size}, not {requested}"
        return VolumeFindings(impacts=(Impact(refusal, Danger.DISRUPTIVE, fails=True),))
    impact = Impact(f"{text}; the update records the actual size in the stack, or grows the volume further")
    return VolumeFindings(impacts=(impact,))
