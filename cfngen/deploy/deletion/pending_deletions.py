"""The keys and secrets of a deleted cluster whose deletion is pending: AWS deletes them only after a waiting period."""

from __future__ import annotations

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import ACCESS_DENIED_CODES, error_code
from cfngen.deploy.deletion.inventory import Inventory
from cfngen.deploy.deletion.retained_resources import RetainedResource


def find_keys(account: Account, inventory: Inventory) -> tuple[RetainedResource, ...]:
    """Return the KMS keys of the stacks that are pending deletion."""
    key_ids = sorted(inventory.ids("AWS::KMS::Key"))
    return tuple(key for key_id in key_ids if (key := _describe_key_pending_deletion(account, key_id)))


def find_secrets(account: Account, inventory: Inventory) -> tuple[RetainedResource, ...]:
    """Return the secrets of the stacks that are scheduled for deletion (by hand) and can still be restored."""
    arns = sorted(inventory.ids("AWS::SecretsManager::Secret"))
    return tuple(secret for arn in arns if (secret := _describe_secret_pending_deletion(account, arn)))


def _describe_key_pending_deletion(account: Account, key_id: str) -> RetainedResource | None:
    """Return a KMS key that is pending deletion, with the command that cancels that; None for any other key.

    A key that the caller has no permission to describe is taken for one that is not pending deletion.
    """
    from botocore.exceptions import ClientError

    try:
        key = account.client("kms").describe_key(KeyId=key_id)["KeyMetadata"]
    except ClientError as error:
        if error_code(error) in ACCESS_DENIED_CODES | {"NotFoundException"}:
            return None
        raise
    if key["KeyState"] != "PendingDeletion":
        return None
    deletion_date = key["DeletionDate"].date().isoformat() if key.get("DeletionDate") else "a day that KMS does not say"
    cancel_command = f"aws kms cancel-key-deletion --key-id {key_id} --region {account.region}"
    return RetainedResource(
        kind="KMS key",
        id=key_id,
        why=f"deleted on {deletion_date}; until then `{cancel_command}` cancels the deletion",
        cost="not billed while its deletion is pending",
    )


def _describe_secret_pending_deletion(account: Account, arn: str) -> RetainedResource | None:
    """Return a secret that is scheduled for deletion, with the command that restores it; None for any other secret.

    A secret that the caller has no permission to describe is taken for one that is not scheduled for deletion.
    """
    from botocore.exceptions import ClientError

    try:
        secret = account.client("secretsmanager").describe_secret(SecretId=arn)
    except ClientError as error:
        if error_code(error) in ACCESS_DENIED_CODES | {"ResourceNotFoundException"}:
            return None
        raise
    if not secret.get("DeletedDate"):
        return None
    restore_command = f"aws secretsmanager restore-secret --secret-id {arn} --region {account.region}"
    return RetainedResource(
        kind="secret",
        id=arn,
        why=f"deleted when its recovery window ends; until then `{restore_command}` restores it",
        cost="not billed while its deletion is pending",
        command=(
            f"aws secretsmanager delete-secret --force-delete-without-recovery --secret-id {arn} "
            f"--region {account.region}"
        ),
    )
