"""Emptying and deleting the bucket of a cluster's templates."""

from __future__ import annotations

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.stacks import parse_stack
from cfngen.deploy.aws.templates import ObjectsError, list_versions
from cfngen.errors import CfngenError
from cfngen.text import pluralize

DELETE_BATCH_SIZE = 1000  # objects in one call of DeleteObjects


class TemplatesInUseError(CfngenError):
    """Another stack uses the same templates."""

    code = "templates-in-use"


def check_unused(account: Account, cluster: str, root_id: str) -> None:
    """Check that no other root has a cluster of this name, since its templates would be in the same folder.

    Args:
        root_id: ARN of the root that is deleted; empty if there is none.

    Raises:
        TemplatesInUseError: another root has a cluster of this name.
    """
    stacks = map(parse_stack, account.items("cloudformation.describe_stacks", "Stacks"))
    other_stacks = sorted(
        stack.name for stack in stacks if stack.cluster == cluster and stack.id != root_id and not stack.parent_id
    )
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
        {"Key": version.key, "VersionId": version.id} for version in list_versions(account, bucket, f"{cluster}/")
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
    is_empty = next(list_versions(account, bucket, prefix=""), None) is None
    if not is_empty:
        return False
    account.client("s3").delete_bucket(Bucket=bucket, ExpectedBucketOwner=account.id)
    return True
