"""A cluster with an issuer of tokens is deleted: nothing of the issuer stays in the account."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from cloud import Cloud
from deployments import Operator, groups

from cfngen.cluster.iam.service_accounts import accounts_with_made_roles, role_name
from cfngen.cluster.load import parse
from cfngen.deploy.aws.stacks import list_resource_tree, require_stack
from cfngen.deploy.messages.message import Step
from cfngen.deploy.operations.deletion import removal
from cfngen.deploy.operations.deletion.execution import delete, preview_with_refusal
from cfngen.deploy.plan.deletion.plan import AuthorityCopy, DeletionRequest
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource
from cfngen.deploy.preflight.existing.objects import ForeignObjectsError
from cfngen.deploy.status.network_problems import find_issuer_problems, read_cluster_issuer

pytestmark = pytest.mark.drill

ROLE = "one.us-west-2.shop.web"
READ_ONLY = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
ACCOUNT = {
    "namespace": "shop",
    "name": "web",
    "policyStatements": [{"actions": ["s3:GetObject"], "resources": ["arn:aws:s3:::models/*"]}],
    "additionalPolicies": [READ_ONLY],
}
FILE = {"name": "one", "nodeGroups": groups("work", minSize=1, maxSize=1), "serviceAccountIssuer": {}}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def test_documents_and_bucket_are_deleted(operator: Operator) -> None:
    operator.deploy(FILE)
    s3, iam = operator.account.client("s3"), operator.account.client("iam")
    bucket = require_stack(operator.account, "one").outputs["IssuerBucketName"]
    for key in (".well-known/openid-configuration", "openid/v1/jwks"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"{}")
    request = DeletionRequest("one", "one", authorities=AuthorityCopy("destroy"))
    deleted = delete(operator.account, request, operator.waiting)
    assert deleted.succeeded
    assert bucket not in [found["Name"] for found in s3.list_buckets()["Buckets"]]
    assert bucket not in [resource.id for resource in deleted.retained]
    assert iam.list_open_id_connect_providers()["OpenIDConnectProviderList"] == []
    assert any(bucket in step.text for step in operator.reported(Step))


def test_a_bucket_with_something_else_remains_and_is_said(operator: Operator) -> None:
    operator.deploy(FILE)
    s3 = operator.account.client("s3")
    bucket = require_stack(operator.account, "one").outputs["IssuerBucketName"]
    s3.put_object(Bucket=bucket, Key="notes.txt", Body=b"mine")
    request = DeletionRequest("one", "one", authorities=AuthorityCopy("destroy"))
    deleted = delete(operator.account, request, operator.waiting)
    [remaining] = [resource for resource in deleted.retained if resource.id == bucket]
    assert (remaining.kind, "s3 rb --force" in str(remaining.command)) == ("bucket of the issuer's documents", True)
    assert s3.list_objects_v2(Bucket=bucket)["Contents"][0]["Key"] == "notes.txt"


def test_a_role_that_is_left_is_named_until_it_is_gone(operator: Operator) -> None:
    """By the deletion that left it, by each later one, and by the creation that would meet it; the command works."""
    file = {**FILE, "iam": {"serviceAccounts": [ACCOUNT]}}
    cluster = parse(file)
    operator.deploy(file)
    [logical_id] = [
        resource.view.logical_id
        for resource in list_resource_tree(operator.account, require_stack(operator.account, "one").id)
        if resource.view.physical_id == ROLE
    ]
    operator.cloud.engine.fail(logical_id, "somebody has attached a policy", during="DELETE", times=9)
    request = DeletionRequest(
        "one",
        "one",
        role_names=tuple(role_name(cluster, account) for _, account in accounts_with_made_roles(cluster)),
        authorities=AuthorityCopy("destroy"),
        leave_behind=True,
    )
    command = (
        f"aws iam delete-role-policy --role-name {ROLE} --policy-name kubernetes && "
        f"aws iam detach-role-policy --role-name {ROLE} --policy-arn {READ_ONLY} && "
        f"aws iam delete-role --role-name {ROLE}"
    )

    def named(resources: Iterable[RetainedResource]) -> list[str]:
        return [str(resource.command) for resource in resources if resource.id == ROLE]

    assert named(delete(operator.account, request, operator.waiting).retained) == [command]
    assert named(delete(operator.account, request, operator.waiting).retained) == [command]
    assert named(preview_with_refusal(operator.account, request)[0].retained) == [command]
    with pytest.raises(ForeignObjectsError) as refusal:
        operator.deploy(file)
    [problem] = map(str, refusal.value.problems)
    shown = "iam.serviceAccounts[0]: account 123456789012 has a role one.us-west-2.shop.web already"
    assert problem.startswith(shown)
    assert "has the tag of a cluster one: an earlier stack may have left it" in problem
    assert f"delete it with `{command}`" in problem

    iam = operator.account.client("iam")
    iam.delete_role_policy(RoleName=ROLE, PolicyName="kubernetes")
    iam.detach_role_policy(RoleName=ROLE, PolicyArn=READ_ONLY)
    iam.delete_role(RoleName=ROLE)
    assert named(preview_with_refusal(operator.account, request)[0].retained) == []
    assert operator.deploy(file).succeeded
    assert named(preview_with_refusal(operator.account, request)[0].retained) == []


def test_a_role_of_a_stack_that_cloudformation_no_longer_lists(operator: Operator) -> None:
    request = DeletionRequest("one", "one", role_names=(ROLE, f"{ROLE}-2"), authorities=AuthorityCopy("destroy"))
    statement = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam = operator.account.client("iam")
    iam.create_role(RoleName=f"{ROLE}-2", AssumeRolePolicyDocument=trust)
    iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=trust, Tags=[{"Key": "KubernetesCluster", "Value": "one"}])
    [remaining] = delete(operator.account, request, operator.waiting).retained
    assert (remaining.kind, remaining.id) == ("role of a service account", ROLE)
    assert remaining.command == f"aws iam delete-role --role-name {ROLE}"


def test_what_validate_says_of_an_issuer(operator: Operator) -> None:
    operator.deploy(FILE)
    account, cluster = operator.account, parse(FILE)
    stack = require_stack(account, "one")
    bucket, issuer = stack.outputs["IssuerBucketName"], stack.outputs["ServiceAccountIssuer"]
    url = f"https://{issuer}"
    documents = {
        ".well-known/openid-configuration": {"issuer": url, "jwks_uri": f"{url}/openid/v1/jwks"},
        "openid/v1/jwks": {"keys": [{"kty": "RSA"}]},
    }
    for key, document in documents.items():
        account.client("s3").put_object(Bucket=bucket, Key=key, Body=json.dumps(document).encode())

    def texts() -> list[str]:
        issuer = read_cluster_issuer(account, cluster, stack)
        assert issuer is not None
        return [problem.text for problem in find_issuer_problems(issuer)]

    assert texts() == []
    account.client("s3").delete_object(Bucket=bucket, Key="openid/v1/jwks")
    account.client("s3").put_object(Bucket=bucket, Key=".well-known/openid-configuration", Body=b"{}")
    account.client("iam").delete_open_id_connect_provider(
        OpenIDConnectProviderArn=f"arn:aws:iam::123456789012:oidc-provider/{issuer}"
    )
    provider, discovery, keys = texts()
    assert provider == "has no OIDC provider in IAM, so AWS STS refuses the tokens of pods"
    assert discovery == f"has a document {next(iter(documents))} in the bucket {bucket} that is not that of this issuer"
    assert keys == f"has no document openid/v1/jwks in the bucket {bucket}, so AWS STS cannot check the tokens of pods"
    removal.remove_issuer_buckets(account, (bucket,), operator.messages.append)
    assert "has no document" in texts()[1]
