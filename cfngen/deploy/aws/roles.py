"""Roles, instance profiles and OIDC providers of IAM, and how to delete a role by hand.

IAM deletes no role that still has policies ("DeleteRole", IAM API Reference). Where it is not said otherwise, errors of
boto3 are not translated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.aws.existing_resources import NOT_FOUND_CODES
from cfngen.deploy.aws.stacks import CLUSTER_TAG
from cfngen.deploy.aws.tags import LEGACY_CLUSTER_TAG, tag_map
from cfngen.deploy.aws.types import AwsObject

_MISSING = "NoSuchEntity"  # the error code of each operation, see the IAM API Reference


@dataclass(frozen=True)
class RoleView:
    """A role; its trust policy as boto3 decodes it."""

    name: str
    arn: str
    trust_policy: AwsObject
    tags: Mapping[str, str]


def find_role(account: Account, name: str) -> RoleView | None:
    """Return a role; None if there is none of this name."""
    response = account.read("iam.get_role", absent=(_MISSING,), RoleName=name)
    if response is None:
        return None
    role = response["Role"]
    return RoleView(role["RoleName"], role["Arn"], role["AssumeRolePolicyDocument"], tag_map(role.get("Tags")))


@dataclass(frozen=True)
class InstanceProfileView:
    """An instance profile, and the ARN of its role; empty if it has none."""

    arn: str
    role: str


def find_instance_profile(account: Account, name: str) -> InstanceProfileView | None:
    """Return an instance profile; None if there is none of this name."""
    response = account.read("iam.get_instance_profile", absent=(_MISSING,), InstanceProfileName=name)
    if response is None:
        return None
    profile = response["InstanceProfile"]
    # An instance profile holds one role at most ("IAM and AWS STS quotas", IAM User Guide).
    return InstanceProfileView(profile["Arn"], next((role["Arn"] for role in profile["Roles"]), ""))


def find_provider_audiences(account: Account, arn: str) -> tuple[str, ...] | None:
    """Return the audiences that an OIDC provider accepts; None if the account has no such provider."""
    provider = account.read("iam.get_open_id_connect_provider", absent=(_MISSING,), OpenIDConnectProviderArn=arn)
    return None if provider is None else tuple(provider.get("ClientIDList", ()))


def removal_command(account: Account, role: str) -> str:
    """Return a command line that takes a role's policies away and deletes it; empty if there is no such role.

    IAM deletes no role that still has policies ("DeleteRole", IAM API Reference). Of a role whose policies the caller
    may not list, it is the command for the role alone.
    """
    from botocore.exceptions import ClientError

    name = f"--role-name {role}"
    policies: list[str] = []
    attached: list[str] = []
    try:
        policies += map(str, account.items("iam.list_role_policies", "PolicyNames", RoleName=role))
        described = account.items("iam.list_attached_role_policies", "AttachedPolicies", RoleName=role)
        attached += [policy["PolicyArn"] for policy in described]
    except ClientError as error:
        if error_code(error) in NOT_FOUND_CODES:
            return ""
        if error_code(error) not in ACCESS_DENIED_CODES:
            raise
    commands = [f"delete-role-policy {name} --policy-name {policy}" for policy in policies]
    commands += [f"detach-role-policy {name} --policy-arn {arn}" for arn in attached]
    return " && ".join(f"aws iam {command}" for command in (*commands, f"delete-role {name}"))


def find_roles_of_cluster(account: Account, cluster: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return which of the named roles exist and have the cluster's tag; not those that the caller may not read.

    A caller who deletes stacks through a service role may lack permission to read roles.
    """
    absent = {"NoSuchEntity", *ACCESS_DENIED_CODES}
    return tuple(
        name
        for name in sorted(names)
        if (response := account.read("iam.get_role", absent=absent, RoleName=name))
        and is_of_cluster(tag_map(response["Role"].get("Tags")), cluster)
    )


def is_of_cluster(tags: Mapping[str, str], cluster: str) -> bool:
    """Return whether a resource has the tag of a cluster."""
    return cluster in (tags.get(CLUSTER_TAG), tags.get(LEGACY_CLUSTER_TAG))
