"""The roles that the templates make allow what the printed policies allow: statement by statement, with conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from clusters import CASES, golden, templates_of

from cfngen.cluster.iam.existing_roles import has_own_role
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.identity_ids import PushRoleId, ServiceAccountRoleId
from cfngen.cluster.naming.logical_ids import node_group_prefix
from cfngen.permissions.differences import statements_by_role
from cfngen.permissions.grants import role_grants, scope_of
from cfngen.permissions.scope import Scope
from cfngen.permissions.service_accounts import grantee_name, made_roles
from cfngen.permissions.statements import policy_document
from cfngen.templates import iam

ACCOUNT = "123456789012"
CASE_NAMES = sorted(path.parent.name for path in CASES.glob("*/cluster.yaml"))
# Their roles are not in the stack for IAM alone.
WITH_OTHER_STACKS = ("extra-policies", "flow-logs-cloudwatch", "own-permissions", "registry")


def printed_values(cluster: Cluster, scope: Scope) -> Mapping[str, str | list[str]]:
    """What printed policies have in place of each parameter."""
    return {
        "CaSecretArn": scope.ca_secret_arn,
        "JoinSecretArn": scope.join_secret_arn,
        "SecretsKeyArn": scope.secrets_key_arn,
        "BackupBucketName": scope.backup_bucket_name,
        "IssuerBucketName": scope.issuer_bucket_names,
        "ClusterStackName": scope.root_stack_name,
        "NodeSecurityGroupId": scope.node_security_group_id,
        "VpcId": scope.vpc_id,
        "RouteTableId": scope.route_table_id,
        "AWS::Partition": scope.partition,
        "AWS::Region": scope.region,
        "AWS::AccountId": scope.account,
    }


def resolved(value: Any, scope: Scope, values: Mapping[str, str | list[str]]) -> Any:
    """A value of a template with what printed policies have in place of references."""
    if isinstance(value, list):
        items = [resolved(each, scope, values) for each in value]
        # A log group has an ARN, and its pattern is one of several.
        return [part for each in items for part in (each if isinstance(each, list) else [each])]
    if not isinstance(value, dict):
        return value
    # The instances of a node group signal its stack; a printed policy does not know which form is deployed.
    if value == {"Ref": "AWS::StackId"}:
        return scope.node_stack_arns
    if value.keys() == {"Ref"}:
        return values[value["Ref"]]
    if value == {"Fn::GetAtt": ["FlowLogGroup", "Arn"]}:
        return scope.log_group_arns
    if value.keys() == {"Fn::Join"}:
        separator, parts = value["Fn::Join"]
        return separator.join(parts)
    if value.keys() == {"Fn::Sub"}:
        return substituted(value["Fn::Sub"], scope, values)
    return {key: resolved(each, scope, values) for key, each in value.items()}


def substituted(text: str, scope: Scope, values: Mapping[str, str | list[str]]) -> str | list[str]:
    """A text of `Fn::Sub` with the printed values: several texts if the value of a name in it is one of several."""
    if "${NodeStackNames}" in text:
        return scope.node_stack_arns
    names = [name for name in re.findall(r"\$\{([\w:]+)\}", text) if name in values]
    lists = [value if isinstance(value, list) else [value] for value in (values[name] for name in names)]
    texts = []
    for each in product(*lists):
        replaced = text
        for name, value in zip(names, each, strict=True):
            replaced = replaced.replace(f"${{{name}}}", value)
        texts.append(scope.substitute(replaced))
    return texts if len(texts) > 1 else texts[0]


def made_statements(bodies: list[Mapping[str, Any]]) -> Mapping[str, list[Any]]:
    """The statements of each role of templates, by logical id: of its own policy, then of its managed ones."""
    # The policy that keeps statements for the time of an update repeats what the role's own policy has.
    return statements_by_role(
        {"Resources": {name: each for name, each in body["Resources"].items() if name != "CloudControllerPolicy"}}
        for body in bodies
    )


def roles_of_grants(cluster: Cluster, scope: Scope) -> dict[str, str]:
    """The logical id of the role of each grantee."""
    roles = {"master": "MasterRole", "flow-log": "FlowLogRole"}
    for group in cluster.node_groups:
        roles[f"nodes-{group.name}"] = f"{node_group_prefix(group.name) if has_own_role(group) else 'Node'}Role"
    for push in cluster.registry.push:
        roles[f"push-{push.name}"] = str(PushRoleId(push.name))
    for made in made_roles(cluster, scope):
        account = made.account
        roles[grantee_name(cluster, account)] = str(ServiceAccountRoleId.of(*account, account.digest))
    return roles


def normal(statements: Any) -> list[Any]:
    unique = [each for index, each in enumerate(statements) if each not in statements[:index]]
    in_order = sorted(policy_document(unique)["Statement"], key=lambda statement: str(statement["Sid"]))
    return [ordered(statement) for statement in in_order]


def ordered(value: Any) -> Any:
    """A statement whose lists have an order: what they hold counts, and not where."""
    if isinstance(value, dict):
        return {key: ordered(each) for key, each in value.items()}
    return sorted(value) if isinstance(value, list) else value


@pytest.mark.parametrize("case", CASE_NAMES)
def test_made_roles_have_the_printed_statements(case: str) -> None:
    cluster = golden(case)
    scope = scope_of(cluster, account=ACCOUNT)
    if case in WITH_OTHER_STACKS:
        bodies = [each.body for each in templates_of(cluster) if each.name not in ("standalone", "cluster")]
    else:
        stack = iam.build(cluster)
        bodies = [stack.document().body] if stack else []
    values = printed_values(cluster, scope)
    made = made_statements(bodies)
    roles = roles_of_grants(cluster, scope)
    compared = set()
    for grant in role_grants(cluster, scope):
        if roles[grant.name] in made:
            printed = normal(list(grant.statements))
            assert normal([resolved(each, scope, values) for each in made[roles[grant.name]]]) == printed, grant.name
            compared.add(roles[grant.name])
    with_statements = {role for role, statements in made.items() if statements}
    assert compared == with_statements
