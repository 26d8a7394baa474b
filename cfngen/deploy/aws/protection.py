"""What CloudFormation may delete and replace: stack policies and termination protection, as read and as intended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.checked_answers import read_document
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.stacks import NESTED_STACK, StackView, list_resources, stack_name

# Nested stacks that contain the cluster's state: etcd's volumes, the API's address, and the certificate authorities.
STATEFUL_STACKS = ("MasterStack", "SecretsStack")
# Types of resources whose replacement loses data, or an address that clients use.
PROTECTED_TYPES = (
    "AWS::EC2::EIP",
    "AWS::EC2::NetworkInterface",
    "AWS::EC2::Volume",
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "AWS::KMS::Key",
    "AWS::SecretsManager::Secret",
)

StackPolicy = Mapping[str, Any]

# A stack policy cannot be removed, only replaced by one that allows every update.
ALLOW_ALL_POLICY: StackPolicy = {
    "Statement": [{"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}]
}
_DENY_REPLACE_AND_DELETE = {"Effect": "Deny", "Action": ["Update:Replace", "Update:Delete"], "Principal": "*"}
ROOT_POLICY: StackPolicy = {
    "Statement": [
        *ALLOW_ALL_POLICY["Statement"],
        {**_DENY_REPLACE_AND_DELETE, "Resource": [f"LogicalResourceId/{logical_id}" for logical_id in STATEFUL_STACKS]},
    ]
}
STATEFUL_STACK_POLICY: StackPolicy = {
    "Statement": [
        *ALLOW_ALL_POLICY["Statement"],
        {
            **_DENY_REPLACE_AND_DELETE,
            "Resource": "*",
            "Condition": {"StringEquals": {"ResourceType": list(PROTECTED_TYPES)}},
        },
    ]
}


def find_stacks_without_policy(account: Account, root: StackView) -> tuple[str, ...]:
    """Return the names of the root stack and the stateful nested stacks, without those that have a stack policy."""
    with translate_aws_errors():
        unprotected = [
            stack
            for stack, _ in intended_stack_policies(account, root)
            if read_stack_policy(account, stack) in (None, ALLOW_ALL_POLICY)
        ]
    return tuple(stack_name(stack) for stack in unprotected)


def disable_termination_protection(account: Account, root: StackView) -> None:
    """Disable termination protection, so that the root can be deleted; stack policies do not prevent a deletion."""
    if root.protected:
        with translate_aws_errors():
            set_termination_protection(account, root, enabled=False)


def set_termination_protection(account: Account, root: StackView, *, enabled: bool) -> None:
    """Enable or disable the termination protection of a root stack."""
    account.client("cloudformation").update_termination_protection(
        StackName=root.id, EnableTerminationProtection=enabled
    )


def intended_stack_policies(account: Account, root: StackView) -> list[tuple[str, StackPolicy]]:
    """Return which stack policies `protect_stack` sets: (ARN of the stack, policy), the root first, then nested stacks.

    Of the nested stacks, only those that contain the cluster's state have a policy.
    """
    stateful_stacks = [
        resource.physical_id
        for resource in list_resources(account, root.id)
        if resource.type == NESTED_STACK
        and resource.logical_id in STATEFUL_STACKS
        and resource.physical_id
        and not resource.status.startswith("DELETE")
    ]
    return [(root.id, ROOT_POLICY), *((stateful_stack, STATEFUL_STACK_POLICY) for stateful_stack in stateful_stacks)]


def read_stack_policy(account: Account, stack: str) -> StackPolicy | None:
    """Return the stack policy; None if the stack has none."""
    policy_json = account.client("cloudformation").get_stack_policy(StackName=stack).get("StackPolicyBody")
    if not policy_json:
        return None
    return read_document(policy_json, "cloudformation:GetStackPolicy", "StackPolicyBody")
