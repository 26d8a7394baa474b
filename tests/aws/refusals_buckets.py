"""S3."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import boto3
from botocore.config import Config
from refusal import Creation, Refusal, ServiceCall, Update
from refusals_identity import ACCOUNT, document, refused
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation, client
from cfngen.sandbox.services.rules import CLOCK_START

API = "https://docs.aws.amazon.com/AmazonS3/latest/API"
GUIDE = "https://docs.aws.amazon.com/AmazonS3/latest/userguide"
HERE = {"LocationConstraint": REGION}
OBJECTS = {"Fn::Sub": "${Bucket.Arn}/*"}
WHOLE = {"Fn::GetAtt": ["Bucket", "Arn"]}
TLS = {
    "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": [WHOLE, OBJECTS],
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}  # fmt: skip


def bucket(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::S3::Bucket", "Properties": properties}


def with_policy(*statements: Mapping[str, Any], block: bool | None = None, **elements: Any) -> dict[str, Any]:
    blocks = {} if block is None else {"PublicAccessBlockConfiguration": {"BlockPublicPolicy": block}}
    policy = {"Bucket": {"Ref": "Bucket"}, "PolicyDocument": document(*statements, **elements)}
    return {"Bucket": bucket(**blocks), "It": {"Type": "AWS::S3::BucketPolicy", "Properties": policy}}


def policy(condition: str, words: str, source: str, evidence: Any = "seen", **elements: Any) -> Refusal:
    statement = {key: value for key, value in {**TLS, **elements}.items() if value is not None}
    tried = Creation(lambda: with_policy(statement), "It")
    return Refusal("AWS::S3::BucketPolicy", condition, words, source, evidence, tried)


def lifecycle(condition: str, words: str, source: str, evidence: Any, *rules: dict[str, Any]) -> Refusal:
    tried = refused(bucket(LifecycleConfiguration={"Rules": [{"Status": "Enabled", **rule} for rule in rules]}))
    return Refusal("AWS::S3::Bucket LifecycleConfiguration", condition, words, source, evidence, tried)


def named(name: str) -> ServiceCall:
    def attempt(cloud: CloudFormation) -> None:
        client("s3", REGION).create_bucket(Bucket=name, CreateBucketConfiguration=HERE)

    return ServiceCall(attempt)


def _mine() -> Any:
    s3 = client("s3", REGION)
    s3.create_bucket(Bucket="mine", CreateBucketConfiguration=HERE)
    return s3


def _taken(cloud: CloudFormation) -> None:
    _mine()
    _mine()


def _not_empty(cloud: CloudFormation) -> None:
    s3 = _mine()
    s3.put_object(Bucket="mine", Key="a", Body=b"")
    s3.delete_bucket(Bucket="mine")


def _versions(cloud: CloudFormation) -> None:
    s3 = _mine()
    s3.put_bucket_versioning(Bucket="mine", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="mine", Key="a", Body=b"")
    s3.delete_object(Bucket="mine", Key="a")
    s3.delete_bucket(Bucket="mine")


def _put_again(cloud: CloudFormation) -> None:
    s3 = _mine()
    for body in (b"first", b"other"):
        s3.put_object(Bucket="mine", Key="a", Body=body, IfNoneMatch="*")


def _locked(method: str, mode: str = "GOVERNANCE", **arguments: Any) -> ServiceCall:
    """A call about a version that is locked, in a bucket that got Object Lock when it was not empty."""

    def attempt(cloud: CloudFormation) -> None:
        s3 = _mine()
        s3.put_bucket_versioning(Bucket="mine", VersioningConfiguration={"Status": "Enabled"})
        s3.put_object(Bucket="mine", Key="b", Body=b"")
        s3.put_object_lock_configuration(Bucket="mine", ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"})
        lock = {"ObjectLockMode": mode, "ObjectLockRetainUntilDate": LATER}
        version = s3.put_object(Bucket="mine", Key="a", Body=b"", **lock)["VersionId"]
        longer = {"Mode": mode, "RetainUntilDate": LATER + timedelta(days=1)}
        s3.put_object_retention(Bucket="mine", Key="a", VersionId=version, Retention=longer)
        of_version = {} if method.endswith("versioning") else {"Key": "a", "VersionId": version}
        getattr(s3, method)(Bucket="mine", **of_version, **arguments)

    return ServiceCall(attempt)


def _put_locked(versioned: bool, **lock: Any) -> ServiceCall:
    def attempt(cloud: CloudFormation) -> None:
        s3 = client("s3", REGION)
        s3.create_bucket(Bucket="mine", CreateBucketConfiguration=HERE, ObjectLockEnabledForBucket=versioned)
        s3.put_object(Bucket="mine", Key="a", Body=b"", **lock)

    return ServiceCall(attempt)


def _lock_unchecked(cloud: CloudFormation) -> None:
    client("s3", REGION).create_bucket(Bucket="mine", CreateBucketConfiguration=HERE, ObjectLockEnabledForBucket=True)
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": LATER}
    without = boto3.client("s3", REGION, config=Config(request_checksum_calculation="when_required"))
    without.put_object(Bucket="mine", Key="a", Body=b"", **lock)


def _lock_unversioned(cloud: CloudFormation) -> None:
    _mine().put_object_lock_configuration(Bucket="mine", ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"})


def _only_new(method: str, **arguments: Any) -> ServiceCall:
    """A write without a condition into a bucket whose policy demands If-None-Match."""

    def attempt(cloud: CloudFormation) -> None:
        s3 = _mine()
        s3.put_object(Bucket="mine", Key="a", Body=b"")
        condition = {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}}
        statement = {**TLS, "Action": "s3:PutObject", "Resource": "arn:aws:s3:::mine/*", "Condition": condition}
        s3.put_bucket_policy(Bucket="mine", Policy=json.dumps(document(statement)))
        s3.put_object(Bucket="mine", Key="b", Body=b"", IfNoneMatch="*")
        getattr(s3, method)(Bucket="mine", Key="c", **arguments)

    return ServiceCall(attempt)


def _tags(cloud: CloudFormation) -> None:
    tags = [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]
    _mine().put_bucket_tagging(Bucket="mine", Tagging={"TagSet": tags})


def encrypted(**default: str) -> dict[str, Any]:
    rule = {"ServerSideEncryptionByDefault": default}
    return bucket(BucketEncryption={"ServerSideEncryptionConfiguration": [rule]})


LATER = CLOCK_START + timedelta(days=7)
LOCKING = (
    f"S3 user guide: [Object Lock]({GUIDE}/object-lock.html), [configuring it]({GUIDE}/object-lock-configure.html)"
)
PROTECTED = "object protected by object lock"
POLICIES = f"S3 user guide: [bucket policies]({GUIDE}/bucket-policies.html)"
PUBLIC = "because public policies are prevented by the BlockPublicPolicy setting in S3 Block Public Access"
BLOCKING = (
    f"S3 user guide: [blocking public access]({GUIDE}/access-control-block-public-access.html), "
    "[prowler#793](https://github.com/prowler-cloud/prowler/issues/793)"
)
EVERYBODY = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": OBJECTS}
ROWS = [
    policy("an action of any service", "Policy has invalid action", POLICIES, "condition documented",
           Action="*:GetObject"),
    policy(
        "role that does not exist", "Invalid principal in policy", POLICIES, "condition documented",
        Principal={"AWS": f"{ACCOUNT}:role/gone"},
    ),
    policy(
        "another bucket", "Policy has invalid resource",
        "[aws-samples/aws-media-services-vod-automation#17]"
        "(https://github.com/aws-samples/aws-media-services-vod-automation/issues/17)",
        Resource="arn:aws:s3:::another/*",
    ),
    policy(
        "every resource", "Policy has invalid resource",
        "[noobaa-core#10058](https://github.com/noobaa/noobaa-core/issues/10058)", Resource="*",
    ),
    policy(
        "objects' actions on the bucket alone", "Action does not apply to any resource(s) in statement",
        "[modernisation-platform#10762](https://github.com/ministryofjustice/modernisation-platform/pull/10762)",
        Action="s3:PutObject", Resource=WHOLE,
    ),
    policy(
        "buckets' actions on objects alone", "Action does not apply to any resource(s) in statement",
        "[humanmade/S3-Uploads#239](https://github.com/humanmade/S3-Uploads/issues/239)",
        Action=["s3:ListBucket"], Resource=OBJECTS,
    ),
    policy("action that does not exist", "Policy has invalid action", POLICIES, "condition documented",
           Action="s3:GetObjekt"),
    policy("action of another service", "Policy has invalid action", POLICIES, "condition documented",
           Action="ec2:RunInstances"),
    policy("a list among the actions", "Policy has invalid action", POLICIES, "assumed", Action=[["s3:GetObject"]]),
    Refusal(
        "AWS::S3::BucketPolicy", "a second policy of one bucket", "The bucket policy already exists on bucket",
        "[awslabs/cdk-serverless-clamscan#1382](https://github.com/awslabs/cdk-serverless-clamscan/issues/1382)",
        "seen",
        Creation(lambda: {
            "First": with_policy(TLS)["It"], **with_policy(TLS),
            "It": with_policy(TLS)["It"] | {"DependsOn": ["First"]},
        }, "It"),
    ),
    Refusal(
        "AWS::S3::BucketPolicy", "objects for everybody in a bucket that blocks public policies", PUBLIC, BLOCKING,
        "seen", Creation(lambda: with_policy(EVERYBODY, block=True), "It"),
    ),
    Refusal(
        "AWS::S3::BucketPolicy", "objects for everybody in a bucket that says nothing of it", PUBLIC,
        f"{BLOCKING}; new buckets block public access", "seen", Creation(lambda: with_policy(EVERYBODY), "It"),
    ),
    Refusal(
        "AWS::S3::BucketPolicy", "an update to another bucket's objects", "Policy has invalid resource", POLICIES,
        "seen",
        Update(
            lambda: with_policy(TLS), lambda first: with_policy({**TLS, "Resource": "arn:aws:s3:::another/*"}), "It"
        ),
    ),
    lifecycle(
        "two rules of one id", "Rule ID must be unique. Found same ID for more than one rule",
        "[pingcap/tiflash#9888](https://github.com/pingcap/tiflash/pull/9888)", "seen",
        {"Id": "a", "Prefix": "a", "ExpirationInDays": 1}, {"Id": "a", "Prefix": "b", "ExpirationInDays": 1},
    ),
    lifecycle(
        "rule without an action", "At least one action needs to be specified in a rule",
        "[crossplane-contrib/provider-aws#1337](https://github.com/crossplane-contrib/provider-aws/issues/1337)",
        "seen", {"Id": "a", "Prefix": "a"},
    ),
    lifecycle(
        "objects that expire after no days", "'Days' for Expiration action must be a positive integer",
        "[scality/Arsenal#2648](https://github.com/scality/Arsenal/pull/2648)", "seen",
        {"Id": "a", "Prefix": "a", "ExpirationInDays": 0},
    ),
    lifecycle(
        "uploads given up after no days", "DaysAfterInitiation",
        f"[AbortIncompleteMultipartUpload]({API}/API_AbortIncompleteMultipartUpload.html)", "condition documented",
        {"Id": "a", "Prefix": "a", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 0}},
    ),
    Refusal(
        "AWS::S3::Bucket BucketEncryption", "algorithm that does not exist", "is not a valid enum value",
        f"[ServerSideEncryptionByDefault]({API}/API_ServerSideEncryptionByDefault.html)", "condition documented",
        refused(encrypted(SSEAlgorithm="AES512")),
    ),
    Refusal(
        "AWS::S3::Bucket OwnershipControls", "owner that does not exist", "is not a valid enum value",
        f"[OwnershipControlsRule]({API}/API_OwnershipControlsRule.html)", "condition documented",
        refused(bucket(OwnershipControls={"Rules": [{"ObjectOwnership": "Owner"}]})),
    ),
    Refusal(
        "AWS::S3::Bucket Tags", "51 tags", "Bucket tag count cannot be greater than 50",
        f"[PutBucketTagging]({API}/API_PutBucketTagging.html)", "condition documented",
        refused(bucket(Tags=[{"Key": f"k{number}", "Value": "v"} for number in range(51)])),
    ),
    Refusal(
        "s3:PutBucketTagging", "one key twice", "Cannot provide multiple Tags with the same key",
        f"[PutBucketTagging]({API}/API_PutBucketTagging.html)", "condition documented", ServiceCall(_tags),
    ),
    *(
        Refusal(
            "s3:CreateBucket", condition, "InvalidBucketName",
            f"S3 user guide: [bucket naming rules]({GUIDE}/bucketnamingrules.html)", "documented", named(name),
        )
        for condition, name in (
            ("a name with an underscore", "my_bucket"), ("a name with two dots", "my..bucket"),
            ("an address as its name", "192.168.5.4"), ("a name of AWS's", "xn--bucket"),
        )
    ),
    Refusal(
        "s3:CreateBucket", "name that is one's own already", "BucketAlreadyOwnedByYou",
        f"[CreateBucket]({API}/API_CreateBucket.html)", "documented", ServiceCall(_taken),
    ),
    Refusal(
        "s3:DeleteBucket", "an object in it", "The bucket you tried to delete is not empty",
        f"[DeleteBucket]({API}/API_DeleteBucket.html)", "documented", ServiceCall(_not_empty),
    ),
    Refusal(
        "s3:DeleteBucket", "only older versions in it", "The bucket you tried to delete is not empty",
        f"[DeleteBucket]({API}/API_DeleteBucket.html)", "documented", ServiceCall(_versions),
    ),
    Refusal(
        "s3:PutObject", "If-None-Match, and the object exists", "PreconditionFailed",
        f"S3 user guide: [conditional writes]({GUIDE}/conditional-writes.html)", "documented", ServiceCall(_put_again),
    ),
    *(
        Refusal(
            f"s3:{method}", "no If-None-Match, which the bucket's policy demands",
            "with an explicit deny in a resource-based policy",
            f"S3 user guide: [enforcing conditional writes]({GUIDE}/conditional-writes-enforce.html)",
            "condition documented", attempt,
        )
        for method, attempt in (
            ("PutObject", _only_new("put_object", Body=b"")),
            ("CopyObject", _only_new("copy_object", CopySource="mine/a")),
        )
    ),
    *(
        Refusal(f"s3:{call}", condition, words, LOCKING, "condition documented", attempt)
        for call, condition, words, attempt in (
            ("DeleteObject", "a version in governance mode", "AccessDenied", _locked("delete_object")),
            ("DeleteObject", "a version in compliance mode, with the bypass", "AccessDenied",
             _locked("delete_object", "COMPLIANCE", BypassGovernanceRetention=True)),
            ("PutObjectRetention", "a shorter lock", PROTECTED,
             _locked("put_object_retention", Retention={"Mode": "GOVERNANCE", "RetainUntilDate": LATER})),
            ("PutObjectRetention", "a shorter lock in compliance mode, with the bypass", PROTECTED,
             _locked("put_object_retention", "COMPLIANCE", BypassGovernanceRetention=True,
                     Retention={"Mode": "COMPLIANCE", "RetainUntilDate": LATER})),
            ("PutObjectRetention", "governance mode instead of compliance mode", PROTECTED,
             _locked("put_object_retention", "COMPLIANCE",
                     Retention={"Mode": "GOVERNANCE", "RetainUntilDate": LATER + timedelta(days=9)})),
            ("PutBucketVersioning", "no more versions in a bucket with Object Lock",
             "the versioning state cannot be changed",
             _locked("put_bucket_versioning", VersioningConfiguration={"Status": "Suspended"})),
            ("PutObjectLockConfiguration", "a bucket without versions", "Versioning must be 'Enabled'",
             ServiceCall(_lock_unversioned)),
            ("PutObject", "a lock in a bucket without Object Lock", "Bucket is missing ObjectLockConfiguration",
             _put_locked(False, ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=LATER)),
            ("PutObject", "a lock that has ended", "The retain until date must be in the future",
             _put_locked(True, ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=CLOCK_START)),
            ("PutObject", "a lock without its end", "must both be supplied",
             _put_locked(True, ObjectLockMode="GOVERNANCE")),
        )
    ),
    Refusal("s3:PutObject", "a lock in a mode that there is not", "Unknown wormMode directive",
            "[versitygw#1736](https://github.com/versity/versitygw/issues/1736)", "seen",
            _put_locked(True, ObjectLockMode="governance", ObjectLockRetainUntilDate=LATER)),
    Refusal("s3:PutObject", "a lock without a checksum of the content",
            "Content-MD5 OR x-amz-checksum- HTTP header is required",
            "[minio#16480](https://github.com/minio/minio/issues/16480)", "seen", ServiceCall(_lock_unchecked)),
    policy("resources of another partition", "Policy has invalid resource", POLICIES, "condition documented",
           Resource={"Fn::Sub": "arn:aws-cn:s3:::${Bucket}/*"}),
]  # fmt: skip
