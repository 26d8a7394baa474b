"""The inputs of cfn-lint: each document as it is, and a second view of a document that nests others.

cfn-lint checks the parameters and outputs of a nested stack only if `TemplateURL` is the path of a local file. In
cfngen's templates it is a URL that contains a parameter. So the root is linted twice: as it is, and as a copy whose
TemplateURLs are file names, next to files with the parameters and outputs of the nested templates. Findings that are
caused by the copy are dropped.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfngen.lint.findings import Finding

if TYPE_CHECKING:
    from cfngen.templates.document import Document, TemplateBody

_STACK = "AWS::CloudFormation::Stack"
_FILE_NAME = re.compile(r"([A-Za-z0-9._-]+)\.(?:json|ya?ml|template)\Z")

# The sections of a nested template that its parent is checked against, and functions that need a value (E9019).
_INTERFACE = ("Parameters", "Outputs", "Rules")
_NEEDS_VALUE = re.compile(r'"Fn::(Select|Split|Cidr|FindInMap)"')


@dataclass(frozen=True)
class View:
    """One template to lint.

    Attributes:
        document: name of the document it is a view of.
        body: the template.
        nested: nested templates by name, each reduced to its interface; empty for a document as it is.
        text: the text that the body was read from, for the lines of findings; None if there is none.
    """

    document: str
    body: TemplateBody
    nested: Mapping[str, TemplateBody]
    text: str | None = None

    @property
    def weight(self) -> tuple[int, int]:
        """Sort key by the time that linting takes: 10 to 15 ms for each resource."""
        return len(self.body.get("Resources", ())), len(self.body.get("Parameters", ()))

    def counts(self, rule: str, path: Sequence[str | int]) -> bool:
        """Return whether a finding is about the document, and not caused by the view."""
        # A parameter's default is literal: `${` in it is no forgotten Fn::Sub.
        if rule == "E1029" and tuple(path[:1]) == ("Parameters",):
            return False
        if not self.nested:
            return True
        # W3002 is about the local TemplateURL, which only the view has. W2001 (unused parameter) reports parameters
        # that are used only in a TemplateURL; the first view reports the truly unused ones.
        return rule != "W2001" and not (rule == "W3002" and tuple(path[-1:]) == ("TemplateURL",))


def views(documents: Sequence[Document], texts: Mapping[str, str]) -> tuple[list[View], list[Finding]]:
    """Return the views to lint, and findings about nested stacks whose template is not among the documents.

    Args:
        documents: the templates.
        texts: by name, the text that a document was read from.
    """
    by_name = {document.name: document for document in documents}
    result = [View(document.name, document.body, {}, texts.get(document.name)) for document in documents]
    findings = []
    for document in documents:
        if not document.children:
            continue
        nested = {name: _interface(by_name[name].body) for name in document.children if name in by_name}
        body = copy.copy(document.body)
        body["Resources"] = dict(body.get("Resources", {}))
        for logical_id, resource in document.body.get("Resources", {}).items():
            if not isinstance(resource, Mapping) or resource.get("Type") != _STACK:
                continue
            properties = resource.get("Properties", {})
            name = _template_name(properties.get("TemplateURL"))
            if name in nested:
                body["Resources"][logical_id] = {
                    **resource,
                    "Properties": {**properties, "TemplateURL": f"{name}.json"},
                }
            else:
                findings.append(_missing_template(document, logical_id, name))
        result.append(View(document.name, body, nested))
    return result, findings


def _interface(body: TemplateBody) -> TemplateBody:
    """Return the parts of a nested template that its parent is checked against."""
    sections = {section: body[section] for section in _INTERFACE if section in body}
    resources = {
        logical_id: resource
        for logical_id, resource in body.get("Resources", {}).items()
        if _NEEDS_VALUE.search(json.dumps(resource))
    }
    return {**sections, **({"Resources": resources} if resources else {})}


def _template_name(url: object) -> str | None:
    """Return the file stem at the end of a TemplateURL, or None if it does not end in a template's file name."""
    # Not at the top: with its package, this module takes a while to import, and few templates nest others.
    from cfngen.templates.expressions import known_ending

    match = _FILE_NAME.search(known_ending(url))
    return match[1] if match else None


def _missing_template(document: Document, logical_id: str, name: str | None) -> Finding:
    reason = (
        f"no document named {name} is generated with it" if name else "the URL does not end in a template's file name"
    )
    return Finding(
        rule="E9000",
        severity="error",
        message=f"the nested stack's template cannot be checked: {reason}",
        path=("Resources", logical_id, "Properties", "TemplateURL"),
        document=document.name,
        module=document.module,
        further="a nested stack is checked against the document that its TemplateURL names: cfngen.lint.views",
    )
