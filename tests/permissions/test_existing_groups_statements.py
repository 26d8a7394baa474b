"""The nodes' existing security group in policies: who may change its rules."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.permissions.grants import grants, scope_of

GROUP = "sg-0123456789abcdef0"
FILE: dict[str, Any] = {
    "network": {
        "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
        "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/24"}],
        "serviceCidr": "10.250.0.0/16",
    }
}


def statements(grantee: str, **groups: str) -> dict[str, Any]:
    cluster = parse({"network": {**FILE["network"], "securityGroups": groups}})
    [grant] = [grant for grant in grants(cluster, scope_of(cluster, account="123456789012")) if grant.name == grantee]
    return {str(statement["Sid"]): dict(statement) for statement in grant.statements}


def test_the_cloud_controller_may_change_rules_of_the_nodes_group_while_it_has_the_clusters_tag() -> None:
    statement = statements("master", nodes=GROUP)["CloudControllerExistingGroup"]
    assert set(statement["Action"]) == {"ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"}
    assert statement["Resource"] == [f"arn:aws:ec2:us-west-2:123456789012:security-group/{GROUP}"]
    assert statement["Condition"] == {"Null": {"aws:ResourceTag/kubernetes.io/cluster/kubernetes": "false"}}


def test_a_deletion_may_take_those_rules_out_again() -> None:
    statement = statements("operator", nodes=GROUP)["RevokeInExistingGroup"]
    assert f"arn:aws:ec2:us-west-2:123456789012:security-group/{GROUP}" in statement["Resource"]


@pytest.mark.parametrize("groups", [{}, {"masters": GROUP}])
def test_other_clusters_need_none_of_it(groups: dict[str, str]) -> None:
    assert "CloudControllerExistingGroup" not in statements("master", **groups)
    assert "RevokeInExistingGroup" not in statements("operator", **groups)
