"""Handlers of AWS::CloudFront types: a distribution in front of S3 buckets, and the access control of its origins."""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.sandbox.cloudformation.errors import NotModelledError
from cfngen.sandbox.cloudformation.handlers.handler import CreatedResource, Handler, HandlerCall, Tag, client
from cfngen.sandbox.json_types import AwsClient, Expression, JsonDict, JsonObject, Properties

# CloudFront is a global service, whose endpoint signs for us-east-1.
CLOUDFRONT_REGION = "us-east-1"
READ_METHODS = ["HEAD", "GET"]  # both are always cached

# The settings that the emulator supports, by the path of what has them.
SUPPORTED_SETTINGS: Mapping[str, frozenset[str]] = {
    "DistributionConfig": frozenset({
        "Comment", "DefaultCacheBehavior", "Enabled", "HttpVersion", "IPV6Enabled", "Origins", "PriceClass",
        "Restrictions", "ViewerCertificate",
    }),
    "Origins": frozenset({"DomainName", "Id", "OriginAccessControlId", "OriginPath", "S3OriginConfig"}),
    "DefaultCacheBehavior": frozenset(
        {"AllowedMethods", "CachePolicyId", "CachedMethods", "Compress", "TargetOriginId", "ViewerProtocolPolicy"}
    ),
    "S3OriginConfig": frozenset({"OriginAccessIdentity"}),
    "ViewerCertificate": frozenset({"CloudFrontDefaultCertificate", "MinimumProtocolVersion"}),
    "Restrictions": frozenset({"GeoRestriction"}),
    "GeoRestriction": frozenset({"RestrictionType"}),
}  # fmt: skip


def _cloudfront(call: HandlerCall) -> AwsClient:
    """A client of CloudFront in the partition of the stack's region."""
    return client("cloudfront", call.region if call.region.startswith(("cn-", "us-gov-")) else CLOUDFRONT_REGION)


class Distribution(Handler):
    """A distribution; nothing replaces it. It is disabled before it is deleted, which CloudFront wants."""

    supported_properties = frozenset({"DistributionConfig", "Tags"})
    updatable_properties = supported_properties

    def refuse_not_modelled(self, properties: Properties) -> None:
        _refuse_unsupported("DistributionConfig", properties.get("DistributionConfig", {}))

    def create(self, call: HandlerCall) -> CreatedResource:
        configuration = _to_api(call["DistributionConfig"], caller_reference=call.generate_name())
        created = _cloudfront(call).create_distribution_with_tags(
            DistributionConfigWithTags={
                "DistributionConfig": configuration,
                "Tags": {"Items": call.properties.get("Tags", [])},
            }
        )["Distribution"]
        return CreatedResource(created["Id"], {"Id": created["Id"], "DomainName": created["DomainName"]})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        if "DistributionConfig" in changed:
            self._update(call, call["DistributionConfig"])
        return {}

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        _cloudfront(call).tag_resource(Resource=self._arn(call), Tags={"Items": tags})

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        _cloudfront(call).untag_resource(Resource=self._arn(call), TagKeys={"Items": keys})

    def _arn(self, call: HandlerCall) -> str:
        return str(_cloudfront(call).get_distribution(Id=call.physical_id)["Distribution"]["ARN"])

    def read_actual(self, call: HandlerCall) -> Properties | None:
        cloudfront = _cloudfront(call)
        try:
            distribution = cloudfront.get_distribution(Id=call.physical_id)["Distribution"]
        except cloudfront.exceptions.NoSuchDistribution:
            return None
        tags = cloudfront.list_tags_for_resource(Resource=distribution["ARN"])["Tags"]["Items"]
        return {"Tags": tags} if tags else {}

    def delete(self, call: HandlerCall) -> None:
        """Disable and delete the distribution.

        The schema's permissions for deletions lack cloudfront:UpdateDistribution, which disabling takes.
        """
        self._update(call, {**call["DistributionConfig"], "Enabled": False})
        etag = _cloudfront(call).get_distribution(Id=call.physical_id)["ETag"]
        _cloudfront(call).delete_distribution(Id=call.physical_id, IfMatch=etag)

    def _update(self, call: HandlerCall, properties: JsonObject) -> None:
        """Give the distribution other settings; the reference of its caller stays."""
        cloudfront = _cloudfront(call)
        current = cloudfront.get_distribution_config(Id=call.physical_id)
        reference = current["DistributionConfig"]["CallerReference"]
        cloudfront.update_distribution(
            Id=call.physical_id,
            IfMatch=current["ETag"],
            DistributionConfig=_to_api(properties, caller_reference=reference),
        )


