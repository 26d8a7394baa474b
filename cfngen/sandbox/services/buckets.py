"""S3: buckets' names, policies, lifecycle rules and tags; ECR: the length of a repository's policy.

Sources: S3 user guide ("Bucket naming rules", "Bucket policies", "Blocking public access", "Lifecycle configuration
elements") and the API reference of each operation.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable

import awacs.s3
from awacs.aws import Action
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket

from cfngen.sandbox.moto_patches.registry import replaces
from cfngen.sandbox.services import keys, policy_documents
from cfngen.sandbox.services.authorization import ANONYMOUS, Context, Policies, Request, authorize
from cfngen.sandbox.services.rules import NOT_MODELLED, PendingCall, Refused, rule
from cfngen.sandbox.untyped import JsonDict, MotoModel
from cfngen.text_limits import BUCKET_NAME

MAX_TAGS = 50
MAX_REPOSITORY_POLICY_CHARACTERS = 10_240
LIFECYCLE_ACTIONS = ("Expiration", "NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload")
EXPIRED_MARKER = "ExpiredObjectDeleteMarker"
MALFORMED_POLICY = "MalformedPolicy"
WRITES = {
    "PutObject": True, "CopyObject": True, "CompleteMultipartUpload": True,
    "CreateMultipartUpload": False, "UploadPart": False, "UploadPartCopy": False,
}  # fmt: skip
"""Operations that need s3:PutObject, and whether they create an object."""
CONDITION_KEYS_OF_WRITES = frozenset({"s3:if-none-match", "s3:objectcreationoperation"})
# Condition keys that make a policy for everybody non-public: "The meaning of public", S3 user guide.
NON_PUBLIC_CONDITIONS = frozenset(
    {
        "aws:principalaccount", "aws:principalarn", "aws:principalorgid", "aws:principalorgpaths", "aws:sourceaccount",
        "aws:sourcearn", "aws:sourceip", "aws:sourceorgid", "aws:sourceowner", "aws:sourcevpc", "aws:sourcevpce",
        "aws:userid", "s3:dataaccesspointaccount", "s3:dataaccesspointarn",
        "s3:x-amz-server-side-encryption-aws-kms-key-id",
    }
)  # fmt: skip


@rule("s3", "CreateBucket")
def check_name(call: PendingCall) -> None:
    """Refuse a name that breaks S3's rules."""
    if BUCKET_NAME.fault(call.get("Bucket", "")):
        raise Refused("InvalidBucketName", "The specified bucket is not valid.")


@rule("s3", "PutBucketPolicy")
def check_policy(call: PendingCall) -> None:
    """Refuse a policy that is public where that is blocked, or about what is elsewhere or does not exist."""
    try:
        document = policy_documents.parse(call.get("Policy"))
    except ValueError:
        raise Refused(MALFORMED_POLICY, "Policies must be valid JSON and the first byte must be '{'") from None
    statements = policy_documents.statements(document)
    if not statements:
        raise Refused(MALFORMED_POLICY, "Missing required field Statement")
    condition_keys = [key for statement in statements for key in policy_documents.condition_keys(statement)]
    is_known = all(key.startswith("aws:") or key in CONDITION_KEYS_OF_WRITES for key in condition_keys)
    if not is_known or not policy_documents.is_of_templates(document):
        raise Refused(NOT_MODELLED, "the emulator does not model such a bucket policy")
    for statement in statements:
        _check_statement(statement, call.get("Bucket"), policy_documents.partition(call.region))
    if missing_principals := list(policy_documents.missing_principals(document, call.region)):
        raise Refused(MALFORMED_POLICY, f"Invalid principal in policy ({missing_principals[0][1]})")
    _check_public_statements(call, statements)


@replaces(FakeBucket, "get_permission")
def _get_permission(self: MotoModel, action: str, resource: str) -> PermissionResult:
    """Return what the policy says about a request, of which moto tells no more than this."""
    evaluation = _decision_for_everybody(self.policy, action, resource, {}) if self.policy else ""
    permissions = {"explicitDeny": PermissionResult.DENIED, "allowed": PermissionResult.PERMITTED}
    return permissions.get(evaluation, PermissionResult.NEUTRAL)


def _decision_for_everybody(policy: str, action: str, resource: str, context: Context) -> str:
    """Return what a bucket's policy says about a request of anybody; the emulator's clients count as using TLS."""
    request = Request(action, resource, {"aws:securetransport": ["true"], **context})
    return authorize(request, ANONYMOUS, Policies(resource=policy_documents.parse(policy)))


@rule("s3", *WRITES)
def check_write(call: PendingCall) -> None:
    """Refuse to write an object if the bucket's policy denies it to everybody.

    "Enforce conditional writes on Amazon S3 buckets", S3 user guide. IAM policies are not checked here.
    """
    policy = _get_bucket(call).policy
    if policy is None:
        return
    context = {"s3:objectcreationoperation": [str(WRITES[call.operation]).lower()]}
    if call.get("IfNoneMatch"):
        context["s3:if-none-match"] = [call.get("IfNoneMatch")]
    arn = f"arn:{policy_documents.partition(call.region)}:s3:::{call.get('Bucket')}/{call.get('Key')}"
    if _decision_for_everybody(policy, "s3:PutObject", arn, context) == "explicitDeny":
        raise Refused(
            "AccessDenied",
            f'User: {keys.CALLER} is not authorized to perform: s3:PutObject on resource: "{arn}" '
            "with an explicit deny in a resource-based policy",
        )


