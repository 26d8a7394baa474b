"""The checks before CloudFormation accepts a call that submits a template.

They concern the template's source, resource types and Rules section, the parameters, the tags and the capabilities.
"""

from __future__ import annotations

import dataclasses
import re
import urllib.parse
from collections.abc import Collection, Mapping, Sequence
from typing import TypedDict

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation import parameters, property_schemas, template
from cfngen.sandbox.cloudformation.errors import (
    InsufficientCapabilitiesError,
    NotModelledError,
    ResourceError,
    ValidationError,
)
from cfngen.sandbox.cloudformation.function_arguments import refuse_unresolved
from cfngen.sandbox.cloudformation.handlers import HANDLERS, client
from cfngen.sandbox.cloudformation.properties import EARLY_VALIDATION_FAILED, enabled_resources, invalid_properties
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.scopes import scope_of_revision
from cfngen.sandbox.cloudformation.stack import Revision, Stack
from cfngen.sandbox.cloudformation.template import AUTO_SCALING_GROUP, NESTED_STACK
from cfngen.text_limits import of_service

MAX_BODY_BYTES = 51_200  # for a template that the call contains (TemplateBody)
# Guide, "Acknowledging IAM resources in CloudFormation templates".
IAM_TYPES = frozenset(
    f"AWS::IAM::{kind}"
    for kind in (
        "AccessKey", "Group", "InstanceProfile", "ManagedPolicy", "Policy", "Role", "User", "UserToGroupAddition",
    )
)  # fmt: skip
IAM_NAME_PROPERTIES = frozenset({"GroupName", "InstanceProfileName", "ManagedPolicyName", "RoleName", "UserName"})
CAPABILITIES = frozenset({"CAPABILITY_AUTO_EXPAND", "CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"})
# Names of stacks and change sets: API, CreateStack, CreateChangeSet.
NAME_PATTERN = re.compile(r"[a-zA-Z][-a-zA-Z0-9]{0,127}")
MAX_TAGS = 50


class Submission(TypedDict, total=False):
    """The template of a CreateStack, UpdateStack or CreateChangeSet call, and the settings that all three calls have.

    Attributes:
        body: the template itself (TemplateBody), or
        url: its location in S3 (TemplateURL), or
        previous_template: whether the stack keeps its current template (UsePreviousTemplate).
        parameters: parameter values by name, as strings.
        previous_parameters: names of the parameters that keep their values (UsePreviousValue).
        tags: stack tags, which all resources that can be tagged inherit; None keeps the current ones.
        notification_arns: SNS topics; None keeps the current ones.
        role_arn: the service role; "" keeps the current one.
    """

    body: str
    url: str
    previous_template: bool
    parameters: Mapping[str, str] | None
    previous_parameters: Collection[str]
    tags: Mapping[str, str] | None
    capabilities: Sequence[str]
    notification_arns: Sequence[str] | None
    role_arn: str


def admit(cloud: Region, submission: Submission, stack: Stack | None, name: str = "") -> Revision:
    """Check a submission, and return it as the stack's new revision.

    Args:
        stack: the stack to update; None for a new stack
        name: the name of a new stack

    Raises:
        ApiError: the submission is refused
    """
    _check_tags_and_capabilities(submission)
    current = stack.revision if stack else None
    template_text = _submitted_template(cloud, submission, current)
    parsed_template = template.parse(template_text)
    tags, notification_arns = submission.get("tags"), submission.get("notification_arns")
    role_arn = submission.get("role_arn", "")
    if current is not None:
        tags = current.tags if tags is None else tags
        notification_arns = current.notification_arns if notification_arns is None else notification_arns
        role_arn = role_arn or current.role_arn
    return check_revision(
        cloud,
        template_text,
        stack_name=stack.name if stack else name,
        parameter_values=_parameter_values(submission, parsed_template, current),
        tags=tags or {},
        capabilities=submission.get("capabilities", ()),
        notification_arns=tuple(notification_arns or ()),
        role_arn=role_arn,
        parsed_template=parsed_template,
    )


def _submitted_template(cloud: Region, submission: Submission, current: Revision | None) -> str:
    """The text of the template, which is in the call, in S3, or the stack's current one."""
    body = submission.get("body", "")
    if len(body.encode()) > MAX_BODY_BYTES:
        raise ValidationError(f"'templateBody' must have length less than or equal to {MAX_BODY_BYTES}")
    if not submission.get("previous_template"):
        return body or fetch_from_s3(cloud, submission.get("url", ""))
    if current is None or not current.body:
        raise ValidationError("Use previous template is only valid on update")
    return current.body


def _parameter_values(
    submission: Submission, parsed_template: template.Template, current: Revision | None
) -> dict[str, str]:
    """The values of the call, and the current ones of the parameters that keep theirs."""
    values = dict(submission.get("parameters") or {})
    for key in submission.get("previous_parameters", ()):
        if current is None or key not in current.parameter_strings:
            raise ValidationError(f"Invalid input for parameter key {key}. Cannot specify usePreviousValue as true "
                                  "for a parameter key not in the previous template")  # fmt: skip
        if key in parsed_template.parameters:
            values[key] = current.parameter_strings[key]
    return values


