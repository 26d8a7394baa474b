"""Who may make the issuer of tokens and the roles of pods, and what each role of pods allows."""

from __future__ import annotations

import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from service_authorization import faults
from test_documented_policies import NOT_NEEDED, OF_OTHER_BUCKETS, schema

from cfngen.cluster.iam.service_accounts import ServiceAccount, role_name
from cfngen.cluster.load import load, parse
from cfngen.cluster.model import Cluster
from cfngen.permissions.grants import Grant, grants, scope_of
from cfngen.templates import generate

FOLDER = Path(__file__).parents[1] / "golden" / "cases"
CASES = ("pod-roles", "pod-roles-bucket", "pod-roles-url", "pod-roles-prepared", "pod-roles-moving")
ACCOUNT = "123456789012"
# Of the registry's permissions, what the templates never make CloudFormation do.
OF_OTHER_DISTRIBUTIONS = {
    "cloudfront:CreateConnectionGroup": "for distributions of many tenants",
    "cloudfront:CreateDistributionWithTags": "no action: cloudfront:CreateDistribution and cloudfront:TagResource are",
    "cloudfront:GetConnectionGroup": "for distributions of many tenants",
    "cloudfront:GetVpcOrigin": "the origin is a bucket",
    "cloudfront:ListDistributions": "only to list resources of the type",
    "cloudfront:ListOriginAccessControls": "likewise",
    "cloudfront:UpdateDistributionWithStagingConfig": "there is no staging distribution",
    "iam:ListOpenIDConnectProviders": "only to list resources of the type",
}
NEW_TYPES = ("AWS::CloudFront::", "AWS::IAM::OIDCProvider", "AWS::IAM::Role", "AWS::S3::")


@cache
def cluster_of(case: str) -> Cluster:
    return load(FOLDER / case / "cluster.yaml", environ={}).cluster


def grants_by_name(case: str) -> dict[str, Grant]:
    cluster = cluster_of(case)
    return {grant.name: grant for grant in grants(cluster, scope_of(cluster, account=ACCOUNT))}


def actions(grant: Grant) -> set[str]:
    return {action for statement in grant.statements for action in statement["Action"]}


def by_sid(grant: Grant) -> dict[str, dict[str, Any]]:
    return {statement["Sid"]: dict(statement) for statement in grant.statements}


def kinds(case: str) -> set[str]:
    return {
        resource["Type"]
        for document in generate(cluster_of(case))
        for resource in document.body["Resources"].values()
        if resource["Type"].startswith(NEW_TYPES)
    }


def lacking(case: str, grantee: str, handlers: tuple[str, ...]) -> set[str]:
    """What the handlers of a case's resource types call, and the grantee may not."""
    allowed = actions(grants_by_name(case)[grantee])
    return {
        action
        for kind in kinds(case)
        for name, handler in schema(kind).get("handlers", {}).items()
        if name in handlers
        for action in handler.get("permissions", ())
        if not any(fnmatch.fnmatchcase(action, pattern) for pattern in allowed)
        and action not in OF_OTHER_DISTRIBUTIONS
        and (action not in NOT_NEEDED or action == "s3:DeleteBucketPolicy")
        and not any(fnmatch.fnmatchcase(action, pattern) for pattern in OF_OTHER_BUCKETS)
    }


@pytest.mark.parametrize("case", CASES)
def test_cloudformation_may_make_change_and_delete_what_the_templates_hold(case: str) -> None:
    missing = lacking(case, "execution", ("create", "read", "update", "delete"))
    # The policy of etcd's bucket stays; only a bucket of the issuer's has a policy that is deleted.
    assert missing <= {"s3:DeleteBucketPolicy"}
    assert ("s3:DeleteBucketPolicy" in missing) == (cluster_of(case).service_account_issuer.discovery == "url")


@pytest.mark.parametrize("case", CASES)
def test_who_may_look_may_ask_for_drift(case: str) -> None:
    assert lacking(case, "operator", ("read",)) == set()


@pytest.mark.parametrize("case", CASES)
def test_every_policy_is_sound_and_fits(case: str) -> None:
    for grant in grants_by_name(case).values():
        for policy in grant.policies:
            assert policy.characters <= 6_144, policy.name
            assert faults(policy.document) == [], policy.name


def test_a_cluster_without_an_issuer_of_its_own_needs_none_of_it() -> None:
    cluster = parse({})
    for grant in grants(cluster, scope_of(cluster)):
        assert not grant.name.startswith("pod-")
        assert not [action for action in actions(grant) if "OpenIDConnect" in action or "cloudfront" in action]


def test_roles_of_pods_are_made_by_their_names_and_handed_to_nobody() -> None:
    grant = grants_by_name("pod-roles")["execution"]
    statement = by_sid(grant)["PodRoles"]
    [pattern] = statement["Resource"]
    assert "iam:PassRole" not in statement["Action"]
    cluster = cluster_of("pod-roles-bucket")
    [pattern_of_long_names] = by_sid(grants_by_name("pod-roles-bucket")["execution"])["PodRoles"]["Resource"]
    for made, resource in (
        (role_name(cluster_of("pod-roles"), ServiceAccount("shop", "web")), pattern),
        (role_name(cluster, ServiceAccount("n" * 63, "a" * 253)), pattern_of_long_names),
    ):
        assert len(made) <= 64
        assert fnmatch.fnmatchcase(made, resource.rpartition("/")[2])
    assert not fnmatch.fnmatchcase("shops-eu.us-west-2.shop.web", pattern.rpartition("/")[2])


