"""Checks roles: whether existing ones can be those of instances, and what is in the way of new ones for pods.

Roles for pods have fixed names, and IAM has one provider for a URL. IAM's names are unique in an account, whatever the
region. A role or a provider that exists already belongs to another stack, or was left by one; CloudFormation would
come to it in the middle of an operation and roll everything back. The stack's own are told apart by its resources.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cfngen.cluster.iam.existing_roles import existing_roles, last_name
from cfngen.cluster.iam.service_accounts import accounts_with_made_roles, masters_publish_documents, role_name
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import aws_partition
from cfngen.cluster.paths import dotted
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.roles import (
    RoleView,
    find_instance_profile,
    find_provider_audiences,
    find_role,
    is_of_cluster,
    removal_command,
)
from cfngen.deploy.aws.services import blocks_public_buckets
from cfngen.deploy.aws.stacks import StackTree
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.preflight.findings import Finding, judge, refusal, unread
from cfngen.hints import CommandText, SuggestedCommand
from cfngen.permissions.grants import Grant, grants_of_existing_roles, scope_of
from cfngen.permissions.statements import Condition, Statement, merge_statements
from cfngen.permissions.trust import ec2_principal
from cfngen.text import join_and


def find_pod_role_problems(account: Account, cluster: Cluster, deployed: StackTree | None) -> Iterator[Finding]:
    """Yield a problem for each role or provider that is in the way, and for each existing role that cannot be used.

    Args:
        stack: the root stack; None if it does not exist yet.
    """
    issuer = cluster.service_account_issuer
    if issuer is None:
        return
    if deployed is None and cluster.iam.addon_roles and not masters_publish_documents(cluster):
        yield refusal(
            "iam.addonRoles",
            "AWS has to read the issuer's documents before the cloud controller manager can use its "
            "role, and you can only publish them once the masters run, which wait for it; create the cluster with "
            "false, publish the documents, and set it to true then",
        )
    if issuer.discovery == "bucket":
        find_problem = partial(_find_public_access_problem, account)
        yield from judge("whether the account blocks public buckets", "serviceAccountIssuer.discovery", find_problem)
    try:
        with translate_aws_errors():
            resources = deployed.resources if deployed else ()
            own_ids = frozenset(resource.view.physical_id for resource in resources if resource.exists)
            for key, service_account in accounts_with_made_roles(cluster):
                name = role_name(cluster, service_account)
                role = None if name in own_ids else find_role(account, name)
                if role is not None:
                    yield refusal(key, _describe_taken_role(account, cluster, name, role))
            if issuer.url:
                yield from _find_provider_problem(account, issuer.url, own_ids)
            for index, entry in enumerate(cluster.iam.service_accounts):
                if entry.role:
                    yield from find_missing_role(account, dotted(("iam", "serviceAccounts", index, "role")), entry.role)
    except AwsError as error:
        yield unread("whether names of roles and providers are taken", error, "iam")


def _describe_taken_role(account: Account, cluster: Cluster, name: str, role: RoleView) -> str:
    """Return that a role's name is taken, by whom as far as its tags say, and what to do."""
    origin = "which is not this stack's"
    if is_of_cluster(role.tags, cluster.name):
        origin += f" but has the tag of a cluster {cluster.name}: an earlier stack may have left it"
    with translate_aws_errors():
        command = removal_command(account, name)
    return (
        f"account {account.id} has a role {name} already, {origin}; delete it with `{command}` if nothing uses it, or "
        "choose another name of the cluster"
    )


def _find_provider_problem(account: Account, url: str, own_ids: frozenset[str]) -> Iterator[Finding]:
    """Yield a problem if the account has a provider for the issuer's URL that is not the stack's."""
    name = url.removeprefix("https://")
    arn = provider_arn(account, name)
    if arn in own_ids or find_provider_audiences(account, arn) is None:
        return
    yield refusal(
        "serviceAccountIssuer.url",
        f"account {account.id} has an OIDC provider for {name} already, and IAM has one for "
        "a URL; each cluster needs an issuer of its own, so use another URL, or delete the provider with `aws iam "
        f"delete-open-id-connect-provider --open-id-connect-provider-arn {arn}` if nothing uses it",
    )


