"""CloudFront: distributions in front of S3 buckets, and their origin access controls.

Conditions: the API reference of CloudFront (the errors of CreateDistribution, UpdateDistribution, DeleteDistribution
and of the operations of origin access controls) and the developer guide, "Restrict access to an Amazon S3 origin" and
"Use managed cache policies". Words: tests/aws/refusals.md.

moto 5.2.5 (moto/cloudfront/models.py) forgets the origin access control of an origin, deletes distributions that are
enabled and access controls that are in use, and takes two access controls of one name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from moto.backends import get_backend
from moto.cloudfront.models import Origin
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.json_types import JsonDict, JsonObject
from cfngen.sandbox.moto_patches.registry import patches
from cfngen.sandbox.moto_types import MotoBackend, MotoModel, Original
from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.rules import PendingCall, Refused, rule

MAX_ACCESS_CONTROL_NAME = 64
# Developer guide, "Use managed cache policies": every account has these, and the emulator makes no others.
MANAGED_CACHE_POLICIES = frozenset({
    "2e54312d-136d-493c-8eb9-b001f22f67d2",  # Amplify
    "4135ea2d-6df8-44a3-9df3-4b5a84be39ad",  # CachingDisabled
    "658327ea-f89d-4fab-a63d-7e88639e58f6",  # CachingOptimized
    "b2884449-e4de-46a7-ac36-70bc7f1ddd6d",  # CachingOptimizedForUncompressedObjects
    "08627262-05a9-4f76-9ded-b50ca2e3a84f",  # Elemental-MediaPackage
    "83da9c7e-98b4-4e11-a168-04f0df8e2c65",  # UseOriginCacheControlHeaders
    "4cc15a8a-d715-48a4-82b8-cc0b614638fe",  # UseOriginCacheControlHeaders-QueryStrings
})  # fmt: skip

# API reference, AllowedMethods: three choices, of which the first two can be cached.
METHODS = (
    {"GET", "HEAD"},
    {"GET", "HEAD", "OPTIONS"},
    {"GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE"},
)

# The bucket of an origin: <bucket>.s3.<region>.amazonaws.com, or the older <bucket>.s3.amazonaws.com.
BUCKET_DOMAIN = re.compile(r"(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])\.s3(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?")


@patches(Origin, "__init__")
def _keep_access_control(original: Original, self: MotoModel, origin: JsonDict) -> None:
    original(self, origin)
    self.origin_access_control_id = origin.get("OriginAccessControlId") or ""


def cloudfront_backend(region: str) -> MotoBackend:
    """Return moto's CloudFront in the partition of a region."""
    return get_backend("cloudfront")[DEFAULT_ACCOUNT_ID][policy_documents.partition(region)]


def find_distribution(region: str, domain_name: str) -> MotoModel | None:
    """Return the account's distribution in the region's partition with a domain name of CloudFront; otherwise None."""
    distributions = cloudfront_backend(region).distributions.values()
    return next((item for item in distributions if item.domain_name == domain_name), None)


@rule("cloudfront", "CreateDistribution", "CreateDistributionWithTags", "UpdateDistribution")
def check_configuration(call: PendingCall) -> None:
    """Refuse a configuration whose origins, methods or cache policy are missing or contradict each other."""
    configuration: JsonObject = (
        call.get("DistributionConfig") or (call.get("DistributionConfigWithTags") or {}).get("DistributionConfig") or {}
    )
    origins = (configuration.get("Origins") or {}).get("Items") or []
    for origin in origins:
        _check_origin(call, origin)
    ids = [origin.get("Id") for origin in origins]
    if len(set(ids)) < len(ids):
        raise Refused("InvalidArgument", "The Id of an origin must be unique within the distribution.")
    _check_restrictions(configuration)
    behavior = configuration.get("DefaultCacheBehavior") or {}
    allowed = behavior.get("AllowedMethods") or {}
    for methods, choices in ((allowed, METHODS), (allowed.get("CachedMethods") or {}, METHODS[:2])):
        if methods and set(methods.get("Items") or ()) not in choices:
            raise Refused("InvalidArgument", "The parameter Methods is none of the choices that CloudFront has.")
    if not set((allowed.get("CachedMethods") or {}).get("Items") or ()) <= set(allowed.get("Items") or ()):
        raise Refused("InvalidArgument", "The parameter CachedMethods has a method that is not allowed.")
    cache_policy_id = behavior.get("CachePolicyId")
    if not cache_policy_id and not behavior.get("ForwardedValues"):
        raise Refused("InvalidArgument", "The parameter ForwardedValues is required.")
    if cache_policy_id and cache_policy_id not in MANAGED_CACHE_POLICIES:
        raise Refused("NoSuchCachePolicy", "The specified cache policy does not exist.")


