"""Actions on templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import found
from cfngen.sandbox.cloudformation import ValidationError
from cfngen.sandbox.cloudformation.admission import BODY_LIMIT, IAM_NAMES, IAM_TYPES, NESTED
from cfngen.sandbox.cloudformation.template import Template, parse


def get_template(asked: ActionRequest) -> Result:
    """Show a template as it was submitted."""
    name, change_set = asked.text("StackName"), asked.text("ChangeSetName")
    if not name and not change_set:
        raise ValidationError("StackName is required if ChangeSetName is not specified.")
    if not name and not change_set.startswith("arn:"):
        raise ValidationError("StackName is a required parameter.")
    revision = asked.cloud.change_set(change_set, name).revision if change_set else found(asked).revision
    if revision is None or not revision.body:
        raise ValidationError(f"Template of {name or change_set} does not exist")
    return {"TemplateBody": revision.body, "StagesAvailable": ["Original", "Processed"]}


def get_template_summary(asked: ActionRequest) -> Result:
    """Show what a template declares."""
    name = asked.text("StackName")
    if name and found(asked).status == "REVIEW_IN_PROGRESS":
        raise ValidationError("GetTemplateSummary cannot be called on REVIEW_IN_PROGRESS stacks.")
    template = found(asked).template if name else _given(asked)
    return {
        **_described(template),
        "Parameters": [_declaration(key, each) for key, each in template.parameters.items()],
        "ResourceTypes": sorted({resource.type for resource in template.resources.values()}),
        "Version": template.body.get("AWSTemplateFormatVersion"),
        "Metadata": json.dumps(template.body["Metadata"]) if "Metadata" in template.body else None,
    }


def validate_template(asked: ActionRequest) -> Result:
    """Read a template."""
    template = _given(asked)
    shown = [_declaration(key, each) for key, each in template.parameters.items()]
    return {**_described(template), "Parameters": shown}


def _given(asked: ActionRequest) -> Template:
    body, url = asked.text("TemplateBody"), asked.text("TemplateURL")
    if bool(body) == bool(url):
        raise ValidationError("Either Template URL or Template Body must be specified.")
    if len(body.encode()) > BODY_LIMIT:
        raise ValidationError(f"'templateBody' must have length less than or equal to {BODY_LIMIT}")
    return parse(body or asked.cloud.fetch(url))


def _described(template: Template) -> dict[str, Any]:
    """Return what both summaries say.

    That a nested stack asks for capabilities, as its template may hold anything, is seen in answers of the service
    that users quote; no reference says so.
    """
    typed = [
        resource for resource in template.resources.values() if resource.type in IAM_TYPES or resource.type == NESTED
    ]
    named = any(IAM_NAMES & set(each.body.get("Properties", {})) for each in typed)
    types = ", ".join(sorted({each.type for each in typed}))
    return {
        "Description": template.body.get("Description"),
        "Capabilities": ["CAPABILITY_NAMED_IAM" if named else "CAPABILITY_IAM"] if typed else None,
        "CapabilitiesReason": f"The following resource(s) require capabilities: [{types}]" if typed else None,
    }


def _declaration(name: str, declared: Mapping[str, Any]) -> Result:
    allowed = [str(allowed_value) for allowed_value in declared.get("AllowedValues", ())]
    return {
        "ParameterKey": name,
        "DefaultValue": str(declared["Default"]) if "Default" in declared else None,
        "ParameterType": declared["Type"],
        "NoEcho": str(declared.get("NoEcho", "")).lower() == "true",
        "Description": declared.get("Description"),
        "ParameterConstraints": {"AllowedValues": allowed} if allowed else {},
    }