def find_missing_role(account: Account, key: str, arn: str) -> Iterator[Finding]:
    """Yield a problem if a role that is said to exist does not; one of another account cannot be read."""
    name = arn.rpartition("/")[2]
    if arn.split(":")[4] == account.id and find_role(account, name) is None:
        yield refusal(key, f"there is no role {name} in account {account.id}")


def provider_arn(account: Account, issuer: str) -> str:
    """Return the ARN of IAM's OIDC provider for an issuer, which is given without `https://`."""
    return f"arn:{aws_partition(account.region)}:iam::{account.id}:oidc-provider/{issuer}"


def _find_public_access_problem(account: Account) -> str:
    """Return that the account's Block Public Access refuses the policy of a public bucket; empty if it does not.

    "Blocking public access to your Amazon S3 storage", Amazon S3 User Guide: the most restrictive combination of the
    account's and the bucket's settings applies.
    """
    if not blocks_public_buckets(account):
        return ""
    return (
        f"account {account.id} blocks public buckets (S3 Block Public Access), so S3 would refuse the policy of the "
        "issuer's bucket; use cloudFront, or url with your own web server"
    )


_MAX_NAMED = 5  # actions that a notice names


def notices(account: Account, cluster: Cluster, stack: str) -> Iterator[Notice]:
    """Yield a notice for each existing role that lacks permissions, or whose permissions are not known."""
    scope = scope_of(cluster, stack=stack, account=account.id)
    for path, existing, grant in grants_of_existing_roles(cluster, scope):
        if existing.role.split(":")[4] != account.id:
            continue
        key = f"{dotted(path)}.role"
        try:
            with translate_aws_errors():
                missing = find_missing_actions(account, existing.role, grant)
        except AwsError as error:
            yield Notice(f"{key}: whether {existing.role} has the permissions that it needs is not known: {error}")
            continue
        if missing:
            named, others = missing[:_MAX_NAMED], len(missing) - _MAX_NAMED
            if others > 0:
                named.append(f"{others} more")
            policies = join_and([policy.name for policy in grant.policies])
            yield Notice(
                f"{key}: according to IAM's policy simulator, {existing.role} lacks {join_and(named)} of the actions "
                f"in {policies}",
                CommandText(
                    SuggestedCommand(f"permissions {grant.name}", (("--account", account.id),)),
                    f" prints {policies}: attach all of it; else instances may not start, and the deployment may fail "
                    "(docs/operate/security.md).",
                ),
            )


def find_missing_actions(account: Account, role: str, grant: Grant) -> list[str]:
    """Return the actions of a grant that a role's policies deny, or do not allow, in alphabetical order.

    Raises:
        cfngen.deploy.aws.errors.AwsError: IAM does not answer; the caller translates boto3's errors.
    """
    missing: set[str] = set()
    for statement in merge_statements(grant.statements):
        results = account.items(
            "iam.simulate_principal_policy",
            "EvaluationResults",
            PolicySourceArn=role,
            ActionNames=sorted(set(statement["Action"])),
            ResourceArns=_resources(account, statement),
            ContextEntries=_context_entries(statement.get("Condition", {})),
        )
        missing |= {result["EvalActionName"] for result in results if not _is_allowed(result)}
    return sorted(missing)


def _resources(account: Account, statement: Statement) -> list[str]:
    """Return the resources of a statement as ARNs in the account and region.

    Names that CloudFormation will generate remain patterns. It is assumed that the simulator takes an asterisk in them
    for a character, which the same pattern in a policy matches, and a wider one.
    """
    arns = []
    for resource in map(str, statement["Resource"]):
        parts = resource.split(":", 5)
        if len(parts) == 6:
            parts[3] = account.region if parts[3] == "*" else parts[3]
            parts[4] = account.id if parts[4] == "*" else parts[4]
        arns.append(":".join(parts))
    return arns


