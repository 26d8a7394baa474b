"""The inputs of cfn-lint ("views"): each document unchanged, and a changed copy of a document that nests others.

cfn-lint checks the parameters and outputs of a nested stack only if `TemplateURL` is the path of a local file. In
cfngen's templates `TemplateURL` is a URL that contains a parameter. So the root is linted twice: unchanged, and as a
copy whose TemplateURLs are file names, next to files with the parameters and outputs of the nested templates. Findings
that only the copy causes are dropped.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfngen.lint.findings import LintFinding

if TYPE_CHECKING:
    from cfngen.templates.document import Document, TemplateBody

_NESTED_STACK_TYPE = "AWS::CloudFormation::Stack"
_FILE_NAME_AT_END_PATTERN = re.compile(r"([A-Za-z0-9._-]+)\.(?:json|ya?ml|template)\Z")

# Sections of a nested template that are needed to check the template that nests it.
_INTERFACE_SECTIONS = ("Parameters", "Outputs", "Rules")
# Matches, in a resource as JSON, functions that need a parameter's value when a change set is created (rule E9019).
_CALL_THAT_NEEDS_VALUE = re.compile(r'"Fn::(Select|Split|Cidr|FindInMap)"')


@dataclass(frozen=True)
class View:
    """A template as cfn-lint gets it: a document, either unchanged or with file names in place of the TemplateURLs.

    Attributes:
        nested: the nested templates by name, each reduced to its interface; empty if the document is unchanged.
        text: the text that the template was read from, for the line numbers of findings; None if it was generated.
    """

    document: str
    body: TemplateBody
    nested: Mapping[str, TemplateBody]
    text: str | None = None

    @property
    def weight(self) -> tuple[int, int]:
        """Numbers of resources and parameters, as a sort key for the time that linting takes (10 ms per resource)."""
        return len(self.body.get("Resources", ())), len(self.body.get("Parameters", ()))

    @property
    def inputs_of_verdict(self) -> tuple[Mapping[str, object], ...]:
        """Return the parts of the view that affect its verdict, so that the cache key must cover them."""
        return (self.body, self.nested) if self.text is None else (self.body, self.nested, {"text": self.text})

    def is_relevant(self, rule: str, path: Sequence[str | int]) -> bool:
        """Return whether a finding is a problem of the document.

        Other findings are false alarms, or only about the changed copy of the document.
        """
        # A parameter's default is literal, so `${` in a default is not a forgotten Fn::Sub.
        if rule == "E1029" and tuple(path[:1]) == ("Parameters",):
            return False
        if not self.nested:
            return True
        # In the copy, W2001 (unused parameter) also reports parameters that only the replaced TemplateURLs use. The
        # view of the unchanged document reports the parameters that are really unused.
        if rule == "W2001":
            return False
        # W3002 is about a local TemplateURL, which only the copy has.
        return not (rule == "W3002" and tuple(path[-1:]) == ("TemplateURL",))


def make_views(documents: Sequence[Document], texts: Mapping[str, str]) -> tuple[list[View], list[LintFinding]]:
    """Return the views to lint, and a finding for each nested stack whose template is not among the documents.

    Args:
        texts: the texts that documents were read from, by the document's name.
    """
    documents_by_name = {document.name: document for document in documents}
    all_views = [View(document.name, document.body, nested={}, text=texts.get(document.name)) for document in documents]
    findings = []
    for document in documents:
        if not document.children:
            continue
        nested = {
            name: _nested_interface(documents_by_name[name].body)
            for name in document.children
            if name in documents_by_name
        }
        # A copy of the document, in which TemplateURLs are names of local files.
        body = copy.copy(document.body)
        body["Resources"] = dict(body.get("Resources", {}))
        for logical_id, resource in document.body.get("Resources", {}).items():
            if not isinstance(resource, Mapping) or resource.get("Type") != _NESTED_STACK_TYPE:
                continue
            properties = resource.get("Properties", {})
            name = _template_name(properties.get("TemplateURL"))
            if name in nested:
                body["Resources"][logical_id] = {
                    **resource,
                    "Properties": {**properties, "TemplateURL": f"{name}.json"},
                }
            else:
                findings.append(_missing_template_finding(document, logical_id, name))
        all_views.append(View(document.name, body, nested))
    return all_views, findings


def _nested_interface(body: TemplateBody) -> TemplateBody:
    """Return what is needed of a nested template to check its parent.

    Of its resources, this is those with a function that needs the value of a parameter: E9019 compares them with what
    the parent passes.
    """
    sections = {section: body[section] for section in _INTERFACE_SECTIONS if section in body}
    resources = {
        logical_id: resource
        for logical_id, resource in body.get("Resources", {}).items()
        if _CALL_THAT_NEEDS_VALUE.search(json.dumps(resource))
    }
    if resources:
        sections["Resources"] = resources
    return sections


def _template_name(url: object) -> str | None:
    """Return the template's name at the end of a TemplateURL, e.g. `vpc` for `…/vpc.json`; None for another ending."""
    # Imported here, because importing `cfngen.templates` takes a while, and few templates nest others.
    from cfngen.templates.expressions import known_ending

    match = _FILE_NAME_AT_END_PATTERN.search(known_ending(url))
    return match[1] if match else None


def _missing_template_finding(document: Document, logical_id: str, name: str | None) -> LintFinding:
    """Return the finding for a nested stack whose template is not among the documents.

    Args:
        name: the template's name in the TemplateURL; None if the URL does not end in one.
    """
    reason = (
        f"no document named {name} is generated with it" if name else "the URL does not end in a template's file name"
    )
    return LintFinding(
        rule="E9000",
        severity="error",
        message=f"the nested stack's template cannot be checked: {reason}",
        path=("Resources", logical_id, "Properties", "TemplateURL"),
        document=document.name,
        module=document.module,
        further="a nested stack is checked against the document that its TemplateURL names: cfngen.lint.views",
    )
