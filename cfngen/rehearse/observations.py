"""What a rehearsal observes after an operation, in words: facts, which must be as on the emulator, and remarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, StackResource, list_resource_tree
from cfngen.rehearse.clusters import REHEARSAL_NAME
from cfngen.text import pluralize

INTERFACE_TYPE, KEY_TYPE, SECRET_TYPE, BUCKET_TYPE = (
    "AWS::EC2::NetworkInterface",
    "AWS::KMS::Key",
    "AWS::SecretsManager::Secret",
    "AWS::S3::Bucket",
)
INTERFACE_IN_USE_TEXT = "in use"
"""Part of the message of a launch that fails because the old instance still has the network interface."""


@dataclass
class Observation:
    """What was observed after an operation.

    Attributes:
        facts: values to compare with the emulator's, by what they describe.
        remarks: texts that are reported without being compared.
    """

    facts: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def has_default_vpc(account: Account) -> bool:
    """Return whether the region has a default VPC, which Auto Scaling uses for groups with zones but no subnets."""
    filters = [{"Name": "is-default", "Values": ["true"]}]
    return bool(account.client("ec2").describe_vpcs(Filters=filters)["Vpcs"])


def count_empty_stacks(account: Account) -> Observation:
    """Count the stacks without resources that remain of a change set that was not executed: root and nested stacks."""
    empty = account.items("cloudformation.list_stacks", "StackSummaries", StackStatusFilter=["REVIEW_IN_PROGRESS"])
    names = [str(summary["StackName"]) for summary in empty]
    count = sum(name == REHEARSAL_NAME or name.startswith(f"{REHEARSAL_NAME}-") for name in names)
    return Observation(facts={"empty stacks that are left": str(count)})


def observe_masters(account: Account, stack_id: str) -> Observation:
    """Count the masters in service, and the slots' network interfaces that are the primary interface of a master."""
    resources = list_resource_tree(account, stack_id)
    groups = {
        logical_id: group
        for logical_id, group in _physical_ids(resources, AUTO_SCALING_GROUP).items()
        if MasterId.parse(logical_id)
    }
    observation = Observation()
    response = account.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=list(groups.values()))
    instance_ids = [
        instance["InstanceId"]
        for group in response["AutoScalingGroups"]
        for instance in group["Instances"]
        if instance["LifecycleState"] == "InService"
    ]
    observation.facts["masters in service"] = str(len(instance_ids))
    interfaces = _physical_ids(resources, INTERFACE_TYPE)
    descriptions = account.client("ec2").describe_network_interfaces(NetworkInterfaceIds=list(interfaces.values()))
    primary_interfaces = [
        network_interface
        for network_interface in descriptions["NetworkInterfaces"]
        if network_interface.get("Attachment", {}).get("InstanceId") in instance_ids
        and network_interface["Attachment"].get("DeviceIndex") == 0
    ]
    observation.facts["interfaces of slots that are a master's primary one"] = str(len(primary_interfaces))
    for group in groups.values():
        observation.remarks += _failed_launches(account, group)
    return observation


def read_secret_ids(account: Account, stack_id: str) -> Mapping[str, str]:
    """Return the physical ids of the key, the secrets and the bucket of a stack by their logical ids."""
    resources = list_resource_tree(account, stack_id)
    physical_ids: dict[str, str] = {}
    for resource_type in (KEY_TYPE, SECRET_TYPE, BUCKET_TYPE):
        physical_ids |= _physical_ids(resources, resource_type)
    return physical_ids


def observe_deleted_secrets(account: Account, physical_ids: Mapping[str, str]) -> Observation:
    """Return the states of a key, secrets and a bucket after their stack has been deleted.

    Their physical ids are given by logical ids.
    """
    describe = {
        "SecretsKey": _key_state,
        "CaSecret": _secret_state,
        "JoinSecret": _secret_state,
        "BackupBucket": _bucket_state,
    }
    return Observation(
        {f"{name} after its stack": describe[name](account, value) for name, value in sorted(physical_ids.items())}
    )


def _physical_ids(resources: tuple[StackResource, ...], resource_type: str) -> dict[str, str]:
    return {
        resource.view.logical_id: resource.view.physical_id
        for resource in resources
        if resource.exists and resource.view.type == resource_type
    }


def _failed_launches(account: Account, group: str) -> list[str]:
    response = account.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group, MaxRecords=100)
    messages = [
        str(activity.get("StatusMessage") or activity["StatusCode"])
        for activity in response["Activities"]
        if activity["StatusCode"] in ("Failed", "Cancelled")
    ]
    return [
        f"a launch failed and was tried again, {pluralize(messages.count(message), 'time')}"
        + (", as is known of the interface that the old instance still has" if INTERFACE_IN_USE_TEXT in message else "")
        + f": {message}"
        for message in dict.fromkeys(messages)
    ]


def _key_state(account: Account, arn: str) -> str:
    metadata = account.client("kms").describe_key(KeyId=arn)["KeyMetadata"]
    return "waits for its deletion" if metadata["KeyState"] == "PendingDeletion" else str(metadata["KeyState"])


def _secret_state(account: Account, arn: str) -> str:
    """Return in words whether a secret exists or can be restored."""
    secret = _call_or_state(
        account.client("secretsmanager").describe_secret, {"ResourceNotFoundException"}, SecretId=arn
    )
    if isinstance(secret, str):
        return secret
    return "can be brought back" if secret.get("DeletedDate") else "there"


def _bucket_state(account: Account, name: str) -> str:
    response = _call_or_state(account.client("s3").head_bucket, {"404", "NoSuchBucket"}, Bucket=name)
    return response if isinstance(response, str) else "there"


def _call_or_state(call: Any, absent: set[str], **arguments: str) -> Mapping[str, Any] | str:
    """Call AWS; return the response, or the state as text if the resource is gone or access is denied.

    The absent codes mean that the resource does not exist.
    """
    from botocore.exceptions import ClientError

    try:
        response: Mapping[str, Any] = call(**arguments)
    except ClientError as error:
        if error_code(error) in absent:
            return "gone"
        if error_code(error) in ACCESS_DENIED_CODES:
            return "not to be seen"
        raise
    return response