def _check_restrictions(configuration: JsonObject) -> None:
    """Refuse a list of countries without a country."""
    geographic = (configuration.get("Restrictions") or {}).get("GeoRestriction") or {}
    if geographic and (geographic.get("RestrictionType") == "none") == bool(geographic.get("Items")):
        raise Refused("InvalidGeoRestrictionParameter", "The specified geo restriction parameter is not valid.")


def _check_origin(call: PendingCall, origin: JsonObject) -> None:
    """Refuse an origin of no kind, and an access control that does not exist or does not fit the origin."""
    s3_origin = origin.get("S3OriginConfig")
    if s3_origin is None and not origin.get("CustomOriginConfig"):
        raise Refused("InvalidOrigin", "Exactly one of CustomOriginConfig and S3OriginConfig must be specified")
    path = origin.get("OriginPath") or ""
    if path and (not path.startswith("/") or path.endswith("/")):
        raise Refused("InvalidArgument", "The parameter OriginPath must begin with / and must not end with it.")
    access_control_id = origin.get("OriginAccessControlId")
    identity = (s3_origin or {}).get("OriginAccessIdentity")
    if identity and not access_control_id:  # moto has none
        raise Refused(
            "InvalidOriginAccessIdentity", "The specified origin access identity does not exist or is not valid."
        )
    if not access_control_id:
        return
    if access_control_id not in call.backend.origin_access_controls:
        raise Refused("InvalidOriginAccessControl", "The origin access control is not valid.")
    if identity:
        raise Refused(
            "IllegalOriginAccessConfiguration",
            "An origin cannot contain both an origin access control (OAC) and an origin access identity (OAI).",
        )
    if not BUCKET_DOMAIN.fullmatch(str(origin.get("DomainName"))):
        raise Refused(
            "InvalidDomainNameForOriginAccessControl",
            "An origin access control is associated with an origin whose domain name is not supported.",
        )


@rule("cloudfront", "UpdateDistribution", "DeleteDistribution")
def check_version(call: PendingCall) -> None:
    """Refuse to change a distribution without the version that is to be changed."""
    distribution = call.backend.distributions.get(call.get("Id"))
    if distribution is not None and call.get("IfMatch") != distribution.etag:
        raise Refused("InvalidIfMatchVersion", "The If-Match version is missing or not valid for the resource.")


@rule("cloudfront", "DeleteDistribution")
def check_disabled(call: PendingCall) -> None:
    """Refuse to delete a distribution that is enabled."""
    distribution = call.backend.distributions.get(call.get("Id"))
    if distribution is not None and is_enabled(distribution):
        raise Refused("DistributionNotDisabled", "The distribution you are trying to delete has not been disabled.")


@rule("cloudfront", "CreateOriginAccessControl", "UpdateOriginAccessControl")
def check_access_control(call: PendingCall) -> None:
    """Refuse an access control whose name is too long, or in use."""
    settings: JsonObject = call.get("OriginAccessControlConfig") or {}
    name = settings.get("Name", "")
    if not 0 < len(name) <= MAX_ACCESS_CONTROL_NAME:
        # CloudFormation tells no more (aws-samples/amazon-cloudfront-secure-static-site#66).
        raise Refused("InvalidArgument", "Invalid request provided: AWS::CloudFront::OriginAccessControl")
    others = [item for item in call.backend.origin_access_controls.values() if item.id != call.get("Id")]
    if any(item.name == name for item in others):
        raise Refused("OriginAccessControlAlreadyExists", "An origin access control with the same name already exists.")


@rule("cloudfront", "DeleteOriginAccessControl")
def check_access_control_unused(call: PendingCall) -> None:
    """Refuse to delete an access control that an origin of a distribution uses, also of a disabled one."""
    used = {origin.origin_access_control_id for origin in _origins(call.backend)}
    if call.get("Id") in used:
        raise Refused("OriginAccessControlInUse", "The CloudFront origin access control is still being used.")


def is_enabled(distribution: MotoModel) -> bool:
    """Return whether a distribution answers requests."""
    return str(distribution.distribution_config.Enabled).lower() == "true"


def _origins(backend: MotoBackend) -> Iterator[MotoModel]:
    for distribution in backend.distributions.values():
        yield from distribution.distribution_config.Origins["Items"]
