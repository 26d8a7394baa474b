"""A cluster with an issuer of tokens is deleted: nothing of the issuer stays in the account."""

from __future__ import annotations

import json

import pytest
from cloud import Cloud
from deployments import Operator, groups

from cfngen.cluster.load import parse
from cfngen.deploy.deletion import issuer_buckets
from cfngen.deploy.deletion.authority_copies import AuthorityCopy
from cfngen.deploy.deletion.execution import delete
from cfngen.deploy.deletion.plan import DeletionRequest
from cfngen.deploy.inspection.issuer import find_issuer_problems
from cfngen.deploy.messages import Step
from cfngen.deploy.stacks import require_stack

pytestmark = pytest.mark.drill

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
    assert find_issuer_problems(account, cluster, stack) == ()
    account.client("s3").delete_object(Bucket=bucket, Key="openid/v1/jwks")
    account.client("s3").put_object(Bucket=bucket, Key=".well-known/openid-configuration", Body=b"{}")
    account.client("iam").delete_open_id_connect_provider(
        OpenIDConnectProviderArn=f"arn:aws:iam::123456789012:oidc-provider/{issuer}"
    )
    provider, discovery, keys = (problem.text for problem in find_issuer_problems(account, cluster, stack))
    assert provider == "has no OIDC provider in IAM, so AWS STS refuses the tokens of pods"
    assert discovery == f"has a document {next(iter(documents))} in the bucket {bucket} that is not that of this issuer"
    assert keys == f"has no document openid/v1/jwks in the bucket {bucket}, so AWS STS cannot check the tokens of pods"
    issuer_buckets.remove(account, (bucket,), operator.messages.append)
    assert "has no document" in find_issuer_problems(account, cluster, stack)[1].text
