"""The templates of one phase: some stacks from the new templates, the others as they are deployed."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from cfngen.cluster.logical_ids import MASTER_STACK, is_node_group_stack
from cfngen.deploy.aws_types import JsonObject, TemplatePart
from cfngen.deploy.phasing.deployed import SSM_TYPE_PREFIX, Deployed, DeployedStack
from cfngen.deploy.phasing.parts import MODIFIED, VOLUME
from cfngen.deploy.publishing.publish import nested
from cfngen.templates.document import Document
from cfngen.templates.expressions import references


def separable_groups(deployed: Deployed, documents: Sequence[Document]) -> frozenset[str]:
    """Return the node group stacks, of the deployed root and of the new one, that can be updated separately.

    A deployed stack can stay unchanged if the new root still has all outputs and parameters that its parameters refer
    to. A new stack can always be created in a later phase.
    """
    root = _root_of(documents)
    available_references = {
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
            if available_references.issuperset(references(passed_parameters)):
                separable.add(logical_id)
    return frozenset(separable)


def volume_phase_documents(deployed: Deployed, documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the deployed templates, with the masters' volumes changed to their new properties."""
    requested_root = _root_of(documents)
    masters = next(document for document in documents if document.name == nested(requested_root.body)[MASTER_STACK])
    root_body = json.loads(json.dumps(deployed.root))
    children: list[Document] = []
    for logical_id, child in deployed.children.items():
        child_body, stack_resource = _with_current_values(child), root_body["Resources"][logical_id]
        _pass_resolved_values(stack_resource, child)
        if logical_id == MASTER_STACK:
            _modify_volumes(child_body, masters, stack_resource, root_body, requested_root)
        children.append(Document(child.name, child_body, requested_root.module))
    names = tuple(document.name for document in children)
    return (*children, Document(requested_root.name, root_body, requested_root.module, names))


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
    """Return the new templates, but the deployed templates for node groups whose stacks must not change yet.

    The stack of a node group that is not deployed yet is removed from the root: a later phase creates it.

    Args:
        deployed: what is deployed.
        documents: the new templates.
        unchanged: logical ids of the node group stacks that must not change, including those that the new root no
            longer has.
    """
    root = _root_of(documents)
    body = json.loads(json.dumps(root.body))
    names_by_stack = nested(root.body)
    unchanged_names = {names_by_stack[logical_id] for logical_id in unchanged if logical_id in names_by_stack}
    children = {
        document.name: document
        for document in documents
        if document.name in root.children and document.name not in unchanged_names
    }
    for logical_id in unchanged:
        new_resource = body["Resources"].pop(logical_id, {})
        child = deployed.children.get(logical_id)
        if child is None:
            continue
        deployed_resource = deployed.root["Resources"][logical_id]
        properties = {
            **deployed_resource["Properties"],
            "TemplateURL": f"{child.name}.json",
            "Parameters": _passed_parameters(deployed_resource, child),
        }
        # The new root's dependencies count. A stack that the new root no longer has only waits for the masters.
        depends_on = new_resource.get("DependsOn", [MASTER_STACK])
        body["Resources"][logical_id] = {**deployed_resource, "Properties": properties, "DependsOn": depends_on}
        children[child.name] = Document(child.name, _with_current_values(child), root.module)
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
    """Return the parameters for a stack that stays unchanged.

    They are the current values. But references to outputs of other stacks stay references, since those may change.
    """
    parameters = resource["Properties"].get("Parameters", {})
    return {
        name: value if _refers_to_outputs(value) or name not in child.values else child.values[name]
        for name, value in parameters.items()
    }


def _refers_to_outputs(value: object) -> bool:
    return any(attribute.startswith("Outputs.") for _, attribute in references(value))


def _with_current_values(child: DeployedStack) -> JsonObject:
    """Return a deployed template, changed so that an update with its current values leaves its resources unchanged.

    Parameters that read from SSM become plain strings, since an update would look up the latest images again.
    Parameters with an AWS-specific type become strings or lists, since CloudFormation would validate their values.
    """
    body: JsonObject = json.loads(json.dumps(child.body))
    for name, definition in body.get("Parameters", {}).items():
        if definition["Type"].startswith(SSM_TYPE_PREFIX) and name in child.values:
            attributes = {key: definition[key] for key in ("Description",) if key in definition}
            body["Parameters"][name] = {"Type": "String", **attributes}
        elif "AWS::" in definition["Type"]:
            # A change set gives a value that is not known yet a placeholder, which is not a valid id.
            definition["Type"] = "CommaDelimitedList" if definition["Type"].startswith("List<") else "String"
    return body


def _pass_resolved_values(resource: JsonObject, child: DeployedStack) -> None:
    parameters = resource["Properties"].get("Parameters", {})
    for name, definition in child.body.get("Parameters", {}).items():
        if definition["Type"].startswith(SSM_TYPE_PREFIX) and name in child.values:
            parameters[name] = child.values[name]


def _modify_volumes(
    master_body: JsonObject,
    requested_masters: Document,
    stack_resource: JsonObject,
    root_body: JsonObject,
    requested_root: Document,
) -> None:
    """Set the new properties of the volumes in the masters' deployed template, and add the parameters they refer to.

    Args:
        master_body: the masters' deployed template, which is changed.
        requested_masters: the masters' new template.
        stack_resource: the masters' stack in the root, whose `Parameters` are changed.
        root_body: the deployed root template, whose `Parameters` are changed.
        requested_root: the new root template.
    """
    passed_parameters = requested_root.body["Resources"][MASTER_STACK]["Properties"].get("Parameters", {})
    for logical_id, current in master_body["Resources"].items():
        requested = requested_masters.body["Resources"].get(logical_id)
        if current["Type"] != VOLUME or requested is None:
            continue
        for name in MODIFIED:
            current["Properties"].pop(name, None)
            if name not in requested["Properties"]:
                continue
            current["Properties"][name] = requested["Properties"][name]
            for parameter, _ in references(requested["Properties"][name]):
                master_body["Parameters"][parameter] = requested_masters.body["Parameters"][parameter]
                stack_resource["Properties"].setdefault("Parameters", {})[parameter] = passed_parameters[parameter]
                for root_parameter, _ in references(passed_parameters[parameter]):
                    root_body.setdefault("Parameters", {})[root_parameter] = requested_root.body["Parameters"][
                        root_parameter
                    ]
