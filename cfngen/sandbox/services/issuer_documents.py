"""The documents of an issuer of tokens, read over the internet as STS reads them.

Only the emulated account's own servers are known: distributions of CloudFront in front of a bucket, and buckets that
everybody may read. CloudFront caches nothing here: assumed, as its caches follow the TTL of the cache policy.
"""

from __future__ import annotations

import json
import re
import urllib.parse

from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.moto_types import MotoModel
from cfngen.sandbox.services import object_access, policy_documents
from cfngen.sandbox.services.distributions import (
    BUCKET_DOMAIN,
    cloudfront_backend,
    find_distribution,
    is_enabled,
)

DISCOVERY_PATH = "/.well-known/openid-configuration"
# S3 user guide, "Virtual hosting of buckets" and "Path-style requests".
PATH_STYLE_HOST = re.compile(r"s3(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?")


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
        return object_access.read_by_everybody(region, bucket, key)
    match = BUCKET_DOMAIN.fullmatch(host)
    # The certificate of S3 does not cover names with further dots ("Bucket naming rules").
    if match is None or "." in match["bucket"]:
        return None
    return object_access.read_by_everybody(region, match["bucket"], path)


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
    key = f"{origin.origin_path}/{path}".removeprefix("/")
    if origin.origin_access_control_id not in cloudfront_backend(region).origin_access_controls:
        return object_access.read_by_everybody(region, match["bucket"], key)
    arn = f"arn:{policy_documents.partition(region)}:cloudfront::{DEFAULT_ACCOUNT_ID}:distribution/{distribution.id}"
    return object_access.read_by_cloudfront(region, match["bucket"], key, arn)
