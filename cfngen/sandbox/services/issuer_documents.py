"""The documents of an issuer of tokens, read over the internet as STS reads them.

Only the emulated account's own servers are known: distributions of CloudFront in front of a bucket, and buckets that
everybody may read. CloudFront caches nothing here: assumed, as its caches follow the TTL of the cache policy.

Who can read an object without an identity of IAM: Amazon S3 user guide, "How Amazon S3 authorizes a request" and
"Blocking public access to your Amazon S3 storage"; Amazon CloudFront developer guide, "Restrict access to an Amazon S3
origin": CloudFront signs as the service principal cloudfront.amazonaws.com, with the distribution's ARN as
`aws:SourceArn`.
"""

from __future__ import annotations

import json
import re
import urllib.parse

from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.services import buckets, policy_documents
from cfngen.sandbox.services.authorization import ANONYMOUS, Caller, Context, Policies, Request, authorize
from cfngen.sandbox.services.distributions import BUCKET_DOMAIN, cloudfront_backend, find_distribution, is_enabled
from cfngen.sandbox.untyped import JsonObject, MotoModel

DISCOVERY_PATH = "/.well-known/openid-configuration"
# S3 user guide, "Virtual hosting of buckets" and "Path-style requests".
PATH_STYLE_HOST = re.compile(r"s3(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?")
CLOUDFRONT = Caller(service="cloudfront.amazonaws.com")
KMS = "aws:kms"


def read_document(region: str, url: str) -> JsonObject | None:
    """Return a JSON document behind a URL; None if STS cannot read it."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https":
        return None
    content = _read(region, parts.hostname or "", urllib.parse.unquote(parts.path.removeprefix("/")))
    try:
        document = json.loads(content) if content is not None else None
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _read(region: str, host: str, path: str) -> bytes | None:
    """Return what a server answers; None if it is not known, or refuses."""
    if distribution := find_distribution(region, host):
        return _read_through(region, distribution, path)
    if PATH_STYLE_HOST.fullmatch(host):
        bucket, _, key = path.partition("/")
        return read_by_everybody(region, bucket, key)
    match = BUCKET_DOMAIN.fullmatch(host)
    # The certificate of S3 does not cover names with further dots ("Bucket naming rules").
    if match is None or "." in match["bucket"]:
        return None
    return read_by_everybody(region, match["bucket"], path)


def _read_through(region: str, distribution: MotoModel, path: str) -> bytes | None:
    """Return what a distribution answers, which is an object of its default origin's bucket.

    Without an access control, CloudFront reads as everybody does.
    """
    if not is_enabled(distribution):
        return None
    configuration = distribution.distribution_config
    target = configuration.DefaultCacheBehavior.target_origin_id
    origin = next(item for item in configuration.Origins["Items"] if item.id == target)
    match = BUCKET_DOMAIN.fullmatch(origin.domain_name)
    if match is None:
        return None
    if origin.origin_access_control_id not in cloudfront_backend(region).origin_access_controls:
        return read_by_everybody(region, match["bucket"], path)
    arn = f"arn:{policy_documents.partition(region)}:cloudfront::{DEFAULT_ACCOUNT_ID}:distribution/{distribution.id}"
    return read_by_cloudfront(region, match["bucket"], path, arn)


def read_by_everybody(region: str, bucket_name: str, key: str) -> bytes | None:
    """Return an object as anybody without credentials reads it over HTTPS; None if S3 refuses that."""
    bucket = _find_bucket(region, bucket_name)
    if bucket is None or buckets.blocks(bucket, "restrict_public_buckets", region):
        return None
    return _read_object(region, bucket, key, ANONYMOUS, {"aws:securetransport": ["true"]})


def read_by_cloudfront(region: str, bucket_name: str, key: str, distribution_arn: str) -> bytes | None:
    """Return an object as CloudFront reads it with an origin access control; None if S3 refuses that."""
    bucket = _find_bucket(region, bucket_name)
    if bucket is None:
        return None
    context = {
        "aws:securetransport": ["true"],
        "aws:sourcearn": [distribution_arn],
        "aws:sourceaccount": [DEFAULT_ACCOUNT_ID],
    }
    return _read_object(region, bucket, key, CLOUDFRONT, context)


def _find_bucket(region: str, name: str) -> MotoModel | None:
    backend = get_backend("s3")[DEFAULT_ACCOUNT_ID][policy_documents.partition(region)]
    bucket: MotoModel | None = backend.buckets.get(name)
    return bucket


def _read_object(region: str, bucket: MotoModel, key: str, caller: Caller, context: Context) -> bytes | None:
    """Return an object if the bucket's policy lets a caller read it.

    An object that KMS encrypts needs a right to its key, which nobody has here: assumed of CloudFront, to which a key
    policy could give it.
    """
    item = bucket.keys.get(key)
    if item is None or not bucket.policy or str(item.encryption or "").startswith(KMS):
        return None
    request = Request("s3:GetObject", f"arn:{policy_documents.partition(region)}:s3:::{bucket.name}/{key}", context)
    document = policy_documents.parse(bucket.policy.decode())
    if authorize(request, caller, Policies(resource=document)) != "allowed":
        return None
    content: bytes = item.value
    return content