def check_name(parameter_name: str, name: str) -> None:
    """Check the name of a stack or of a change set.

    Args:
        parameter_name: the parameter of the call, `stackName` or `changeSetName`.

    Raises:
        ValidationError: the name is not allowed
    """
    if not NAME_PATTERN.fullmatch(name):
        raise ValidationError(
            f"1 validation error detected: Value '{name}' at '{parameter_name}' failed to satisfy constraint: Member "
            "must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*"
        )


def _check_tags_and_capabilities(submission: Submission) -> None:
    """Refuse unknown capabilities, too many tags and tags that are not valid."""
    if unknown := sorted(set(submission.get("capabilities", ())) - CAPABILITIES):
        raise ValidationError(
            f"1 validation error detected: Value '{unknown}' at 'capabilities' failed to satisfy constraint: Member "
            f"must satisfy constraint: [Member must satisfy enum value set: {sorted(CAPABILITIES)}]"
        )
    tags = submission.get("tags") or {}
    if len(tags) > MAX_TAGS:
        raise ValidationError(
            "1 validation error detected: Value at 'tags' failed to satisfy constraint: Member must have length less "
            f"than or equal to {MAX_TAGS}"
        )
    for key, value in tags.items():
        for part, text in (("Key", key), ("Value", value)):
            limit = of_service(NESTED_STACK, ("Tags", 0, part))
            if limit and (fault := limit.fault(text)):
                raise ValidationError(f"Tag {key} is not valid: {fault}")


def check_revision(
    cloud: Region,
    template_text: str,
    *,
    stack_name: str,
    parameter_values: Mapping[str, str],
    tags: Mapping[str, str],
    capabilities: Sequence[str],
    notification_arns: tuple[str, ...] = (),
    role_arn: str = "",
    parsed_template: template.Template | None = None,
) -> Revision:
    """Check a template with its parameters, tags and capabilities, and return them as a revision.

    Args:
        parameter_values: parameter values by name, as strings; the others have their defaults
        parsed_template: the template, if the caller has parsed it already

    Raises:
        ApiError: one of them is refused
        NotModelledError: the emulator does not support one of the resource types or properties
    """
    parsed_template = parsed_template or template.parse(template_text)
    check_types(cloud, parsed_template)
    _check_attributes(cloud, parsed_template)
    ref_values, failure_reason = parameters.resolve_values(cloud, parsed_template, parameter_values)
    revision = Revision(
        template_text,
        parsed_template,
        parameter_strings=parameters.value_strings(parsed_template, parameter_values),
        parameters=ref_values,
        tags=dict(tags),
        capabilities=tuple(capabilities),
        notification_arns=notification_arns,
        role_arn=role_arn,
        failure_reason=failure_reason,
    )
    _check_rules(cloud, revision, stack_name)
    _check_conditions(cloud, revision, stack_name)
    _check_capabilities(parsed_template, capabilities)
    if invalid := invalid_properties(cloud, revision, stack_name):
        reason = revision.failure_reason or EARLY_VALIDATION_FAILED
        return dataclasses.replace(revision, failure_reason=reason, invalid_properties=invalid)
    return revision


def check_types(cloud: Region, parsed_template: template.Template) -> None:
    """Refuse resource types that do not exist, or that the emulator does not support.

    The same holds for an UpdatePolicy or the policy Snapshot on a type that does not support it.

    Raises:
        ValidationError: CloudFormation would refuse the template too
        NotModelledError: CloudFormation would accept the template, but the emulator does not support it
    """
    resources = parsed_template.resources
    types = {definition.type for definition in resources.values()}
    if unknown := sorted(type_ for type_ in types if not property_schemas.type_exists(cloud.region, type_)):
        raise ValidationError(f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]")
    if without_handler := sorted(types - set(HANDLERS) - {NESTED_STACK}):
        raise NotModelledError(f"resource types {without_handler}")
    types_with_update_policy = {
        definition.type for definition in resources.values() if "UpdatePolicy" in definition.body
    }
    if unsupported := sorted(types_with_update_policy - {AUTO_SCALING_GROUP}):
        raise NotModelledError(f"UpdatePolicy of {unsupported}")
    for logical_id, definition in resources.items():
        supports_snapshots = definition.type in HANDLERS and HANDLERS[definition.type].supports_snapshots
        if "Snapshot" in (definition.deletion_policy, definition.replace_policy) and not supports_snapshots:
            raise ValidationError(
                f"Template error: resource type {definition.type} does not support snapshots ({logical_id})"
            )


