"""A small template with an issuer of tokens and a role that trusts one service account of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from small_stacks import REGION, text

from cfngen.sandbox.cloudformation import CloudFormation, Stack, client
from cfngen.sandbox.cloudformation.simulation import SIMULATION_START
from cfngen.sandbox.kubernetes import certificates
from cfngen.sandbox.services import json_web_tokens

AUDIENCE = "sts.amazonaws.com"
SUBJECT = "system:serviceaccount:default:web"
DOCUMENT_KEYS = (".well-known/openid-configuration", "openid/v1/jwks")
CACHING_DISABLED = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
THUMBPRINT = "a" * 40
ROLE = "web-of-cluster"
CAPABILITIES = ["CAPABILITY_NAMED_IAM"]
BLOCKED = {
    "BlockPublicAcls": True,
    "BlockPublicPolicy": True,
    "IgnorePublicAcls": True,
    "RestrictPublicBuckets": True,
}

ACCESS_CONTROL = {
    "Name": {"Ref": "AWS::StackName"},
    "OriginAccessControlOriginType": "s3",
    "SigningBehavior": "always",
    "SigningProtocol": "sigv4",
}
ORIGIN = {
    "Id": "bucket",
    "DomainName": {"Fn::GetAtt": ["Bucket", "RegionalDomainName"]},
    "OriginAccessControlId": {"Fn::GetAtt": ["AccessControl", "Id"]},
    "S3OriginConfig": {"OriginAccessIdentity": ""},
}
BEHAVIOR = {
    "TargetOriginId": "bucket",
    "ViewerProtocolPolicy": "https-only",
    "CachePolicyId": CACHING_DISABLED,
    "AllowedMethods": ["GET", "HEAD"],
    "CachedMethods": ["GET", "HEAD"],
}
THROUGH_CLOUDFRONT = "https://${Distribution.DomainName}"
FROM_BUCKET = "https://${Bucket.RegionalDomainName}"


def access_control(**settings: Any) -> dict[str, Any]:
    properties = {"OriginAccessControlConfig": {**ACCESS_CONTROL, **settings}}
    return {"Type": "AWS::CloudFront::OriginAccessControl", "Properties": properties}


def distribution(*, origin: Mapping[str, Any] = {}, behavior: Mapping[str, Any] = {}, **properties: Any) -> Any:
    settings = {
        "Enabled": True,
        "Comment": "documents of an issuer",
        "HttpVersion": "http2",
        "IPV6Enabled": True,
        "Origins": [without_none({**ORIGIN, **origin})],
        "DefaultCacheBehavior": without_none({**BEHAVIOR, **behavior}),
    }
    return {"Type": "AWS::CloudFront::Distribution", "Properties": {"DistributionConfig": settings, **properties}}


def without_none(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in properties.items() if value is not None}


def private_bucket() -> dict[str, Any]:
    return {"Type": "AWS::S3::Bucket", "Properties": {"PublicAccessBlockConfiguration": BLOCKED}}


def bucket_policy(statement: Mapping[str, Any]) -> dict[str, Any]:
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", **statement}]}
    return {"Type": "AWS::S3::BucketPolicy", "Properties": {"Bucket": {"Ref": "Bucket"}, "PolicyDocument": document}}


def readable_by_distribution(source: str = "${Distribution}") -> dict[str, Any]:
    arn = {"Fn::Sub": f"arn:${{AWS::Partition}}:cloudfront::${{AWS::AccountId}}:distribution/{source}"}
    return bucket_policy(
        {
            "Principal": {"Service": "cloudfront.amazonaws.com"},
            "Resource": {"Fn::Sub": "${Bucket.Arn}/*"},
            "Condition": {"StringEquals": {"AWS:SourceArn": arn}},
        }
    )


def readable_by_everybody() -> dict[str, Any]:
    resources = [{"Fn::Sub": f"${{Bucket.Arn}}/{key}"} for key in DOCUMENT_KEYS]
    return bucket_policy({"Principal": "*", "Resource": resources})


def public_bucket(**blocks: Any) -> dict[str, Any]:
    allowing = {**BLOCKED, "BlockPublicPolicy": False, "RestrictPublicBuckets": False, **blocks}
    return {"Type": "AWS::S3::Bucket", "Properties": {"PublicAccessBlockConfiguration": allowing}}


def provider(url: str = THROUGH_CLOUDFRONT, **properties: Any) -> dict[str, Any]:
    common = {"Url": {"Fn::Sub": url}, "ClientIdList": [AUDIENCE]}
    return {"Type": "AWS::IAM::OIDCProvider", "Properties": {**common, **properties}}


def trust(issuer: str, subject: str = SUBJECT) -> str:
    """A trust policy as the text of an Fn::Sub, as only this can put the issuer into a key."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Federated": "${Provider.Arn}"},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {"StringEquals": {f"{issuer}:aud": AUDIENCE, f"{issuer}:sub": subject}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def role(issuer: str = THROUGH_CLOUDFRONT, **properties: Any) -> dict[str, Any]:
    document = {"Fn::Sub": trust(issuer.removeprefix("https://"))}
    common = {"RoleName": ROLE, "AssumeRolePolicyDocument": document}
    return {"Type": "AWS::IAM::Role", "Properties": {**common, **properties}}


def through_cloudfront(**others: Any) -> dict[str, Any]:
    """The resources of an issuer whose documents are in a private bucket behind a distribution."""
    resources = {
        "Bucket": private_bucket(),
        "AccessControl": access_control(),
        "Distribution": distribution(),
        "Policy": readable_by_distribution(),
        "Provider": provider(),
        "Role": role(),
    }
    return without_none({**resources, **others})


def from_bucket(**others: Any) -> dict[str, Any]:
    """The resources of an issuer whose documents everybody may read from the bucket."""
    resources = {
        "Bucket": public_bucket(),
        "Policy": readable_by_everybody(),
        "Provider": provider(FROM_BUCKET),
        "Role": role(FROM_BUCKET),
    }
    return without_none({**resources, **others})


class Issuer:
    """An issuer of tokens whose stack is complete; its documents are in the bucket once they are published."""

    def __init__(self, cloud: CloudFormation, resources: dict[str, Any], name: str = "s") -> None:
        self.cloud = cloud
        self.stack: Stack = cloud.wait(cloud.create_stack(name, body=text(resources), capabilities=CAPABILITIES))
        assert self.stack.status == "CREATE_COMPLETE", [event.reason for event in self.stack.events if event.reason]
        bundle = certificates.authorities(SIMULATION_START)
        self.private_key, self.public_key = bundle["sa.key"], bundle["sa.pub"]
        url = client("iam", REGION).get_open_id_connect_provider(
            OpenIDConnectProviderArn=self.stack.resources["Provider"].physical_id
        )["Url"]
        self.url = f"https://{url}"

    @property
    def bucket(self) -> str:
        return self.stack.resources["Bucket"].physical_id

    def publish(self, discovery: Mapping[str, Any] = {}, keys: Mapping[str, Any] | None = None) -> None:
        """Put the documents into the bucket, as a master does."""
        configuration = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            **discovery,
        }
        documents = (configuration, json_web_tokens.key_set(self.public_key) if keys is None else keys)
        for key, document in zip(DOCUMENT_KEYS, documents, strict=True):
            client("s3", REGION).put_object(Bucket=self.bucket, Key=key, Body=json.dumps(document).encode())

    def token(self, *, key: str = "", **claims: Any) -> str:
        """A token as the API server signs it, for an hour."""
        now = int(SIMULATION_START.timestamp() + self.cloud.clock.now)
        common = {
            "iss": self.url,
            "sub": SUBJECT,
            "aud": [AUDIENCE],
            "iat": now,
            "nbf": now,
            "exp": now + 3_600,
        }
        return json_web_tokens.sign(without_none({**common, **claims}), key or self.private_key)

    def role_arn(self) -> str:
        return str(self.stack.resources["Role"].attributes["Arn"])


def assume(token: str, role_arn: str = f"arn:aws:iam::123456789012:role/{ROLE}", **arguments: Any) -> dict[str, Any]:
    """What STS answers."""
    sts = client("sts", REGION)
    return sts.assume_role_with_web_identity(
        RoleArn=role_arn, RoleSessionName="web", WebIdentityToken=token, **arguments
    )
