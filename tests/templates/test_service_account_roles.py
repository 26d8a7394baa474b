"""Roles of service accounts, the provider that makes AWS STS believe their tokens, and the issuer's documents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from service_authorization import faults
from test_policies import resolved

from cfngen.cluster.load import parse
from cfngen.deploy.plan.publishing.publish import capabilities
from cfngen.templates import generate

ADDONS = {
    "clusterAutoscaler": {"enabled": True},
    "awsLoadBalancerController": {"enabled": True},
    "externalDns": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]},
    "certManager": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]},
}
WEB = {"namespace": "shop", "name": "web"}
PODS = {"name": "blue", "serviceAccountIssuer": {}, "iam": {"serviceAccounts": [WEB]}}
BUCKET = {"serviceAccountIssuer": {"discovery": "bucket"}}
URL = {"discovery": "url", "url": "https://tokens.example.com/blue"}
MOVING = {"serviceAccountIssuer": {}, "iam": {"addonRoles": False}}


def role(generated: Any, subject: str) -> dict[str, Any]:
    """The role that a service account may assume."""
    [found] = [
        resource["Properties"]
        for resource in generated.of_type("AWS::IAM::Role").values()
        if f":{subject}" in json.dumps(resource["Properties"]["AssumeRolePolicyDocument"])
    ]
    return dict(found)


def trust(properties: dict[str, Any], **values: str) -> dict[str, Any]:
    """The trust policy of a role in the stack's own template, after CloudFormation has put values into the text."""
    text, variables = properties["AssumeRolePolicyDocument"]["Fn::Sub"]
    for name in variables:
        text = text.replace(f"${{{name}}}", values[name])
    assert "${" not in text
    return dict(json.loads(text))


def nested_role(generated: Any, name: str) -> dict[str, Any]:
    [found] = [
        resource["Properties"]
        for resource in generated["iam"]["Resources"].values()
        if resource["Properties"].get("RoleName", "").endswith(name)
    ]
    return dict(found)


def test_only_pods_of_the_service_account_may_assume_its_role(templates: Any) -> None:
    arn = "arn:aws:iam::123456789012:oidc-provider/d1.cloudfront.net"
    document = trust(nested_role(templates(PODS), "shop.web"), Provider=arn, Issuer="d1.cloudfront.net")
    [statement] = document["Statement"]
    assert statement["Principal"] == {"Federated": arn}
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    # Equality of both: a pattern, or the audience alone, would let in pods of other accounts.
    assert statement["Condition"] == {
        "StringEquals": {
            "d1.cloudfront.net:aud": "sts.amazonaws.com",
            "d1.cloudfront.net:sub": "system:serviceaccount:shop:web",
        }
    }


def test_in_one_template_the_trust_policy_names_the_distribution_or_the_url(templates: Any) -> None:
    [text] = role(templates(PODS), "shop:web")["AssumeRolePolicyDocument"].values()
    assert '"${IssuerDistribution.DomainName}:sub":"system:serviceaccount:shop:web"' in text
    [text] = role(templates({**PODS, **BUCKET}), "shop:web")["AssumeRolePolicyDocument"].values()
    assert '"${IssuerBucket.RegionalDomainName}:sub"' in text
    own = templates({**PODS, "serviceAccountIssuer": URL})
    [text] = role(own, "shop:web")["AssumeRolePolicyDocument"].values()
    assert '"tokens.example.com/blue:sub"' in text
    assert own.properties("OidcProvider")["Url"] == "https://tokens.example.com/blue"


def test_a_role_is_named_and_tagged_after_its_service_account(templates: Any) -> None:
    account = {**WEB, "tags": {"team": "shop"}}
    properties = role(templates({**PODS, "tags": {"stage": "test"}, "iam": {"serviceAccounts": [account]}}), "shop:web")
    assert properties["RoleName"] == "blue.us-west-2.shop.web"
    assert {tag["Key"]: tag["Value"] for tag in properties["Tags"]} == {
        "KubernetesCluster": "blue",
        "Name": "blue.us-west-2.shop.web",
        "kubernetes-namespace": "shop",
        "kubernetes-service-account": "web",
        "kubernetes.io/cluster/blue": "owned",
        "stage": "test",
        "team": "shop",
    }


