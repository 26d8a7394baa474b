"""What is looked at after an operation: facts that are compared, and remarks that are only told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DENIED, error_code
from cfngen.deploy.stacks import GROUP, StackResource, tree
from cfngen.text import pluralize

INTERFACE, KEY, SECRET, BUCKET = (
    "AWS::EC2::NetworkInterface",
    "AWS::KMS::Key",
    "AWS::SecretsManager::Secret",
    "AWS::S3::Bucket",
)
IN_USE = "in use"
"""Part of the message with which a launch fails while the old instance still has the interface."""


@dataclass
class Sight:
    """What one look has found.

    Attributes:
        facts: by what was looked at.
        remarks: what is told without being compared.
    """

    facts: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def has_default_vpc(account: Account) -> bool:
    """Return whether the region has a default VPC, by which Auto Scaling judges groups that name zones only."""
    filters = [{"Name": "is-default", "Values": ["true"]}]
    return bool(account.client("ec2").describe_vpcs(Filters=filters)["Vpcs"])


def shells(account: Account, name: str) -> Sight:
    """Count the stacks that a change set which was never executed has left: the root's, and those it would nest."""
    pages = (
        account.client("cloudformation").get_paginator("list_stacks").paginate(StackStatusFilter=["REVIEW_IN_PROGRESS"])
    )
    names = [str(stack_summary["StackName"]) for page in pages for stack_summary in page["StackSummaries"]]
    left = sum(each == name or each.startswith(f"{name}-") for each in names)
    return Sight({"empty stacks that are left": str(left)})


def slot(account: Account, stack_id: str) -> Sight:
    """Look whether each master's group has one instance, with the slot's interface as its primary one."""
    members = tree(account, stack_id)
    groups = _ids(members, GROUP, "Master")
    sight = Sight()
    answer = account.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=list(groups.values()))
    serving = [
        instance["InstanceId"]
        for group in answer["AutoScalingGroups"]
        for instance in group["Instances"]
        if instance["LifecycleState"] == "InService"
    ]
    sight.facts["masters in service"] = str(len(serving))
    interfaces = _ids(members, INTERFACE)
    described = account.client("ec2").describe_network_interfaces(NetworkInterfaceIds=list(interfaces.values()))
    held = [
        network_interface
        for network_interface in described["NetworkInterfaces"]
        if network_interface.get("Attachment", {}).get("InstanceId") in serving
        and network_interface["Attachment"].get("DeviceIndex") == 0
    ]
    sight.facts["interfaces of slots that are a master's primary one"] = str(len(held))
    for group in groups.values():
        sight.remarks += _failed_launches(account, group)
    return sight


def secrets_made(account: Account, stack_id: str) -> Mapping[str, str]:
    """Return the physical ids of the key, the secrets and the bucket of a stack by their logical ids."""
    members = tree(account, stack_id)
    return {name: value for kind in (KEY, SECRET, BUCKET) for name, value in _ids(members, kind).items()}


def secrets_gone(account: Account, made: Mapping[str, str]) -> Sight:
    """Look what has become of a key, secrets and a bucket whose stack has been deleted.

    Args:
        account: where they were.
        made: their physical ids, by their logical ids.
    """
    looks = {"SecretsKey": _key, "CaSecret": _secret, "JoinSecret": _secret, "BackupBucket": _bucket}
    return Sight({f"{name} after its stack": looks[name](account, value) for name, value in sorted(made.items())})


def _ids(members: tuple[StackResource, ...], kind: str, prefix: str = "") -> dict[str, str]:
    return {
        member.view.logical_id: member.view.physical_id
        for member in members
        if member.exists and member.view.type == kind and member.view.logical_id.startswith(prefix)
    }


def _failed_launches(account: Account, group: str) -> list[str]:
    """Return in words the launches of a group that failed and were tried again."""
    answer = account.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group, MaxRecords=100)
    messages = [
        str(activity.get("StatusMessage") or activity["StatusCode"])
        for activity in answer["Activities"]
        if activity["StatusCode"] in ("Failed", "Cancelled")
    ]
    return [
        f"a launch failed and was tried again, {pluralize(messages.count(fromkey), 'time')}"
        + (", as is known of the interface that the old instance still has" if IN_USE in fromkey else "")
        + f": {fromkey}"
        for fromkey in dict.fromkeys(messages)
    ]


def _key(account: Account, arn: str) -> str:
    found = account.client("kms").describe_key(KeyId=arn)["KeyMetadata"]
    return "waits for its deletion" if found["KeyState"] == "PendingDeletion" else str(found["KeyState"])


def _secret(account: Account, arn: str) -> str:
    found = _answer(account.client("secretsmanager").describe_secret, {"ResourceNotFoundException"}, SecretId=arn)
    if isinstance(found, str):
        return found
    return "can be brought back" if found.get("DeletedDate") else "there"


def _bucket(account: Account, name: str) -> str:
    found = _answer(account.client("s3").head_bucket, {"404", "NoSuchBucket"}, Bucket=name)
    return found if isinstance(found, str) else "there"


def _answer(call: Any, absent: set[str], **arguments: str) -> Mapping[str, Any] | str:
    from botocore.exceptions import ClientError

    try:
        answer: Mapping[str, Any] = call(**arguments)
    except ClientError as error:
        if error_code(error) in absent:
            return "gone"
        if error_code(error) in DENIED:
            return "not to be seen"
        raise
    return answer
