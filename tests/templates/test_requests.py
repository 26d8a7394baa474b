"""Requests that masters, nodes and what runs on them make: which statement lets each through, and what it rests on.

A row is one request as the component makes it: ARN and condition keys are those that the Service Authorization
Reference lists for the action. The statement of that name must allow it; with another tag, key or resource, or without
one of what it rests on, nothing must.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from policy_decisions import allows
from requests_of_roles import ACCOUNT, CLUSTERS, EBS_KEY, GROUP, MASTERS, NEW, OURS, REGION, ROWS, M, N, Request

from cfngen.cluster.load import parse
from cfngen.templates import generate

PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::StackName": "blue",
    "AWS::URLSuffix": "amazonaws.com",
}


def resolved(value: Any) -> Any:
    """An expression with the account's names; a resource is called as its logical id is."""
    if isinstance(value, list):
        return [resolved(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Ref"}:
        return PSEUDO.get(value["Ref"], value["Ref"])
    if set(value) == {"Fn::GetAtt"}:
        return ".".join(value["Fn::GetAtt"])
    if set(value) == {"Fn::Sub"}:
        text, names = value["Fn::Sub"] if isinstance(value["Fn::Sub"], list) else (value["Fn::Sub"], {})
        names = {**PSEUDO, **{key: resolved(inner) for key, inner in names.items()}}
        return re.sub(r"\$\{([^}]+)\}", lambda match: str(names.get(match[1], match[1])), text)
    return {key: resolved(inner) for key, inner in value.items()}


Statements = dict[tuple[str, str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def statements() -> Statements:
    """What each role of each cluster may do, by the policies that are on it."""
    found: Statements = {}
    for cluster, configuration in CLUSTERS.items():
        bodies = {document.name: document.body for document in generate(parse(configuration))}
        resources = bodies["standalone"]["Resources"]
        for role in (M, N):
            policies = [policy["PolicyDocument"] for policy in resources[role]["Properties"]["Policies"]]
            policies += [
                resource["Properties"]["PolicyDocument"]
                for resource in resources.values()
                if resource["Type"] == "AWS::IAM::ManagedPolicy" and {"Ref": role} in resource["Properties"]["Roles"]
            ]
            assert {policy["Version"] for policy in policies} == {"2012-10-17"}
            found[cluster, role] = [resolved(statement) for policy in policies for statement in policy["Statement"]]
    return found


def listed(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def arn(resource: str) -> str:
    """EC2's resources are written by their last part."""
    kinds = "instance|network-interface|route-table|security-group|subnet|volume|vpc"
    return f"arn:aws:ec2:{REGION}:{ACCOUNT}:{resource}" if re.match(rf"({kinds})/", resource) else resource


def letting(statements: list[dict[str, Any]], action: str, resource: str, context: Mapping[str, Any]) -> list[str]:
    """The statements that let a request through."""
    return [
        statement["Sid"]
        for statement in statements
        if allows([{"Statement": statement}], action, arn(resource), context)
    ]


def spoilt(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """The request about other resources, and without or with another value of each key that it rests on."""
    for resource in request.others:
        yield resource, dict(request.context)
    for key, value in request.context.items():
        without = {name: inner for name, inner in request.context.items() if name != key}
        if key != "aws:TagKeys" and (key not in NEW or "aws:TagKeys" not in request.context):
            yield request.resource, without
        # What counts is that EC2 changes this attribute; S3 takes one value only.
        if not key.startswith("ec2:Attribute/") and key != "s3:if-none-match":
            another = "false" if value == "true" else f"other-{value}"
            yield request.resource, {**without, key: [*value, "other"] if isinstance(value, list) else another}


@pytest.mark.parametrize(("cluster", "role"), sorted({(cluster, request.role) for cluster, request in ROWS}))
def test_a_request_is_let_through_by_its_statement_and_on_its_conditions_only(
    statements: Statements, cluster: str, role: str
) -> None:
    own = statements[cluster, role]
    rows = [request for name, request in ROWS if (name, request.role) == (cluster, role)]
    assert [row for row in rows if row.sid not in letting(own, row.action, row.resource, row.context)] == []
    assert [(row.sid, case) for row in rows for case in spoilt(row) if letting(own, row.action, *case)] == []


def test_every_statement_lets_a_request_of_these_rows_through(statements: Statements) -> None:
    used = {(request.role, request.sid) for _, request in ROWS}
    for (_, role), own in statements.items():
        assert {(role, statement["Sid"]) for statement in own} <= used


# What nodes must not do with what is the masters', in the cluster's own account and under its own tag.
@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("autoscaling:CompleteLifecycleAction", GROUP),
        ("ec2:DeleteNetworkInterface", "network-interface/eni-0"),
        ("ec2:DetachNetworkInterface", "network-interface/eni-0"),
    ],
)
def test_nodes_leave_what_is_the_masters_alone(statements: Statements, action: str, resource: str) -> None:
    assert letting(statements["full", N], action, resource, OURS)
    assert letting(statements["full", N], action, resource, {**OURS, **MASTERS}) == []


def test_the_controller_leaves_the_tag_of_the_cluster_where_it_is(statements: Statements) -> None:
    """Every other permission rests on it."""
    own, about = statements["full", M], ("ec2:CreateTags", "security-group/sg-0")
    assert letting(own, *about, OURS) == ["LoadBalancersTagOwnGroups"]
    assert letting(own, *about, {**OURS, **NEW}) == []


def test_in_china_keys_work_through_services_of_either_domain() -> None:
    bodies = {document.name: document.body for document in generate(parse({"name": "blue", "region": "cn-north-1"}))}
    policy = bodies["standalone"]["Resources"]["MasterRole"]["Properties"]["Policies"][0]["PolicyDocument"]
    own = [{**resolved(statement), "Resource": "*"} for statement in policy["Statement"]]
    for domain in ("amazonaws.com", "amazonaws.com.cn"):
        assert letting(own, "kms:Decrypt", EBS_KEY, {"kms:ViaService": f"ec2.{REGION}.{domain}"}) == ["DataVolumeKey"]
    assert not letting(own, "kms:Decrypt", EBS_KEY, {"kms:ViaService": f"ec2.{REGION}.example.com"})