def _context_entries(condition: Condition) -> list[AwsObject]:
    """Return the context of a request that meets a condition."""
    # `Null` with `false` is met by any value, unless another operator asks for a certain one.
    present_keys = [key for key, value in condition.get("Null", {}).items() if value == "false"]
    values_by_key: dict[str, tuple[str, Sequence[str]]] = {key: ("string", ["any"]) for key in present_keys}
    for operator, values in condition.items():
        if operator in ("Null", "StringNotEquals"):  # the latter is met without the key
            continue
        is_list = operator.startswith("ForAllValues:")
        for key, value in values.items():
            texts = [str(text) for text in value] if isinstance(value, (list, tuple)) else [str(value)]
            kind = "numeric" if operator.startswith("Numeric") else "stringList" if is_list else "string"
            kind = "boolean" if operator == "Bool" else kind
            # A key that is not multivalued has one value in a request.
            values_by_key[key] = (kind, texts if is_list else texts[:1])
    return [
        {"ContextKeyName": key, "ContextKeyType": kind, "ContextKeyValues": list(texts)}
        for key, (kind, texts) in values_by_key.items()
    ]


def _is_allowed(result: AwsObject) -> bool:
    """Return whether the simulator allows an action for every resource of a request."""
    decisions = [result["EvalDecision"]]
    decisions += [specific["EvalResourceDecision"] for specific in result.get("ResourceSpecificResults", ())]
    return all(decision == "allowed" for decision in decisions)


def find_role_problems(account: Account, cluster: Cluster) -> Iterator[Finding]:
    """Yield a problem for each existing role or instance profile that instances cannot have.

    EC2 must be trusted to assume the role, and the instance profile must hold it; else instances get no credentials.
    """
    for path, existing in existing_roles(cluster):
        key = dotted(path)
        role_account = existing.role.split(":")[4]
        if role_account != account.id:
            yield refusal(
                f"{key}.role", f"{existing.role} belongs to the account {role_account}; use a role of {account.id}"
            )
            continue
        find_problem = partial(_find_role_problem, account, existing.role, cluster.region)
        yield from judge(existing.role, f"{key}.role", find_problem)
        if profile := existing.instance_profile:
            find_problem = partial(_find_profile_problem, account, profile, existing.role)
            yield from judge(profile, f"{key}.instanceProfile", find_problem)


def _find_role_problem(account: Account, arn: str, region: str) -> str:
    """Return what is wrong with a role; empty if nothing is."""
    role = find_role(account, last_name(arn))
    if role is None:
        return f"there is no role {last_name(arn)} in account {account.id}"
    if role.arn != arn:
        return f"the role {role.name} has the ARN {role.arn}; correct the path"
    principal = ec2_principal(region)
    if not trusts(role.trust_policy, principal):
        return (
            f"{arn} does not trust {principal}, so EC2 could give instances no credentials; set the trust policy in "
            "docs/operate/security.md"
        )
    return ""


def _find_profile_problem(account: Account, arn: str, role: str) -> str:
    """Return what is wrong with the instance profile of a role; empty if nothing is."""
    name = last_name(arn)
    profile = find_instance_profile(account, name)
    if profile is None:
        return f"there is no instance profile {name} in account {account.id}"
    if profile.arn != arn:
        return f"the instance profile {name} has the ARN {profile.arn}; correct the path"
    if not profile.role:
        return f"{arn} holds no role; add the role {role} to it"
    if profile.role != role:
        return f"{arn} holds the role {profile.role} and not {role}; correct one of the two"
    return ""


def trusts(trust_policy: AwsObject, principal: str) -> bool:
    """Return whether a trust policy lets a service, e.g. `ec2.amazonaws.com`, assume the role.

    Conditions are taken for met.
    """
    return any(
        _names(statement.get("Principal"), principal)
        for statement in statements_that_allow(trust_policy, "sts:assumerole")
    )


def statements_that_allow(policy: AwsObject, action: str) -> Iterator[AwsObject]:
    """Yield the statements of a resource's policy that allow an action, in lower case; conditions are taken for met."""
    for statement in as_list(policy.get("Statement", ())):
        patterns = as_list(statement.get("Action", ()))
        if statement.get("Effect") == "Allow" and any(
            fnmatch.fnmatchcase(action, pattern.lower()) for pattern in patterns
        ):
            yield statement


def _names(principals: Any, service: str) -> bool:
    """Return whether the principals of a statement include a service."""
    return isinstance(principals, Mapping) and service in as_list(principals.get("Service", ()))


def as_list(value: Any) -> list[Any]:
    """Return a value of a policy as a list: a single one may stand without brackets."""
    return [value] if isinstance(value, (str, Mapping)) else list(value)