def test_a_role_has_what_the_cluster_file_gives_it(templates: Any) -> None:
    policy, boundary, own = (f"arn:aws:iam::123456789012:policy/{name}" for name in ("read", "all", "own"))
    accounts = [
        {**WEB, "additionalPolicies": [policy]},
        {**WEB, "name": "worker", "permissionsBoundary": own},
        {**WEB, "name": "existing", "role": "arn:aws:iam::210987654321:role/other"},
    ]
    iam = {"permissionsBoundary": boundary, "serviceAccounts": accounts}
    generated = templates({**PODS, "iam": iam})
    web, worker = role(generated, "shop:web"), role(generated, "shop:worker")
    assert (web["ManagedPolicyArns"], web["PermissionsBoundary"]) == ([policy], boundary)
    assert worker["PermissionsBoundary"] == own
    assert not {"Policies", "ManagedPolicyArns"} & worker.keys()
    assert role(generated, "kube-system:cloud-controller-manager")["PermissionsBoundary"] == boundary
    assert "existing" not in json.dumps(generated["iam"])


def test_a_variable_of_iam_in_a_statement_reaches_iam(templates: Any) -> None:
    resource = "arn:aws:s3:::example/${aws:PrincipalTag/kubernetes-namespace}/*"
    account = {**WEB, "policyStatements": [{"actions": ["s3:GetObject"], "resources": [resource]}]}
    [policy] = role(templates({**PODS, "iam": {"serviceAccounts": [account]}}), "shop:web")["Policies"]
    [expression] = policy["PolicyDocument"]["Statement"][0]["Resource"]
    assert "".join(expression["Fn::Join"][1]) == resource


def test_names_are_the_only_ones_that_are_fixed(templates: Any) -> None:
    assert capabilities(generate(templates({}).cluster)) == ("CAPABILITY_IAM",)
    assert capabilities(generate(templates(PODS).cluster)) == ("CAPABILITY_NAMED_IAM",)
    named = [
        properties
        for resource in templates(PODS).of_type("AWS::IAM::Role").values()
        if (properties := resource["Properties"]).get("RoleName")
    ]
    assert all("sts:AssumeRoleWithWebIdentity" in json.dumps(each) for each in named)


@pytest.mark.parametrize("plugin", ["vpc-routes", "amazon-vpc"])
@pytest.mark.parametrize("issuer", [{}, {"discovery": "bucket"}, {**URL, "bucket": "tokens"}])
def test_every_policy_is_sound(templates: Any, plugin: str, issuer: dict[str, Any]) -> None:
    generated = templates({**PODS, "network": {"plugin": plugin}, "serviceAccountIssuer": issuer, "addons": ADDONS})
    for logical_id, resource in generated.of_type("AWS::IAM::Role").items():
        for policy in resource["Properties"].get("Policies", []):
            text = json.dumps(resolved(policy["PolicyDocument"]))
            assert faults(json.loads(text)) == [], logical_id
            assert len(text.replace(" ", "")) < 10_240


def test_instances_have_no_managed_policies_once_components_have_roles(templates: Any) -> None:
    for plugin in ("vpc-routes", "amazon-vpc"):
        configuration = {"network": {"plugin": plugin}, "addons": ADDONS}
        assert templates({**configuration, "serviceAccountIssuer": {}}).of_type("AWS::IAM::ManagedPolicy") == {}


def test_before_that_the_roles_of_instances_are_as_without_an_issuer(templates: Any) -> None:
    """But for the documents that masters publish; the managed policies repeat what will leave."""
    configuration = {
        "network": {"plugin": "amazon-vpc"},
        "nodeGroups": [{"name": "a"}, {"name": "b", "additionalPolicies": ["arn:aws:iam::aws:policy/ReadOnlyAccess"]}],
    }
    without, moving = templates(configuration), templates({**configuration, **MOVING})
    for name in ("NodeRole", "NodeGroupBRole"):
        assert moving.properties(name) == without.properties(name)
    before = without.properties("MasterRole")["Policies"][0]["PolicyDocument"]["Statement"]
    after = moving.properties("MasterRole")["Policies"][0]["PolicyDocument"]["Statement"]
    assert [each for each in after if each["Sid"] != "IssuerDocuments"] == before
    added = moving.of_type("AWS::IAM::ManagedPolicy").keys() - without.of_type("AWS::IAM::ManagedPolicy").keys()
    assert added == {"CloudControllerPolicy", "NodePodAddressesPolicy", "NodeGroupBPodAddressesPolicy"}


def test_existing_roles_of_instances_get_no_policies(templates: Any) -> None:
    existing = {"masters": {"role": "arn:aws:iam::123456789012:role/masters"}}
    generated = templates({**MOVING, "iam": {**MOVING["iam"], **existing}})
    assert generated.of_type("AWS::IAM::ManagedPolicy") == {}


