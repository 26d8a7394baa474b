"""Who may make repositories for images, push to them and pull from them."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest
from service_authorization import faults
from test_documented_policies import schema

from cfngen.cluster.load import parse
from cfngen.permissions.grants import boundary, grants, scope_of
from cfngen.permissions.statements import Statement
from cfngen.userdata import egress

ACCOUNT = "123456789012"
REPOSITORIES = f"arn:aws:ecr:us-west-2:{ACCOUNT}:repository"
FILE: dict[str, Any] = {
    "registry": {
        "repositories": [{"name": "shop/web"}, {"name": "base", "existing": True}],
        "push": [
            {"name": "web", "provider": "github", "project": "example/shop", "createProvider": True},
            {"name": "jenkins", "role": "arn:aws:iam::123456789012:role/jenkins", "repositories": ["shop/web"]},
        ],
    }
}


def statements(file: dict[str, Any], grantee: str) -> dict[str, Statement]:
    cluster = parse(file)
    [grant] = [grant for grant in grants(cluster, scope_of(cluster, account=ACCOUNT)) if grant.name == grantee]
    for policy in grant.policies:
        assert policy.characters <= 6_144
        assert faults(policy.document) == []
    return {statement["Sid"]: statement for statement in grant.statements}


@pytest.mark.parametrize("kind", ["AWS::ECR::Repository", "AWS::IAM::OIDCProvider"])
@pytest.mark.parametrize("grantee", ["execution", "operator"])
def test_handlers_may_do_their_work(kind: str, grantee: str) -> None:
    handlers = ("create", "read", "update", "delete") if grantee == "execution" else ("read",)
    permissions = {action for name in handlers for action in schema(kind)["handlers"][name]["permissions"]}
    allowed = {action for statement in statements(FILE, grantee).values() for action in statement["Action"]}
    missing = {action for action in permissions if not any(fnmatch.fnmatchcase(action, pattern) for pattern in allowed)}
    # Images are encrypted with ECR's own keys.
    assert {action for action in missing if not action.startswith("kms:")} == set()


def test_cloudformation_makes_no_other_repository() -> None:
    made = statements(FILE, "execution")["Repositories"]
    assert made["Resource"] == [f"{REPOSITORIES}/shop/web"]
    assert statements(FILE, "operator")["ReadRepositories"]["Resource"] == [
        f"{REPOSITORIES}/shop/web",
        f"{REPOSITORIES}/base",
    ]


def test_who_pushes_does_so_to_the_repositories_of_the_entry_alone() -> None:
    assert statements(FILE, "push-web")["PushImages"]["Resource"] == [
        f"{REPOSITORIES}/shop/web",
        f"{REPOSITORIES}/base",
    ]
    jenkins = statements(FILE, "push-jenkins")
    assert jenkins["PushImages"]["Resource"] == [f"{REPOSITORIES}/shop/web"]
    assert "ecr:PutImage" in jenkins["PushImages"]["Action"]
    deleting = [a for statement in jenkins.values() for a in statement["Action"] if "Delete" in a or "Policy" in a]
    assert deleting == []


@pytest.mark.parametrize("grantee", ["master", "nodes-nodes"])
def test_instances_pull_from_these_repositories_only_if_told_so(grantee: str) -> None:
    file = {**FILE, "nodeGroups": [{"name": "nodes"}]}
    assert statements(file, grantee)["EcrPull"]["Resource"] == ["arn:aws:ecr:*:*:repository/*"]
    only = {**file, "registry": {**FILE["registry"], "only": True}}
    assert statements(only, grantee)["EcrPull"]["Resource"] == [f"{REPOSITORIES}/shop/web", f"{REPOSITORIES}/base"]
    with_plugin = {**only, "network": {"plugin": "amazon-vpc"}}
    assert statements(with_plugin, grantee)["EcrPull"]["Resource"][2:] == ["arn:aws:ecr:*:602401143452:repository/*"]
    nothing = {**file, "registry": {"only": True}}
    assert "EcrPull" not in statements(nothing, grantee)


def test_images_of_charts_in_amazon_ecr_are_in_the_account_that_is_allowed() -> None:
    hosts = {host for hosts in egress.REGISTRIES_BY_RELEASE.values() for host in hosts if ".dkr.ecr." in host}
    assert {host.partition(".")[0] for host in hosts} == {"602401143452"}
    charts = [chart for chart, hosts in egress.REGISTRIES_BY_RELEASE.items() if any(".dkr.ecr." in h for h in hosts)]
    assert charts == ["aws-vpc-cni"]


def test_a_boundary_leaves_room_to_push_and_to_pull() -> None:
    cluster = parse(FILE)
    [policy] = boundary(cluster, scope_of(cluster, account=ACCOUNT)).policies
    actions = {action for statement in policy.document["Statement"] for action in statement["Action"]}  # type: ignore[attr-defined]
    assert {"ecr:PutImage", "ecr:BatchGetImage", "ecr:GetAuthorizationToken"} <= actions


def test_a_cluster_without_a_registry_needs_none_of_it() -> None:
    for grantee in ("execution", "operator"):
        named = [sid for sid in statements({}, grantee) if "Push" in sid or "Repositor" in sid]
        assert named == []
