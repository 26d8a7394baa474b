"""What operators and CloudFormation may do for clusters whose roles or key exist."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from clusters import golden

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.permissions.grants import grants, scope_of
from cfngen.permissions.statements import Statement
from cfngen.permissions.trust import trust_policy

ACCOUNT = "123456789012"
OWN = f"arn:aws:iam::{ACCOUNT}"


def statements(cluster: Cluster, grantee: str) -> list[Statement]:
    scope = scope_of(cluster, account=ACCOUNT)
    return [
        statement
        for grant in grants(cluster, scope)
        if grant.name == grantee
        for policy in grant.policies
        for statement in policy.document["Statement"]  # type: ignore[attr-defined]
    ]


def resources_by_action(found: Iterable[Any], service: str) -> dict[str, set[str]]:
    """The resources on which each action of a service is allowed."""
    resources: dict[str, set[str]] = {}
    for statement in found:
        listed = statement["Resource"]
        for action in statement["Action"]:
            if action.startswith(service):
                resources.setdefault(action, set()).update([listed] if isinstance(listed, str) else listed)
    return resources


def test_without_anything_of_iam_only_the_roles_are_passed() -> None:
    cluster = golden("own-instance-profiles")
    roles = {f"{OWN}:role/kubernetes-masters", f"{OWN}:role/kubernetes-nodes"}
    execution = resources_by_action(statements(cluster, "execution"), "iam:")
    assert execution.pop("iam:CreateServiceLinkedRole")
    assert execution == {"iam:PassRole": roles}
    operator = resources_by_action(statements(cluster, "operator"), "iam:")
    assert operator["iam:GetRole"] == operator["iam:SimulatePrincipalPolicy"] == roles
    assert operator["iam:GetInstanceProfile"] == {arn.replace(":role/", ":instance-profile/") for arn in roles}
    assert "iam:GetRolePolicy" not in operator


def with_flow_logs(flow_logs: dict[str, str], *, instance_profiles: bool = True) -> Cluster:
    """Return a cluster whose instances have existing roles, with flow logs."""
    existing = {
        instances: {
            "role": f"{OWN}:role/{instances}",
            **({"instanceProfile": f"{OWN}:instance-profile/{instances}"} if instance_profiles else {}),
        }
        for instances in ("masters", "nodes")
    }
    return parse({"iam": existing, "network": {"flowLogs": flow_logs}})


def test_the_role_that_delivers_flow_logs_is_made_though_those_of_instances_exist() -> None:
    cluster = with_flow_logs({"destination": "cloudWatchLogs", "traffic": "reject"})
    roles = {f"{OWN}:role/{instances}" for instances in ("masters", "nodes")}
    execution = resources_by_action(statements(cluster, "execution"), "iam:")
    made = execution["iam:CreateRole"]
    assert [arn for arn in made if arn.startswith(f"{OWN}:role/")] == list(made)
    for action in ("DeleteRole", "DeleteRolePolicy", "PutRolePermissionsBoundary", "PutRolePolicy", "TagRole"):
        assert execution[f"iam:{action}"] == made
    assert execution["iam:PassRole"] == roles | made
    assert not [action for action in execution if "InstanceProfile" in action or action.startswith("iam:CreatePolicy")]
    # Drift detection reads it.
    operator = resources_by_action(statements(cluster, "operator"), "iam:")
    assert operator["iam:GetRolePolicy"] == made
    assert operator["iam:GetRole"] == roles | made
    assert operator["iam:SimulatePrincipalPolicy"] == roles


def test_instance_profiles_and_the_role_that_delivers_flow_logs_are_made() -> None:
    cluster = with_flow_logs({"destination": "cloudWatchLogs"}, instance_profiles=False)
    execution = resources_by_action(statements(cluster, "execution"), "iam:")
    assert any(":instance-profile/" in arn for arn in execution["iam:CreateInstanceProfile"])
    assert any(":role/" in arn for arn in execution["iam:CreateRole"])
    assert "iam:GetInstanceProfile" in resources_by_action(statements(cluster, "operator"), "iam:")


def test_flow_logs_in_a_bucket_need_no_role() -> None:
    execution = statements(with_flow_logs({"destination": "s3", "bucket": "example-flow-logs"}), "execution")
    assert set(resources_by_action(execution, "iam:")) == {"iam:CreateServiceLinkedRole", "iam:PassRole"}


def test_profiles_of_existing_roles_are_made_but_no_roles() -> None:
    execution = resources_by_action(statements(golden("own-roles"), "execution"), "iam:")
    assert not any("Role" in action and "Policy" in action for action in execution)
    assert {"iam:CreateRole", "iam:DeleteRole", "iam:TagRole", "iam:UpdateAssumeRolePolicy"}.isdisjoint(execution)
    assert all(":instance-profile/" in arn for arn in execution["iam:CreateInstanceProfile"])
    assert execution["iam:PassRole"] == {
        f"{OWN}:role/{name}" for name in ("kubernetes/masters", "kubernetes/nodes", "batch")
    }


def test_a_cluster_whose_roles_are_made_needs_what_it_needed() -> None:
    execution = resources_by_action(statements(parse({}), "execution"), "iam:")
    assert execution["iam:PassRole"] < execution["iam:CreateRole"]
    assert any("IamStack" in arn for arn in execution["iam:PassRole"])
    # The role that delivers flow logs is not there, and not EC2's.
    assert not [arn for arn in execution["iam:PassRole"] if "FlowLogRole" in arn]
    assert "iam:SimulatePrincipalPolicy" not in resources_by_action(statements(parse({}), "operator"), "iam:")


def test_an_existing_key_is_used_and_never_changed() -> None:
    cluster = golden("own-kms-key")
    key = cluster.secrets.kms_key
    assert set(resources_by_action(statements(cluster, "execution"), "kms:")) == {
        *("kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey*")
    }
    operator = resources_by_action(statements(cluster, "operator"), "kms:")
    assert operator == {action: {key} for action in ("kms:Decrypt", "kms:DescribeKey", "kms:GetKeyPolicy")}
    # It has no tag of the cluster.
    conditions = [each.get("Condition", {}) for each in statements(cluster, "operator") if key in str(each["Resource"])]
    assert "ResourceTag" not in str(conditions)
    for grantee in ("master", "nodes-nodes"):
        secrets_keys = [each["Resource"] for each in statements(cluster, grantee) if each["Sid"] == "SecretsKey"]
        assert secrets_keys == [key]


def test_a_key_of_another_account_may_be_used() -> None:
    key = "arn:aws:kms:us-west-2:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    execution = resources_by_action(statements(parse({"secrets": {"kmsKey": key}}), "execution"), "kms:")
    assert key in execution["kms:GenerateDataKey*"]
    assert key not in execution["kms:CreateGrant"]


@pytest.mark.parametrize(
    ("region", "principal"), [("us-west-2", "ec2.amazonaws.com"), ("cn-north-1", "ec2.amazonaws.com.cn")]
)
def test_ec2_is_trusted_in_its_partition(region: str, principal: str) -> None:
    [statement] = trust_policy(region)["Statement"]
    assert statement == {"Effect": "Allow", "Principal": {"Service": principal}, "Action": "sts:AssumeRole"}