def _check_attributes(cloud: Region, parsed_template: template.Template) -> None:
    """Refuse GetAtt of attributes that a type does not have; outputs of nested stacks cannot be checked yet."""
    for logical_id, attribute in template.references(parsed_template.body):
        definition = parsed_template.resources.get(logical_id)
        is_name = isinstance(attribute, str) and attribute != ""  # not an expression, and not a Ref
        if definition and is_name and not property_schemas.has_attribute(cloud.region, definition.type, attribute):
            raise ValidationError(
                f"Template error: resource {logical_id} does not support attribute type {attribute} in Fn::GetAtt"
            )


def _check_capabilities(parsed_template: template.Template, capabilities: Sequence[str]) -> None:
    """Refuse IAM resources that the caller has not acknowledged."""
    iam_resources = [definition for definition in parsed_template.resources.values() if definition.type in IAM_TYPES]
    has_custom_name = any(
        IAM_NAME_PROPERTIES & set(definition.body.get("Properties", {})) for definition in iam_resources
    )
    if has_custom_name and "CAPABILITY_NAMED_IAM" not in capabilities:
        raise InsufficientCapabilitiesError("Requires capabilities : [CAPABILITY_NAMED_IAM]")
    if iam_resources and not set(capabilities) & {"CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"}:
        raise InsufficientCapabilitiesError("Requires capabilities : [CAPABILITY_IAM]")


def _check_conditions(cloud: Region, revision: Revision, stack_name: str) -> None:
    """Refuse references to resources that a condition leaves out, and keys that a mapping does not have."""
    scope, resources = scope_of_revision(cloud, revision, stack_name), revision.template.resources
    try:
        enabled = enabled_resources(scope, resources)
        outputs = filter(scope.is_enabled, revision.template.body.get("Outputs", {}).values())
        used = {
            "Resources": scope.chosen([resources[name].body.get("Properties", {}) for name in enabled]),
            "Outputs": scope.chosen(list(outputs)),
        }
    except ResourceError as error:
        raise ValidationError(str(error)) from error
    for section, values in used.items():
        if left_out := {name for name, _ in template.references(values)} & (resources.keys() - set(enabled)):
            refuse_unresolved(left_out, section)


def _check_rules(cloud: Region, revision: Revision, stack_name: str) -> None:
    """Refuse parameter values for which an assertion of the template's Rules is false."""
    scope = scope_of_revision(cloud, revision, stack_name)
    for rule_name, rule in revision.template.body.get("Rules", {}).items():
        if "RuleCondition" in rule and not scope.resolve(rule["RuleCondition"]):
            continue  # the rule applies only if its condition is true
        for assertion in rule["Assertions"]:
            if not scope.resolve(assertion["Assert"]):
                raise ValidationError(f"Rule {rule_name} is not satisfied: {assertion.get('AssertDescription', '')}")


MAX_OBJECT_BYTES = 1_048_576


def fetch_from_s3(cloud: Region, url: str) -> str:
    """Return the document (a template or a stack policy) at a URL of S3.

    The bucket is in the host or in the path, at the endpoint of the region or at the one without a region ("Virtual
    hosting of general purpose buckets", S3 user guide; "Best practices for using Amazon S3 endpoints in AWS
    CloudFormation", AWS blog).

    Args:
        cloud: the region of the call, whose endpoint for S3 the URL may name.
        url: such as `https://bucket.s3.eu-central-1.amazonaws.com/cluster.json`

    Raises:
        ValidationError: it is no such URL, or S3 does not return the object, or the template is too large
    """
    location = _s3_location(cloud, url)
    if location is None:
        raise ValidationError(f"TemplateURL must be a supported URL. ({url})")
    try:
        data: bytes = client("s3", cloud.region).get_object(**location)["Body"].read()
    except ClientError as error:
        raise ValidationError(f"S3 error: {error} ({url})") from error
    if len(data) > MAX_OBJECT_BYTES:
        raise ValidationError(f"Template may not exceed {MAX_OBJECT_BYTES} bytes in size.")
    return data.decode()


def _s3_location(cloud: Region, url: str) -> dict[str, str] | None:
    """Return the object that a URL of S3 names, as arguments of GetObject; None if it is no such URL."""
    parts = urllib.parse.urlsplit(url)
    suffix = re.escape("amazonaws.com.cn" if cloud.region.startswith("cn-") else "amazonaws.com")
    host = re.fullmatch(rf"(?:(?P<bucket>.+)\.)?s3(?:[.-]{re.escape(cloud.region)})?\.{suffix}", parts.netloc)
    is_own_endpoint = bool(cloud.endpoint) and f"{parts.scheme}://{parts.netloc}" == cloud.endpoint
    if not is_own_endpoint and (parts.scheme != "https" or host is None):
        return None
    path = urllib.parse.unquote(parts.path).lstrip("/")
    bucket, key = (host["bucket"], path) if host and host["bucket"] else path.split("/", 1) if "/" in path else ("", "")
    version = urllib.parse.parse_qs(parts.query).get("versionId", [])
    return {"Bucket": bucket, "Key": key, **({"VersionId": version[0]} if version else {})} if bucket and key else None
