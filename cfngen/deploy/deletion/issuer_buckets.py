"""Buckets with the documents of an issuer of service-account tokens, which the templates retain.

A bucket that is not empty cannot be deleted by CloudFormation, and masters write the documents while it exists. They
are derived from the cluster's key and worthless without the cluster, so cfngen deletes the two objects and the bucket.
A bucket that holds anything else remains.
"""

from __future__ import annotations

from cfngen.cluster.iam.service_accounts import DISCOVERY_KEY, KEYS_KEY
from cfngen.cluster.naming.logical_ids import ISSUER_BUCKET
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import ACCESS_DENIED_CODES, AwsError, error_code, translate_aws_errors
from cfngen.deploy.deletion.inventory import Inventory
from cfngen.deploy.deletion.retained_resources import COST_BY_RESOURCE_TYPE, RetainedResource
from cfngen.deploy.messages import Notice, Report, Step

BUCKET_TYPE = "AWS::S3::Bucket"
# HeadBucket answers without a body, so its error code is the HTTP status.
_MISSING_CODES = frozenset({"404", "NoSuchBucket"})


def issuer_buckets(inventory: Inventory) -> tuple[str, ...]:
    """Return the names of the issuer's buckets that the stacks have or had."""
    names = {
        resource.view.physical_id
        for resource in inventory.resources
        if resource.view.type == BUCKET_TYPE and resource.view.logical_id == ISSUER_BUCKET and resource.view.physical_id
    }
    return tuple(sorted(names))


def describe_remaining(account: Account, inventory: Inventory) -> tuple[RetainedResource, ...]:
    """Return the issuer's buckets that still exist, after they should have been deleted."""
    return tuple(
        RetainedResource(
            kind="bucket of the issuer's documents",
            id=bucket,
            why="CloudFormation keeps it, since S3 deletes no bucket that is not empty; nobody can read it without its "
            "bucket policy",
            cost=COST_BY_RESOURCE_TYPE[BUCKET_TYPE],
            command=f"aws s3 rb --force s3://{bucket} --region {account.region}",
        )
        for bucket in issuer_buckets(inventory)
        if _exists(account, bucket)
    )


def remove(account: Account, buckets: tuple[str, ...], report: Report) -> None:
    """Delete the documents in these buckets, and the buckets; what AWS refuses is reported and remains."""
    for bucket in buckets:
        try:
            with translate_aws_errors():
                if not _exists(account, bucket):
                    continue
                report(Step(f"deleting the issuer's documents and their bucket {bucket}"))
                _remove(account, bucket)
        except AwsError as error:
            text = f"the bucket {bucket} of the issuer's documents was not deleted: {error}"
            report(Notice(text, f"delete it with `aws s3 rb --force s3://{bucket} --region {account.region}`."))


def _remove(account: Account, bucket: str) -> None:
    """Delete the two documents, and the bucket."""
    s3 = account.client("s3")
    for key in (DISCOVERY_KEY, KEYS_KEY):
        s3.delete_object(Bucket=bucket, Key=key, ExpectedBucketOwner=account.id)
    s3.delete_bucket(Bucket=bucket, ExpectedBucketOwner=account.id)


def _exists(account: Account, bucket: str) -> bool:
    """Return whether a bucket exists; one that the caller may not look at counts as existing."""
    from botocore.exceptions import ClientError

    try:
        account.client("s3").head_bucket(Bucket=bucket, ExpectedBucketOwner=account.id)
    except ClientError as error:
        if error_code(error) in _MISSING_CODES:
            return False
        # "HeadBucket", Amazon S3 API Reference: 403 where the caller has no permission.
        if error_code(error) not in {*ACCESS_DENIED_CODES, "403"}:
            raise
    return True
