"""Checks that existing IAM roles and instance profiles can be those of instances.

Otherwise IAM or EC2 refuses them in the middle of a creation or update, or instances get no credentials: EC2 must be
trusted to assume the role, and the instance profile must hold it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cfngen.cluster.iam.existing_roles import existing_roles, last_name
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import dotted
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.permissions.trust import ec2_principal

_ASSUME_ROLE_PATTERNS = frozenset({"sts:assumerole", "sts:assume*", "sts:*", "*"})
# The error code of each operation, see the IAM API Reference.
_MISSING = "NoSuchEntity"


def find_problems(account: Account, cluster: Cluster) -> Iterator[str]:
    """Yield a problem for each existing role or instance profile that instances cannot have.

    What cannot be read because of another error of AWS has no problem.
    """
    for path, existing in existing_roles(cluster):
        key = dotted(path)
        role_account = existing.role.split(":")[4]
        if role_account != account.id:
            yield f"{key}.role: {existing.role} belongs to the account {role_account}; use a role of {account.id}"
            continue
        if problem := _find_role_problem(account, existing.role, cluster.region):
            yield f"{key}.role: {problem}"
        if existing.instance_profile:
            problem = _find_profile_problem(account, existing.instance_profile, existing.role)
            if problem:
                yield f"{key}.instanceProfile: {problem}"


def _find_role_problem(account: Account, arn: str, region: str) -> str:
    """Return what is wrong with a role; empty if nothing is, or if it cannot be read."""
    try:
        with translate_aws_errors():
            role = account.client("iam").get_role(RoleName=last_name(arn))["Role"]
    except AwsError as error:
        return f"there is no role {last_name(arn)} in account {account.id}" if error.aws_code == _MISSING else ""
    if role["Arn"] != arn:
        return f"the role {role['RoleName']} has the ARN {role['Arn']}; correct the path"
    principal = ec2_principal(region)
    if not trusts(role["AssumeRolePolicyDocument"], principal):
        return (
            f"{arn} does not trust {principal}, so EC2 could give instances no credentials; set the trust policy in "
            "docs/operate/security.md"
        )
    return ""


def _find_profile_problem(account: Account, arn: str, role: str) -> str:
    """Return what is wrong with the instance profile of a role; empty if nothing is, or if it cannot be read."""
    name = last_name(arn)
    try:
        with translate_aws_errors():
            profile = account.client("iam").get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    except AwsError as error:
        return f"there is no instance profile {name} in account {account.id}" if error.aws_code == _MISSING else ""
    if profile["Arn"] != arn:
        return f"the instance profile {name} has the ARN {profile['Arn']}; correct the path"
    # An instance profile holds one role at most ("IAM and AWS STS quotas", IAM User Guide).
    held = next((held_role["Arn"] for held_role in profile["Roles"]), "")
    if not held:
        return f"{arn} holds no role; add the role {role} to it"
    if held != role:
        return f"{arn} holds the role {held} and not {role}; correct one of the two"
    return ""


def trusts(trust_policy: Mapping[str, Any], principal: str) -> bool:
    """Return whether a trust policy lets a service assume the role; conditions are taken for met.

    Args:
        trust_policy: the document, as boto3 decodes it.
        principal: the service's principal, e.g. `ec2.amazonaws.com`.
    """
    return any(
        statement.get("Effect") == "Allow"
        and _names(statement.get("Principal"), principal)
        and not _ASSUME_ROLE_PATTERNS.isdisjoint(action.lower() for action in _as_list(statement.get("Action", ())))
        for statement in _as_list(trust_policy.get("Statement", ()))
    )


def _names(principals: Any, service: str) -> bool:
    """Return whether the principals of a statement include a service."""
    return isinstance(principals, Mapping) and service in _as_list(principals.get("Service", ()))


def _as_list(value: Any) -> list[Any]:
    """Return a value of a policy as a list: a single one may stand without brackets."""
    return [value] if isinstance(value, (str, Mapping)) else list(value)
