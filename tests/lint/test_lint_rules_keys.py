"""cfngen's rule about placeholders in keys, where CloudFormation replaces nothing."""

from __future__ import annotations

from typing import Any

import pytest

TRUST = ("Resources", "Role", "Properties", "AssumeRolePolicyDocument")


def role(trust: Any) -> dict[str, Any]:
    return {"Resources": {"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust}}}}


def statement(key: str) -> dict[str, Any]:
    condition = {"StringEquals": {key: "system:serviceaccount:shop:web"}}
    principal = {"Federated": "arn:aws:iam::123456789012:oidc-provider/example.com"}
    action = "sts:AssumeRoleWithWebIdentity"
    return {"Statement": [{"Effect": "Allow", "Principal": principal, "Action": action, "Condition": condition}]}


@pytest.mark.parametrize(
    ("trust", "paths"),
    [
        (statement("example.com:sub"), []),
        # A document as one text, in which CloudFormation replaces the placeholder.
        ({"Fn::Sub": '{"Statement":[{"Condition":{"StringEquals":{"${AWS::Region}:sub":"a"}}}]}'}, []),
        (
            statement("${Issuer}:sub"),
            [(*TRUST, "Statement", 0, "Condition", "StringEquals", "${Issuer}:sub")],
        ),
    ],
)
def test_keys_with_placeholders(reported_paths: Any, trust: Any, paths: list[tuple[str | int, ...]]) -> None:
    assert reported_paths("E9024", role(trust)) == paths


def test_a_key_outside_of_resources(reported_paths: Any) -> None:
    template = {**role(statement("example.com:sub")), "Mappings": {"${Name}": {"a": {"b": "c"}}}}
    assert reported_paths("E9024", template) == [("Mappings", "${Name}")]
