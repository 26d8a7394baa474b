"""KMS: policies of keys, and keys that cannot be used.

Conditions: KMS API reference, CreateKey, PutKeyPolicy, and the errors of each operation.
"""

from __future__ import annotations

from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.authorization import Caller, Policies, Request, authorize
from cfngen.sandbox.services.rules import NOT_MODELLED, PendingCall, Refused, rule
from cfngen.sandbox.untyped import JsonObject, MotoModel

MAX_TAGS = 50
# The user who makes all calls; CloudFormation, too, calls on the user's behalf.
CALLER = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:user/operator"
MALFORMED_POLICY = "MalformedPolicyDocumentException"


@rule("kms", "CreateKey", "PutKeyPolicy")
def check_key_policy(call: PendingCall) -> None:
    """Refuse a policy with principals that do not exist, and one that locks the caller out."""
    text = call.get("Policy")
    if not text:
        return
    document = policy_documents.parse(text)
    if not policy_documents.is_of_templates(document):
        raise Refused(NOT_MODELLED, "the emulator does not model such a key policy")
    if list(policy_documents.missing_principals(document, call.region)):
        raise Refused(MALFORMED_POLICY, "Policy contains a statement with one or more invalid principals.")
    if not call.get("BypassPolicyLockoutSafetyCheck") and not _lets_caller_change_policy(document, call.region):
        raise Refused(MALFORMED_POLICY, "The new key policy will not allow you to update the key policy in the future.")


def _lets_caller_change_policy(document: JsonObject, region: str) -> bool:
    """Return whether a caller with all permissions of IAM may change the policy again ("PutKeyPolicy", KMS API)."""
    partition = policy_documents.partition(region)
    key = f"arn:{partition}:kms:{region}:{DEFAULT_ACCOUNT_ID}:key/1"
    context = {"kms:calleraccount": [DEFAULT_ACCOUNT_ID], "aws:securetransport": ["true"]}
    caller = Caller(CALLER.replace("arn:aws:", f"arn:{partition}:"))
    everything = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
    policies = Policies(identity=[everything], resource=document)
    return authorize(Request("kms:PutKeyPolicy", key, context), caller, policies) == "allowed"


@rule("kms", "CreateKey", "TagResource")
def check_tags(call: PendingCall) -> None:
    """Refuse more tags than a key can have, and two tags with the same key."""
    keys = [tag["TagKey"] for tag in call.get("Tags") or []]
    if len(set(keys)) < len(keys):
        raise Refused("TagException", "Duplicate tag keys")
    if len(keys) > MAX_TAGS:
        raise Refused("LimitExceededException", f"The number of tags exceeds the limit of {MAX_TAGS}")


@rule(
    "kms", "ScheduleKeyDeletion", "EnableKeyRotation", "DisableKeyRotation", "EnableKey", "DisableKey",
    "UpdateKeyDescription", "TagResource", "UntagResource", "CreateAlias", "CreateGrant",
    "Encrypt", "Decrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "ReEncrypt",
)  # fmt: skip
def check_key_state(call: PendingCall) -> None:
    """Refuse to change or use a key that is pending deletion, and to use a disabled key."""
    key = find_key(call.region, call.get("KeyId") or call.get("TargetKeyId") or "")
    if key is None:
        return
    if key.key_state == "PendingDeletion":
        raise Refused("KMSInvalidStateException", f"{key.arn} is pending deletion.")
    uses = ("Encrypt", "Decrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "ReEncrypt", "CreateGrant")
    if key.key_state == "Disabled" and call.operation in (*uses, "EnableKeyRotation", "DisableKeyRotation"):
        raise Refused("DisabledException", f"{key.arn} is disabled.")


def find_key(region: str, name: str) -> MotoModel | None:
    """Return moto's object of a key by its id, ARN or alias; None if there is no such key in the region."""
    backend = get_backend("kms")[DEFAULT_ACCOUNT_ID][region]
    if name.startswith("arn:") and name.split(":")[3] != region:
        return None
    alias_or_id = name.rpartition(":")[2]  # `alias/NAME`, `key/ID` or `ID`
    if alias_or_id.startswith("alias/"):
        return next((key for key in backend.keys.values() if alias_or_id in key.aliases), None)
    return backend.keys.get(alias_or_id.removeprefix("key/"))


def launch_error(region: str, name: str) -> str:
    """Return EC2's error if disks cannot be encrypted with a key; empty if they can, or for EC2's default key.

    EC2 user guide, "Instance terminates immediately".
    """
    if not name or is_usable(region, name):
        return ""
    if find_key(region, name) is None:
        return "Client.InvalidKMSKey.NotFound: The KMS key provided does not exist"
    return "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state"


def is_usable(region: str, name: str) -> bool:
    """Return whether a key can encrypt and decrypt; AWS managed keys always can."""
    if name.rpartition(":")[2].startswith("alias/aws/"):
        return True
    key = find_key(region, name)
    return key is not None and key.key_state == "Enabled"
