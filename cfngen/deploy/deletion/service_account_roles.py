"""Roles of service accounts that are left of a cluster: their names are fixed, so a new cluster would meet them.

They are looked up by the names that the cluster file gives them. CloudFormation lists the resources of a deleted stack
for 90 days only, and not those of a stack before it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.deletion.kubernetes_tags import LEGACY_CLUSTER_TAG, tag_map
from cfngen.deploy.deletion.retained_resources import RetainedResource
from cfngen.deploy.deletion.role_removal import removal_command
from cfngen.deploy.stacks import CLUSTER_TAG


def find_remaining(
    account: Account, cluster: str, names: Collection[str], reported: Collection[str]
) -> tuple[RetainedResource, ...]:
    """Return the roles that exist although the cluster's stack does not, and have the cluster's tag.

    Args:
        account: the AWS account.
        cluster: name of the cluster.
        names: names of the roles of the cluster file.
        reported: names of roles that are listed elsewhere.
    """
    from botocore.exceptions import ClientError

    remaining = []
    for name in sorted(set(names) - set(reported)):
        try:
            role = account.client("iam").get_role(RoleName=name)["Role"]
        except ClientError as error:
            # A caller who deletes stacks through a service role may lack permission to read roles.
            if error_code(error) not in {"NoSuchEntity", *ACCESS_DENIED_CODES}:
                raise
            continue
        if is_of_cluster(tag_map(role.get("Tags")), cluster):
            remaining.append(
                RetainedResource(
                    kind="role of a service account",
                    id=name,
                    why="left by an earlier stack; a new cluster with this service account is refused while it exists",
                    command=removal_command(account, name),
                )
            )
    return tuple(remaining)


def is_of_cluster(tags: Mapping[str, str], cluster: str) -> bool:
    """Return whether a resource has the tag of a cluster."""
    return cluster in (tags.get(CLUSTER_TAG), tags.get(LEGACY_CLUSTER_TAG))
