"""Handlers of AWS::S3 and AWS::ECR types; S3 has no call for all settings of a bucket, so they need one each."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Handler,
    HandlerCall,
    Tag,
    leave_to_rollback_on_failure,
)
from cfngen.sandbox.services.modelled_parameters import within
from cfngen.sandbox.services.policy_documents import partition
from cfngen.sandbox.untyped import JsonDict, Properties

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
    deletion = ("s3", "delete_bucket", "Bucket")

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.generate_name(limit=MAX_BUCKET_NAME_LENGTH).lower()
        region = call.region
        # In us-east-1, S3 accepts no LocationConstraint (API, CreateBucket).
        location = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        lock = {"ObjectLockEnabledForBucket": True} if "ObjectLockEnabled" in call.properties else {}
        call.client("s3").create_bucket(Bucket=name, ObjectOwnership="BucketOwnerEnforced", **location, **lock)
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

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        _apply_settings(call, call.physical_id, changed - {"Tags"})

    def retag(self, call: HandlerCall, old_properties: Properties) -> None:
        call.client("s3").put_bucket_tagging(
            Bucket=call.physical_id, Tagging={"TagSet": call.properties.get("Tags", [])}
        )


class BucketPolicy(Handler):
    supported_properties = frozenset({"Bucket", "PolicyDocument"})

    def create(self, call: HandlerCall) -> CreatedResource:
        s3 = call.client("s3")
        with contextlib.suppress(ClientError):  # S3 refuses the call if there is no policy, or no bucket
            s3.get_bucket_policy(Bucket=call["Bucket"])
            raise ResourceError(f"The bucket policy already exists on bucket {call['Bucket']}.")
        self._put(call)
        return CreatedResource(call["Bucket"])

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        self._put(call)

    def delete(self, call: HandlerCall) -> None:
        call.client("s3").delete_bucket_policy(Bucket=call["Bucket"])

    def _put(self, call: HandlerCall) -> None:
        call.client("s3").put_bucket_policy(Bucket=call["Bucket"], Policy=json.dumps(call["PolicyDocument"]))


def _apply_settings(call: HandlerCall, bucket_name: str, changed_keys: set[str]) -> None:
    """Apply the changed properties to a bucket, and delete lifecycle rules that the template no longer has."""
    s3, properties = call.client("s3"), call.properties
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


class Repository(Handler):
    """A repository for images: its name and its encryption replace it, the rest is updated in place."""

    supported_properties = frozenset({
        "EmptyOnDelete", "EncryptionConfiguration.EncryptionType", "ImageScanningConfiguration.ScanOnPush",
        "ImageTagMutability", "LifecyclePolicy.LifecyclePolicyText", "RepositoryName", "RepositoryPolicyText", "Tags",
    })  # fmt: skip

    def create(self, call: HandlerCall) -> CreatedResource:
        repository = call.client("ecr").create_repository(
            repositoryName=call["RepositoryName"],
            encryptionConfiguration={"encryptionType": call["EncryptionConfiguration"]["EncryptionType"]},
            imageScanningConfiguration=self._scanning(call),
            imageTagMutability=call["ImageTagMutability"],
            tags=call.properties.get("Tags", []),
        )["repository"]
        name = repository["repositoryName"]
        created = CreatedResource(
            name, {"Arn": repository["repositoryArn"], "RepositoryUri": repository["repositoryUri"]}
        )
        with leave_to_rollback_on_failure(created):
            self._apply_policies(call, name, call.properties.keys())
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        ecr, name = call.client("ecr"), call.physical_id
        if "ImageScanningConfiguration" in changed:
            ecr.put_image_scanning_configuration(repositoryName=name, imageScanningConfiguration=self._scanning(call))
        if "ImageTagMutability" in changed:
            ecr.put_image_tag_mutability(repositoryName=name, imageTagMutability=call["ImageTagMutability"])
        self._apply_policies(call, name, changed)

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        call.client("ecr").tag_resource(resourceArn=call.attributes["Arn"], tags=tags)

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        call.client("ecr").untag_resource(resourceArn=call.attributes["Arn"], tagKeys=keys)

    def read_actual(self, call: HandlerCall) -> Properties | None:
        try:
            [repository] = call.client("ecr").describe_repositories(repositoryNames=[call.physical_id])["repositories"]
        except ClientError:
            return None
        return {
            "ImageScanningConfiguration": {"ScanOnPush": repository["imageScanningConfiguration"]["scanOnPush"]},
            "ImageTagMutability": repository["imageTagMutability"],
        }

    def delete(self, call: HandlerCall) -> None:
        """Delete the repository, which ECR refuses if images are in it, unless it is to be emptied."""
        empties = str(call.properties.get("EmptyOnDelete", False)).lower() == "true"
        call.client("ecr").delete_repository(repositoryName=call.physical_id, force=empties)

    def _scanning(self, call: HandlerCall) -> Properties:
        return {"scanOnPush": call["ImageScanningConfiguration"]["ScanOnPush"]}

    def _apply_policies(self, call: HandlerCall, name: str, changed: Collection[str]) -> None:
        """Apply the changed policies to the repository, and delete those that the template no longer has."""
        ecr, properties = call.client("ecr"), call.properties
        if "LifecyclePolicy" in changed:
            if policy := properties.get("LifecyclePolicy"):
                ecr.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=policy["LifecyclePolicyText"])
            else:
                ecr.delete_lifecycle_policy(repositoryName=name)
        if "RepositoryPolicyText" in changed:
            if policy := properties.get("RepositoryPolicyText"):
                ecr.set_repository_policy(repositoryName=name, policyText=json.dumps(policy))
            else:
                ecr.delete_repository_policy(repositoryName=name)
