"""Handlers of AWS::S3 types; a bucket's settings need one call each, because S3 has no call for all of them."""

from __future__ import annotations

import contextlib
import json

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Handler,
    HandlerCall,
    client,
    leave_to_rollback_on_failure,
)
from cfngen.sandbox.json_types import AwsClient, JsonDict, Properties
from cfngen.sandbox.services.modelled_parameters import within
from cfngen.sandbox.services.policy_documents import partition

MAX_BUCKET_NAME_LENGTH = 63  # S3 user guide, "Bucket naming rules"
ENCRYPTION_RULE_KEYS = """
    BucketKeyEnabled=true ServerSideEncryptionByDefault.KMSMasterKeyID
    ServerSideEncryptionByDefault.SSEAlgorithm=AES256 ServerSideEncryptionByDefault.SSEAlgorithm=aws:kms
"""
LIFECYCLE_RULE_KEYS = """
    Id Status Prefix ExpirationInDays ExpiredObjectDeleteMarker NoncurrentVersionExpiration.NoncurrentDays
    AbortIncompleteMultipartUpload
"""


class Bucket(Handler):
    """A bucket with a generated name; as in S3, deleting it fails if it is not empty."""

    supported_properties = frozenset({
        *within("BucketEncryption.ServerSideEncryptionConfiguration", ENCRYPTION_RULE_KEYS).split(),
        "LoggingConfiguration",
        *within("LifecycleConfiguration.Rules", LIFECYCLE_RULE_KEYS).split(),
        "OwnershipControls.Rules.ObjectOwnership=BucketOwnerEnforced", "PublicAccessBlockConfiguration", "Tags",
        "ObjectLockEnabled=true", "VersioningConfiguration.Status=Enabled",
    })  # fmt: skip

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.generate_name(limit=MAX_BUCKET_NAME_LENGTH).lower()
        region = call.region
        # In us-east-1, S3 accepts no LocationConstraint (API, CreateBucket).
        location = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        lock = {"ObjectLockEnabledForBucket": True} if "ObjectLockEnabled" in call.properties else {}
        _s3(call).create_bucket(Bucket=name, ObjectOwnership="BucketOwnerEnforced", **location, **lock)
        suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        attributes = {
            "Arn": f"arn:{partition(region)}:s3:::{name}",
            "DomainName": f"{name}.s3.amazonaws.com",
            "DualStackDomainName": f"{name}.s3.dualstack.{region}.{suffix}",
            "RegionalDomainName": f"{name}.s3.{region}.{suffix}",
        }
        created = CreatedResource(name, attributes)
        with leave_to_rollback_on_failure(created):
            _apply_settings(call, name, set(call.properties) - {"ObjectLockEnabled"})
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        _apply_settings(call, call.physical_id, changed - {"Tags"})
        return {}

    def retag(self, call: HandlerCall, old_properties: Properties) -> None:
        _s3(call).put_bucket_tagging(Bucket=call.physical_id, Tagging={"TagSet": call.properties.get("Tags", [])})

    def delete(self, call: HandlerCall) -> None:
        _s3(call).delete_bucket(Bucket=call.physical_id)


class BucketPolicy(Handler):
    supported_properties = frozenset({"Bucket", "PolicyDocument"})

    def create(self, call: HandlerCall) -> CreatedResource:
        s3 = _s3(call)
        with contextlib.suppress(ClientError):  # S3 refuses the call if there is no policy, or no bucket
            s3.get_bucket_policy(Bucket=call["Bucket"])
            raise ResourceError(f"The bucket policy already exists on bucket {call['Bucket']}.")
        self._put(call)
        return CreatedResource(call["Bucket"])

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        self._put(call)
        return {}

    def delete(self, call: HandlerCall) -> None:
        _s3(call).delete_bucket_policy(Bucket=call["Bucket"])

    def _put(self, call: HandlerCall) -> None:
        _s3(call).put_bucket_policy(Bucket=call["Bucket"], Policy=json.dumps(call["PolicyDocument"]))


