"""Tokens of service accounts for credentials of roles: the issuer's stack, its documents, and what STS says to whom."""

from __future__ import annotations

import base64
import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from served_api import serving
from small_stacks import REGION, reasons, statuses, text
from web_identities import (
    CAPABILITIES,
    DOCUMENT_KEYS,
    ROLE,
    THUMBPRINT,
    Issuer,
    access_control,
    assume,
    distribution,
    from_bucket,
    private_bucket,
    provider,
    readable_by_distribution,
    role,
    through_cloudfront,
)

from cfngen.sandbox.cloudformation import CloudFormation, client
from cfngen.sandbox.durations import DURATIONS

NO_KEY = "Couldn't retrieve verification key from your identity provider"
NOT_AUTHORIZED = "Not authorized to perform sts:AssumeRoleWithWebIdentity"


def refusal(token: str, **arguments: Any) -> tuple[str, str]:
    """Code and words with which STS refuses a token."""
    with pytest.raises(ClientError) as raised:
        assume(token, **arguments)
    error = raised.value.response["Error"]
    return error["Code"], error["Message"]


@pytest.mark.parametrize("resources", [through_cloudfront(), from_bucket()], ids=["cloudFront", "bucket"])
def test_a_right_token_gives_credentials_of_the_role(cloud: CloudFormation, resources: dict[str, Any]) -> None:
    issuer = Issuer(cloud, resources)
    issuer.publish()
    answer = assume(issuer.token(), issuer.role_arn())
    credentials = answer["Credentials"]
    bearer = boto3.client(
        "sts",
        region_name=REGION,
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials["SessionToken"],
    )
    assert bearer.get_caller_identity()["Arn"] == f"arn:aws:sts::123456789012:assumed-role/{ROLE}/web"


