"""The real sizes of the masters' data volumes, which CloudFormation does not know after a forced rollback.

EBS cannot shrink a volume ("Request modifications to your EBS volumes", EC2 User Guide). A rollback that would have to
shrink one fails, and completes only if it skips the volume. From then on the stack records the former size, and change
sets are computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DeniedError, translate_aws_errors
from cfngen.deploy.messages.message import Danger, Impact, Notice
from cfngen.deploy.stacks import StackView, list_resource_tree

SIZE_PARAMETER = "MasterVolumeSize"
_CLUSTER_FILE_KEY = "controlPlane.volume.size"
_VOLUME_TYPE = "AWS::EC2::Volume"


@dataclass(frozen=True)
class VolumeFindings:
    """Messages about volumes whose size differs from the one that the stack records.

    Attributes:
        impacts: impacts on the deployment.
        notices: notices for the user.
    """

    impacts: tuple[Impact, ...] = ()
    notices: tuple[Notice, ...] = ()


def read_volume_sizes(account: Account, existing: StackView) -> Mapping[str, int]:
    """Return the size of each volume of a cluster's stacks in GiB, by volume id.

    Raises:
        AwsError: AWS refuses a call.
    """
    with translate_aws_errors():
        volume_ids = [
            resource.view.physical_id
            for resource in list_resource_tree(account, existing.id)
            if resource.view.type == _VOLUME_TYPE and resource.exists
        ]
        if not volume_ids:
            return {}
        # A filter, since a call with ids fails if a volume no longer exists.
        filters = [{"Name": "volume-id", "Values": volume_ids}]
        volumes = account.client("ec2").describe_volumes(Filters=filters)["Volumes"]
    return {volume["VolumeId"]: volume["Size"] for volume in volumes}


def check_volume_sizes(account: Account, existing: StackView, values: Mapping[str, str]) -> VolumeFindings:
    """Compare the real sizes of the volumes with the stack's parameter and with the requested size.

    Args:
        account: the account and region.
        existing: the root stack.
        values: parameters of the deployment.

    Raises:
        AwsError: a call fails, other than by missing permissions for DescribeVolumes.
    """
    recorded = existing.parameters.get(SIZE_PARAMETER, "")
    requested = values.get(SIZE_PARAMETER, "")
    if not recorded.isdecimal() or not requested.isdecimal():
        return VolumeFindings()
    try:
        actual_sizes = read_volume_sizes(account, existing)
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
