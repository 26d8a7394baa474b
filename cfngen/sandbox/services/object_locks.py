"""S3 Object Lock: versions of objects that cannot be deleted before their date, by the simulated clock of their region.

Sources: "Locking objects with Object Lock" and "Configuring S3 Object Lock", Amazon S3 User Guide; PutObjectRetention,
GetObjectRetention and PutObjectLockConfiguration, Amazon S3 API Reference.
"""

from __future__ import annotations

import datetime

from moto.backends import get_backend
from moto.core.responses import ActionResult
from moto.s3.exceptions import InvalidBucketState, LockNotEnabled, S3ClientError
from moto.s3.models import FakeKey, S3Backend
from moto.s3.responses import S3Response

from cfngen.sandbox.moto_patches.registry import patches, replaces
from cfngen.sandbox.services.rules import CLOCK_START, PendingCall, Refused, rule, time_in
from cfngen.sandbox.untyped import Expression, MotoBackend, MotoModel, MotoResponse, Original

GOVERNANCE = "GOVERNANCE"
MODES = (GOVERNANCE, "COMPLIANCE")
PROTECTED = "Access Denied because object protected by object lock."


@replaces(FakeKey, "is_locked")
def _is_locked(self: MotoModel, governance_bypass: bool) -> bool:
    """Return whether a version is locked now; moto looks at the clock of this machine."""
    if not self.lock_mode or (self.lock_mode == GOVERNANCE and governance_bypass):
        return False
    bucket = get_backend("s3")[self.account_id][self.partition].get_bucket(self.bucket_name)
    return _date(self.lock_until) > CLOCK_START + datetime.timedelta(seconds=time_in(bucket.region_name))


@replaces(S3Backend, "put_object_lock_configuration")
def _put_object_lock_configuration(
    self: MotoBackend, bucket_name: str, lock_enabled: bool, mode: str | None, days: int, years: int
) -> None:
    """Turn Object Lock on for a versioned bucket; moto asks for an empty one."""
    bucket = self.get_bucket(bucket_name)
    if not bucket.is_versioned:
        raise InvalidBucketState("Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration")
    bucket.object_lock_enabled = lock_enabled
    bucket.default_lock_mode, bucket.default_lock_days, bucket.default_lock_years = mode, days, years


@patches(S3Response, "_key_response_get")
def _key_response_get(original: Original, self: MotoResponse, query: Expression, key_name: str) -> object:
    """Answer GetObjectRetention, which moto lacks, too."""
    if "retention" not in query:
        return original(self, query, key_name)
    if not self.backend.get_bucket(self.bucket_name).object_lock_enabled:
        raise LockNotEnabled
    key, _ = self._get_key()
    if not key.lock_mode:
        raise S3ClientError(
            "NoSuchObjectLockConfiguration", "The specified object does not have a ObjectLock configuration"
        )
    self.data["Action"] = "GetObjectRetention"
    return self.serialized(
        ActionResult({"Retention": {"Mode": key.lock_mode, "RetainUntilDate": _date(key.lock_until)}})
    )


@rule("s3", "PutBucketVersioning")
def check_versioning(call: PendingCall) -> None:
    """Refuse to suspend the versioning of a bucket with Object Lock."""
    status = (call.get("VersioningConfiguration") or {}).get("Status")
    if status == "Suspended" and call.backend.get_bucket(call.get("Bucket")).object_lock_enabled:
        raise Refused(
            "InvalidBucketState",
            "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.",
        )


@rule("s3", "PutObject")
def check_lock(call: PendingCall) -> None:
    """Refuse a lock that has only mode or date, an unknown mode, or has ended already, and one without a checksum.

    Seen: minio/minio#16480 and versity/versitygw#1736, which quote S3.
    """
    mode, until = call.get("ObjectLockMode"), call.get("ObjectLockRetainUntilDate")
    if bool(mode) != bool(until):
        raise Refused(
            "InvalidArgument",
            "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied",
        )
    if mode and mode not in MODES:
        raise Refused("InvalidArgument", "Unknown wormMode directive.")
    if mode and not any(name == "ContentMD5" or name.startswith("Checksum") for name in call.parameters):
        raise Refused(
            "InvalidRequest",
            "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock "
            "parameters",
        )
    if until and _date(until) <= CLOCK_START + datetime.timedelta(seconds=call.time):
        raise Refused("InvalidArgument", "The retain until date must be in the future!")


@rule("s3", "PutObjectRetention")
def check_retention(call: PendingCall) -> None:
    """Refuse to shorten a lock, or to end it: in governance mode without the bypass, in compliance mode always."""
    key = call.backend.get_object(call.get("Bucket"), call.get("Key"), version_id=call.get("VersionId"))
    if key is None or not key.is_locked(bool(call.get("BypassGovernanceRetention"))):
        return
    retention = call.get("Retention") or {}
    is_longer = "RetainUntilDate" in retention and _date(retention["RetainUntilDate"]) >= _date(key.lock_until)
    if not is_longer or retention.get("Mode") == GOVERNANCE != key.lock_mode:
        raise Refused("AccessDenied", PROTECTED)


def _date(value: Expression) -> datetime.datetime:
    """Return a date of S3, a text or already parsed, as one with a time zone."""
    date = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
    return date if date.tzinfo else date.replace(tzinfo=datetime.UTC)
