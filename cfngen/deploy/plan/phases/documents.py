"""Makes the templates of one phase: the requested template for some stacks, the deployed template for all others."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from cfngen.cluster.naming.logical_ids import MASTER_STACK, is_node_group_stack
from cfngen.cluster.network.existing_parts import group_parameter
from cfngen.deploy.aws.templates import DeployedStack, DeployedTemplates, nested_template_names
from cfngen.deploy.aws.types import JsonObject, TemplatePart
from cfngen.templates.document import Document
from cfngen.templates.evaluation import SSM_TYPE_PREFIX
from cfngen.templates.expressions import Reference, references

VOLUME = "AWS::EC2::Volume"
# Properties that ModifyVolume changes. They are changed together, since EC2 accepts the next modification of a volume
# only after some hours ("Request modifications to your EBS volumes", EC2 User Guide).
MODIFIABLE_PROPERTIES = ("Size", "Iops", "Throughput", "VolumeType")


def separable_groups(deployed: DeployedTemplates, documents: Sequence[Document]) -> frozenset[str]:
    """Return the logical ids of the node groups' stacks that can be updated separately from everything else.

    A deployed stack can be updated in a later phase if the requested root still has every output and parameter that the
    parameters of the deployed stack refer to, and if its nodes do not move between a security group that cfngen creates
    and an existing one. A stack that is not deployed yet can always be created in a later phase.
    """
    root = _root_of(documents)
    root_parameters = ("AWS::StackName", *root.body.get("Parameters", {}))
    available_references = {*_available_outputs(documents), *(Reference(name) for name in root_parameters)}
    separable = {
        logical_id
        for logical_id in nested_template_names(root.body)
        if is_node_group_stack(logical_id) and logical_id not in nested_template_names(deployed.root_template)
    }
    old_group, new_group = (_nodes_security_group(template) for template in (deployed.root_template, root.body))
    if old_group and new_group and old_group != new_group:
        # The rules for the old security group must stay until the last node has left it: until the end of an update.
        return frozenset(separable)
    for logical_id, deployed_stack in deployed.nested_stacks.items():
        if is_node_group_stack(logical_id):
            parameters = _unchanged_parameters(deployed.root_template["Resources"][logical_id], deployed_stack)
            if available_references.issuperset(references(parameters)):
                separable.add(logical_id)
    return frozenset(separable)


def _nodes_security_group(root_template: TemplatePart) -> object:
    """Return what a root passes to its node groups as the nodes' security group: an output or a parameter, if any."""
    resources = root_template.get("Resources", {})
    parameters = [
        resource.get("Properties", {}).get("Parameters", {})
        for logical_id, resource in resources.items()
        if is_node_group_stack(logical_id)
    ]
    name = group_parameter("Node")
    return next((passed[name] for passed in parameters if name in passed), None)


