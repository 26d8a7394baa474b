"""S3: buckets' names, policies, lifecycle rules and other settings.

Sources: S3 user guide ("Bucket naming rules", "Bucket policies", "Blocking public access", "Lifecycle configuration
elements", "Controlling ownership of objects") and the API reference of each operation.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable

import awacs.s3
from awacs.aws import Action
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.json_types import JsonDict
from cfngen.sandbox.moto_types import MotoModel
from cfngen.sandbox.services import keys, policy_documents
from cfngen.sandbox.services.rules import PendingCall, Refused, rule
from cfngen.text_limits import BUCKET_NAME

MAX_POLICY_BYTES = 20_480
MAX_LIFECYCLE_RULES = 1_000
MAX_TAGS = 50
MALFORMED_POLICY = "MalformedPolicy"
NOT_WELL_FORMED_MESSAGE = "The XML you provided was not well-formed or did not validate against our published schema"
POLICY_VERSIONS = ("2012-10-17", "2008-10-17")
# Condition keys that make a policy for everybody non-public: "The meaning of public", S3 user guide.
NON_PUBLIC_CONDITIONS = frozenset(
    {
        "aws:principalaccount", "aws:principalarn", "aws:principalorgid", "aws:principalorgpaths", "aws:sourceaccount",
        "aws:sourcearn", "aws:sourceip", "aws:sourceorgid", "aws:sourceowner", "aws:sourcevpc", "aws:sourcevpce",
        "aws:userid", "s3:dataaccesspointaccount", "s3:dataaccesspointarn",
        "s3:x-amz-server-side-encryption-aws-kms-key-id",
    }
)  # fmt: skip


# Those of S3 itself: "Actions, resources, and condition keys for Amazon S3", Service Authorization Reference; in lower
# case, as they are compared, and without the tag's key, which follows a slash. Global keys begin with `aws:`.
CONDITION_KEYS = frozenset(
    {
        "s3:accessgrantsinstancearn", "s3:accesspointnetworkorigin", "s3:accesspointtag", "s3:authtype", "s3:buckettag",
        "s3:dataaccesspointaccount", "s3:dataaccesspointarn", "s3:delimiter", "s3:existingjoboperation",
        "s3:existingjobpriority", "s3:existingobjecttag", "s3:if-match", "s3:if-none-match",
        "s3:inventoryaccessibleoptionalfields", "s3:jobsuspendedcause", "s3:locationconstraint", "s3:max-keys",
        "s3:object-lock-legal-hold", "s3:object-lock-mode", "s3:object-lock-remaining-retention-days",
        "s3:object-lock-retain-until-date", "s3:objectcreationoperation", "s3:prefix", "s3:requestjoboperation",
        "s3:requestjobpriority", "s3:requestobjecttag", "s3:requestobjecttagkeys", "s3:resourceaccount",
        "s3:signatureage", "s3:signatureversion", "s3:tlsversion", "s3:versionid", "s3:x-amz-acl",
        "s3:x-amz-content-sha256", "s3:x-amz-copy-source", "s3:x-amz-grant-full-control", "s3:x-amz-grant-read",
        "s3:x-amz-grant-read-acp", "s3:x-amz-grant-write", "s3:x-amz-grant-write-acp", "s3:x-amz-metadata-directive",
        "s3:x-amz-object-ownership", "s3:x-amz-server-side-encryption",
        "s3:x-amz-server-side-encryption-aws-kms-key-id", "s3:x-amz-server-side-encryption-customer-algorithm",
        "s3:x-amz-storage-class", "s3:x-amz-website-redirect-location",
    }
)  # fmt: skip


@rule("s3", "CreateBucket")
def check_name(call: PendingCall) -> None:
    """Refuse a name that breaks S3's rules."""
    if BUCKET_NAME.fault(call.get("Bucket", "")):
        raise Refused("InvalidBucketName", "The specified bucket is not valid.")


@rule("s3", "PutBucketPolicy")
def check_policy(call: PendingCall) -> None:
    """Refuse a policy that is malformed, public where that is blocked, or about what is elsewhere or does not exist."""
    text = call.get("Policy", "")
    text = text.decode() if isinstance(text, bytes) else text
    try:
        document = policy_documents.parse(text)
    except ValueError:
        raise Refused(MALFORMED_POLICY, "Policies must be valid JSON and the first byte must be '{'") from None
    if document.get("Version", POLICY_VERSIONS[0]) not in POLICY_VERSIONS:
        raise Refused(MALFORMED_POLICY, "The policy must contain a valid version string")
    if len(text.encode()) > MAX_POLICY_BYTES:
        raise Refused(
            MALFORMED_POLICY,
            f"Normalized policy document exceeds the maximum allowed size of {MAX_POLICY_BYTES} bytes.",
        )
    statements = policy_documents.statements(document)
    if not statements:
        raise Refused(MALFORMED_POLICY, "Missing required field Statement")
    for statement in statements:
        _check_statement(statement, call.get("Bucket"), policy_documents.partition(call.region))
    if missing_principals := list(policy_documents.missing_principals(document, call.region)):
        raise Refused(MALFORMED_POLICY, f"Invalid principal in policy ({missing_principals[0][1]})")
    _check_public_statements(call, statements)