@pytest.mark.parametrize(
    ("case", "provider"),
    [
        ("pod-roles", "arn:aws:iam::123456789012:oidc-provider/*.cloudfront.net"),
        (
            "pod-roles-bucket",
            "arn:aws-us-gov:iam::123456789012:oidc-provider/agency-*issuerbucket-*.s3.us-gov-west-1.amazonaws.com",
        ),
        ("pod-roles-url", "arn:aws:iam::123456789012:oidc-provider/tokens.example.com/kubernetes/own-issuer"),
    ],
)
def test_the_provider_is_the_issuers_and_changes_only_with_the_clusters_tag(case: str, provider: str) -> None:
    statements = by_sid(grants_by_name(case)["execution"])
    assert statements["NewIssuer"]["Resource"] == statements["OwnIssuer"]["Resource"] == [provider]
    cluster = cluster_of(case)
    assert statements["OwnIssuer"]["Condition"] == {"StringLike": {"aws:ResourceTag/KubernetesCluster": cluster.name}}
    assert statements["TagNewIssuer"]["Condition"] == {
        "StringLike": {"aws:RequestTag/KubernetesCluster": cluster.name},
        "Null": {"aws:ResourceTag/KubernetesCluster": "true"},
    }


def test_distributions_of_others_are_left_alone() -> None:
    statements = by_sid(grants_by_name("pod-roles")["execution"])
    own = {"StringLike": {"aws:ResourceTag/KubernetesCluster": "shops"}}
    for action in ("cloudfront:DeleteDistribution", "cloudfront:UpdateDistribution"):
        assert [each["Condition"] for each in statements.values() if action in each["Action"]] == [own]
    assert "NewDistributions" not in by_sid(grants_by_name("pod-roles-url")["execution"])


def test_an_operator_deletes_the_two_documents_and_the_bucket_that_was_made() -> None:
    statements = by_sid(grants_by_name("pod-roles")["operator"])
    assert statements["IssuerDocuments"]["Resource"] == [
        f"arn:aws:s3:::shops-{bucket}issuerbucket-*/{document}"
        for bucket in ("secretsstack-*", "")
        for document in (".well-known/openid-configuration", "openid/v1/jwks")
    ]
    assert "s3:DeleteBucket" in statements["IssuerBucket"]["Action"]
    own_bucket = by_sid(grants_by_name("pod-roles-url")["operator"])
    assert own_bucket["FindIssuerBucket"]["Resource"] == ["arn:aws:s3:::example-tokens"]
    assert "IssuerBucket" not in own_bucket


def test_each_role_of_pods_with_statements_is_listed_with_what_it_allows() -> None:
    found = grants_by_name("pod-roles")
    assert [name for name in found if name.startswith("pod-")] == [
        "pod-kube-system-cloud-controller-manager",
        "pod-kube-system-aws-node",
        "pod-kube-system-ebs-csi-controller-sa",
        "pod-kube-system-cluster-autoscaler",
        "pod-kube-system-aws-load-balancer-controller",
        "pod-kube-system-external-dns",
        "pod-cert-manager-cert-manager",
        "pod-shop-orders.worker",
    ]
    assert actions(found["pod-shop-orders.worker"]) == {"s3:GetObject", "s3:PutObject"}
    assert actions(found["pod-kube-system-cluster-autoscaler"]) >= {"autoscaling:SetDesiredCapacity"}
    assert actions(found["master"]) & actions(found["pod-kube-system-external-dns"]) == set()


def test_an_operator_may_look_at_what_is_checked_before_a_deployment() -> None:
    """Otherwise the check would say nothing, and CloudFormation comes to it in the middle."""
    role = "arn:aws:iam::123456789012:role/teams/reports"
    issuer = {"discovery": "bucket"}
    accounts = [{"namespace": "reports", "name": "nightly", "role": role}]
    cluster = parse({"serviceAccountIssuer": issuer, "iam": {"serviceAccounts": accounts}})
    [operator] = [grant for grant in grants(cluster, scope_of(cluster, account=ACCOUNT)) if grant.name == "operator"]
    statements = by_sid(operator)
    assert statements["FindPodRoles"]["Resource"] == [role]
    assert statements["ReadPublicAccessBlock"]["Action"] == ["s3:GetAccountPublicAccessBlock"]
    assert "s3:GetAccountPublicAccessBlock" not in actions(grants_by_name("pod-roles")["operator"])


def test_service_accounts_whose_names_join_alike_are_two_grantees() -> None:
    statements = [{"actions": ["s3:GetObject"], "resources": ["arn:aws:s3:::models/*"]}]
    accounts = [
        {"namespace": namespace, "name": name, "policyStatements": statements}
        for namespace, name in (("shop-eu", "web"), ("shop", "eu-web"), ("shop", "web"))
    ]
    cluster = parse({"serviceAccountIssuer": {}, "iam": {"addonRoles": False, "serviceAccounts": accounts}})
    names = [grant.name for grant in grants(cluster, scope_of(cluster)) if grant.name.startswith("pod-")]
    assert names == [
        f"pod-shop-eu-web-{ServiceAccount('shop-eu', 'web').digest}",
        f"pod-shop-eu-web-{ServiceAccount('shop', 'eu-web').digest}",
        "pod-shop-web",
    ]
