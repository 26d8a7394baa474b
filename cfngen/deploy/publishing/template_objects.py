"""A cluster's templates in their bucket, once nothing needs them any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DENIED, error_code
from cfngen.deploy.stacks import view
from cfngen.errors import CfngenError
from cfngen.text import pluralize

AT_ONCE = 1000  # objects in one DeleteObjects
MISSING = frozenset({"NoSuchBucket", "404"})


class ObjectsError(CfngenError):
    """S3 did not delete everything."""


class TemplatesInUseError(CfngenError):
    """Another stack lives on the same templates."""


@dataclass(frozen=True)
class Objects:
    """What lies under a cluster's name in the bucket.

    Attributes:
        bucket: the bucket; empty if there is none.
        prefix: the cluster's folder.
        versions: number of object versions and delete markers.
        gigabytes: their size in GiB.
    """

    bucket: str = ""
    prefix: str = ""
    versions: int = 0
    gigabytes: float = 0.0


def find(account: Account, bucket: str, cluster: str, *, needed: bool = False) -> Objects:
    """Return what a cluster has in a bucket of this account.

    Args:
        account: the account.
        bucket: the bucket; nothing is found in one that does not exist.
        cluster: name of the cluster.
        needed: whether it is an error if the caller may not look; else nothing is found.
    """
    prefix, count, size = f"{cluster}/", 0, 0
    try:
        for _key, _version, length in _versions(account, bucket, prefix):
            count, size = count + 1, size + length
    except _missing() as error:
        if error_code(error) not in (MISSING if needed else MISSING | DENIED):
            raise
        return Objects(prefix=prefix)
    return Objects(bucket, prefix, count, size / 2**30)


def check_unused(account: Account, cluster: str, root_id: str) -> None:
    """Make sure that no other root has a cluster of this name: it would read the same templates again.

    Args:
        account: where they are.
        cluster: name of the cluster.
        root_id: the root that is deleted; empty if there is none.

    Raises:
        TemplatesInUseError: there is such a stack.
    """
    pages = account.client("cloudformation").get_paginator("describe_stacks").paginate()
    roots = (view(stack) for page in pages for stack in page["Stacks"] if not stack.get("ParentId"))
    other_stacks = sorted(root.name for root in roots if root.cluster == cluster and root.id != root_id)
    if other_stacks:
        raise TemplatesInUseError(
            f"the templates of the cluster {cluster} in the bucket are also those of the stack {', '.join(other_stacks)}",
            hint="leave --empty-bucket out, or delete that stack first.",
        )


def empty(account: Account, bucket: str, cluster: str) -> int:
    """Delete every version of every object of the cluster, and nothing else; return how many that were.

    Raises:
        ObjectsError: some could not be deleted.
    """
    s3, deleted = account.client("s3"), 0
    versions = [{"Key": key, "VersionId": version} for key, version, _ in _versions(account, bucket, f"{cluster}/")]
    for start in range(0, len(versions), AT_ONCE):
        batch = versions[start : start + AT_ONCE]
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
    """Delete a bucket if nothing at all is left in it; return whether it was."""
    if next(_versions(account, bucket, ""), None) is not None:
        return False
    account.client("s3").delete_bucket(Bucket=bucket, ExpectedBucketOwner=account.id)
    return True


def _versions(account: Account, bucket: str, prefix: str) -> Iterator[tuple[str, str, int]]:
    """Key, version and size of everything under a prefix; a delete marker is a version without a size."""
    pages = account.client("s3").get_paginator("list_object_versions")
    for page in pages.paginate(Bucket=bucket, Prefix=prefix, ExpectedBucketOwner=account.id):
        for version in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            yield version["Key"], version["VersionId"], version.get("Size", 0)


def _missing() -> type[Exception]:
    from botocore.exceptions import ClientError

    error: type[Exception] = ClientError
    return error