def test_no_token_is_taken_before_the_documents_are_published(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    code, words = refusal(issuer.token())
    assert (code, NO_KEY in words) == ("InvalidIdentityToken", True)


def other_key() -> str:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()


@pytest.mark.parametrize(
    ("claims", "code", "words"),
    [
        ({"iss": "https://example.com"}, "InvalidIdentityToken",
         "No OpenIDConnect provider found in your account for https://example.com"),
        ({"aud": ["https://kubernetes.default.svc"]}, "InvalidIdentityToken", "Incorrect token audience"),
        ({"aud": None}, "InvalidIdentityToken", "Missing a required claim: aud"),
        ({"sub": "system:serviceaccount:default:other"}, "AccessDenied", NOT_AUTHORIZED),
        ({"exp": 1767225000}, "ExpiredTokenException", "must be before the expiration date/time1767225000"),
        ({"nbf": 4102444800}, "InvalidIdentityToken", "not valid yet"),
    ],
    ids=["issuer", "audience", "no audience", "subject", "expired", "not yet"],
)  # fmt: skip
def test_a_wrong_claim_is_refused(cloud: CloudFormation, claims: dict[str, Any], code: str, words: str) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    issuer.publish()
    refused, message = refusal(issuer.token(**claims))
    assert (refused, words in message) == (code, True), message


def test_a_token_expires_as_simulated_time_passes(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    issuer.publish()
    token = issuer.token()
    cloud.advance(3_599)
    assume(token)
    cloud.advance(2)
    assert refusal(token)[0] == "ExpiredTokenException"


def test_a_token_of_another_key_is_refused(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    issuer.publish()
    assert NO_KEY in refusal(issuer.token(key=other_key()))[1]


def test_a_forged_token_is_refused(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    issuer.publish()
    header, _, signature = issuer.token(sub="system:serviceaccount:default:other").split(".")
    payload = issuer.token().split(".")[1]
    assert refusal(f"{header}.{payload}.{signature}")[0] == "InvalidIdentityToken"
    assert "not a valid JWT" in refusal("no.token")[1]


def test_a_key_without_an_id_verifies_nothing(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    header = json.loads(base64.urlsafe_b64decode(issuer.token().split(".")[0] + "=="))
    issuer.publish(keys={"keys": [{"kty": "RSA", "alg": "RS256"}]})
    assert header["kid"]
    assert NO_KEY in refusal(issuer.token())[1]


@pytest.mark.parametrize(
    "discovery",
    [{"issuer": "https://example.com"}, {"jwks_uri": "https://example.com/openid/v1/jwks"}, {"jwks_uri": ""}],
    ids=["issuer", "keys elsewhere", "no keys"],
)
def test_a_discovery_document_of_another_issuer_is_refused(cloud: CloudFormation, discovery: dict[str, Any]) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    issuer.publish(discovery)
    assert NO_KEY in refusal(issuer.token())[1]


@pytest.mark.parametrize(
    "others",
    [
        {"Policy": None},
        {"Policy": readable_by_distribution("E2QWRUHEXAMPLE")},
        {"Distribution": distribution(origin={"OriginAccessControlId": None})},
    ],
    ids=["no policy", "another distribution", "no access control"],
)
def test_a_distribution_that_may_not_read_the_bucket_leads_to_no_key(
    cloud: CloudFormation, others: dict[str, Any]
) -> None:
    issuer = Issuer(cloud, through_cloudfront(**others))
    issuer.publish()
    assert NO_KEY in refusal(issuer.token())[1]


def test_the_bucket_behind_a_distribution_stays_private(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront(Provider=provider(THROUGH_BUCKET), Role=role(THROUGH_BUCKET)))
    issuer.publish()
    assert NO_KEY in refusal(issuer.token())[1]


THROUGH_BUCKET = "https://${Bucket.RegionalDomainName}"


def test_everybody_reads_the_two_documents_only(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, from_bucket())
    issuer.publish({"jwks_uri": f"{issuer.url}/other"})
    s3 = client("s3", REGION)
    s3.copy_object(Bucket=issuer.bucket, Key="other", CopySource={"Bucket": issuer.bucket, "Key": DOCUMENT_KEYS[1]})
    assert NO_KEY in refusal(issuer.token())[1]


def test_the_account_can_take_public_access_back(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, from_bucket())
    issuer.publish()
    assume(issuer.token())
    block_public_access(RestrictPublicBuckets=True)
    assert NO_KEY in refusal(issuer.token())[1]


def block_public_access(**settings: bool) -> None:
    names = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    client("s3control", REGION).put_public_access_block(
        AccountId="123456789012",
        PublicAccessBlockConfiguration={name: settings.get(name, False) for name in names},
    )


def test_an_account_that_blocks_public_policies_fails_the_stack(cloud: CloudFormation) -> None:
    block_public_access(BlockPublicPolicy=True)
    stack = cloud.wait(cloud.create_stack("s", body=text(from_bucket()), capabilities=CAPABILITIES))
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "BlockPublicPolicy" in reasons(stack, "Policy", "CREATE_FAILED")[0]


def test_a_role_that_another_provider_or_nobody_trusts_is_refused(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    issuer.publish()
    for arn in ("arn:aws:iam::123456789012:role/none", "arn:aws:iam::210987654321:role/web-of-cluster"):
        assert refusal(issuer.token(), role_arn=arn) == ("AccessDenied", NOT_AUTHORIZED)
    client("iam", REGION).delete_open_id_connect_provider(
        OpenIDConnectProviderArn=issuer.stack.resources["Provider"].physical_id
    )
    assert "No OpenIDConnect provider found" in refusal(issuer.token())[1]


def test_a_session_is_no_longer_than_the_role_allows(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront(Role=role(MaxSessionDuration=7_200)))
    issuer.publish()
    assume(issuer.token(), DurationSeconds=7_200)
    assert refusal(issuer.token(), DurationSeconds=7_201)[0] == "ValidationError"


def test_a_disabled_distribution_answers_nothing(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    issuer.publish()
    off = distribution()
    off["Properties"]["DistributionConfig"]["Enabled"] = False
    cloud.wait(cloud.update_stack("s", body=text(through_cloudfront(Distribution=off)), capabilities=CAPABILITIES))
    assert issuer.stack.status == "UPDATE_COMPLETE"
    assert NO_KEY in refusal(issuer.token())[1]


def test_an_update_keeps_the_distribution_and_its_domain(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    issuer.publish()
    changed = through_cloudfront(
        Distribution=distribution(behavior={"ViewerProtocolPolicy": "redirect-to-https"}, Tags=[TAG]),
        AccessControl=access_control(Description="of the issuer"),
    )
    cloud.wait(cloud.update_stack("s", body=text(changed), capabilities=CAPABILITIES))
    assert issuer.stack.status == "UPDATE_COMPLETE"
    cloudfront = client("cloudfront", "us-east-1")
    current = cloudfront.get_distribution(Id=issuer.stack.resources["Distribution"].physical_id)["Distribution"]
    assert current["DistributionConfig"]["DefaultCacheBehavior"]["ViewerProtocolPolicy"] == "redirect-to-https"
    assert cloudfront.list_tags_for_resource(Resource=current["ARN"])["Tags"]["Items"] == [TAG]
    assume(issuer.token())


TAG = {"Key": "cluster", "Value": "web"}


@pytest.mark.parametrize("earlier", [{}, {"ThumbprintList": ["b" * 40], "Tags": [{"Key": "old", "Value": "x"}]}])
def test_a_provider_is_updated_in_place(cloud: CloudFormation, earlier: dict[str, Any]) -> None:
    issuer = Issuer(cloud, through_cloudfront(Provider=provider(**earlier)))
    arn = issuer.stack.resources["Provider"].physical_id
    changed = through_cloudfront(
        Provider=provider(Tags=[TAG], ThumbprintList=[THUMBPRINT], ClientIdList=["other"]),
    )
    cloud.wait(cloud.update_stack("s", body=text(changed), capabilities=CAPABILITIES))
    assert issuer.stack.status == "UPDATE_COMPLETE", reasons(issuer.stack, "Provider", "UPDATE_FAILED")
    actual = client("iam", REGION).get_open_id_connect_provider(OpenIDConnectProviderArn=arn)
    assert (actual["Tags"], actual["ThumbprintList"], actual["ClientIDList"]) == ([TAG], [THUMBPRINT], ["other"])


def test_a_provider_without_thumbprints_is_not_updated(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    cloud.wait(
        cloud.update_stack("s", body=text(through_cloudfront(Provider=provider(Tags=[TAG]))), capabilities=CAPABILITIES)
    )
    assert "Value null at 'thumbprintList'" in reasons(issuer.stack, "Provider", "UPDATE_FAILED")[0]
    assert issuer.stack.status == "UPDATE_ROLLBACK_FAILED"


def test_a_deleted_issuer_leaves_nothing() -> None:
    cloud = CloudFormation(REGION, durations=DURATIONS)
    issuer = Issuer(cloud, through_cloudfront())
    distribution_id = issuer.stack.resources["Distribution"].physical_id
    deletion_began = cloud.clock.now
    cloud.delete_stack("s")
    cloud.wait(issuer.stack)
    assert issuer.stack.status == "DELETE_COMPLETE", issuer.stack.reason
    assert cloud.clock.now - deletion_began > DURATIONS["delete AWS::CloudFront::Distribution"]
    deleted = [name for name, status in statuses(issuer.stack) if status == "DELETE_COMPLETE"]
    assert deleted.index("Distribution") < deleted.index("AccessControl")
    cloudfront = client("cloudfront", "us-east-1")
    assert not cloudfront.list_distributions()["DistributionList"].get("Items")
    assert not cloudfront.list_origin_access_controls()["OriginAccessControlList"].get("Items")
    assert client("iam", REGION).list_open_id_connect_providers()["OpenIDConnectProviderList"] == []
    with pytest.raises(ClientError):
        cloudfront.get_distribution(Id=distribution_id)


def test_a_bucket_with_documents_stops_the_deletion(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, {**through_cloudfront(), "Bucket": private_bucket()})
    issuer.publish()
    cloud.delete_stack("s")
    cloud.wait(issuer.stack)
    assert issuer.stack.status == "DELETE_FAILED"
    assert "not empty" in reasons(issuer.stack, "Bucket", "DELETE_FAILED")[0]


READING = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::documents/*"}


def test_the_credentials_are_held_to_the_policies_of_the_role(cloud: CloudFormation) -> None:
    policies = [{"PolicyName": "reading", "PolicyDocument": {"Version": "2012-10-17", "Statement": [READING]}}]
    issuer = Issuer(cloud, through_cloudfront(Role=role(Policies=policies)))
    issuer.publish()
    s3 = client("s3", REGION)
    s3.create_bucket(Bucket="documents", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket="documents", Key="one", Body=b"1")
    with serving(cloud):
        credentials = assume(issuer.token())["Credentials"]
        bearer = boto3.client(
            "s3",
            region_name=REGION,
            aws_access_key_id=credentials["AccessKeyId"],
            aws_secret_access_key=credentials["SecretAccessKey"],
            aws_session_token=credentials["SessionToken"],
        )
        assert bearer.get_object(Bucket="documents", Key="one")["Body"].read() == b"1"
        with pytest.raises(ClientError, match="AccessDenied"):
            bearer.put_object(Bucket="documents", Key="two", Body=b"2")
