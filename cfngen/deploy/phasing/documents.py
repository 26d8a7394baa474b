"""The templates of one phase: some stacks from the new templates, the others as they are deployed."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from cfngen.cluster.logical_ids import MASTER_STACK, is_node_group_stack
from cfngen.deploy.aws_types import JsonObject, TemplatePart
from cfngen.deploy.phasing.deployed import STORED, Deployed, DeployedStack
from cfngen.deploy.phasing.parts import MODIFIED, VOLUME
from cfngen.deploy.publishing.publish import nested
from cfngen.templates.document import Document
from cfngen.templates.expressions import references


def separable_groups(deployed: Deployed, documents: Sequence[Document]) -> frozenset[str]:
    """Return the node group stacks, of the deployed root and of the new one, that can be updated separately.

    A deployed stack can stay as it is while everything its parameters refer to still exists. A new stack can be
    created later.
    """
    root = _root_of(documents)
    available = {
        *_available_outputs(documents),
        *((name, "") for name in ("AWS::StackName", *root.body.get("Parameters", {}))),
    }
    separable = {
        logical_id
        for logical_id in nested(root.body)
        if is_node_group_stack(logical_id) and logical_id not in nested(deployed.root)
    }
    for logical_id, child in deployed.children.items():
        if is_node_group_stack(logical_id):
            passed_parameters = _passed_parameters(deployed.root["Resources"][logical_id], child)
            if available.issuperset(references(passed_parameters)):
                separable.add(logical_id)
    return frozenset(separable)


def volume_phase_documents(deployed: Deployed, documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the deployed templates, with the masters' volumes changed to their new properties."""
    requested_root = _root_of(documents)
    masters = next(document for document in documents if document.name == nested(requested_root.body)[MASTER_STACK])
    body = json.loads(json.dumps(deployed.root))
    children: list[Document] = []
    for logical_id, child in deployed.children.items():
        content, resource = _freeze(child), body["Resources"][logical_id]
        _pass_resolved_values(resource, child)
        if logical_id == MASTER_STACK:
            _modify_volumes(content, masters, resource, body, requested_root)
        children.append(Document(child.name, content, requested_root.module))
    names = tuple(document.name for document in children)
    return (*children, Document(requested_root.name, body, requested_root.module, names))


def parameters_of_volumes(documents: Sequence[Document]) -> frozenset[str]:
    """Return the root's parameters that set the properties of the masters' volumes."""
    root = _root_of(documents)
    masters = next(document for document in documents if document.name == nested(root.body)[MASTER_STACK])
    passed_parameters = root.body["Resources"][MASTER_STACK]["Properties"].get("Parameters", {})
    return frozenset(
        root_parameter
        for resource in masters.body["Resources"].values()
        if resource["Type"] == VOLUME
        for name in MODIFIED
        for parameter, _ in references(resource["Properties"].get(name))
        for root_parameter, _ in references(passed_parameters.get(parameter))
    )


def with_unchanged_groups(
    deployed: Deployed, documents: Sequence[Document], unchanged: Collection[str]
) -> tuple[Document, ...]:
    """Return the new templates, with the stacks of some node groups as they are deployed, or left out if they are not.

    Args:
        deployed: what is deployed.
        documents: the new templates.
        unchanged: logical ids of the node group stacks to leave as they are, including those that the new root no
            longer has.
    """
    root = _root_of(documents)
    body = json.loads(json.dumps(root.body))
    names = nested(root.body)
    replaced = {names[logical_id] for logical_id in unchanged if logical_id in names}
    children = {
        document.name: document
        for document in documents
        if document.name in root.children and document.name not in replaced
    }
    for logical_id in unchanged:
        resource = body["Resources"].pop(logical_id, {})
        child = deployed.children.get(logical_id)
        if child is None:
            continue
        deployed_resource = deployed.root["Resources"][logical_id]
        properties = {
            **deployed_resource["Properties"],
            "TemplateURL": f"{child.name}.json",
            "Parameters": _passed_parameters(deployed_resource, child),
        }
        body["Resources"][logical_id] = {**deployed_resource, "Properties": properties, "DependsOn": [MASTER_STACK]}
        if "DependsOn" in resource:
            body["Resources"][logical_id]["DependsOn"] = resource["DependsOn"]
        children[child.name] = Document(child.name, _freeze(child), root.module)
    return (*children.values(), replace(root, body=body, children=tuple(children)))


