"""Checks what would be in the way of roles for pods: their names are fixed, and IAM has one provider for a URL.

So would documents that nobody can publish before they are needed.

IAM's names are unique in an account, whatever the region. A role or a provider that exists already belongs to another
stack, or was left by one; CloudFormation would come to it in the middle of an operation and roll everything back. The
stack's own are told apart by its resources.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.iam.service_accounts import accounts_with_made_roles, masters_publish_documents, role_name
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import aws_partition
from cfngen.cluster.paths import dotted
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.deletion.kubernetes_tags import tag_map
from cfngen.deploy.deletion.role_removal import removal_command
from cfngen.deploy.deletion.service_account_roles import is_of_cluster
from cfngen.deploy.stacks import StackView, list_resource_tree

_MISSING = "NoSuchEntity"  # the error code of each operation, see the IAM API Reference


def find_problems(account: Account, cluster: Cluster, stack: StackView | None) -> Iterator[str]:
    """Yield a problem for each role or provider that is in the way, and for each existing role that cannot be used.

    What cannot be read because of another error of AWS has no problem.

    Args:
        account: the account and region.
        cluster: the cluster.
        stack: the root stack; None if it does not exist yet.
    """
    issuer = cluster.service_account_issuer
    if issuer is None:
        return
    if stack is None and cluster.iam.addon_roles and not masters_publish_documents(cluster):
        yield (
            "iam.addonRoles: AWS has to read the issuer's documents before the cloud controller manager can use its "
            "role, and you can only publish them once the masters run, which wait for it; create the cluster with "
            "false, publish the documents, and set it to true then"
        )
    if issuer.discovery == "bucket":
        yield from _find_public_access_problem(account)
    try:
        with translate_aws_errors():
            own_ids = _own_ids(account, stack)
            for key, service_account in accounts_with_made_roles(cluster):
                name = role_name(cluster, service_account)
                role = None if name in own_ids else _read_role(account, name)
                if role is not None:
                    yield f"{key}: {_describe_taken_role(account, cluster, name, role)}"
            if issuer.url:
                yield from _find_provider_problem(account, issuer.url, own_ids)
            yield from _find_existing_role_problems(account, cluster)
    except AwsError:
        return


def _own_ids(account: Account, stack: StackView | None) -> frozenset[str]:
    """Return the physical ids of the resources that the stacks have."""
    if stack is None:
        return frozenset()
    return frozenset(resource.view.physical_id for resource in list_resource_tree(account, stack.id) if resource.exists)


def _read_role(account: Account, name: str) -> AwsObject | None:
    """Return the account's role of this name, or None."""
    try:
        with translate_aws_errors():
            return dict(account.client("iam").get_role(RoleName=name)["Role"])
    except AwsError as error:
        if error.aws_code != _MISSING:
            raise
        return None


def _describe_taken_role(account: Account, cluster: Cluster, name: str, role: AwsObject) -> str:
    """Return that a role's name is taken, by whom as far as its tags say, and what to do."""
    origin = "which is not this stack's"
    if is_of_cluster(tag_map(role.get("Tags")), cluster.name):
        origin += f" but has the tag of a cluster {cluster.name}: an earlier stack may have left it"
    with translate_aws_errors():
        command = removal_command(account, name)
    return (
        f"account {account.id} has a role {name} already, {origin}; delete it with `{command}` if nothing uses it, or "
        "choose another name of the cluster"
    )


def _find_provider_problem(account: Account, url: str, own_ids: frozenset[str]) -> Iterator[str]:
    """Yield a problem if the account has a provider for the issuer's URL that is not the stack's."""
    name = url.removeprefix("https://")
    arn = f"arn:{aws_partition(account.region)}:iam::{account.id}:oidc-provider/{name}"
    if arn in own_ids:
        return
    try:
        with translate_aws_errors():
            account.client("iam").get_open_id_connect_provider(OpenIDConnectProviderArn=arn)
    except AwsError as error:
        if error.aws_code != _MISSING:
            raise
        return
    yield (
        f"serviceAccountIssuer.url: account {account.id} has an OIDC provider for {name} already, and IAM has one for "
        "a URL; each cluster needs an issuer of its own, so use another URL, or delete the provider with `aws iam "
        f"delete-open-id-connect-provider --open-id-connect-provider-arn {arn}` if nothing uses it"
    )


def _find_existing_role_problems(account: Account, cluster: Cluster) -> Iterator[str]:
    """Yield a problem for each role that is said to exist and does not; those of other accounts cannot be read."""
    for index, entry in enumerate(cluster.iam.service_accounts):
        if entry.role is None or entry.role.split(":")[4] != account.id:
            continue
        name = entry.role.rpartition("/")[2]
        if _read_role(account, name) is None:
            key = dotted(("iam", "serviceAccounts", index, "role"))
            yield f"{key}: there is no role {name} in account {account.id}"


def _find_public_access_problem(account: Account) -> Iterator[str]:
    """Yield a problem if the account's Block Public Access refuses the policy of a public bucket.

    "Blocking public access to your Amazon S3 storage", Amazon S3 User Guide: the most restrictive combination of the
    account's and the bucket's settings applies.
    """
    try:
        with translate_aws_errors():
            settings = account.client("s3control").get_public_access_block(AccountId=account.id)
    except AwsError:
        # NoSuchPublicAccessBlockConfiguration where nothing is blocked; or the caller may not read it.
        return
    configuration = settings["PublicAccessBlockConfiguration"]
    if configuration.get("BlockPublicPolicy") or configuration.get("RestrictPublicBuckets"):
        yield (
            f"serviceAccountIssuer.discovery: account {account.id} blocks public buckets (S3 Block Public Access), so "
            "S3 would refuse the policy of the issuer's bucket; use cloudFront, or url with your own web server"
        )
