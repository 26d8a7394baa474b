"""Says which permissions existing roles of instances lack, according to IAM's policy simulator.

What the simulator says is a notice and no refusal: it does not know the resources that the stack will create, so a
policy that is narrower than the one that cfngen prints may suffice although the simulator denies an action.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cfngen.cluster.iam.existing_roles import existing_roles, group_role
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, dotted
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.messages import Notice
from cfngen.permissions.grants import Grant, grants, scope_of
from cfngen.permissions.statements import Condition, Statement, merge_statements
from cfngen.text import join_and

# Conditions with these operators are met without the key in the request, or cannot be met by one value.
_OPERATORS_WITHOUT_VALUE = ("StringNotEquals", "Null")


def notices(account: Account, cluster: Cluster, stack: str) -> Iterator[Notice]:
    """Yield a notice for each existing role that lacks permissions, or whose permissions are not known.

    Args:
        account: the account and region.
        cluster: the cluster.
        stack: name of the root stack.
    """
    grant_by_name = {grant.name: grant for grant in grants(cluster, scope_of(cluster, stack=stack, account=account.id))}
    for path, existing in existing_roles(cluster):
        if existing.role.split(":")[4] != account.id:
            continue
        grantee = _grantee(cluster, path)
        if grantee not in grant_by_name:
            continue
        key = f"{dotted(path)}.role"
        try:
            with translate_aws_errors():
                missing = find_missing_actions(account, existing.role, grant_by_name[grantee])
        except AwsError as error:
            yield Notice(f"{key}: whether {existing.role} has the permissions that it needs is not known: {error}")
            continue
        if missing:
            yield Notice(
                f"{key}: according to IAM's policy simulator, {existing.role} lacks {join_and(missing)}",
                "without them instances may not start, and the deployment may fail; docs/operate/security.md says how "
                "to print and attach the policies of existing roles.",
            )


def find_missing_actions(account: Account, role: str, grant: Grant) -> list[str]:
    """Return the actions of a grant that a role's policies deny, or do not allow, in alphabetical order.

    Raises:
        cfngen.deploy.aws_errors.AwsError: IAM does not answer; the caller translates boto3's errors.
    """
    paginator = account.client("iam").get_paginator("simulate_principal_policy")
    missing: set[str] = set()
    for statement in merge_statements(grant.statements):
        pages = paginator.paginate(
            PolicySourceArn=role,
            ActionNames=sorted(set(statement["Action"])),
            ResourceArns=_resources(account, statement),
            ContextEntries=_context_entries(statement.get("Condition", {})),
        )
        for page in pages:
            missing |= {result["EvalActionName"] for result in page["EvaluationResults"] if not _is_allowed(result)}
    return sorted(missing)


def _grantee(cluster: Cluster, path: Path) -> str:
    """Return the name of the grant for the role at a path: `master`, or `nodes-<group>` of a group that has it."""
    if path == ("iam", "masters"):
        return "master"
    for index, group in enumerate(cluster.node_groups):
        is_own = path == ("nodeGroups", index, "iam")
        if is_own or (path == ("iam", "nodes") and group_role(cluster, group) is cluster.iam.nodes):
            return f"nodes-{group.name}"
    return ""


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
    values_by_key: dict[str, tuple[str, Sequence[str]]] = {}
    for operator, values in condition.items():
        if operator in _OPERATORS_WITHOUT_VALUE:
            continue
        is_list = operator.startswith("ForAllValues:")
        for key, value in values.items():
            texts = [str(text) for text in value] if isinstance(value, (list, tuple)) else [str(value)]
            kind = "boolean" if operator == "Bool" else "stringList" if is_list else "string"
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
