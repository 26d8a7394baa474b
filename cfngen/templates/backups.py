"""The S3 bucket of etcd's snapshots: created in the secrets stack and retained when it is deleted, or an existing one.

If the creation of the stack fails, the bucket is deleted as long as it is empty; S3 deletes no bucket with objects in
it. The bucket policy is always retained; S3 deletes it together with the bucket.

Snapshots are encrypted with S3's key and not with the cluster's KMS key, which is deleted with the cluster: they must
stay readable afterwards. Kubernetes encrypts Secrets before it stores them in etcd.
"""

from __future__ import annotations

from typing import Any

from awacs.aws import Action, Bool, Condition, Deny, PolicyDocument, Statement
from awacs.aws import Principal as AwsPrincipal
from troposphere import GetAtt, Ref, Sub, s3

from cfngen.cluster.model import Cluster
from cfngen.templates.stack import Stack
from cfngen.templates.tagging import tags

BUCKET_NAME = "BackupBucketName"
DESCRIPTION = "S3 bucket of etcd's snapshots, which lie under <cluster>/etcd/"
RETAINED = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
RETAINED_ONCE_CREATED = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
UNFINISHED_UPLOADS = 7  # days


def add_bucket(stack: Stack, cluster: Cluster) -> None:
    """Add the bucket, unless the cluster file names one or takes no backups, and an output with its name."""
    backups = cluster.etcd.backups
    if not backups.enabled:
        return
    if backups.bucket:
        stack.output(BUCKET_NAME, backups.bucket, DESCRIPTION, in_root=True)
        return
    bucket = stack.add(
        s3.Bucket(
            "BackupBucket",
            BucketEncryption=s3.BucketEncryption(
                ServerSideEncryptionConfiguration=[
                    s3.ServerSideEncryptionRule(
                        ServerSideEncryptionByDefault=s3.ServerSideEncryptionByDefault(SSEAlgorithm="AES256")
                    )
                ]
            ),
            LifecycleConfiguration=s3.LifecycleConfiguration(Rules=_lifecycle(cluster)),
            OwnershipControls=s3.OwnershipControls(
                Rules=[s3.OwnershipControlsRule(ObjectOwnership="BucketOwnerEnforced")]
            ),
            PublicAccessBlockConfiguration=s3.PublicAccessBlockConfiguration(
                BlockPublicAcls=True, BlockPublicPolicy=True, IgnorePublicAcls=True, RestrictPublicBuckets=True
            ),
            Tags=tags(cluster, f"{cluster.name}-etcd-backups"),
            **RETAINED_ONCE_CREATED,
        )
    )
    stack.add(s3.BucketPolicy("BackupBucketPolicy", Bucket=Ref(bucket), PolicyDocument=_policy(bucket), **RETAINED))
    stack.output(BUCKET_NAME, Ref(bucket), DESCRIPTION, in_root=True)


def bucket_name(stack: Stack) -> Any:
    """Return the reference to the name of the bucket."""
    return stack.wired_parameter(BUCKET_NAME, description=DESCRIPTION)


def _lifecycle(cluster: Cluster) -> list[s3.LifecycleRule]:
    """Return rules that expire snapshots; other objects, such as operators' requests, are kept."""
    backups = cluster.etcd.backups
    retention = {"Hourly": backups.hourly_days, "Daily": backups.daily_days}
    return [
        *(
            s3.LifecycleRule(
                Id=f"{kind}Snapshots",
                Status="Enabled",
                Prefix=f"{cluster.name}/etcd/{kind.lower()}/",
                ExpirationInDays=days,
            )
            for kind, days in retention.items()
        ),
        s3.LifecycleRule(
            Id="UnfinishedUploads",
            Status="Enabled",
            AbortIncompleteMultipartUpload=s3.AbortIncompleteMultipartUpload(DaysAfterInitiation=UNFINISHED_UPLOADS),
        ),
    ]


def _policy(bucket: s3.Bucket) -> PolicyDocument:
    """Return a policy that denies requests without TLS; other access is decided by IAM policies."""
    arn = GetAtt(bucket, "Arn")
    return PolicyDocument(
        Version="2012-10-17",
        Statement=[
            Statement(
                Sid="OnlyTls",
                Effect=Deny,
                Principal=AwsPrincipal("*"),
                Action=[Action("s3", "*")],
                Resource=[arn, Sub("${Bucket}/*", Bucket=arn)],
                Condition=Condition(Bool({"aws:SecureTransport": "false"})),
            )
        ],
    )
