"""Handlers of AWS::S3 types; a bucket's settings need one call each, because S3 has no call for all of them."""

from __future__ import annotations

import contextlib
import json

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Handler,
    HandlerCall,
    client,
    leave_to_rollback_on_failure,
)
from cfngen.sandbox.json_types import AwsClient, JsonDict, Properties

MAX_BUCKET_NAME_LENGTH = 63  # S3 user guide, "Bucket naming rules"


class Bucket(Handler):
    """BucketName is not supported. As in S3, deleting a bucket that is not empty fails."""

    supported_properties = frozenset(
        {
            "BucketEncryption",
            "LifecycleConfiguration",
            "OwnershipControls",
            "PublicAccessBlockConfiguration",
            "Tags",
        }
    )
    updatable = supported_properties

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.generate_name(limit=MAX_BUCKET_NAME_LENGTH).lower()
        region = call.region
        _check_supported(call)
        configuration = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        _s3(call).create_bucket(Bucket=name, ObjectOwnership="BucketOwnerEnforced", **configuration)
        created = CreatedResource(name, {"Arn": f"arn:aws:s3:::{name}", "DomainName": f"{name}.s3.amazonaws.com"})
        with leave_to_rollback_on_failure(created):
            _apply_settings(call, name, set(call.properties))
        return created

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
        _check_supported(call)
        _apply_settings(call, call.physical_id, changed - {"Tags"})
        return {}

    def retag(self, call: HandlerCall, previous: Properties) -> None:
        _s3(call).put_bucket_tagging(Bucket=call.physical_id, Tagging={"TagSet": call.properties.get("Tags", [])})

    def delete(self, call: HandlerCall) -> None:
        _s3(call).delete_bucket(Bucket=call.physical_id)


class BucketPolicy(Handler):
    supported_properties = frozenset({"Bucket", "PolicyDocument"})
    updatable = frozenset({"PolicyDocument"})

    def create(self, call: HandlerCall) -> CreatedResource:
        s3 = _s3(call)
        with contextlib.suppress(ClientError):  # no policy, or no bucket
            s3.get_bucket_policy(Bucket=call["Bucket"])
            raise ResourceError(f"The bucket policy already exists on bucket {call['Bucket']}.")
        self._put(call)
        return CreatedResource(call["Bucket"])

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
        self._put(call)
        return {}

    def delete(self, call: HandlerCall) -> None:
        _s3(call).delete_bucket_policy(Bucket=call["Bucket"])

    def _put(self, call: HandlerCall) -> None:
        """Set the policy of the bucket."""
        _s3(call).put_bucket_policy(Bucket=call["Bucket"], Policy=json.dumps(call["PolicyDocument"]))


def _s3(call: HandlerCall) -> AwsClient:
    """A client of S3."""
    return client("s3", call.region)


RULE_KEYS = frozenset({"Id", "Status", "Prefix", "ExpirationInDays", "AbortIncompleteMultipartUpload"})


def _check_supported(call: HandlerCall) -> None:
    """Refuse settings that the emulator does not support.

    Raises:
        NotModelledError: names them
    """
    rules = call.properties.get("LifecycleConfiguration", {}).get("Rules", [])
    encryption = call.properties.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [])
    unknown = {key for rule in rules for key in rule} - RULE_KEYS
    unknown |= {key for rule in encryption for key in rule} - {"ServerSideEncryptionByDefault"}
    unknown |= set(call.properties.get("LifecycleConfiguration", {})) - {"Rules"}
    if unknown:
        raise NotModelledError(f"settings {sorted(unknown)} of a bucket")


def _apply_settings(call: HandlerCall, name: str, keys: set[str]) -> None:
    """Apply the named properties to a bucket, and delete those that the template no longer has."""
    s3, bucket, properties = _s3(call), {"Bucket": name}, call.properties
    if "BucketEncryption" in keys:
        rules = properties.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [])
        encryption_rules = [
            {"ApplyServerSideEncryptionByDefault": rule.get("ServerSideEncryptionByDefault", {})} for rule in rules
        ]
        s3.put_bucket_encryption(**bucket, ServerSideEncryptionConfiguration={"Rules": encryption_rules})
    if "LifecycleConfiguration" in keys:
        rules = [_to_s3_rule(rule) for rule in properties.get("LifecycleConfiguration", {}).get("Rules", [])]
        if rules:
            s3.put_bucket_lifecycle_configuration(**bucket, LifecycleConfiguration={"Rules": rules})
        else:
            s3.delete_bucket_lifecycle(**bucket)
    if "OwnershipControls" in keys and "OwnershipControls" in properties:
        s3.put_bucket_ownership_controls(
            **bucket, OwnershipControls={"Rules": properties["OwnershipControls"]["Rules"]}
        )
    if "PublicAccessBlockConfiguration" in keys and "PublicAccessBlockConfiguration" in properties:
        s3.put_public_access_block(
            **bucket, PublicAccessBlockConfiguration=properties["PublicAccessBlockConfiguration"]
        )
    if "Tags" in keys and properties.get("Tags"):
        s3.put_bucket_tagging(**bucket, Tagging={"TagSet": properties["Tags"]})


def _to_s3_rule(rule: Properties) -> JsonDict:
    """Convert a template's lifecycle rule to the format of PutBucketLifecycleConfiguration."""
    expiration = {"Expiration": {"Days": rule["ExpirationInDays"]}} if "ExpirationInDays" in rule else {}
    unchanged = {key: rule[key] for key in ("Status", "AbortIncompleteMultipartUpload") if key in rule}
    identifier = {"ID": rule["Id"]} if "Id" in rule else {}
    return {**identifier, "Filter": {"Prefix": rule.get("Prefix", "")}, **unchanged, **expiration}