def _check_statement(statement: JsonDict, bucket: str, partition: str) -> None:
    """Refuse a statement that is incomplete, or whose actions do not fit its resources."""
    if unknown := sorted(set(statement) - policy_documents.ELEMENTS):
        raise Refused(MALFORMED_POLICY, f"Unknown field {unknown[0]}")
    if "Effect" not in statement:
        raise Refused(MALFORMED_POLICY, "Missing required field Effect")
    for field in ("Principal", "Action", "Resource"):
        if field not in statement and f"Not{field}" not in statement:
            raise Refused(MALFORMED_POLICY, f"Missing required field {field}")
    if statement["Effect"] not in ("Allow", "Deny"):
        raise Refused(MALFORMED_POLICY, f"Invalid effect: {statement['Effect']}")
    resources = policy_documents.as_list(statement.get("Resource", statement.get("NotResource")))
    if not all(_is_in_bucket(resource, bucket, partition) for resource in resources):
        raise Refused(MALFORMED_POLICY, "Policy has invalid resource")
    for operator in statement.get("Condition", {}):
        if not policy_documents.CONDITION_OPERATOR.fullmatch(operator):
            raise Refused(MALFORMED_POLICY, f"Invalid Condition type : {operator}")
    for key in policy_documents.condition_keys(statement):
        if key.partition("/")[0] not in CONDITION_KEYS and not key.startswith("aws:"):
            raise Refused(MALFORMED_POLICY, "Policy has an invalid condition key")
    actions = policy_documents.as_list(statement.get("Action", statement.get("NotAction")))
    for action in actions:
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
    """Refuse lifecycle rules without an action, with invalid days, or with the same id."""
    rules = (call.get("LifecycleConfiguration") or {}).get("Rules") or []
    if not rules or len(rules) > MAX_LIFECYCLE_RULES:
        raise Refused("MalformedXML", NOT_WELL_FORMED_MESSAGE)
    rule_ids = [lifecycle_rule["ID"] for lifecycle_rule in rules if lifecycle_rule.get("ID")]
    if len(set(rule_ids)) < len(rule_ids):
        raise Refused("InvalidArgument", "Rule ID must be unique. Found same ID for more than one rule")
    for lifecycle_rule in rules:
        _check_lifecycle_rule(lifecycle_rule)


_LIFECYCLE_ACTIONS = ("Expiration", "NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload")


def _check_lifecycle_rule(lifecycle_rule: JsonDict) -> None:
    if not any(lifecycle_rule.get(action) for action in _LIFECYCLE_ACTIONS):
        raise Refused("InvalidRequest", "At least one action needs to be specified in a rule")
    for action, field in (
        ("Expiration", "Days"),
        ("NoncurrentVersionExpiration", "NoncurrentDays"),
        ("AbortIncompleteMultipartUpload", "DaysAfterInitiation"),
    ):
        days = (lifecycle_rule.get(action) or {}).get(field)
        if days is not None and int(days) < 1:
            raise Refused("InvalidArgument", f"'{field}' for {action} action must be a positive integer")


@rule("s3", "PutBucketEncryption")
def check_encryption(call: PendingCall) -> None:
    """Refuse a KMS key together with SSE-S3 encryption, and more than one rule."""
    rules = (call.get("ServerSideEncryptionConfiguration") or {}).get("Rules") or []
    if len(rules) != 1:
        raise Refused("MalformedXML", NOT_WELL_FORMED_MESSAGE)
    encryption = rules[0].get("ApplyServerSideEncryptionByDefault") or {}
    if encryption.get("KMSMasterKeyID") and encryption.get("SSEAlgorithm") == "AES256":
        raise Refused(
            "InvalidArgument",
            "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms or aws:kms:dsse",
        )


@rule("s3", "PutBucketOwnershipControls")
def check_ownership(call: PendingCall) -> None:
    """Refuse more than one rule of ownership."""
    if len((call.get("OwnershipControls") or {}).get("Rules") or []) != 1:
        raise Refused("MalformedXML", NOT_WELL_FORMED_MESSAGE)


@rule("s3", "PutBucketTagging")
def check_tags(call: PendingCall) -> None:
    """Refuse more tags than a bucket can have."""
    tag_set = (call.get("Tagging") or {}).get("TagSet") or []
    if len(tag_set) > MAX_TAGS:
        raise Refused("BadRequest", f"Bucket tag count cannot be greater than {MAX_TAGS}")


def _get_bucket(call: PendingCall) -> MotoModel:
    try:
        return call.backend.get_bucket(call.get("Bucket"))
    except Exception as error:
        raise Refused("NoSuchBucket", "The specified bucket does not exist") from error
