"""Where the API of a cluster is and as whom one gets in: outputs, secrets, and what is said where they lack."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from answers import Answers
from aws_descriptions import arn, resource, stack, stacked
from recorded import RefusedError

from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.api_connection import Endpoint
from cfngen.deploy.access.authorities import (
    Authority,
    EmptySecretError,
    MalformedSecretError,
    MissingSecretError,
    SecretDeniedError,
    read_authority,
    read_join_information,
)
from cfngen.deploy.access.certificates import KeyPair
from cfngen.deploy.access.cluster_access import NoEndpointError
from cfngen.deploy.aws import stacks
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.stacks import StackView, find_stack

SECRET = "arn-of-a-secret-of-the-cluster"
READ, DESCRIBE = "secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"
JOIN = {"endpoint": "api.example:6443", "expires": "2026-01-02T03:04:05Z"}


def root(aws: Answers) -> StackView:
    found = find_stack(aws.account, "one")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("outputs", "asked"),
    [
        ({"ApiEndpoint": "own", "CaSecretArn": "own"}, False),
        ({"ApiEndpoint": "own"}, True),
        ({"CaSecretArn": "own"}, True),
        ({}, True),
    ],
)
def test_outputs_of_nested_stacks_serve_until_the_root_has_its_own(
    aws: Answers, outputs: dict[str, str], asked: bool
) -> None:
    inside = {"ApiEndpoint": "nested", "CaSecretArn": "nested", "Other": "x"}
    nested = resource(arn("inner"), type_name="AWS::CloudFormation::Stack")
    unborn = resource("", type_name="AWS::CloudFormation::Stack")
    gone = resource(arn("gone"), type_name="AWS::CloudFormation::Stack")
    members = (nested, unborn, gone, resource("vpc-1"))
    stacked(aws, stack(outputs=outputs), stack("inner", outputs=inside), resources={"one": members})
    found = stacks.read_outputs(aws.account, root(aws))
    assert found == ({**inside, **outputs} if asked else outputs)
    assert bool(aws.named("cloudformation:ListStackResources")) is asked


def test_where_the_api_is_and_who_may_reach_it(aws: Answers) -> None:
    stacked(aws, stack(parameters={"ApiAllowedCidr": "192.0.2.0/24"}))
    where = cluster_access.find_api_endpoint(
        root(aws), {"ApiEndpoint": "https://api.example"}, lambda url: url + ":7443"
    )
    assert (where.url, where.url_override) == ("https://api.example", "https://api.example:7443")
    assert where.allowed_cidr == "192.0.2.0/24"
    assert cluster_access.find_api_endpoint(root(aws), {"ApiEndpoint": "https://api.example"}).url_override == ""
    for values in ({}, {"ApiEndpoint": ""}):
        with pytest.raises(NoEndpointError, match=r"the stack one \(CREATE_COMPLETE\) has no output ApiEndpoint"):
            cluster_access.find_api_endpoint(root(aws), values)
        with pytest.raises(NoEndpointError, match="has no output CaSecretArn"):
            cluster_access.find_authority(aws.account, root(aws), {"CaSecretArn": ""})


def test_the_internal_endpoint_is_an_output_of_its_own(aws: Answers) -> None:
    stacked(aws, stack(parameters={"ApiAllowedCidr": "192.0.2.0/24"}))
    outputs = {"ApiEndpoint": "https://api.example", "ApiInternalEndpoint": "https://inside.example"}
    where = cluster_access.find_internal_api_endpoint(root(aws), outputs)
    assert (where.url, where.allowed_cidr) == ("https://inside.example", "")
    with pytest.raises(NoEndpointError, match=r"has no output ApiInternalEndpoint; it has one with api.internal: true"):
        cluster_access.find_internal_api_endpoint(root(aws), {"ApiEndpoint": "https://api.example"})


@pytest.mark.parametrize(
    ("caller", "name"),
    [
        ("arn:aws:iam::123456789012:user/alice", "alice@cfngen"),
        ("arn:aws:iam::123456789012:user/team/alice", "team/alice@cfngen"),
        ("arn:aws:sts::123456789012:assumed-role/Admin/alice", "Admin/alice@cfngen"),
        ("arn:aws:sts::123456789012:federated-user/bob", "bob@cfngen"),
        ("arn:aws:iam::123456789012:root", "root@cfngen"),
        ("arn:aws-cn:iam::123456789012:user/alice", "alice@cfngen"),
        ("somebody", "somebody@cfngen"),
        (f"arn:aws:sts::123456789012:assumed-role/{'a' * 55}/b", f"{'a' * 55}/b@cfngen"),
        (f"arn:aws:sts::123456789012:assumed-role/{'a' * 56}/b", "b@cfngen"),
        (f"arn:aws:sts::123456789012:assumed-role/Admin/{'a' * 52}", f"{'a' * 52}@cfngen"),
        (f"arn:aws:iam::123456789012:user/{'a' * 57}", f"{'a' * 57}@cfngen"),
        (f"arn:aws:iam::123456789012:user/x{'a' * 57}", f"{'a' * 57}@cfngen"),
    ],
)
def test_the_audit_log_shows_who_calls(caller: str, name: str) -> None:
    """64 characters are all that a common name has room for; the end is what tells persons apart."""
    assert cluster_access.kubernetes_user_name(caller) == name
    assert len(name) <= 64


def test_join_information_is_read_as_masters_write_it(aws: Answers) -> None:
    aws.given[READ] = {"SecretString": json.dumps({**JOIN, "token": "x"})}
    found = read_join_information(aws.account, SECRET)
    assert found.endpoint == "api.example:6443"
    assert found.expires == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert aws.named(READ) == [{"SecretId": SECRET}]


@pytest.mark.parametrize("values", [{"expires": JOIN["expires"]}, {**JOIN, "expires": "soon"}, {**JOIN, "expires": 1}])
def test_anything_else_is_no_join_information(aws: Answers, values: dict[str, Any]) -> None:
    aws.given[READ] = {"SecretString": json.dumps(values)}
    with pytest.raises(MalformedSecretError, match="contains no join information") as malformed:
        read_join_information(aws.account, SECRET)
    assert "cfngen-join" in malformed.value.hint


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", EmptySecretError, "has not been initialised"),
        ("{}", EmptySecretError, "has not been initialised"),
        ("PRIVATE", MalformedSecretError, "does not contain JSON"),
        ("[1]", MalformedSecretError, "does not contain a JSON object"),
        ('{"ca.crt": "PRIVATE"}', MalformedSecretError, "lacks ca.key$"),
        ('{"ca.key": "PRIVATE"}', MalformedSecretError, "lacks ca.crt$"),
        ('{"ca.crt": 1, "ca.key": null}', MalformedSecretError, "lacks ca.crt and ca.key$"),
    ],
)
def test_what_is_no_authority_is_told_and_not_quoted(
    aws: Answers, text: str, kind: type[Exception], words: str
) -> None:
    aws.given[READ] = {"SecretString": text} if text else {}
    with pytest.raises(kind, match=words) as refused:
        read_authority(aws.account, SECRET)
    assert "PRIVATE" not in f"{refused.value}{refused.value.__cause__}{refused.value.__context__ and ''}"


@pytest.mark.parametrize(
    ("code", "described", "kind", "words"),
    [
        ("ResourceNotFoundException", {}, EmptySecretError, "has not been initialised"),
        ("ResourceNotFoundException", RefusedError("AccessDeniedException"), EmptySecretError, "has not been"),
        (
            "ResourceNotFoundException",
            RefusedError("ResourceNotFoundException"),
            MissingSecretError,
            "there is no secret",
        ),
        ("InvalidRequestException", {}, MissingSecretError, "it is being deleted"),
        (
            "AccessDeniedException",
            {},
            SecretDeniedError,
            "user/operator has no permission to read the secret .*: not you",
        ),
        ("DecryptionFailure", {}, SecretDeniedError, "has no permission to read the secret"),
        ("InternalServiceError", {}, AwsError, "not you"),
    ],
)
def test_each_refusal_means_something_else(
    aws: Answers, code: str, described: Any, kind: type[Exception], words: str
) -> None:
    aws.given[READ], aws.given[DESCRIBE] = RefusedError(code, "not you"), described
    with pytest.raises(kind, match=words):
        read_authority(aws.account, SECRET)


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({"KmsKeyId": "arn-of-the-key"}, "kms:Decrypt on its KMS key arn-of-the-key."),
        ({}, "its KMS key (output SecretsKeyArn of the nested SecretsStack)."),
        (RefusedError("AccessDeniedException"), "its KMS key (output SecretsKeyArn of the nested SecretsStack)."),
    ],
)
def test_who_may_not_read_it_is_told_what_is_needed(aws: Answers, described: Any, words: str) -> None:
    aws.given[READ], aws.given[DESCRIBE] = RefusedError("AccessDeniedException"), described
    with pytest.raises(SecretDeniedError) as denied:
        read_authority(aws.account, SECRET)
    assert denied.value.hint.startswith("get secretsmanager:GetSecretValue on it and ")
    assert denied.value.hint.endswith(words)
    assert aws.named(DESCRIBE) == [{"SecretId": SECRET}]


@pytest.mark.parametrize("left", [timedelta(hours=1), timedelta(minutes=2), timedelta(seconds=-5)])
def test_a_connection_for_the_occasion_ends_with_the_authority(
    aws: Answers, monkeypatch: pytest.MonkeyPatch, left: timedelta
) -> None:
    issued: dict[str, Any] = {}

    def issue(pair: Any, identity: Any, *, now: datetime, duration: timedelta) -> None:
        issued.update(user=identity.user, groups=identity.groups, now=now, duration=duration)

    monkeypatch.setattr(cluster_access, "issue_client_certificate", issue)
    monkeypatch.setattr(cluster_access, "KubernetesClient", lambda *arguments: arguments)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    authority, where = Authority(KeyPair("PEM", "key"), now + left), Endpoint("https://api.example")
    opened: Any = cluster_access.connect_as_administrator(where, authority, "arn:aws:iam::1:user/operator", now)
    assert opened == (where, "PEM", None)
    assert (issued["user"], issued["groups"], issued["now"]) == ("operator@cfngen", ("system:masters",), now)
    assert timedelta(0) < issued["duration"] <= max(left, timedelta(seconds=1))
    assert issued["duration"] < timedelta(hours=1)
