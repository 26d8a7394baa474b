"""Actions on templates."""

from __future__ import annotations

import json

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import find_stack
from cfngen.sandbox.cloudformation import ValidationError
from cfngen.sandbox.cloudformation.admission import IAM_NAME_PROPERTIES, IAM_TYPES, MAX_BODY_BYTES, fetch_from_s3
from cfngen.sandbox.cloudformation.template import NESTED_STACK, Template, parse
from cfngen.sandbox.untyped import JsonDict, JsonObject


def get_template(request: ActionRequest) -> Result:
    """GetTemplate: return a template as it was submitted."""
    name, change_set = request.text("StackName"), request.text("ChangeSetName")
    if not name and not change_set:
        raise ValidationError("StackName is required if ChangeSetName is not specified.")
    if not name and not change_set.startswith("arn:"):
        raise ValidationError("StackName is a required parameter.")
    revision = request.emulator.change_set(change_set, name).revision if change_set else find_stack(request).revision
    if not revision.body:
        raise ValidationError(f"Template of {name or change_set} does not exist")
    return {"TemplateBody": revision.body, "StagesAvailable": ["Original", "Processed"]}


def get_template_summary(request: ActionRequest) -> Result:
    """GetTemplateSummary: return the parameters, resource types and metadata of a template."""
    name = request.text("StackName")
    if name and find_stack(request).status == "REVIEW_IN_PROGRESS":
        raise ValidationError("GetTemplateSummary cannot be called on REVIEW_IN_PROGRESS stacks.")
    template = find_stack(request).template if name else _submitted_template(request)
    return {
        **_common_fields(template),
        "Parameters": [_describe_parameter(key, parameter) for key, parameter in template.parameters.items()],
        "ResourceTypes": sorted({resource.type for resource in template.resources.values()}),
        "Version": template.body.get("AWSTemplateFormatVersion"),
        "Metadata": json.dumps(template.body["Metadata"]) if "Metadata" in template.body else None,
    }


def validate_template(request: ActionRequest) -> Result:
    """ValidateTemplate: check that a template can be parsed, and return its parameters."""
    template = _submitted_template(request)
    declarations = [_describe_parameter(key, parameter) for key, parameter in template.parameters.items()]
    return {**_common_fields(template), "Parameters": declarations}


def _submitted_template(request: ActionRequest) -> Template:
    body, url = request.text("TemplateBody"), request.text("TemplateURL")
    if bool(body) == bool(url):
        raise ValidationError("Either Template URL or Template Body must be specified.")
    if len(body.encode()) > MAX_BODY_BYTES:
        raise ValidationError(f"'templateBody' must have length less than or equal to {MAX_BODY_BYTES}")
    return parse(body or fetch_from_s3(request.emulator, url))


def _common_fields(template: Template) -> JsonDict:
    """Return the fields that GetTemplateSummary and ValidateTemplate share.

    A nested stack requires capabilities, as its template may contain IAM resources: seen in answers of AWS that users
    quote, but not documented.
    """
    iam_resources = [
        resource
        for resource in template.resources.values()
        if resource.type in IAM_TYPES or resource.type == NESTED_STACK
    ]
    has_named_iam = any(IAM_NAME_PROPERTIES & set(resource.body.get("Properties", {})) for resource in iam_resources)
    types = ", ".join(sorted({resource.type for resource in iam_resources}))
    return {
        "Description": template.body.get("Description"),
        "Capabilities": ["CAPABILITY_NAMED_IAM" if has_named_iam else "CAPABILITY_IAM"] if iam_resources else None,
        "CapabilitiesReason": f"The following resource(s) require capabilities: [{types}]" if iam_resources else None,
    }


def _describe_parameter(name: str, definition: JsonObject) -> Result:
    allowed = [str(allowed_value) for allowed_value in definition.get("AllowedValues", ())]
    return {
        "ParameterKey": name,
        "DefaultValue": str(definition["Default"]) if "Default" in definition else None,
        "ParameterType": definition["Type"],
        "NoEcho": str(definition.get("NoEcho", "")).lower() == "true",
        "Description": definition.get("Description"),
        "ParameterConstraints": {"AllowedValues": allowed} if allowed else {},
    }
