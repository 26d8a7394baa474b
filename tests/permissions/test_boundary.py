"""The permissions boundary that is printed: the cluster's roles fit under it, and no way to more rights does."""

from __future__ import annotations

from typing import Any

import pytest
from clusters import CASES, golden

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.permissions.grants import BoundaryTooLargeError, boundary, grants, role_grants, scope_of
from cfngen.permissions.statements import Statement
from cfngen.sandbox.services.authorization import decision

ACCOUNT = "123456789012"
CASE_NAMES = sorted(path.parent.name for path in CASES.glob("*/cluster.yaml"))
ON = {"enabled": True}
ZONES = ["Z0123456789ABCDEFGHIJ"]
EVERYTHING: dict[str, Any] = {
    "name": "a-cluster-of-28-letters-long",
    "network": {"plugin": "amazon-vpc", "flowLogs": {"destination": "cloudWatchLogs"}},
    "serviceAccountIssuer": {"discovery": "bucket"},
    "addons": {
        "clusterAutoscaler": ON,
        "awsLoadBalancerController": ON,
        "externalDns": {**ON, "zones": ZONES},
        "certManager": {**ON, "zones": ZONES},
    },
}
# Each is a step to rights that the role does not have.
ESCALATIONS = (
    *("iam:AddRoleToInstanceProfile", "iam:AttachRolePolicy", "iam:CreateAccessKey", "iam:CreateInstanceProfile"),
    *("iam:CreateLoginProfile", "iam:CreatePolicyVersion", "iam:CreateRole", "iam:CreateUser", "iam:PassRole"),
    *("iam:DeleteRolePermissionsBoundary", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"),
    *("iam:PutUserPolicy", "iam:SetDefaultPolicyVersion", "iam:UpdateAssumeRolePolicy", "sts:AssumeRole"),
    *("cloudformation:CreateChangeSet", "cloudformation:ExecuteChangeSet", "cloudformation:UpdateStack"),
    *("ec2:AssociateIamInstanceProfile", "ec2:CreateLaunchTemplateVersion", "ec2:RunInstances"),
    *("autoscaling:UpdateAutoScalingGroup", "lambda:CreateFunction", "ssm:SendCommand", "ssm:StartSession"),
    *("kms:PutKeyPolicy", "s3:PutBucketPolicy", "secretsmanager:PutResourcePolicy", "organizations:LeaveOrganization"),
)


def document_of(cluster: Cluster) -> dict[str, Any]:
    [policy] = boundary(cluster, scope_of(cluster, account=ACCOUNT)).policies
    return dict(policy.document)


def is_inside(statement: Statement, document: dict[str, Any]) -> bool:
    """Whether a boundary allows all of a statement: with patterns as they are, and under no further condition."""
    if statement["Sid"].startswith("ClusterFile"):
        own = {key: value for key, value in statement.items() if key not in ("Sid", "Action", "Resource")}
        own |= {"Action": sorted(set(statement["Action"]))}
        own |= {"Resource": statement["Resource"][0] if len(statement["Resource"]) == 1 else statement["Resource"]}
        return own in [{key: value for key, value in each.items() if key != "Sid"} for each in document["Statement"]]
    return all(
        decision([document], action, str(resource), {}) == "allowed"
        for action in statement["Action"]
        for resource in statement["Resource"]
    )


@pytest.mark.parametrize("case", CASE_NAMES)
def test_the_roles_of_every_golden_cluster_fit_under_its_boundary(case: str) -> None:
    cluster = golden(case)
    document = document_of(cluster)
    for grant in role_grants(cluster, scope_of(cluster, account=ACCOUNT)):
        outside = [
            statement["Sid"]
            for statement in grant.statements
            if statement["Effect"] == "Allow" and not is_inside(statement, document)
        ]
        assert outside == [], grant.name


@pytest.mark.parametrize("configuration", [{}, EVERYTHING], ids=["default", "everything"])
@pytest.mark.parametrize("action", ESCALATIONS)
def test_ways_to_more_rights_are_outside(action: str, configuration: dict[str, Any]) -> None:
    name = configuration.get("name", "kubernetes")
    for resource in (
        "*",
        f"arn:aws:iam::{ACCOUNT}:role/{name}-IamStack-1AB-MasterRole-2CD",
        f"arn:aws:cloudformation:us-west-2:{ACCOUNT}:stack/{name}/1-2",
        f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:CaSecret-AbCdEf",
    ):
        assert decision([document_of(parse(configuration))], action, resource, {}) == "implicitDeny"


def test_services_that_hold_data_are_bound_to_the_clusters_objects() -> None:
    document = document_of(parse({}))
    for action, inside, outside in (
        ("s3:PutObject", "kubernetes-secretsstack-1-backupbucket-2/kubernetes/etcd/hourly/a", "payroll/a"),
        ("s3:GetObject", "kubernetes-secretsstack-1-backupbucket-2/kubernetes/etcd/hourly/a", "payroll/a"),
    ):
        assert decision([document], action, f"arn:aws:s3:::{inside}", {}) == "allowed"
        assert decision([document], action, f"arn:aws:s3:::{outside}", {}) == "implicitDeny"


def test_a_denial_of_the_cluster_file_takes_nothing_from_the_boundary() -> None:
    assert {statement["Effect"] for statement in document_of(golden("own-permissions"))["Statement"]} == {"Allow"}


def test_a_boundary_that_no_policy_holds_is_refused() -> None:
    statement = {"actions": ["s3:GetObject"], "resources": [f"arn:aws:s3:::{'b' * 60}{number}" for number in range(40)]}
    groups = [{"name": name, "policyStatements": [statement]} for name in ("a", "b")]
    groups[1]["policyStatements"] = [{**statement, "actions": ["s3:PutObject"]}]
    cluster = parse({"nodeGroups": groups})
    with pytest.raises(BoundaryTooLargeError, match="is one managed policy of at most 6,144"):
        boundary(cluster, scope_of(cluster))


@pytest.mark.parametrize("name", ["roles-of-clusters", "kubernetes-NodeBoundary", "kubernetes-IamStack-boundary"])
def test_the_service_role_cannot_change_the_boundary(name: str) -> None:
    arn = f"arn:aws:iam::{ACCOUNT}:policy/{name}"
    cluster = parse({"iam": {"permissionsBoundary": arn}})
    [execution] = [each for each in grants(cluster, scope_of(cluster, account=ACCOUNT)) if each.name == "execution"]
    documents = [dict(policy.document) for policy in execution.policies]
    for action in ("CreatePolicy", "CreatePolicyVersion", "DeletePolicy", "DeletePolicyVersion"):
        assert decision(documents, f"iam:{action}", arn, {}) != "allowed"
    role = f"arn:aws:iam::{ACCOUNT}:role/kubernetes-IamStack-1AB-MasterRole-2CD"
    for action in ("iam:DeleteRolePermissionsBoundary", "iam:CreateRole", "iam:PutRolePolicy"):
        assert decision(documents, action, role, {}) == "implicitDeny"
