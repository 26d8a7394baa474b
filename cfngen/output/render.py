"""Renders documents and UserData as the bytes of files. The same input gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from cfngen.output.readme import AWS_CLI_PARAMETERS, CODEPIPELINE_PARAMETERS, README, readme

if TYPE_CHECKING:
    from cfngen.templates.document import Document, TemplateBody
    from cfngen.userdata import UserData


Format = Literal["json", "yaml"]

# The sections of a template, in the order of CloudFormation's documentation.
_SECTION_ORDER = (
    "AWSTemplateFormatVersion",
    "Description",
    "Metadata",
    "Parameters",
    "Rules",
    "Mappings",
    "Conditions",
    "Transform",
    "Resources",
    "Outputs",
)
_RESOURCE_ATTRIBUTE_ORDER = (
    "Type",
    "Condition",
    "DependsOn",
    "Metadata",
    "Properties",
    "CreationPolicy",
    "UpdatePolicy",
    "DeletionPolicy",
    "UpdateReplacePolicy",
)


def render(
    documents: Sequence[Document],
    userdata: Sequence[UserData] = (),
    format: Format = "json",  # noqa: A002
) -> dict[str, bytes]:
    """Return the contents of all files of the output, by path.

    Args:
        documents: the templates; each becomes `<name>.json` or `<name>.yaml`.
        userdata: the UserData of each role; what people review of it is written to `userdata/<role>/`. The templates
            contain the same files, packed, and the boot program, whose sources are not written.

    The paths are relative to the output directory, with forward slashes, in a stable order.
    """
    templates = {f"{document.name}.{format}": _template_bytes(document, format) for document in documents}
    reviewed = {
        f"userdata/{role.role}/{name}": text.encode()
        for role in userdata
        for name, text in sorted(role.files_to_review.items())
    }
    files = {**templates, **_parameter_files(documents), **reviewed}
    return {README: readme(documents, userdata, format, files), **files}


def _parameter_files(documents: Sequence[Document]) -> dict[str, bytes]:
    """Return what the cluster file says about parameters, in the forms that the AWS CLI and CodePipeline read.

    `aws cloudformation deploy` reads a list of `Key=Value` in version 1 and 2 of the CLI
    (`StringEqualsParameterOverrideParser` in awscli/customizations/cloudformation/deploy.py), other forms only in 2.
    """
    # Imported here, since it takes a while, and files of an earlier run are written without it.
    from cfngen.templates.document import root_of

    root = root_of(documents)
    if root is None:
        return {}
    overrides = [f"{name}={value}" for name, value in root.values.items()]
    contents = {AWS_CLI_PARAMETERS: overrides, CODEPIPELINE_PARAMETERS: {"Parameters": root.values}}
    return {path: (json.dumps(content, indent=1) + "\n").encode() for path, content in contents.items()}


def _template_bytes(document: Document, format: Format) -> bytes:  # noqa: A002
    body = _in_usual_order(document.body)
    if format == "json":
        # Indented by one space, since templates have a size limit.
        return (json.dumps(body, indent=1, ensure_ascii=False) + "\n").encode()
    for logical_id, resource in body.get("Resources", {}).items():
        if document.children and resource.get("Type") == "AWS::CloudFormation::Stack":
            body["Resources"][logical_id] = _with_yaml_url(resource, document.children)
    from cfngen.output.yaml_form import to_yaml

    return to_yaml(body).encode()


def _in_usual_order(body: TemplateBody) -> TemplateBody:
    ordered = _in_order(_SECTION_ORDER, body)
    resources = ordered.get("Resources")
    if isinstance(resources, Mapping):
        ordered["Resources"] = {
            name: _in_order(_RESOURCE_ATTRIBUTE_ORDER, resource) for name, resource in resources.items()
        }
    return ordered


def _in_order(order: Sequence[str], value: TemplateBody) -> TemplateBody:
    """Return a mapping with its keys in the order of `order`; keys that are not in `order` come last."""
    known_keys = [key for key in order if key in value]
    other_keys = [key for key in value if key not in order]
    return {key: value[key] for key in (*known_keys, *other_keys)}


def _with_yaml_url(resource: TemplateBody, children: Sequence[str]) -> TemplateBody:
    """Return a nested stack's resource with a TemplateURL in `.yaml`, not `.json`, if it is of one of the children."""

    def with_yaml_suffix(value: object) -> object:
        """Return the expression for a URL with `.yaml` in place of `.json` in each text that ends a child's URL."""
        if isinstance(value, str):
            is_url_of_child = any(value.endswith(f"{child}.json") for child in children)
            return f"{value.removesuffix('.json')}.yaml" if is_url_of_child else value
        if isinstance(value, list):
            return [with_yaml_suffix(item) for item in value]
        return {key: with_yaml_suffix(item) for key, item in value.items()} if isinstance(value, Mapping) else value

    properties = {**resource["Properties"], "TemplateURL": with_yaml_suffix(resource["Properties"]["TemplateURL"])}
    return {**resource, "Properties": properties}
