"""IAM roles of a cluster, and how to delete one by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.aws.existing_resources import NOT_FOUND_CODES
from cfngen.deploy.aws.stacks import CLUSTER_TAG
from cfngen.deploy.aws.tags import LEGACY_CLUSTER_TAG, tag_map


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