def volume_phase_documents(deployed: DeployedTemplates, documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the deployed templates, with the requested properties of the masters' volumes.

    This phase changes only the volumes, so every other resource keeps the properties of its deployed template.
    """
    requested_root = _root_of(documents)
    requested_masters = _masters_document(documents)
    # A copy, since the stack resources and parameters in it are changed.
    root_template = json.loads(json.dumps(deployed.root_template))
    nested_documents: list[Document] = []
    for logical_id, deployed_stack in deployed.nested_stacks.items():
        template = _with_current_values(deployed_stack)
        stack_resource = root_template["Resources"][logical_id]
        _pass_resolved_values(stack_resource, deployed_stack)
        if logical_id == MASTER_STACK:
            _set_requested_volume_properties(
                deployed_masters_template=template,
                requested_masters=requested_masters,
                masters_stack_resource=stack_resource,
                deployed_root_template=root_template,
                requested_root=requested_root,
            )
        nested_documents.append(Document(deployed_stack.template_name, template, requested_root.module))
    nested_names = tuple(document.name for document in nested_documents)
    return (*nested_documents, Document(requested_root.name, root_template, requested_root.module, nested_names))


def parameters_of_volumes(documents: Sequence[Document]) -> frozenset[str]:
    """Return the root's parameters that set the properties of the masters' volumes."""
    root = _root_of(documents)
    masters = _masters_document(documents)
    passed_parameters = root.body["Resources"][MASTER_STACK]["Properties"].get("Parameters", {})
    return frozenset(
        root_parameter
        for resource in masters.body["Resources"].values()
        if resource["Type"] == VOLUME
        for name in MODIFIABLE_PROPERTIES
        for parameter, _ in references(resource["Properties"].get(name))
        for root_parameter, _ in references(passed_parameters.get(parameter))
    )


def with_unchanged_groups(
    deployed: DeployedTemplates, documents: Sequence[Document], unchanged: Collection[str]
) -> tuple[Document, ...]:
    """Return the requested templates, but the deployed templates for node group stacks that must not change yet.

    If such a stack is not deployed yet, it is removed from the root, and a later phase creates it.

    Args:
        unchanged: logical ids of the node group stacks that must not change, including stacks that the requested root
            no longer has.
    """
    root = _root_of(documents)
    # A copy, since the stack resources in it are changed.
    root_template = json.loads(json.dumps(root.body))
    names_by_stack = nested_template_names(root.body)
    unchanged_names = {names_by_stack[logical_id] for logical_id in unchanged if logical_id in names_by_stack}
    nested_documents = {
        document.name: document
        for document in documents
        if document.name in root.children and document.name not in unchanged_names
    }
    for logical_id in unchanged:
        requested_resource = root_template["Resources"].pop(logical_id, {})
        deployed_stack = deployed.nested_stacks.get(logical_id)
        if deployed_stack is None:
            continue
        root_template["Resources"][logical_id] = _unchanged_stack_resource(
            deployed.root_template["Resources"][logical_id], deployed_stack, requested_resource
        )
        nested_documents[deployed_stack.template_name] = Document(
            deployed_stack.template_name, _with_current_values(deployed_stack), root.module
        )
    return (*nested_documents.values(), replace(root, body=root_template, children=tuple(nested_documents)))


def _unchanged_stack_resource(
    deployed_resource: TemplatePart, deployed_stack: DeployedStack, requested_resource: TemplatePart
) -> JsonObject:
    properties = {
        **deployed_resource["Properties"],
        # Publishing replaces this by the URL of the uploaded template with this name.
        "TemplateURL": f"{deployed_stack.template_name}.json",
        "Parameters": _unchanged_parameters(deployed_resource, deployed_stack),
    }
    # The requested root determines the order of stack updates, so `DependsOn` comes from there. A stack that the
    # requested root no longer has only waits for the masters.
    depends_on = requested_resource.get("DependsOn", [MASTER_STACK])
    return {**deployed_resource, "Properties": properties, "DependsOn": depends_on}


def _root_of(documents: Sequence[Document]) -> Document:
    """Return the root's template, which is the only one with nested stacks."""
    return next(document for document in documents if document.children)


def _masters_document(documents: Sequence[Document]) -> Document:
    name = nested_template_names(_root_of(documents).body)[MASTER_STACK]
    return next(document for document in documents if document.name == name)


def _available_outputs(documents: Sequence[Document]) -> frozenset[Reference]:
    """Return the outputs of nested stacks that parameters may refer to, each as a reference from the root's template.

    Outputs of node groups are left out: a node group's stack may be missing from the root until a later phase.
    """
    templates_by_name = {document.name: document.body for document in documents}
    return frozenset(
        Reference(logical_id, attribute=f"Outputs.{output}")
        for logical_id, name in nested_template_names(_root_of(documents).body).items()
        if not is_node_group_stack(logical_id)
        for output in templates_by_name[name].get("Outputs", {})
    )


def _unchanged_parameters(stack_resource: TemplatePart, deployed_stack: DeployedStack) -> JsonObject:
    """Return `Parameters` by which the root passes a nested stack the values that the stack has now.

    A reference to an output of another stack stays a reference, since the output may change in this phase.
    """
    parameters: JsonObject = {}
    for name, expression in stack_resource["Properties"].get("Parameters", {}).items():
        if name in deployed_stack.values and not _refers_to_outputs(expression):
            parameters[name] = deployed_stack.values[name]
        else:
            parameters[name] = expression
    return parameters


def _refers_to_outputs(value: object) -> bool:
    """Return whether a value in the root's template refers to an output of a nested stack."""
    return any(reference.attribute.startswith("Outputs.") for reference in references(value))


def _with_current_values(deployed_stack: DeployedStack) -> JsonObject:
    """Return a stack's deployed template, edited so that an update with the current values changes no resource.

    Parameters that read from SSM become plain strings, since an update would look up the latest images again.
    Parameters with an AWS-specific type become strings or lists, since CloudFormation would validate their values.
    """
    template: JsonObject = json.loads(json.dumps(deployed_stack.template))
    for name, definition in template.get("Parameters", {}).items():
        if definition["Type"].startswith(SSM_TYPE_PREFIX) and name in deployed_stack.values:
            string_definition = {"Type": "String"}
            if "Description" in definition:
                string_definition["Description"] = definition["Description"]
            template["Parameters"][name] = string_definition
        elif "AWS::" in definition["Type"]:
            # In a change set, a value that is not known yet is a placeholder. A placeholder is not a valid id, so the
            # parameter must accept any text.
            definition["Type"] = "CommaDelimitedList" if definition["Type"].startswith("List<") else "String"
    return template


def _pass_resolved_values(stack_resource: JsonObject, deployed_stack: DeployedStack) -> None:
    """Pass a nested stack the values that CloudFormation read from SSM at the last deployment.

    The stack's template from `_with_current_values` no longer reads them from SSM.

    Args:
        stack_resource: the nested stack in the root's template, whose `Parameters` are changed.
    """
    parameters = stack_resource["Properties"].get("Parameters", {})
    for name, definition in deployed_stack.template.get("Parameters", {}).items():
        if definition["Type"].startswith(SSM_TYPE_PREFIX) and name in deployed_stack.values:
            parameters[name] = deployed_stack.values[name]


def _set_requested_volume_properties(
    *,
    deployed_masters_template: JsonObject,
    requested_masters: Document,
    masters_stack_resource: JsonObject,
    deployed_root_template: JsonObject,
    requested_root: Document,
) -> None:
    """Set the requested properties of the volumes in the masters' deployed template.

    The deployed templates are edited, since this phase must change nothing but volumes. If a requested property refers
    to a parameter, the parameter is added to the masters' template, to the root's template, and to the values that the
    root passes to the masters' stack.

    Args:
        deployed_masters_template: the masters' deployed template, which is changed.
        masters_stack_resource: the masters' stack in the deployed root template, whose `Parameters` are changed.
        deployed_root_template: the deployed root template, whose `Parameters` are changed.
    """
    passed_parameters = requested_root.body["Resources"][MASTER_STACK]["Properties"].get("Parameters", {})
    for logical_id, deployed_volume in deployed_masters_template["Resources"].items():
        requested_volume = requested_masters.body["Resources"].get(logical_id)
        if deployed_volume["Type"] != VOLUME or requested_volume is None:
            continue
        for name in MODIFIABLE_PROPERTIES:
            deployed_volume["Properties"].pop(name, None)
            if name not in requested_volume["Properties"]:
                continue
            requested_value = requested_volume["Properties"][name]
            deployed_volume["Properties"][name] = requested_value
            for parameter, _ in references(requested_value):
                definition = requested_masters.body["Parameters"][parameter]
                deployed_masters_template["Parameters"][parameter] = definition
                passed_value = passed_parameters[parameter]
                masters_stack_resource["Properties"].setdefault("Parameters", {})[parameter] = passed_value
                for root_parameter, _ in references(passed_value):
                    root_definition = requested_root.body["Parameters"][root_parameter]
                    deployed_root_template.setdefault("Parameters", {})[root_parameter] = root_definition