def test_the_documents_are_private_but_for_the_distribution(templates: Any) -> None:
    generated = templates(PODS)
    access = generated.properties("IssuerBucket")["PublicAccessBlockConfiguration"]
    assert set(access.values()) == {True}
    reading, only_tls = generated.properties("IssuerBucketPolicy")["PolicyDocument"]["Statement"]
    assert reading["Principal"] == {"Service": "cloudfront.amazonaws.com"}
    assert "distribution/" in json.dumps(reading["Condition"]["StringEquals"]["aws:SourceArn"])
    assert reading["Action"] == ["s3:GetObject"]
    assert (only_tls["Effect"], only_tls["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    distribution = generated.properties("IssuerDistribution")["DistributionConfig"]
    assert distribution["DefaultCacheBehavior"]["ViewerProtocolPolicy"] == "https-only"
    assert distribution["DefaultCacheBehavior"]["AllowedMethods"] == ["GET", "HEAD"]


def test_everybody_reads_the_two_documents_of_a_public_bucket_and_lists_nothing(templates: Any) -> None:
    generated = templates({**PODS, **BUCKET})
    assert generated.properties("IssuerBucket")["PublicAccessBlockConfiguration"] == {
        "BlockPublicAcls": True,
        "BlockPublicPolicy": False,
        "IgnorePublicAcls": True,
        "RestrictPublicBuckets": False,
    }
    reading, _ = generated.properties("IssuerBucketPolicy")["PolicyDocument"]["Statement"]
    assert (reading["Principal"], reading["Action"]) == ("*", ["s3:GetObject"])
    paths = [resource["Fn::Sub"].removeprefix("${IssuerBucket.Arn}") for resource in reading["Resource"]]
    assert paths == ["/.well-known/openid-configuration", "/openid/v1/jwks"]
    assert generated.of_type("AWS::CloudFront::Distribution") == {}


@pytest.mark.parametrize("bucket", [{}, {"bucket": "tokens"}])
def test_a_web_server_of_ones_own_needs_no_resources(templates: Any, bucket: dict[str, str]) -> None:
    generated = templates({**PODS, "serviceAccountIssuer": {**URL, **bucket}})
    assert not [name for name in generated["standalone"]["Resources"] if name.startswith("Issuer")]
    outputs = generated["secrets"]["Outputs"]
    assert outputs["ServiceAccountIssuer"]["Value"] == "tokens.example.com/blue"
    assert outputs.get("IssuerBucketName", {}).get("Value") == bucket.get("bucket")


def test_a_deleted_stack_leaves_the_bucket_which_nobody_reads_any_more(templates: Any) -> None:
    """A bucket with documents cannot be deleted, and masters write them long before a creation is complete."""
    for configuration in (PODS, {**PODS, **BUCKET}):
        resources = templates(configuration)["secrets"]["Resources"]
        assert (
            resources["IssuerBucket"]["DeletionPolicy"] == resources["IssuerBucket"]["UpdateReplacePolicy"] == "Retain"
        )
        assert "DeletionPolicy" not in resources["IssuerBucketPolicy"]


def test_a_long_cluster_name_leaves_room_for_the_origin_access_control(templates: Any) -> None:
    generated = templates({**PODS, "name": "a-cluster-of-28-letters-long", "region": "ap-southeast-3"})
    [control] = generated.of_type("AWS::CloudFront::OriginAccessControl").values()
    assert len(control["Properties"]["OriginAccessControlConfig"]["Name"]) <= 64


@pytest.mark.parametrize("roles", [{}, {"addonRoles": False}, {"addonRoles": False, "serviceAccounts": [WEB]}])
@pytest.mark.parametrize(
    "issuer", [{}, {"discovery": "bucket"}, URL, {**URL, "bucket": "documents-of-blue"}], ids=lambda issuer: str(issuer)
)
@pytest.mark.parametrize("backups", [True, False])
def test_no_stack_has_a_parameter_that_nothing_uses(
    issuer: dict[str, Any], roles: dict[str, Any], backups: bool
) -> None:
    cluster = parse(
        {"name": "blue", "serviceAccountIssuer": issuer, "iam": roles, "etcd": {"backups": {"enabled": backups}}}
    )
    for document in generate(cluster):
        sections = json.dumps([document.body["Resources"], document.body.get("Outputs", {})])
        unused = [
            name
            for name in document.body.get("Parameters", {})
            if f'"{name}"' not in sections and f"${{{name}}}" not in sections
        ]
        assert (document.name, unused) == (document.name, [])
