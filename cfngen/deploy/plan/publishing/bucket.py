"""The bucket for templates: cfngen creates and hardens one, or the operator chooses one with `--bucket`.

A bucket of the operator is checked, but never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from cfngen.cluster.naming.names import template_bucket
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.messages.message import Notice, Question, Report, Step
from cfngen.deploy.plan.publishing import hardening
from cfngen.errors import CfngenError


class BucketError(CfngenError):
    """Templates cannot be uploaded to the bucket."""

    code = "bucket-error"

    def __init__(self, bucket: str, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.bucket = bucket


class BucketOwnerError(BucketError):
    """The bucket belongs to another account, or this account has no access to it."""

    code = "bucket-wrong-owner"


class BucketRegionError(BucketError):
    """The bucket is in another region, from which CloudFormation does not read templates."""

    code = "bucket-wrong-region"


class NoBucketError(BucketError):
    """The bucket that was named does not exist."""

    code = "bucket-not-found"


def default_name(account: Account) -> str:
    """Return the name of the bucket that cfngen creates in an account and region."""
    return template_bucket(account.id, account.region)


def agree_to_create(account: Account, require_consent: Callable[[Question], None]) -> None:
    """Ask whether a plan may create cfngen's own bucket, unless it exists.

    Args:
        require_consent: raises an error if the answer is no.
    """
    bucket = default_name(account)
    if exists(account, bucket):
        return
    consequences = (
        f"CloudFormation reads the templates of a plan from S3: the bucket {bucket} is created, private and encrypted",
        "it stays, for plans and deployments to come, until a deletion with --empty-bucket and --delete-bucket",
        "the change set is deleted again, and for a new cluster its empty stack",
    )
    require_consent(Question(f"Create the bucket {bucket}?", consequences))


def ensure_bucket(account: Account, *, bucket: str = "", kms_key: str = "", report: Report) -> str:
    """Check or create the bucket for templates, and return its name.

    Args:
        bucket: the operator's bucket, which is used as it is; cfngen's own if empty.
        kms_key: KMS key for new objects in cfngen's own bucket; if empty, the bucket's current key, or S3's managed
            key.
        report: receives progress messages, and warnings about the operator's bucket.

    Raises:
        BucketError: the bucket cannot be used.
        botocore.exceptions.ClientError: S3 refuses a call.
    """
    if bucket:
        if not exists(account, bucket):
            hint = f"create it (`aws s3 mb s3://{bucket} --region {account.region}`), or omit --bucket."
            raise NoBucketError(bucket, f"there is no bucket {bucket}", hint=hint)
        for notice in _find_setting_warnings(account, bucket):
            report(notice)
        return bucket
    cfngen_bucket = default_name(account)
    is_new = False
    if not exists(account, cfngen_bucket):
        report(Step(f"creating the bucket {cfngen_bucket}"))
        is_new = _create(account, cfngen_bucket)
    hardening.harden(account, cfngen_bucket, kms_key=kms_key, is_new=is_new, report=report)
    return cfngen_bucket


def exists(account: Account, bucket: str) -> bool:
    """Return whether a bucket exists in this account and region.

    Raises:
        BucketOwnerError: the bucket belongs to another account, or the caller has no access to it.
        BucketRegionError: the bucket is in another region.
    """
    from botocore.exceptions import ClientError

    try:
        # botocore redirects the call to the bucket's region; so usually the response has the region, not an error.
        response = account.client("s3").head_bucket(**hardening.bucket_arguments(account, bucket))
        region = response.get("BucketRegion", "")
    except ClientError as error:
        # The response of a HEAD request has no body, so that the error code is only the HTTP status.
        if error_code(error) in ("404", "NoSuchBucket"):
            return False
        headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        region = headers.get("x-amz-bucket-region", "")
        if error_code(error) in ACCESS_DENIED_CODES:
            raise _owner_error(account, bucket) from error
        if error_code(error) not in ("301", "PermanentRedirect"):
            raise
    if region and region != account.region:
        raise BucketRegionError(
            bucket,
            f"the bucket {bucket} is in {region}, and the cluster in {account.region}",
            hint=f"choose a bucket in {account.region} with --bucket, or omit --bucket: cfngen then creates one.",
        )
    return True


def _owner_error(account: Account, bucket: str) -> BucketOwnerError:
    return BucketOwnerError(
        bucket,
        f"the bucket {bucket} belongs to another account, or {account.caller} may not use it",
        hint=f"choose a bucket of account {account.id} with --bucket, or request s3:ListBucket for this one; buckets "
        "of other accounts are not used, since their owners could replace the templates.",
    )


def _create(account: Account, bucket: str) -> bool:
    """Create a bucket; return False if another deployment has just created it."""
    from botocore.exceptions import ClientError

    # us-east-1 cannot be a LocationConstraint: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html
    location_arguments = {}
    if account.region != "us-east-1":
        location_arguments = {"CreateBucketConfiguration": {"LocationConstraint": account.region}}
    try:
        account.client("s3").create_bucket(Bucket=bucket, ObjectOwnership="BucketOwnerEnforced", **location_arguments)
    except ClientError as error:
        if error_code(error) == "BucketAlreadyExists":
            raise _owner_error(account, bucket) from error
        if error_code(error) != "BucketAlreadyOwnedByYou":
            raise
        return False
    return True


def _find_setting_warnings(account: Account, bucket: str) -> list[Notice]:
    """Return warnings about the settings of the operator's bucket that the caller may read."""
    with ThreadPoolExecutor() as pool:
        public_access_block, policy_status, versioning, lifecycle = pool.map(
            lambda operation: hardening.read_setting(account, bucket, operation),
            (
                "get_public_access_block",
                "get_bucket_policy_status",
                "get_bucket_versioning",
                "get_bucket_lifecycle_configuration",
            ),
        )
    notices: list[Notice] = []
    if (policy_status or {}).get("PolicyStatus", {}).get("IsPublic"):
        hint = "anyone who can write to it can change the cluster; make it private, or omit --bucket."
        notices.append(Notice(f"the bucket {bucket} is public by its policy", hint))
    elif (
        public_access_block is not None
        and public_access_block.get("PublicAccessBlockConfiguration", {}) != hardening.PUBLIC_ACCESS_BLOCK
    ):
        hint = "turn on all four settings of S3 Block Public Access."
        notices.append(Notice(f"the bucket {bucket} does not block public access", hint))
    if versioning is not None and versioning.get("Status") != "Enabled":
        command = (
            f"aws s3api put-bucket-versioning --region {account.region} --bucket {bucket} "
            "--versioning-configuration Status=Enabled"
        )
        hint = f"enable versioning: `{command}`."
        notices.append(Notice(f"the bucket {bucket} is not versioned: a deleted template cannot be recovered", hint))
    return [*notices, *hardening.expiration_warnings(bucket, lifecycle)]
