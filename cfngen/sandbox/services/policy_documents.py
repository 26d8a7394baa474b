"""Policy documents: statements, principals and grammar, shared by the checks of IAM, KMS and S3.

Elements and principals: IAM user guide, "IAM JSON policy reference".
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping

import boto3
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.iam.exceptions import MalformedPolicyDocument
from moto.iam.policy_validation import IAMPolicyDocumentValidator, IAMTrustPolicyDocumentValidator

from cfngen.sandbox.untyped import Expression, JsonDict, JsonObject, MotoBackend, MotoModel

Document = JsonObject
Principal = tuple[str, str]
"""The kind, such as `AWS` or `Service`, and the name; for `"Principal": "*"` both are `*`."""

MAX_POLICY_LENGTH = 20_480  # of a bucket (S3 user guide, "Bucket policies"); keys have more
IDENTITY_ARN = re.compile(r"arn:([^:]+):(iam|sts)::(\d{12}):(.+)")
# The ARN of an identity provider, which need not exist, or the domain name of one that every account has.
FEDERATED_PRINCIPAL = re.compile(
    r"arn:[^:]+:iam::\d{12}:(oidc|saml)-provider/[\w.:/-]+|[a-z0-9-]+(\.[a-z0-9-]+)+", re.IGNORECASE
)
SERVICE_PRINCIPAL = re.compile(r"([a-z0-9-]+)(\.[a-z0-9.-]+)?\.amazonaws\.com(\.cn)?")
# Services whose principal has another name than their API has in boto3.
EXTRA_SERVICE_NAMES = frozenset({"elasticloadbalancing", "spot", "spotfleet", "delivery", "vpc-flow-logs", "edgelambda",
                            "ecs-tasks", "eks-nodegroup", "logging", "pods", "monitoring", "states"})  # fmt: skip


def parse(text: str) -> Document:
    """Return the policy document in a text.

    Raises:
        ValueError: the text is not a JSON object
    """
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("a policy is a JSON object")  # noqa: TRY004 - a fault of the text, not of the caller
    return document


def statements(document: Document) -> list[JsonDict]:
    """Return the statements of a document; a single statement may be written without a list."""
    return [statement for statement in as_list(document.get("Statement")) if isinstance(statement, dict)]


def is_of_templates(document: Document) -> bool:
    """Return whether a policy of a bucket or a key has the form of those in the templates; others are not modelled."""
    return (
        len(json.dumps(document)) <= MAX_POLICY_LENGTH
        and document.get("Version", "2012-10-17") == "2012-10-17"
        and all(
            set(statement) - {"Sid", "Condition"} == {"Effect", "Principal", "Action", "Resource"}
            and statement["Effect"] in ("Allow", "Deny")
            and set(statement.get("Condition", {})) <= {"ArnLike", "Bool", "Null", "StringEquals"}
            for statement in statements(document)
        )
    )


def as_list(value: Expression) -> list[Expression]:
    """Return a value as a list: a single item becomes a list of one, None an empty list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def condition_keys(statement: JsonObject) -> set[str]:
    """Return the keys of a statement's conditions, in lower case."""
    return {str(key).lower() for operator in statement.get("Condition", {}).values() for key in operator}


def principals(statement: JsonObject) -> list[Principal]:
    """Return the principals that a statement names."""
    named = statement.get("Principal", statement.get("NotPrincipal"))
    if isinstance(named, Mapping):
        return [(kind, str(name)) for kind, names in named.items() for name in as_list(names)]
    return [("*", str(name)) for name in as_list(named)]


def missing_principals(document: Document, region: str) -> Iterator[Principal]:
    """Yield a document's principals that do not exist; the roles and users of other accounts count as existing."""
    for statement in statements(document):
        for kind, name in principals(statement):
            if not _principal_exists(kind, name, region):
                yield kind, name


def names_everybody(statement: JsonObject) -> bool:
    """Return whether a statement names everybody as principal."""
    return any(name == "*" for _, name in principals(statement))


