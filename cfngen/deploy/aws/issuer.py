"""The issuer of a cluster's service-account tokens, as AWS meets it: its OIDC provider and its documents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cfngen.cluster.naming.names import aws_partition
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.types import AwsObject, JsonObject

_NO_PROVIDER = "NoSuchEntity"  # GetOpenIDConnectProvider, IAM API Reference
_NO_OBJECT = frozenset({"NoSuchKey", "NoSuchBucket", "404"})  # GetObject, Amazon S3 API Reference


@dataclass(frozen=True)
class IssuerView:
    """An issuer of service-account tokens; what the caller may not read is left out.

    Attributes:
        name: the issuer, without `https://`.
        bucket: the bucket with its documents; empty if masters do not publish them.
        has_provider: false if IAM has no OIDC provider for it.
        audiences: the audiences that its OIDC provider accepts; None if it could not be read.
        documents: its documents by key: None if there is no such object, empty if it is not a JSON object.
    """

    name: str
    bucket: str = ""
    has_provider: bool = True
    audiences: tuple[str, ...] | None = None
    documents: Mapping[str, JsonObject | None] = field(default_factory=dict)


def read_issuer(account: Account, name: str, bucket: str, keys: Iterable[str]) -> IssuerView:
    """Return the issuer of this name, with the documents that have these keys in the bucket."""
    has_provider = True
    audiences = None
    arn = f"arn:{aws_partition(account.region)}:iam::{account.id}:oidc-provider/{name}"
    try:
        with translate_aws_errors():
            provider: AwsObject = account.client("iam").get_open_id_connect_provider(OpenIDConnectProviderArn=arn)
        audiences = tuple(provider.get("ClientIDList", ()))
    except AwsError as error:
        has_provider = error.aws_code != _NO_PROVIDER
    documents: dict[str, JsonObject | None] = {}
    for key in keys:
        try:
            with translate_aws_errors():
                documents[key] = _parse(account.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
        except AwsError as error:
            if error.aws_code in _NO_OBJECT:
                documents[key] = None
    return IssuerView(name, bucket, has_provider, audiences, documents)


def _parse(body: bytes) -> JsonObject:
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