def _s3(call: HandlerCall) -> AwsClient:
    return client("s3", call.region)


def _apply_settings(call: HandlerCall, bucket_name: str, changed_keys: set[str]) -> None:
    """Apply the changed properties to a bucket, and delete lifecycle rules that the template no longer has."""
    s3, properties = _s3(call), call.properties
    if "BucketEncryption" in changed_keys:
        template_rules = properties.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [])
        encryption_rules = [
            {
                "ApplyServerSideEncryptionByDefault": rule.get("ServerSideEncryptionByDefault", {}),
                "BucketKeyEnabled": rule.get("BucketKeyEnabled", False),
            }
            for rule in template_rules
        ]
        s3.put_bucket_encryption(Bucket=bucket_name, ServerSideEncryptionConfiguration={"Rules": encryption_rules})
    if "VersioningConfiguration" in changed_keys:
        # A bucket that was versioned once stays so; without the property, no more versions are made.
        status = properties.get("VersioningConfiguration", {}).get("Status", "Suspended")
        s3.put_bucket_versioning(Bucket=bucket_name, VersioningConfiguration={"Status": status})
    if "ObjectLockEnabled" in changed_keys:
        if "ObjectLockEnabled" not in properties:
            raise ResourceError("the emulator does not model that a template takes Object Lock away")
        s3.put_object_lock_configuration(Bucket=bucket_name, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"})
    if "LifecycleConfiguration" in changed_keys:
        template_rules = properties.get("LifecycleConfiguration", {}).get("Rules", [])
        if template_rules:
            lifecycle_rules = [_to_s3_lifecycle_rule(rule) for rule in template_rules]
            s3.put_bucket_lifecycle_configuration(Bucket=bucket_name, LifecycleConfiguration={"Rules": lifecycle_rules})
        else:
            s3.delete_bucket_lifecycle(Bucket=bucket_name)
    if "LoggingConfiguration" in changed_keys:
        status = _to_s3_logging_status(properties.get("LoggingConfiguration"))
        s3.put_bucket_logging(Bucket=bucket_name, BucketLoggingStatus=status)
    if "OwnershipControls" in changed_keys and "OwnershipControls" in properties:
        s3.put_bucket_ownership_controls(
            Bucket=bucket_name, OwnershipControls={"Rules": properties["OwnershipControls"]["Rules"]}
        )
    if "PublicAccessBlockConfiguration" in changed_keys and "PublicAccessBlockConfiguration" in properties:
        s3.put_public_access_block(
            Bucket=bucket_name, PublicAccessBlockConfiguration=properties["PublicAccessBlockConfiguration"]
        )
    if "Tags" in changed_keys and properties.get("Tags"):
        s3.put_bucket_tagging(Bucket=bucket_name, Tagging={"TagSet": properties["Tags"]})


def _to_s3_logging_status(template_logging: Properties | None) -> JsonDict:
    """Return where access logs go; empty, which turns them off, if the template no longer says so."""
    if not template_logging:
        return {}
    destination = {
        "TargetBucket": template_logging["DestinationBucketName"],
        "TargetPrefix": template_logging.get("LogFilePrefix", ""),
    }
    return {"LoggingEnabled": destination}


def _to_s3_lifecycle_rule(template_rule: Properties) -> JsonDict:
    s3_rule: JsonDict = {"Filter": {"Prefix": template_rule.get("Prefix", "")}}
    if "Id" in template_rule:
        s3_rule["ID"] = template_rule["Id"]
    if "ExpirationInDays" in template_rule:
        s3_rule["Expiration"] = {"Days": template_rule["ExpirationInDays"]}
    if "ExpiredObjectDeleteMarker" in template_rule:
        s3_rule["Expiration"] = {"ExpiredObjectDeleteMarker": template_rule["ExpiredObjectDeleteMarker"]}
    for key in ("Status", "NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload"):
        if key in template_rule:
            s3_rule[key] = template_rule[key]
    return s3_rule
