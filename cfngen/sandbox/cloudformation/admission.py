"""What is checked before CloudFormation accepts a template: its source, types, parameters, rules and capabilities."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation import parameters, property_schemas, template
from cfngen.sandbox.cloudformation.errors import (
    InsufficientCapabilitiesError,
    NotModelledError,
    ResourceError,
    ValidationError,
)
from cfngen.sandbox.cloudformation.handlers import HANDLERS, client
from cfngen.sandbox.cloudformation.properties import GROUP, wanted
from cfngen.sandbox.cloudformation.stack import Revision, Stack
from cfngen.text_limits import STACK_TAG_VALUE, TAG_KEY

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region

BODY_LIMIT = 51_200  # bytes of a template in the call itself
OBJECT_LIMIT = 1_048_576  # bytes of a template in S3
NESTED = "AWS::CloudFormation::Stack"
# Guide, "Acknowledging IAM resources in CloudFormation templates".
IAM_TYPES = frozenset(
    f"AWS::IAM::{kind}"
    for kind in (
        "AccessKey", "Group", "InstanceProfile", "ManagedPolicy", "Policy", "Role", "User", "UserToGroupAddition",
    )
)  # fmt: skip
IAM_NAMES = frozenset({"GroupName", "InstanceProfileName", "ManagedPolicyName", "RoleName", "UserName"})
CAPABILITIES = frozenset({"CAPABILITY_AUTO_EXPAND", "CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"})
NAME = re.compile(r"[a-zA-Z][-a-zA-Z0-9]{0,127}")  # of stacks and change sets: API, CreateStack, CreateChangeSet
TAGS = 50
LOOKUPS: Mapping[str, tuple[str, str, str]] = {
    "AWS::EC2::AvailabilityZone::Name": ("describe_availability_zones", "ZoneNames", "AvailabilityZones"),
    "AWS::EC2::Image::Id": ("describe_images", "ImageIds", "Images"),
    "AWS::EC2::KeyPair::KeyName": ("describe_key_pairs", "KeyNames", "KeyPairs"),
    "AWS::EC2::Subnet::Id": ("describe_subnets", "SubnetIds", "Subnets"),
    "AWS::EC2::VPC::Id": ("describe_vpcs", "VpcIds", "Vpcs"),
}


@dataclass(frozen=True)
class Submission:
    """What a caller submits: a template, and all that goes with it.

    Attributes:
        body: the template itself, or
        url: where it is in S3, or
        previous_template: that the stack keeps the one it has.
        parameters: values by name, texts as in the API.
        previous_parameters: names of parameters that keep their values.
        tags: passed on to every resource that can be tagged; None keeps those of the stack.
        capabilities: what the caller acknowledges.
        notification_arns: topics; None keeps those of the stack.
        role_arn: a service role; nothing keeps that of the stack.
    """

    body: str = ""
    url: str = ""
    previous_template: bool = False
    parameters: Mapping[str, str] | None = None
    previous_parameters: Collection[str] = ()
    tags: Mapping[str, str] | None = None
    capabilities: Sequence[str] = ()
    notification_arns: Sequence[str] | None = None
    role_arn: str = ""


def fetch(service: Region, url: str) -> str:
    """A template from S3, by its virtual-hosted address."""
    parts = urllib.parse.urlsplit(url)
    bucket, _, host = parts.netloc.partition(".s3.")
    if parts.scheme != "https" or host not in (f"{service.region}.amazonaws.com", "amazonaws.com"):
        raise ValidationError(f"TemplateURL must be a supported URL. ({url})")
    try:
        key = urllib.parse.unquote(parts.path.lstrip("/"))
        data: bytes = client("s3", service.region).get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        raise ValidationError(f"S3 error: {error} ({url})") from error
    if len(data) > OBJECT_LIMIT:
        raise ValidationError(f"Template may not exceed {OBJECT_LIMIT} bytes in size.")
    return data.decode()


def admit(service: Region, submission: Submission, stack: Stack | None, name: str = "") -> Revision:
    """What a stack is to become, if CloudFormation accepts what was submitted.

    Args:
        service: the region
        submission: the call
        stack: the stack as it is, unless it is to be created
        name: of a stack to be created

    Raises:
        ApiError: refused
    """
    _check_call(submission)
    if len(submission.body.encode()) > BODY_LIMIT:
        raise ValidationError(f"'templateBody' must have length less than or equal to {BODY_LIMIT}")
    before = stack.revision if stack else None
    if submission.previous_template:
        if before is None or not before.body:
            raise ValidationError("Use previous template is only valid on update")
        text = before.body
    else:
        text = submission.body or fetch(service, submission.url)
    parsed = template.parse(text)
    given = dict(submission.parameters or {})
    for key in submission.previous_parameters:
        if before is None or key not in before.given:
            raise ValidationError(f"Invalid input for parameter key {key}. Cannot specify usePreviousValue as true "
                                  "for a parameter key not in the previous template")  # fmt: skip
        if key in parsed.parameters:
            given[key] = before.given[key]
    kept_tags = dict(before.tags) if before else {}
    kept_topics = before.notification_arns if before else ()
    return revision(
        service,
        text,
        given,
        kept_tags if submission.tags is None else submission.tags,
        submission.capabilities,
        stack.name if stack else name,
        topics=kept_topics if submission.notification_arns is None else tuple(submission.notification_arns),
        role_arn=submission.role_arn or (before.role_arn if before else ""),
        parsed=parsed,
    )


def check_name(parameter: str, name: str) -> None:
    """Refuse a name of a stack or of a change set.

    Args:
        parameter: of the call, `stackName` or `changeSetName`.
        name: the name.

    Raises:
        ValidationError: it is none
    """
    if not NAME.fullmatch(name):
        raise ValidationError(
            f"1 validation error detected: Value '{name}' at '{parameter}' failed to satisfy constraint: Member must "
            "satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*"
        )


def _check_call(submission: Submission) -> None:
    if unknown := sorted(set(submission.capabilities) - CAPABILITIES):
        raise ValidationError(
            f"1 validation error detected: Value '{unknown}' at 'capabilities' failed to satisfy constraint: Member "
            f"must satisfy constraint: [Member must satisfy enum value set: {sorted(CAPABILITIES)}]"
        )
    tags = submission.tags or {}
    if len(tags) > TAGS:
        raise ValidationError(
            "1 validation error detected: Value at 'tags' failed to satisfy constraint: Member must have length less "
            f"than or equal to {TAGS}"
        )
    for key, value in tags.items():
        if fault := TAG_KEY.fault(key) or STACK_TAG_VALUE.fault(value):
            raise ValidationError(f"Tag {key} is not valid: {fault}")


def revision(
    service: Region,
    text: str,
    given: Mapping[str, str],
    tags: Mapping[str, str],
    capabilities: Sequence[str],
    name: str,
    *,
    topics: tuple[str, ...] = (),
    role_arn: str = "",
    parsed: template.Template | None = None,
) -> Revision:
    """A template and its parameters, checked.

    Raises:
        ApiError: refused
    """
    parsed = parsed or template.parse(text)
    check_types(service, parsed)
    _check_attributes(service, parsed)
    values, complaint = parameters.values(parsed, given, service.stored, service.exists)
    texts = parameters.texts(parsed, given)
    made = Revision(text, parsed, texts, values, dict(tags), tuple(capabilities), topics, role_arn, complaint)
    _check_rules(service, made, name)
    try:
        wanted(service.bare_scope(made, name), parsed.resources)
    except ResourceError as error:
        raise ValidationError(str(error)) from error
    _check_capabilities(parsed, capabilities)
    return made


def check_types(service: Region, parsed: template.Template) -> None:
    """Refuse types that do not exist, or that the double does not know.

    Raises:
        ValidationError: as CloudFormation would
        NotModelledError: the double is too small
    """
    types = {resource.type for resource in parsed.resources.values()}
    if unknown := sorted(type_ for type_ in types if not property_schemas.known(service.region, type_)):
        raise ValidationError(f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]")
    if missing := sorted(types - set(HANDLERS) - {NESTED}):
        raise NotModelledError(f"resource types {missing}")
    if rolled := sorted(
        {resource.type for resource in parsed.resources.values() if "UpdatePolicy" in resource.body} - {GROUP}
    ):
        raise NotModelledError(f"UpdatePolicy of {rolled}")
    for key, each in parsed.resources.items():
        policies = (each.deletion_policy, each.replace_policy)
        if "Snapshot" in policies and not (each.type in HANDLERS and HANDLERS[each.type].snapshots):
            raise ValidationError(f"Template error: resource type {each.type} does not support snapshots ({key})")


def _check_attributes(service: Region, parsed: template.Template) -> None:
    """Refuse attributes that a type does not have; what a nested stack gives is only known when it is there."""
    for name, attribute in template.attributes(parsed.body):
        definition = parsed.resources.get(name)
        if definition is not None and not property_schemas.has_attribute(service.region, definition.type, attribute):
            raise ValidationError(
                f"Template error: resource {name} does not support attribute type {attribute} in Fn::GetAtt"
            )


def _check_capabilities(parsed: template.Template, capabilities: Sequence[str]) -> None:
    iam = [resource for resource in parsed.resources.values() if resource.type in IAM_TYPES]
    named = any(IAM_NAMES & set(each.body.get("Properties", {})) for each in iam)
    if named and "CAPABILITY_NAMED_IAM" not in capabilities:
        raise InsufficientCapabilitiesError("Requires capabilities : [CAPABILITY_NAMED_IAM]")
    if iam and not set(capabilities) & {"CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"}:
        raise InsufficientCapabilitiesError("Requires capabilities : [CAPABILITY_IAM]")


def _check_rules(service: Region, made: Revision, name: str) -> None:
    scope = service.bare_scope(made, name)
    for rule_name, rule in made.template.body.get("Rules", {}).items():
        if not scope.resolve(rule.get("RuleCondition", {"Fn::Equals": ["", ""]})):
            continue
        for assertion in rule["Assertions"]:
            if not scope.resolve(assertion["Assert"]):
                raise ValidationError(f"Rule {rule_name} is not satisfied: {assertion.get('AssertDescription', '')}")
