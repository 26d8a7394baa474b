"""The settings of cfngen's own bucket: private, versioned, encrypted, TLS only, and current objects never expire.

Each deployment adds missing settings; it never removes or weakens a setting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.checked_answers import read_document
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, error_code, suppress_codes
from cfngen.deploy.aws.types import AwsArguments, AwsObject
from cfngen.deploy.messages.message import Notice, Report

# Only old versions and unfinished uploads expire. Current objects never do: a rollback or an update of a live stack
# reads the stack's templates again, however old they are.
OLD_VERSIONS_DAYS = 30
UNFINISHED_UPLOADS_DAYS = 7
TAGS = {"cfngen": "templates"}
_LIFECYCLE_RULE = {
    "ID": "cfngen-leftovers",
    "Status": "Enabled",
    "Filter": {"Prefix": ""},
    "NoncurrentVersionExpiration": {"NoncurrentDays": OLD_VERSIONS_DAYS},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": UNFINISHED_UPLOADS_DAYS},
}
PUBLIC_ACCESS_BLOCK = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": True,
}
_PERMISSION_HINT = (
    "have someone who may change the bucket deploy once; "
    "docs/reference/policies/bucket-policy.json lists the permissions."
)
# Error codes of operations that read a setting which is not set.
_NOT_CONFIGURED_CODES = frozenset(
    {
        "NoSuchBucketPolicy",
        "NoSuchLifecycleConfiguration",
        "NoSuchPublicAccessBlockConfiguration",
        "NoSuchTagSet",
        "OwnershipControlsNotFoundError",
        "ServerSideEncryptionConfigurationNotFoundError",
    }
)


class _S3Call(NamedTuple):
    """A call of S3.

    Attributes:
        operation: name of the method of boto3's client, e.g. `put_bucket_tagging`.
        arguments: its arguments, besides those that name the bucket.
    """

    operation: str
    arguments: AwsArguments


@dataclass(frozen=True)
class _Setting:
    """A setting of cfngen's own bucket.

    Attributes:
        find_correction: takes the response of `read_operation` and returns the call of S3 that corrects the setting;
            None if the setting is correct.
    """

    description: str
    read_operation: str
    find_correction: Callable[[AwsObject], _S3Call | None]


def bucket_arguments(account: Account, bucket: str) -> dict[str, str]:
    """Return the arguments of every S3 call: with them, S3 refuses the call if another account owns the bucket."""
    return {"Bucket": bucket, "ExpectedBucketOwner": account.id}


def harden(account: Account, bucket: str, *, kms_key: str, is_new: bool, report: Report) -> None:
    """Correct the settings of cfngen's own bucket.

    Args:
        kms_key: KMS key for new objects; if empty, the bucket's current key, or S3's managed key.
        is_new: whether the bucket was just created, so that all settings are required.
        report: receives a notice about settings that the caller may not read or change.
    """
    settings = _required_settings(account, bucket, kms_key)
    responses: dict[str, AwsObject | None]
    if is_new:
        # A new bucket has no settings, and S3 may not find it yet.
        responses = {setting.read_operation: {} for setting in settings}
    else:
        with ThreadPoolExecutor() as pool:
            read_responses = pool.map(lambda setting: read_setting(account, bucket, setting.read_operation), settings)
            responses = {
                setting.read_operation: response for setting, response in zip(settings, read_responses, strict=True)
            }
    if unreadable_settings := [
        setting.description for setting in settings if responses[setting.read_operation] is None
    ]:
        report(
            Notice(
                f"no permission to read these settings of the bucket {bucket}: {', '.join(unreadable_settings)}",
                _PERMISSION_HINT,
            )
        )
    for setting in settings:
        current = responses[setting.read_operation]
        if current is None:
            continue  # the caller may not read it, which was reported above
        if correction := setting.find_correction(current):
            _correct(account, bucket, setting, correction, is_new=is_new, report=report)
    for notice in expiration_warnings(bucket, responses["get_bucket_lifecycle_configuration"]):
        report(notice)


def _correct(
    account: Account, bucket: str, setting: _Setting, correction: _S3Call, *, is_new: bool, report: Report
) -> None:
    """Correct a setting; if the caller may not, report it, or fail for a new bucket that lacks the setting."""
    from botocore.exceptions import ClientError

    try:
        call_operation = getattr(account.client("s3"), correction.operation)
        call_operation(**bucket_arguments(account, bucket), **correction.arguments)
    except ClientError as error:
        if error_code(error) not in ACCESS_DENIED_CODES:
            raise
        if is_new:
            # A new bucket must have the setting, and may have it without this call: S3 creates buckets private,
            # encrypted and with ACLs disabled, and organizations may deny calls that change these settings.
            current = read_setting(account, bucket, setting.read_operation)
            if current is None or setting.find_correction(current):
                raise
            return
        # An administrator may have prepared the bucket, so it is used although the setting cannot be corrected.
        text = f"{setting.description} of the bucket {bucket} is not set correctly, and you may not change it"
        report(Notice(text, _PERMISSION_HINT))


def read_setting(account: Account, bucket: str, operation: str) -> AwsObject | None:
    """Return the response of an S3 operation that reads a setting of a bucket.

    It is an empty mapping if the setting is not set, and None if the caller may not read it.
    """
    with suppress_codes(ACCESS_DENIED_CODES):
        arguments = bucket_arguments(account, bucket)
        return account.read(f"s3.{operation}", absent=_NOT_CONFIGURED_CODES, **arguments) or {}
    return None


def _required_settings(account: Account, bucket: str, kms_key: str) -> Sequence[_Setting]:
    return (
        _Setting("blocking of public access", "get_public_access_block", _public_access_correction),
        _Setting("ownership of objects", "get_bucket_ownership_controls", _ownership_correction),
        _Setting("versioning", "get_bucket_versioning", _versioning_correction),
        _Setting("encryption", "get_bucket_encryption", lambda current: _encryption_correction(current, kms_key)),
        _Setting(
            "refusal of unencrypted connections",
            "get_bucket_policy",
            lambda current: _policy_correction(current, account, bucket),
        ),
        _Setting("removal of old versions", "get_bucket_lifecycle_configuration", _lifecycle_correction),
        _Setting("tags", "get_bucket_tagging", _tags_correction),
    )


# Each function below takes the response with a setting's current value, and returns the call of S3 that corrects the
# setting; None if the setting is correct.


def _public_access_correction(current: AwsObject) -> _S3Call | None:
    if current.get("PublicAccessBlockConfiguration", {}) == PUBLIC_ACCESS_BLOCK:
        return None
    return _S3Call("put_public_access_block", {"PublicAccessBlockConfiguration": PUBLIC_ACCESS_BLOCK})


def _ownership_correction(current: AwsObject) -> _S3Call | None:
    rules = [{"ObjectOwnership": "BucketOwnerEnforced"}]
    if current.get("OwnershipControls", {}).get("Rules") == rules:
        return None
    return _S3Call("put_bucket_ownership_controls", {"OwnershipControls": {"Rules": rules}})


def _versioning_correction(current: AwsObject) -> _S3Call | None:
    if current.get("Status") == "Enabled":
        return None
    return _S3Call("put_bucket_versioning", {"VersioningConfiguration": {"Status": "Enabled"}})


def _encryption_correction(current: AwsObject, kms_key: str) -> _S3Call | None:
    """Return the call that encrypts new objects: with the KMS key or, if it is empty, with S3's managed key.

    Without a KMS key, every encryption that is set already is correct.
    """
    rules = current.get("ServerSideEncryptionConfiguration", {}).get("Rules", ())
    for rule in rules:
        default = rule.get("ApplyServerSideEncryptionByDefault", {})
        is_correct = default.get("KMSMasterKeyID") == kms_key if kms_key else default.get("SSEAlgorithm")
        if is_correct:
            return None
    by_default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": kms_key} if kms_key else {"SSEAlgorithm": "AES256"}
    required_rule = {"ApplyServerSideEncryptionByDefault": by_default, "BucketKeyEnabled": bool(kms_key)}
    return _S3Call("put_bucket_encryption", {"ServerSideEncryptionConfiguration": {"Rules": [required_rule]}})


def _policy_correction(current: AwsObject, account: Account, bucket: str) -> _S3Call | None:
    """Return the call that adds a policy statement which denies calls without TLS; other statements stay."""
    document = current.get("Policy") or '{"Version": "2012-10-17", "Statement": []}'
    policy: AwsArguments = read_document(document, "s3:GetBucketPolicy", "Policy")
    statement = policy.get("Statement", [])
    statements: list[AwsArguments] = statement if isinstance(statement, list) else [statement]
    arn = f"arn:{account.partition}:s3:::{bucket}"
    required_statement: AwsArguments = {
        "Sid": "CfngenOnlyTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    if any(_refuses_plain_http(candidate, required_statement) for candidate in statements):
        return None
    other_statements = [candidate for candidate in statements if candidate.get("Sid") != required_statement["Sid"]]
    return _S3Call(
        "put_bucket_policy", {"Policy": json.dumps({**policy, "Statement": [*other_statements, required_statement]})}
    )


def _refuses_plain_http(statement: AwsObject, required_statement: AwsObject) -> bool:
    """Return whether a policy statement denies at least what `required_statement` denies, in any usual spelling."""
    return (
        statement.get("Effect") == "Deny"
        and statement.get("Principal") in ("*", {"AWS": "*"}, {"AWS": ["*"]})
        and statement.get("Action") in ("s3:*", "*", ["s3:*"], ["*"])
        and set(required_statement["Resource"]) <= set(statement.get("Resource", ()))  # never true for a single string
        and json.dumps(statement.get("Condition")).lower().replace("[", "").replace("]", "")
        in ('{"bool": {"aws:securetransport": "false"}}', '{"bool": {"aws:securetransport": false}}')
    )


def _lifecycle_correction(current: AwsObject) -> _S3Call | None:
    """Return the call that adds the lifecycle rule for old versions and unfinished uploads; other rules stay."""
    rules = list(current.get("Rules", ()))
    if any(rule.get("ID") == _LIFECYCLE_RULE["ID"] for rule in rules):
        return None
    return _S3Call(
        "put_bucket_lifecycle_configuration", {"LifecycleConfiguration": {"Rules": [*rules, _LIFECYCLE_RULE]}}
    )


def _tags_correction(current: AwsObject) -> _S3Call | None:
    tags = {tag["Key"]: tag["Value"] for tag in current.get("TagSet", ())}
    if TAGS.items() <= tags.items():
        return None
    tag_set = [{"Key": key, "Value": value} for key, value in {**tags, **TAGS}.items()]
    return _S3Call("put_bucket_tagging", {"Tagging": {"TagSet": tag_set}})


def expiration_warnings(bucket: str, lifecycle: AwsObject | None) -> list[Notice]:
    """Return a warning if the lifecycle configuration deletes templates of live stacks; none if it is not known."""
    rules = [rule for rule in (lifecycle or {}).get("Rules", ()) if rule.get("Status") == "Enabled"]
    if not any({"Days", "Date"} & rule.get("Expiration", {}).keys() for rule in rules):
        return []
    hint = "remove the rule: an update or rollback of a cluster reads its templates again, however old they are."
    return [Notice(f"a lifecycle rule of the bucket {bucket} deletes current objects", hint)]
