"""The S3 bucket of etcd's snapshots: a new one in the secrets stack, or an existing one.

Masters put each snapshot into the bucket under a new key; nobody may replace one. What somebody deletes stays for some
days as a noncurrent version, which only those may delete who have `s3:DeleteObjectVersion`.

Deleting the stack retains the bucket. If the creation of the stack fails, CloudFormation deletes the bucket, unless it
already contains objects. The bucket policy is always retained; S3 deletes it together with the bucket.

Snapshots are encrypted with S3's key or with a KMS key of the user's, not with the cluster's KMS key: that key is
deleted with the cluster, and the snapshots must stay readable. Kubernetes encrypts Secrets before it stores them in
etcd.
"""

from __future__ import annotations

from typing import Any

from awacs.aws import Action, Bool, Condition, Deny, Null, PolicyDocument, Statement
from awacs.aws import Principal as AwsPrincipal
from troposphere import GetAtt, Ref, Sub, s3

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import snapshot_prefixes
from cfngen.templates.references import named_arn
from cfngen.templates.stack import ALWAYS_RETAINED, RETAINED_ONCE_CREATED, Stack
from cfngen.templates.tagging import tags

BUCKET_NAME_OUTPUT = "BackupBucketName"
"""Name of the secrets stack's output, and of the parameters of other stacks, for the bucket's name."""
BUCKET_DESCRIPTION = "S3 bucket with the snapshots of etcd, under <cluster>/etcd/"
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
NONCURRENT_VERSIONS_DAYS = 7
"""Days that S3 keeps an object that was deleted or replaced."""


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
            # Without a default lock: masters lock the snapshots, and requests beside them have to be deleted.
            **({"ObjectLockEnabled": True} if backups.object_lock else {}),
            Tags=tags(cluster, f"{cluster.name}-etcd-backups"),
            VersioningConfiguration=s3.VersioningConfiguration(Status="Enabled"),
            **access_log_property(cluster, "etcd-backups"),
            **RETAINED_ONCE_CREATED,
        )
    )
    # IAM policies decide about all other requests.
    policy = PolicyDocument(
        Version="2012-10-17", Statement=[deny_without_tls(bucket), _deny_replaced_snapshots(bucket, cluster)]
    )
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
    by_key = s3.ServerSideEncryptionByDefault(SSEAlgorithm="aws:kms", KMSMasterKeyID=named_arn(kms_key))
    rule = s3.ServerSideEncryptionRule(BucketKeyEnabled=True, ServerSideEncryptionByDefault=by_key)
    return s3.BucketEncryption(ServerSideEncryptionConfiguration=[rule])


def _lifecycle_rules(cluster: Cluster) -> list[s3.LifecycleRule]:
    """Return the bucket's lifecycle rules: for old snapshots, noncurrent versions, and parts of unfinished uploads.

    Other objects in the bucket, such as operators' requests, are kept. An expired snapshot becomes a noncurrent version
    below a delete marker; S3 removes the marker after the version.
    """
    return [
        *(
            s3.LifecycleRule(
                Id=f"{period.title()}Snapshots",
                Status="Enabled",
                Prefix=f"{cluster.name}/etcd/{period}/",
                ExpirationInDays=days,
            )
            for period, days in cluster.etcd.backups.days_by_period.items()
        ),
        s3.LifecycleRule(
            Id="NoncurrentVersions",
            Status="Enabled",
            ExpiredObjectDeleteMarker=True,
            NoncurrentVersionExpiration=s3.NoncurrentVersionExpiration(NoncurrentDays=NONCURRENT_VERSIONS_DAYS),
        ),
        s3.LifecycleRule(
            Id="UnfinishedUploads",
            Status="Enabled",
            AbortIncompleteMultipartUpload=s3.AbortIncompleteMultipartUpload(
                DaysAfterInitiation=UNFINISHED_UPLOADS_DAYS
            ),
        ),
    ]


def _deny_replaced_snapshots(bucket: s3.Bucket, cluster: Cluster) -> Statement:
    """Return the statement of the bucket policy that denies to put a snapshot where one may be already.

    S3 refuses a request with the header If-None-Match if the object exists. Parts of a multipart upload have no such
    header; they create no object, only the request that completes them does ("Enforce conditional writes on Amazon S3
    buckets", Amazon S3 User Guide).
    """
    arn = GetAtt(bucket, "Arn")
    return Statement(
        Sid="OnlyNewSnapshots",
        Effect=Deny,
        Principal=AwsPrincipal("*"),
        Action=[Action("s3", "PutObject")],
        Resource=[Sub(f"${{Bucket}}/{prefix}*", Bucket=arn) for prefix in snapshot_prefixes(cluster.name)],
        Condition=Condition([Null({"s3:if-none-match": "true"}), Bool({"s3:ObjectCreationOperation": "true"})]),
    )


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
