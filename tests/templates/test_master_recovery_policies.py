"""What masters may do when they take over from an instance that has ended, and with an authority of the user's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

ARN = "arn:aws:secretsmanager:us-west-2:123456789012:secret:ca-AbCdEf"
OWN = {"certificateAuthority": {"secret": ARN}}


def statements(templates: Any, role: str = "Master", **configuration: Any) -> dict[str, dict[str, Any]]:
    document = templates(configuration).properties(f"{role}Role")["Policies"][0]["PolicyDocument"]
    return {each["Sid"]: each for each in document["Statement"]}


def actions(found: dict[str, dict[str, Any]]) -> set[str]:
    return {action for each in found.values() for action in each["Action"]}


def test_volumes_are_detached_only_where_masters_and_their_volumes_bear_the_clusters_tag(
    templates: Any,
) -> None:
    found = [statement for statement in statements(templates).values() if "ec2:DetachVolume" in statement["Action"]]
    assert [each["Condition"] for each in found] == [
        {
            "StringEquals": {
                "aws:ResourceTag/KubernetesCluster": "kubernetes",
                "aws:ResourceTag/k8s.io/role/master": "1",
            }
        }
    ]
    assert "ec2:DescribeInstances" in actions(statements(templates))
    assert "ec2:DetachVolume" not in actions(statements(templates, "Node"))


def test_own_authority_is_read_by_masters_alone_and_decrypted_through_secrets_manager_alone(
    templates: Any,
) -> None:
    found = statements(templates, **OWN)
    assert found["OwnAuthority"]["Action"] == ["secretsmanager:GetSecretValue"]
    assert found["OwnAuthority"]["Resource"] == [ARN]
    assert found["OwnAuthorityKey"]["Action"] == ["kms:Decrypt"]
    condition = found["OwnAuthorityKey"]["Condition"]["StringEquals"]
    assert condition["kms:EncryptionContext:SecretARN"] == ARN
    assert "secretsmanager" in json.dumps(condition["kms:ViaService"])
    assert not [sid for sid in statements(templates, "Node", **OWN) if sid.startswith("OwnAuth")]


@pytest.mark.parametrize("role", ["Master", "Node"])
def test_without_one_nothing_is_allowed(templates: Any, role: str) -> None:
    assert not [sid for sid in statements(templates, role) if sid.startswith("OwnAuthority")]
