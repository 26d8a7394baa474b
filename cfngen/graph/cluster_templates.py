"""The templates of a cluster as one: the root's nested stacks put together, so that references lead from part to part.

The templates are plain data, generated or read from files. What comes out has the form of a standalone template: its
references name resources of any stack, or parameters that a person gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from cfngen.errors import CfngenError
from cfngen.graph.values import items, mapping, text
from cfngen.templates.document import Document
from cfngen.templates.evaluation import evaluate_stacks
from cfngen.templates.expressions import known_ending, reference

_STACK_TYPE = "AWS::CloudFormation::Stack"
_SUFFIX = re.compile(r"\.(json|ya?ml|template)$", re.IGNORECASE)


class NotAClusterError(CfngenError):
    """The templates to draw are not those of one cluster."""

    code = "not-a-cluster"

    def __init__(self, reason: str) -> None:
        super().__init__(
            reason,
            hint="draw the files that `cfngen templates` writes for one cluster: cluster.json with the templates that "
            "it nests, or standalone.json alone.",
        )


@dataclass(frozen=True)
class Resource:
    """A resource of a template.

    Attributes:
        properties: its properties, evaluated (`cfngen.templates.evaluation`).
        body: the resource as it stands in its template.
    """

    logical_id: str
    type: str
    properties: Mapping[str, object]
    body: Mapping[str, object]

    def tag(self, key: str) -> str:
        """Return the value of a tag; empty if the resource has no such tag."""
        return next(
            (
                text(tag.get("Value"))
                for tag in map(mapping, items(self.properties.get("Tags")))
                if tag.get("Key") == key
            ),
            "",
        )


@dataclass(frozen=True)
class ClusterTemplates:
    """All resources of a cluster, and the parameters that a person gives.

    Attributes:
        cluster: the cluster's name; empty if the templates do not say it.
        region: the region that they were made for; empty if they do not say it.
        parameters: each parameter by its name: type, description, default.
        resources: the resources of all stacks, by logical id.
    """

    cluster: str
    region: str
    parameters: Mapping[str, Mapping[str, object]]
    resources: Mapping[str, Resource]

    def of_type(self, *types: str) -> Iterator[Resource]:
        """Yield the resources of some types, in the order of the templates."""
        return (resource for resource in self.resources.values() if resource.type in types)

    def find(self, value: object) -> Resource | None:
        """Return the resource that a value refers to by Ref or Fn::GetAtt; None if it refers to none."""
        referenced = reference(value)
        return self.resources.get(referenced.name) if referenced else None

    def parameter(self, value: object) -> str:
        """Return the name of the parameter that a value refers to; empty if it refers to none."""
        referenced = reference(value)
        return referenced.name if referenced and referenced.name in self.parameters else ""

    def referenced(self, value: object) -> str:
        """Return the logical id of the resource, or the name of the parameter, to which a value refers; else empty."""
        resource = self.find(value)
        return resource.logical_id if resource else self.parameter(value)

    def text(self, value: object) -> str:
        """Return a value as text: a parameter's default or else its name, and a resource's logical id."""
        return text(value, self.known_values)

    @property
    def known_values(self) -> Mapping[str, str]:
        """The default values of parameters, and the region."""
        defaults = {
            name: str(parameter["Default"])
            for name, parameter in self.parameters.items()
            if parameter.get("Default", "") != ""
        }
        return {**defaults, **({"AWS::Region": self.region} if self.region else {})}


def read(documents: Sequence[Document], values: Mapping[str, str] | None = None) -> ClusterTemplates:
    """Put the templates of a cluster together.

    Args:
        documents: the root template and those that it nests; a standalone template counts only if there is no root.
        values: values of parameters of the root, which replace their defaults.

    Raises:
        NotAClusterError: they are not the templates of one cluster, or some are missing.
    """
    root = _root(documents)
    metadata = mapping(root.body.get("Metadata"))
    regions = items(mapping(mapping(metadata.get("cfn-lint")).get("config")).get("regions"))
    parameters = {name: dict(mapping(body)) for name, body in mapping(root.body.get("Parameters")).items()}
    for name, value in (values or {}).items():
        if name in parameters:
            parameters[name]["Default"] = value
    templates = {
        logical_id: _well_formed(_nested(documents, root, logical_id, body).body)
        for logical_id, body in _stacks(root).items()
    }
    # References to the parameters that a person gives stay.
    templates[""] = {**_well_formed(root.body), "Parameters": {}}
    resources = {
        logical_id: Resource(
            logical_id, str(body.get("Type", "")), body["Properties"], templates[stack]["Resources"][logical_id]
        )
        for stack, template in evaluate_stacks(templates, {}).items()
        for logical_id, body in template.resources.items()
    }
    return ClusterTemplates(
        cluster=str(mapping(metadata.get("cfngen")).get("cluster", "")),
        region=str(regions[0]) if len(regions) == 1 else "",
        parameters=parameters,
        resources=resources,
    )


def _root(documents: Sequence[Document]) -> Document:
    """Return the template that nests the others, or else the only one, or the standalone one."""
    roots = [document for document in documents if _stacks(document)]
    if len(roots) > 1:
        names = ", ".join(document.name for document in roots)
        raise NotAClusterError(f"several templates nest others, so they are of several clusters: {names}")
    if roots:
        return roots[0]
    if len(documents) == 1:
        return documents[0]
    standalone = [document for document in documents if _short_name(document.name) == "standalone"]
    if standalone:
        return standalone[0]
    names = ", ".join(document.name for document in documents) or "none"
    raise NotAClusterError(f"no template nests the others, and none has all resources: {names}")


def _nested(documents: Sequence[Document], root: Document, logical_id: str, body: Mapping[str, object]) -> Document:
    url_ending = known_ending(mapping(body.get("Properties")).get("TemplateURL"))
    name = _short_name(url_ending)
    for document in documents:
        if _short_name(document.name) == name and document is not root:
            return document
    raise NotAClusterError(f"{root.name} nests {name} ({logical_id}), and that template is missing")


def _short_name(name: str) -> str:
    return _SUFFIX.sub("", PurePath(name).name)


def _stacks(document: Document) -> Mapping[str, Mapping[str, object]]:
    resources = {name: mapping(body) for name, body in mapping(document.body.get("Resources")).items()}
    return {name: body for name, body in resources.items() if body.get("Type") == _STACK_TYPE}


def _well_formed(template: Mapping[str, object]) -> dict[str, dict[str, dict[str, object]]]:
    """Return the sections of a template that may have been edited by hand, with an empty part for an odd one."""
    sections = {
        section: {name: dict(mapping(part)) for name, part in mapping(template.get(section)).items()}
        for section in ("Parameters", "Mappings", "Conditions", "Resources", "Outputs")
    }
    for resource in sections["Resources"].values():
        resource["Properties"] = properties = dict(mapping(resource.get("Properties")))
        if resource.get("Type") == _STACK_TYPE:
            properties["Parameters"] = dict(mapping(properties.get("Parameters")))
    return sections
