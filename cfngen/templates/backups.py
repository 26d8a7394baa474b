"""The S3 bucket of etcd's snapshots: a new one in the secrets stack, or an existing one.

Deleting the stack retains the bucket. If the creation of the stack fails, CloudFormation deletes the bucket, unless it
already contains objects. The bucket policy is always retained; S3 deletes it together with the bucket.

Snapshots are encrypted with S3's key or with a KMS key of the user's, not with the cluster's KMS key: that key is
deleted with the cluster, and the snapshots must stay readable. Kubernetes encrypts Secrets before it stores them in
etcd.
"""

from __future__ import annotations

from typing import Any

from awacs.aws import Action, Bool, Condition, Deny, PolicyDocument, Statement
from awacs.aws import Principal as AwsPrincipal
from troposphere import GetAtt, Ref, Sub, s3

from cfngen.cluster.model import Cluster
from cfngen.templates.stack import Stack
from cfngen.templates.tagging import tags

BUCKET_NAME_OUTPUT = "BackupBucketName"
"""Name of the secrets stack's output, and of the parameters of other stacks, for the bucket's name."""
BUCKET_DESCRIPTION = "S3 bucket with the snapshots of etcd, under <cluster>/etcd/"
# Attributes of a resource that CloudFormation keeps: always, or unless the stack's creation fails.
ALWAYS_RETAINED = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
RETAINED_ONCE_CREATED = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
ENCRYPTION_BY_S3 = s3.BucketEncryption(
    ServerSideEncryptionConfiguration=[
        s3.ServerSideEncryptionRule(
            ServerSideEncryptionByDefault=s3.ServerSideEncryptionByDefault(SSEAlgorithm="AES256")
        )
    ]
)
WITHOUT_ACLS = s3.OwnershipControls(Rules=[s3.OwnershipControlsRule(ObjectOwnership="BucketOwnerEnforced")])
UNFINISHED_UPLOADS_DAYS = 7
"""Days after which S3 deletes the parts of an upload that was not completed."""


def add_bucket(stack: Stack, cluster: Cluster) -> None:
    """Add an output with the bucket's name, and the bucket itself unless the cluster file names an existing bucket.

    If backups are disabled, nothing is added.
    """
    backups = cluster.etcd.backups
    if not backups.enabled:
        return
    if backups.bucket:
        stack.output(BUCKET_NAME_OUTPUT, value=backups.bucket, description=BUCKET_DESCRIPTION, also_output_of_root=True)
        return
    bucket = stack.add(
        s3.Bucket(
            "BackupBucket",
            BucketEncryption=_encryption(backups.kms_key),
            LifecycleConfiguration=s3.LifecycleConfiguration(Rules=_lifecycle_rules(cluster)),
            OwnershipControls=WITHOUT_ACLS,
            PublicAccessBlockConfiguration=s3.PublicAccessBlockConfiguration(
                BlockPublicAcls=True, BlockPublicPolicy=True, IgnorePublicAcls=True, RestrictPublicBuckets=True
            ),
            Tags=tags(cluster, f"{cluster.name}-etcd-backups"),
            **access_log_property(cluster, "etcd-backups"),
            **RETAINED_ONCE_CREATED,
        )
    )
    # IAM policies decide about all requests with TLS.
    policy = PolicyDocument(Version="2012-10-17", Statement=[deny_without_tls(bucket)])
    stack.add(s3.BucketPolicy("BackupBucketPolicy", Bucket=Ref(bucket), PolicyDocument=policy, **ALWAYS_RETAINED))
    stack.output(BUCKET_NAME_OUTPUT, value=Ref(bucket), description=BUCKET_DESCRIPTION, also_output_of_root=True)


def backup_bucket_name(stack: Stack) -> Any:
    """Add the parameter for the backup bucket's name to a stack other than the secrets stack; return its reference."""
    return stack.parameter_from_other_stack(BUCKET_NAME_OUTPUT, description=BUCKET_DESCRIPTION)


def access_log_property(cluster: Cluster, bucket_purpose: str) -> dict[str, object]:
    """Return the property for a bucket's server access logs, by name; empty if the cluster file asks for none.

    Args:
        bucket_purpose: what the bucket is for, as the logs' folder below the cluster's name.
    """
    if cluster.logging.bucket is None:
        return {}
    destination = s3.LoggingConfiguration(
        DestinationBucketName=cluster.logging.bucket, LogFilePrefix=f"{cluster.name}/{bucket_purpose}/"
    )
    return {"LoggingConfiguration": destination}


def _encryption(kms_key: str | None) -> s3.BucketEncryption:
    """Return the encryption by a KMS key, with a key of the bucket's below it, which asks KMS less often; else by S3.

    Source: "Reducing the cost of SSE-KMS with Amazon S3 Bucket Keys", Amazon S3 User Guide.
    """
    if kms_key is None:
        return ENCRYPTION_BY_S3
    by_key = s3.ServerSideEncryptionByDefault(SSEAlgorithm="aws:kms", KMSMasterKeyID=kms_key)
    rule = s3.ServerSideEncryptionRule(BucketKeyEnabled=True, ServerSideEncryptionByDefault=by_key)
    return s3.BucketEncryption(ServerSideEncryptionConfiguration=[rule])


def _lifecycle_rules(cluster: Cluster) -> list[s3.LifecycleRule]:
    """Return the bucket's lifecycle rules, which delete old snapshots and parts of unfinished uploads.

    Other objects in the bucket, such as operators' requests, are kept.
    """
    backups = cluster.etcd.backups
    retention_days_by_schedule = {"Hourly": backups.hourly_days, "Daily": backups.daily_days}
    return [
        *(
            s3.LifecycleRule(
                Id=f"{schedule}Snapshots",
                Status="Enabled",
                Prefix=f"{cluster.name}/etcd/{schedule.lower()}/",
                ExpirationInDays=days,
            )
            for schedule, days in retention_days_by_schedule.items()
        ),
        s3.LifecycleRule(
            Id="UnfinishedUploads",
            Status="Enabled",
            AbortIncompleteMultipartUpload=s3.AbortIncompleteMultipartUpload(
                DaysAfterInitiation=UNFINISHED_UPLOADS_DAYS
            ),
        ),
    ]


def deny_without_tls(bucket: s3.Bucket) -> Statement:
    """Return the statement of a bucket policy that denies requests without TLS."""
    return Statement(
        Sid="OnlyTls",
        Effect=Deny,
        Principal=AwsPrincipal("*"),
        Action=[Action("s3", "*")],
        Resource=[GetAtt(bucket, "Arn"), Sub(f"${{{bucket.title}.Arn}}/*")],
        Condition=Condition(Bool({"aws:SecureTransport": "false"})),
    )
