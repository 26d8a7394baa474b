"""Handlers of AWS::CloudFront types: a distribution in front of S3 buckets, and the access control of its origins."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.errors import NotModelledError
from cfngen.sandbox.cloudformation.handlers.handler import CreatedResource, Handler, HandlerCall, Tag, client
from cfngen.sandbox.services.modelled_parameters import within
from cfngen.sandbox.untyped import AwsClient, JsonDict, JsonObject, Properties

# CloudFront is a global service, whose endpoint signs for us-east-1.
CLOUDFRONT_REGION = "us-east-1"

# Of the managed cache policies, CachingDisabled is the one that cfngen uses.
SETTINGS = """
    Comment Enabled HttpVersion IPV6Enabled Origins.DomainName Origins.Id Origins.OriginAccessControlId
    Origins.S3OriginConfig.OriginAccessIdentity=
    DefaultCacheBehavior.AllowedMethods=GET DefaultCacheBehavior.AllowedMethods=HEAD
    DefaultCacheBehavior.CachedMethods=GET DefaultCacheBehavior.CachedMethods=HEAD
    DefaultCacheBehavior.CachePolicyId=4135ea2d-6df8-44a3-9df3-4b5a84be39ad
    DefaultCacheBehavior.TargetOriginId DefaultCacheBehavior.ViewerProtocolPolicy
"""


def _cloudfront(call: HandlerCall) -> AwsClient:
    """A client of CloudFront in the partition of the stack's region."""
    return client("cloudfront", call.region if call.region.startswith(("cn-", "us-gov-")) else CLOUDFRONT_REGION)


class Distribution(Handler):
    """A distribution; nothing replaces it. It is disabled before it is deleted, which CloudFront wants."""

    supported_properties = frozenset({"Tags", *within("DistributionConfig", SETTINGS).split()})

    def create(self, call: HandlerCall) -> CreatedResource:
        try:
            configuration = _to_api(call["DistributionConfig"], caller_reference=call.generate_name())
        except KeyError as missing:
            raise NotModelledError(f"a distribution without {missing}") from missing
        created = _cloudfront(call).create_distribution_with_tags(
            DistributionConfigWithTags={
                "DistributionConfig": configuration,
                "Tags": {"Items": call.properties.get("Tags", [])},
            }
        )["Distribution"]
        return CreatedResource(created["Id"], {"Id": created["Id"], "DomainName": created["DomainName"]})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        if "DistributionConfig" in changed:
            self._update(call, call["DistributionConfig"])

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

    def create(self, call: HandlerCall) -> CreatedResource:
        created = _cloudfront(call).create_origin_access_control(
            OriginAccessControlConfig=call["OriginAccessControlConfig"]
        )["OriginAccessControl"]
        return CreatedResource(created["Id"], {"Id": created["Id"]})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        _cloudfront(call).update_origin_access_control(
            Id=call.physical_id, IfMatch=self._etag(call), OriginAccessControlConfig=call["OriginAccessControlConfig"]
        )

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
    methods, cached_methods = _counted(behavior.pop("AllowedMethods")), _counted(behavior.pop("CachedMethods"))
    behavior["AllowedMethods"] = {**methods, "CachedMethods": cached_methods}
    return {
        "HttpVersion": properties["HttpVersion"],
        "IsIPV6Enabled": properties["IPV6Enabled"],
        "CallerReference": caller_reference,
        "Comment": properties.get("Comment", ""),
        "DefaultCacheBehavior": behavior,
        "Enabled": properties["Enabled"],
        "Origins": _counted([_to_api_origin(origin) for origin in properties.get("Origins", [])]),
    }


def _to_api_origin(origin: JsonObject) -> JsonDict:
    return {"OriginPath": "", "CustomHeaders": {"Quantity": 0}, **origin}


def _counted(items: list[object]) -> JsonDict:
    return {"Quantity": len(items), "Items": items}