def _root_of(documents: Sequence[Document]) -> Document:
    return next(document for document in documents if document.children)


def _available_outputs(documents: Sequence[Document]) -> frozenset[tuple[str, str]]:
    """Return the outputs of nested stacks that other stacks may take as parameters: logical id and attribute."""
    by_name = {document.name: document.body for document in documents}
    return frozenset(
        (logical_id, f"Outputs.{output}")
        for logical_id, name in nested(_root_of(documents).body).items()
        if not is_node_group_stack(logical_id)
        for output in by_name[name].get("Outputs", {})
    )


def _passed_parameters(resource: TemplatePart, child: DeployedStack) -> JsonObject:
    """Return the parameters of a stack that stays: their current values, but references to outputs of other stacks."""
    parameters = resource["Properties"].get("Parameters", {})
    return {
        name: value if _refers_to_outputs(value) or name not in child.values else child.values[name]
        for name, value in parameters.items()
    }


def _refers_to_outputs(value: object) -> bool:
    return any(attribute.startswith("Outputs.") for _, attribute in references(value))


def _freeze(child: DeployedStack) -> JsonObject:
    """Return a deployed template, changed so that an update leaves its resources as they are.

    Parameters that read from SSM become plain strings, since an update would look up the latest images again.
    Parameters with an AWS-specific type become strings or lists, since CloudFormation would validate their values.
    """
    body: JsonObject = json.loads(json.dumps(child.body))
    for name, definition in body.get("Parameters", {}).items():
        if definition["Type"].startswith(STORED) and name in child.values:
            attributes = {key: definition[key] for key in ("Description",) if key in definition}
            body["Parameters"][name] = {"Type": "String", **attributes}
        elif "AWS::" in definition["Type"]:
            # A change set gives a value that is not known yet a placeholder, which is not a valid id.
            definition["Type"] = "CommaDelimitedList" if definition["Type"].startswith("List<") else "String"
    return body


def _pass_resolved_values(resource: JsonObject, child: DeployedStack) -> None:
    parameters = resource["Properties"].get("Parameters", {})
    for name, definition in child.body.get("Parameters", {}).items():
        if definition["Type"].startswith(STORED) and name in child.values:
            parameters[name] = child.values[name]


def _modify_volumes(
    content: JsonObject, masters: Document, resource: JsonObject, root: JsonObject, requested_root: Document
) -> None:
    """Give the volumes in the masters' deployed template their new properties, with the parameters these refer to."""
    passed_parameters = requested_root.body["Resources"][MASTER_STACK]["Properties"].get("Parameters", {})
    for logical_id, current in content["Resources"].items():
        requested = masters.body["Resources"].get(logical_id)
        if current["Type"] != VOLUME or requested is None:
            continue
        for name in MODIFIED:
            current["Properties"].pop(name, None)
            if name not in requested["Properties"]:
                continue
            current["Properties"][name] = requested["Properties"][name]
            for parameter, _ in references(requested["Properties"][name]):
                content["Parameters"][parameter] = masters.body["Parameters"][parameter]
                resource["Properties"].setdefault("Parameters", {})[parameter] = passed_parameters[parameter]
                for root_parameter, _ in references(passed_parameters[parameter]):
                    root.setdefault("Parameters", {})[root_parameter] = requested_root.body["Parameters"][
                        root_parameter
                    ]
