"""CloudFront: distributions in front of S3 buckets, and their origin access controls.

Conditions: the API reference of CloudFront (the errors of CreateDistribution, UpdateDistribution, DeleteDistribution
and of the operations of origin access controls) and the developer guide, "Restrict access to an Amazon S3 origin".
Words: tests/aws/refusals.md.

moto 5.2.5 (moto/cloudfront/models.py) forgets the origin access control of an origin, deletes distributions that are
enabled and access controls that are in use, and takes two access controls of one name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from moto.backends import get_backend
from moto.cloudfront.models import Origin
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.moto_patches.registry import patches
from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.rules import PendingCall, Refused, rule
from cfngen.sandbox.untyped import JsonDict, JsonObject, MotoBackend, MotoModel, Original

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
    """Refuse an origin with an access control that does not exist."""
    configuration: JsonObject = call.get("DistributionConfig") or call.get("DistributionConfigWithTags").get(
        "DistributionConfig"
    )
    for origin in configuration["Origins"]["Items"]:
        access_control_id = origin.get("OriginAccessControlId")
        if access_control_id and access_control_id not in call.backend.origin_access_controls:
            raise Refused("InvalidOriginAccessControl", "The origin access control is not valid.")


@rule("cloudfront", "DeleteDistribution")
def check_disabled(call: PendingCall) -> None:
    """Refuse to delete a distribution that is enabled."""
    distribution = call.backend.distributions.get(call.get("Id"))
    if distribution is not None and is_enabled(distribution):
        raise Refused("DistributionNotDisabled", "The distribution you are trying to delete has not been disabled.")


@rule("cloudfront", "CreateOriginAccessControl", "UpdateOriginAccessControl")
def check_access_control(call: PendingCall) -> None:
    """Refuse an access control whose name is in use."""
    name = call.get("OriginAccessControlConfig")["Name"]
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
