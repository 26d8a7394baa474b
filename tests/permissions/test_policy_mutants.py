"""Every statement and every condition of a policy is there for a call that it allows, or for one that it stops.

A policy without one action of a statement of instances or pods, without one statement of others, or without one key of
a condition must make a difference in some cluster: a call of `calls.json` is no longer allowed, or one that must not be
allowed is. Those are its rows of refused calls, and each call made about another cluster of the account and VPC, whose
name begins with this one's. What makes no difference has a reason here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from account_resources import ACCOUNT
from call_table import Caller, all_resources, callers, calls_of, clusters, is_allowed, names_action, rows_of

from cfngen.permissions.explanations import section_of
from cfngen.permissions.grants import boundary, role_grants, scope_of

Statement = Mapping[str, Any]
NO_TAGS = "the action has no condition key for tags, and the ARN no name of the cluster"
ANY_KEY = "a printed policy does not know the key; Secrets Manager asks for the secret, too, which is refused"
GIVES_AWAY = "what is given away is the cluster's own; nothing of the other cluster changes"
CUT = "CloudFormation cuts long names of stacks in those of roles and buckets, and both then begin alike"
UNKNOWN_TABLE = (
    "a printed policy does not know the route table that another stack names; the role that is made names it"
)
RANDOM_PROVIDER = "the provider's name is that of a distribution, which is random; what has another cluster's tag stays"
ONE_FOR_A_URL = "an account has one provider for a URL, which all its clusters share"
# What is allowed about another cluster, with the reason why it is not kept apart.
NOT_KEPT_APART: Mapping[tuple[str, str], str] = {
    **{("another cluster's key of secrets", f"kms:{action}"): ANY_KEY for action in ("Decrypt", "GenerateDataKey")},
    **{
        ("another cluster's origin access control", f"cloudfront:{action}OriginAccessControl"): NO_TAGS
        for action in ("Get", "Delete")
    },
    ("another cluster's instance", "ssm:UpdateInstanceInformation"): NO_TAGS,
    ("another cluster's listener rule", "elasticloadbalancing:SetRulePriorities"): NO_TAGS,
    ("another cluster's OIDC provider", "iam:GetOpenIDConnectProvider"): RANDOM_PROVIDER,
    ("another cluster's new OIDC provider", "iam:CreateOpenIDConnectProvider"): RANDOM_PROVIDER,
    ("another cluster's new OIDC provider", "iam:TagOpenIDConnectProvider"): RANDOM_PROVIDER,
    ("another cluster's OIDC provider of who pushes", "iam:GetOpenIDConnectProvider"): ONE_FOR_A_URL,
    ("another cluster's tag on repository", "ecr:TagResource"): GIVES_AWAY,
    ("another cluster's tag on classic load balancer", "elasticloadbalancing:AddTags"): GIVES_AWAY,
    ("another cluster's tag on target group", "elasticloadbalancing:AddTags"): GIVES_AWAY,
    ("another cluster's tag on new load balancer of the API", "elasticloadbalancing:CreateLoadBalancer"): GIVES_AWAY,
    ("another cluster's role of instances", "iam:GetRole"): CUT,
    ("another cluster's role of instances", "iam:PassRole"): CUT,
    ("another cluster's role of the flow log", "iam:GetRole"): CUT,
    ("another cluster's role of who pushes", "iam:GetRole"): CUT,
    ("another cluster's request to restore", "s3:GetObject"): CUT,
    **{
        ("another cluster's bucket of snapshots", f"s3:{action}"): CUT
        for action in ("CreateBucket", "ListBucket", "PutBucketPolicy")
    },
    **{("another cluster's route table", f"ec2:{action}Route"): UNKNOWN_TABLE for action in ("Create", "Delete")},
}
BY_ARN = "IAM's documentation asks for both; the ARN of the role names the service as well"
BY_NAME = "the name says whose it is, as long as CloudFormation need not cut the name of the stack in it"
# Conditions without which everything in the table is decided alike, by section and id, with the reason.
MAKE_NO_DIFFERENCE: Mapping[tuple[str, str, str], str] = {
    **{
        ("roles", f"{component}ServiceLinkedRole", "StringEquals iam:AWSServiceName"): BY_ARN
        for component in ("CloudController", "LoadBalancers")
    },
    **{
        ("execution", sid, "StringLikeIfExists aws:ResourceTag/KubernetesCluster"): BY_NAME
        for sid in ("PodRoles", "BoundPodRoles")
    },
    **{
        ("operators", sid, "StringLike aws:ResourceTag/KubernetesCluster"): BY_NAME
        for sid in ("ReplaceMasters", "SetSizes", "KeepSizes")
    },
}


class Mutant(NamedTuple):
    """A policy without one thing.

    Attributes:
        lost: the action, statement or condition that it is without.
        statements: what is left.
        actions: the actions, perhaps with asterisks, about which it may decide otherwise.
    """

    lost: str
    statements: Sequence[Statement]
    actions: Sequence[str]


def mutants(statements: Sequence[Statement], position: int, *, by_action: bool) -> Iterator[Mutant]:
    """Yield the policies without a part of one statement."""
    statement = statements[position]
    others = [*statements[:position], *statements[position + 1 :]]
    actions = statement["Action"]
    if by_action:
        for action in actions:
            rest = [{**statement, "Action": [each for each in actions if each != action]}] if len(actions) > 1 else []
            yield Mutant(action, [*others, *rest], [action])
    else:
        yield Mutant("statement", others, actions)
    for operator, values in statement.get("Condition", {}).items():
        for key in values:
            condition = {
                name: {each: value for each, value in block.items() if (name, each) != (operator, key)}
                for name, block in statement["Condition"].items()
            }
            weaker = {**statement, "Condition": {name: block for name, block in condition.items() if block}}
            yield Mutant(f"{operator} {key}", [*others, weaker], actions)


def makes_a_difference(caller: Caller, mutant: Mutant) -> bool:
    """Whether a call of the table is refused without what is lost, or one is allowed that must not be."""
    needed = (call for _, call in caller.calls if names_action(mutant.actions, call.action))
    forbidden = (call for _, call in caller.refused if names_action(mutant.actions, call.action))
    return any(not is_allowed(mutant.statements, call) for call in needed) or any(
        is_allowed(mutant.statements, call) and not is_allowed(caller.statements, call) for call in forbidden
    )


def test_what_must_not_be_allowed_is_refused() -> None:
    allowed = {
        (caller.name.partition("-")[0], reason, call.action)
        for caller in callers()
        for reason, call in caller.refused
        if is_allowed(caller.statements, call)
    }
    assert {each for each in allowed if each[1:] not in NOT_KEPT_APART} == set()
    assert {each[1:] for each in allowed} == NOT_KEPT_APART.keys()


def test_nothing_can_be_taken_out_of_a_policy_unnoticed() -> None:
    unnoticed: dict[tuple[str, str, str], tuple[str, str]] = {}
    noticed = set()
    for caller in callers():
        section = section_of(caller.name)
        for position, statement in enumerate(caller.statements):
            if statement["Sid"].startswith("ClusterFile"):
                continue
            for mutant in mutants(caller.statements, position, by_action=section == "roles"):
                part = (section, statement["Sid"], mutant.lost)
                if part not in noticed and makes_a_difference(caller, mutant):
                    noticed.add(part)
                    unnoticed.pop(part, None)
                elif part not in noticed:
                    unnoticed[part] = (caller.cluster, caller.name)
    assert {part: where for part, where in unnoticed.items() if part not in MAKE_NO_DIFFERENCE} == {}
    assert unnoticed.keys() == MAKE_NO_DIFFERENCE.keys()


def test_nothing_can_be_taken_out_of_a_boundary_unnoticed() -> None:
    """Under the boundary of a cluster each role may make its calls, and not without any statement of the boundary."""
    decided = []
    for name, cluster in clusters().items():
        scope = scope_of(cluster, account=ACCOUNT)
        statements = boundary(cluster, scope).statements
        if statements in decided:
            continue
        decided.append(statements)
        found = all_resources(cluster, cluster.name)
        roles = role_grants(cluster, scope)
        calls = [call for role in roles for _, row in rows_of(cluster, role) for call in calls_of(row, cluster, found)]
        assert [call for call in calls if not is_allowed(statements, call)] == [], name
        own = [statement["Sid"] for statement in statements if statement["Sid"].startswith("ClusterFile")]
        noticed = [
            statement["Sid"]
            for statement in statements
            if any(not is_allowed([other for other in statements if other is not statement], call) for call in calls)
        ]
        assert [*noticed, *own] == [statement["Sid"] for statement in statements], name
    assert decided