def grammar_fault(text: str, *, is_trust_policy: bool = False) -> str:
    """Return IAM's error for a permissions or trust policy that breaks the grammar; empty if it is valid."""
    try:
        document = parse(text)
    except ValueError:
        return "Syntax errors in policy."
    validator = IAMTrustPolicyDocumentValidator if is_trust_policy else IAMPolicyDocumentValidator
    # A trust policy may have the old version, which is also the default; moto's validator knows the new one only.
    if is_trust_policy and document.get("Version", "") in OLD_VERSIONS:
        document = {**document, "Version": "2012-10-17"}
    try:
        validator(json.dumps(document)).validate()
    except MalformedPolicyDocument as error:
        return str(error.message)
    for statement in statements(document):
        if statement["Effect"] not in ("Allow", "Deny"):
            return "Syntax errors in policy."
        if not is_trust_policy and {"Principal", "NotPrincipal"} & set(statement):
            return "Policy document should not specify a principal."
        if is_trust_policy and not principals(statement):
            return "Missing required field Principal"
        keys = condition_keys(statement)
        actions = [str(action) for action in as_list(statement.get("Action", statement.get("NotAction")))]
        wrong_vendor = any("*" in action.partition(":")[0] for action in actions if action != "*")
        if wrong_vendor or any(":" not in key for key in keys):
            return "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
        # The keys of an issuer: its URL without https://, and the claim (terraform-aws-modules/terraform-aws-eks#1084).
        if is_trust_policy and any(key.count(":") > 1 and not key.startswith("aws:") for key in keys):
            return "Condition can contain only one colon."
        # A placeholder that was not filled in: assumed, as no request would meet such a key.
        if any("${" in key for key in keys):
            return "Syntax errors in policy."
    return ""


OLD_VERSIONS = ("", "2008-10-17")


def size_in_characters(text: str) -> int:
    """Return the size of a document as IAM counts it: without white space."""
    compact_text = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    return len("".join(compact_text.split()))


def iam_backend(region: str) -> MotoBackend:
    """Return moto's IAM backend for a region.

    moto 5.2.5 keeps that of GovCloud with `aws`: clients sign for a region `aws-us-gov-global`, which it does not know.
    """
    name = partition(region)
    return get_backend("iam")[DEFAULT_ACCOUNT_ID]["aws" if name == "aws-us-gov" else name]


def find_role(backend: MotoBackend, arn: str) -> MotoModel | None:
    """Return the role with an ARN from moto's IAM backend; None if there is none."""
    return next((role for role in backend.get_roles() if role.arn == arn), None)


@functools.cache
def partition(region: str) -> str:
    """Return the partition of a region, e.g. `aws-cn`; for an empty text, `aws`."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def _principal_exists(kind: str, name: str, region: str) -> bool:
    if kind == "*" or name == "*":
        return name == "*" and kind in ("*", "AWS")
    if kind == "Service":
        match = SERVICE_PRINCIPAL.fullmatch(name)
        return match is not None and match.group(1) in _aws_service_names() | EXTRA_SERVICE_NAMES
    if kind == "Federated":
        return bool(FEDERATED_PRINCIPAL.fullmatch(name))
    if kind == "CanonicalUser":
        return bool(re.fullmatch(r"[0-9a-f]{64}", name))
    return kind == "AWS" and (bool(re.fullmatch(r"\d{12}", name)) or _identity_exists(name, region))


def _identity_exists(arn: str, region: str) -> bool:
    """Return whether an ARN names an existing identity; all identities of other accounts count as existing."""
    match = IDENTITY_ARN.fullmatch(arn)
    if not match or match.group(1) != partition(region) or "*" in arn:
        return False
    service, account, resource = match.group(2, 3, 4)
    if account != DEFAULT_ACCOUNT_ID or resource == "root":
        return resource == "root" or "/" in resource
    backend = iam_backend(region)
    resource_type, _, path_and_name = resource.partition("/")
    if resource_type == "role":
        return find_role(backend, arn) is not None
    if resource_type == "assumed-role":  # its ARN ends with the role's name and the session's
        return any(role.name == path_and_name.split("/")[0] for role in backend.get_roles())
    if resource_type == "user":
        return any(user.arn == arn for user in backend.users.values())
    return service == "sts" and resource_type == "federated-user"


@functools.cache
def _aws_service_names() -> frozenset[str]:
    return frozenset(boto3.Session(region_name="us-east-1").get_available_services())
