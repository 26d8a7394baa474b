"""Counts and deletes a cluster's templates in the bucket, after the cluster was deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.stacks import parse_stack
from cfngen.errors import CfngenError
from cfngen.text import pluralize

DELETE_BATCH_SIZE = 1000  # objects in one call of DeleteObjects
# Error codes of a call for a bucket that does not exist.
BUCKET_MISSING_CODES = frozenset({"NoSuchBucket", "404"})


class ObjectsError(CfngenError):
    """S3 could not delete all objects."""

    code = "objects-not-deleted"


class TemplatesInUseError(CfngenError):
    """Another stack uses the same templates."""

    code = "templates-in-use"


@dataclass(frozen=True)
class TemplateObjects:
    """The objects in a cluster's folder of the bucket.

    Attributes:
        bucket: the bucket; empty if there is none.
        prefix: the cluster's folder.
        versions: number of object versions and delete markers.
        gigabytes: their total size in GiB.
    """

    bucket: str = ""
    prefix: str = ""
    versions: int = 0
    gigabytes: float = 0.0


def find(account: Account, bucket: str, cluster: str, *, must_be_allowed: bool = False) -> TemplateObjects:
    """Return the number and size of a cluster's objects in a bucket of this account.

    Args:
        account: the account.
        bucket: the bucket; if it does not exist, there are no objects.
        cluster: name of the cluster.
        must_be_allowed: whether to raise an error if the caller may not list the bucket; otherwise it counts as empty.
    """
    prefix = f"{cluster}/"
    count = total_bytes = 0
    ignored_codes = BUCKET_MISSING_CODES if must_be_allowed else BUCKET_MISSING_CODES | ACCESS_DENIED_CODES
    try:
        for version in _list_versions(account, bucket, prefix):
            count += 1
            total_bytes += version.bytes
    except _client_error() as error:
        if error_code(error) not in ignored_codes:
            raise
        return TemplateObjects(prefix=prefix)
    return TemplateObjects(bucket, prefix, versions=count, gigabytes=total_bytes / 2**30)


def check_unused(account: Account, cluster: str, root_id: str) -> None:
    """Check that no other root has a cluster of this name, since its templates would be in the same folder.

    Args:
        account: the account and region.
        cluster: name of the cluster.
        root_id: ARN of the root that is deleted; empty if there is none.

    Raises:
        TemplatesInUseError: another root has a cluster of this name.
    """
    pages = account.client("cloudformation").get_paginator("describe_stacks").paginate()
    roots = (parse_stack(stack) for page in pages for stack in page["Stacks"] if not stack.get("ParentId"))
    other_stacks = sorted(root.name for root in roots if root.cluster == cluster and root.id != root_id)
    if other_stacks:
        raise TemplatesInUseError(
            f"the templates of the cluster {cluster} in the bucket are also used by the stack "
            f"{', '.join(other_stacks)}",
            hint="omit --empty-bucket, or delete that stack first.",
        )


def empty(account: Account, bucket: str, cluster: str) -> int:
    """Delete all versions of all objects in the cluster's folder, and nothing else; return their number.

    Raises:
        ObjectsError: S3 could not delete some of the objects.
    """
    s3 = account.client("s3")
    deleted = 0
    versions = [
        {"Key": version.key, "VersionId": version.id} for version in _list_versions(account, bucket, f"{cluster}/")
    ]
    for start in range(0, len(versions), DELETE_BATCH_SIZE):
        batch = versions[start : start + DELETE_BATCH_SIZE]
        response = s3.delete_objects(
            Bucket=bucket, Delete={"Objects": batch, "Quiet": True}, ExpectedBucketOwner=account.id
        )
        errors = response.get("Errors", ())
        if errors:
            first = errors[0]
            raise ObjectsError(
                f"{pluralize(len(errors), f'object of s3://{bucket}/{cluster}/', 'were')} not deleted; "
                f"the first is {first.get('Key')}: "
                f"{first.get('Message') or first.get('Code')}",
                hint="the bucket's policy or an object lock may forbid it; correct that and repeat.",
            )
        deleted += len(batch)
    return deleted


def delete_bucket(account: Account, bucket: str) -> bool:
    """Delete a bucket if it is empty; return whether it was deleted."""
    is_empty = next(_list_versions(account, bucket, prefix=""), None) is None
    if not is_empty:
        return False
    account.client("s3").delete_bucket(Bucket=bucket, ExpectedBucketOwner=account.id)
    return True


class _ObjectVersion(NamedTuple):
    """A version of an object, or a delete marker.

    Attributes:
        key: the object's key.
        id: id of the version.
        bytes: size of the version; 0 for a delete marker.
    """

    key: str
    id: str
    bytes: int


def _list_versions(account: Account, bucket: str, prefix: str) -> Iterator[_ObjectVersion]:
    """Yield all versions of all objects whose keys begin with a prefix, and all delete markers."""
    pages = account.client("s3").get_paginator("list_object_versions")
    for page in pages.paginate(Bucket=bucket, Prefix=prefix, ExpectedBucketOwner=account.id):
        for version in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            yield _ObjectVersion(key=version["Key"], id=version["VersionId"], bytes=version.get("Size", 0))


def _client_error() -> type[Exception]:
    """Return botocore's `ClientError`; botocore is imported only when it is needed."""
    from botocore.exceptions import ClientError

    error: type[Exception] = ClientError
    return error