class OriginAccessControl(Handler):
    supported_properties = frozenset({"OriginAccessControlConfig"})
    updatable_properties = supported_properties

    def create(self, call: HandlerCall) -> CreatedResource:
        created = _cloudfront(call).create_origin_access_control(
            OriginAccessControlConfig=call["OriginAccessControlConfig"]
        )["OriginAccessControl"]
        return CreatedResource(created["Id"], {"Id": created["Id"]})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        _cloudfront(call).update_origin_access_control(
            Id=call.physical_id, IfMatch=self._etag(call), OriginAccessControlConfig=call["OriginAccessControlConfig"]
        )
        return {}

    def read_actual(self, call: HandlerCall) -> Properties | None:
        cloudfront = _cloudfront(call)
        try:
            actual = cloudfront.get_origin_access_control(Id=call.physical_id)["OriginAccessControl"]
        except cloudfront.exceptions.NoSuchOriginAccessControl:
            return None
        settings = actual["OriginAccessControlConfig"]
        return {"OriginAccessControlConfig": {key: value for key, value in settings.items() if value}}

    def delete(self, call: HandlerCall) -> None:
        _cloudfront(call).delete_origin_access_control(Id=call.physical_id, IfMatch=self._etag(call))

    def _etag(self, call: HandlerCall) -> str:
        return str(_cloudfront(call).get_origin_access_control(Id=call.physical_id)["ETag"])


def _to_api(properties: JsonObject, *, caller_reference: str) -> JsonDict:
    """Convert a template's DistributionConfig to that of the API, whose lists come with their lengths."""
    behavior = dict(properties["DefaultCacheBehavior"])
    methods = behavior.pop("AllowedMethods", READ_METHODS)
    cached_methods = behavior.pop("CachedMethods", READ_METHODS)
    behavior["AllowedMethods"] = {**_counted(methods), "CachedMethods": _counted(cached_methods)}
    configuration = {
        key: properties[key] for key in ("HttpVersion", "PriceClass", "ViewerCertificate") if key in properties
    }
    if "IPV6Enabled" in properties:
        configuration["IsIPV6Enabled"] = properties["IPV6Enabled"]
    if "Restrictions" in properties:
        restriction = properties["Restrictions"]["GeoRestriction"]["RestrictionType"]
        configuration["Restrictions"] = {"GeoRestriction": {"RestrictionType": restriction, "Quantity": 0}}
    return {
        **configuration,
        "CallerReference": caller_reference,
        "Comment": properties.get("Comment", ""),
        "DefaultCacheBehavior": behavior,
        "Enabled": properties["Enabled"],
        "Origins": _counted([_to_api_origin(origin) for origin in properties.get("Origins", [])]),
    }


def _to_api_origin(origin: JsonObject) -> JsonDict:
    """Convert an origin; an S3 origin with an access control has an empty identity, as CloudFormation sends it."""
    api_origin: JsonDict = {"OriginPath": "", "CustomHeaders": {"Quantity": 0}, **origin}
    if "S3OriginConfig" in origin:
        api_origin["S3OriginConfig"] = {"OriginAccessIdentity": "", **origin["S3OriginConfig"]}
    return api_origin


def _counted(items: list[object]) -> JsonDict:
    return {"Quantity": len(items), "Items": items}


def _refuse_unsupported(name: str, settings: Expression) -> None:
    """Refuse settings that the emulator does not support, at any depth."""
    if not isinstance(settings, dict):
        return
    if unsupported := sorted(set(settings) - SUPPORTED_SETTINGS[name]):
        raise NotModelledError(f"settings {unsupported} of {name} of a distribution")
    for key, value in settings.items():
        for part in value if isinstance(value, list) else [value]:
            _refuse_unsupported(key, part)