def _check_statement(statement: JsonDict, bucket: str, partition: str) -> None:
    """Refuse a statement whose actions do not fit its resources."""
    resources = policy_documents.as_list(statement["Resource"])
    if not all(_is_in_bucket(resource, bucket, partition) for resource in resources):
        raise Refused(MALFORMED_POLICY, "Policy has invalid resource")
    for action in map(str, policy_documents.as_list(statement["Action"])):
        is_of_s3 = action.lower().startswith("s3:") and fnmatch.filter(_s3_actions(), action.lower())
        if action != "*" and not is_of_s3:
            raise Refused(MALFORMED_POLICY, "Policy has invalid action")
        # An ARN with a slash names objects, any other ARN the bucket itself.
        is_about_objects = _is_about_objects(action)
        if "*" not in action and not any(("/" in resource) == is_about_objects for resource in resources):
            raise Refused(MALFORMED_POLICY, "Action does not apply to any resource(s) in statement")


def _is_in_bucket(resource: str, bucket: str, partition: str) -> bool:
    """Return whether an ARN, which may have wildcards, names the bucket or objects in it."""
    prefix, _, bucket_and_key = str(resource).rpartition(":")
    bucket_pattern = bucket_and_key.partition("/")[0]
    prefix_parts = prefix.split(":")
    is_arn_of_s3 = prefix_parts == ["arn", partition, "s3", "", ""]
    return is_arn_of_s3 and bucket_pattern != "*" and fnmatch.fnmatchcase(bucket, bucket_pattern)


def _is_about_objects(action: str) -> bool:
    operation = action.partition(":")[2]
    object_operations = (  # operations on objects without `Object` in their names
        "AbortMultipartUpload", "ListMultipartUploadParts", "BypassGovernanceRetention", "InitiateReplication",
    )  # fmt: skip
    return ("Object" in operation and "BucketObject" not in operation) or operation in object_operations


@functools.cache
def _s3_actions() -> tuple[str, ...]:
    return tuple(str(item.JSONrepr()).lower() for item in vars(awacs.s3).values() if isinstance(item, Action))


def _check_public_statements(call: PendingCall, statements: Iterable[JsonDict]) -> None:
    """Refuse a public policy on a bucket with BlockPublicPolicy, which new buckets have, or in an account with it."""
    if not blocks(_get_bucket(call), "block_public_policy", call.region):
        return
    for statement in statements:
        is_limited = bool(policy_documents.condition_keys(statement) & NON_PUBLIC_CONDITIONS)
        if statement["Effect"] == "Allow" and policy_documents.names_everybody(statement) and not is_limited:
            raise Refused(
                "AccessDenied",
                f"User: {keys.CALLER} is not authorized to perform: s3:PutBucketPolicy on resource: "
                f'"arn:aws:s3:::{call.get("Bucket")}" because public policies are prevented by the '
                "BlockPublicPolicy setting in S3 Block Public Access.",
            )


def blocks(bucket: MotoModel, setting: str, region: str) -> bool:
    """Return whether a setting of Block Public Access is on for a bucket, by itself or for the whole account.

    "Blocking public access": S3 applies the most restrictive combination of both. A new bucket has all four settings,
    an account none.

    Args:
        setting: moto's name of the setting, e.g. `block_public_policy`.
    """
    own = bucket.public_access_block
    of_account = get_backend("s3control")[DEFAULT_ACCOUNT_ID][policy_documents.partition(region)].public_access_block
    return own is None or _is_on(own, setting) or (of_account is not None and _is_on(of_account, setting))


def _is_on(public_access_block: MotoModel, setting: str) -> bool:
    return str(getattr(public_access_block, setting)).lower() == "true"


@rule("s3", "PutBucketLifecycleConfiguration")
def check_lifecycle(call: PendingCall) -> None:
    """Refuse lifecycle rules with the same id, without an action, or with one after no days."""
    rules = (call.get("LifecycleConfiguration") or {}).get("Rules") or []
    rule_ids = [lifecycle_rule["ID"] for lifecycle_rule in rules if lifecycle_rule.get("ID")]
    if len(set(rule_ids)) < len(rule_ids):
        raise Refused("InvalidArgument", "Rule ID must be unique. Found same ID for more than one rule")
    for lifecycle_rule in rules:
        actions = {action: lifecycle_rule[action] for action in LIFECYCLE_ACTIONS if lifecycle_rule.get(action)}
        if not actions:
            raise Refused("InvalidRequest", "At least one action needs to be specified in a rule")
        for action, settings in actions.items():
            if none := [field for field, days in settings.items() if field != EXPIRED_MARKER and int(days) < 1]:
                raise Refused("InvalidArgument", f"'{none[0]}' for {action} action must be a positive integer")


@rule("s3", "PutBucketTagging")
def check_tags(call: PendingCall) -> None:
    """Refuse more tags than a bucket can have."""
    tag_set = (call.get("Tagging") or {}).get("TagSet") or []
    if len(tag_set) > MAX_TAGS:
        raise Refused("BadRequest", f"Bucket tag count cannot be greater than {MAX_TAGS}")


@rule("ecr", "SetRepositoryPolicy")
def check_policy_length(call: PendingCall) -> None:
    """Refuse a policy of a repository that is too long."""
    if len(call.get("policyText") or "") > MAX_REPOSITORY_POLICY_CHARACTERS:
        raise Refused(
            "InvalidParameterException",
            "Invalid parameter at 'policyText' failed to satisfy constraint: "
            f"'Member must have length less than or equal to {MAX_REPOSITORY_POLICY_CHARACTERS}'",
        )


def _get_bucket(call: PendingCall) -> MotoModel:
    try:
        return call.backend.get_bucket(call.get("Bucket"))
    except Exception as error:
        raise Refused("NoSuchBucket", "The specified bucket does not exist") from error
