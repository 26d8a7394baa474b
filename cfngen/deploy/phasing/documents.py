"""The templates of one phase: some stacks as they are wanted, the others as they are deployed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cfngen.deploy.phasing.deployed import STORED, Child, Deployed
from cfngen.deploy.phasing.parts import MASTERS, MODIFIED, VOLUME, is_node_group
from cfngen.deploy.publishing.publish import nested
from cfngen.deploy.references import references
from cfngen.templates.document import Document


def separate(deployed: Deployed, documents: Sequence[Document]) -> frozenset[str]:
    """Return the node groups' stacks, of the deployed root and of the wanted one, that need not go with the rest.

    A stack that is there can stay as it is if whatever it is handed is still there; one that is not can come later.
    """
    root = _root(documents)
    there = {*_outputs(documents), *((name, "") for name in ("AWS::StackName", *root.body.get("Parameters", {})))}
    found = {each for each in nested(root.body) if is_node_group(each) and each not in nested(deployed.root)}
    for logical_id, child in deployed.children.items():
        if is_node_group(logical_id):
            handed = _handed(deployed.root["Resources"][logical_id], child)
            if there.issuperset(references(handed)):
                found.add(logical_id)
    return frozenset(found)


def of_volumes(deployed: Deployed, documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return what is deployed, with the masters' volumes as they are wanted."""
    wanted_root = _root(documents)
    wanted = next(document for document in documents if document.name == nested(wanted_root.body)[MASTERS])
    body = json.loads(json.dumps(deployed.root))
    children: list[Document] = []
    for logical_id, child in deployed.children.items():
        content, resource = _frozen(child), body["Resources"][logical_id]
        _hand_resolved(resource, child)
        if logical_id == MASTERS:
            _modify(content, wanted, resource, body, wanted_root)
        children.append(Document(child.name, content, wanted_root.module))
    names = tuple(each.name for each in children)
    return (*children, Document(wanted_root.name, body, wanted_root.module, names))


def parameters_of_volumes(documents: Sequence[Document]) -> frozenset[str]:
    """Return the root's parameters that decide how the masters' volumes are."""
    root = _root(documents)
    master = next(document for document in documents if document.name == nested(root.body)[MASTERS])
    handed = root.body["Resources"][MASTERS]["Properties"].get("Parameters", {})
    return frozenset(
        asked
        for resource in master.body["Resources"].values()
        if resource["Type"] == VOLUME
        for name in MODIFIED
        for parameter, _ in references(resource["Properties"].get(name))
        for asked, _ in references(handed.get(parameter))
    )


def with_kept(deployed: Deployed, documents: Sequence[Document], kept: Collection[str]) -> tuple[Document, ...]:
    """Return what is wanted, with some node groups' stacks as they are deployed; those that are not there are left out.

    Args:
        deployed: what is deployed.
        documents: what is wanted.
        kept: logical ids of node groups' stacks, those of the wanted root and those that it no longer has.
    """
    root = _root(documents)
    body = json.loads(json.dumps(root.body))
    names = nested(root.body)
    replaced = {names[each] for each in kept if each in names}
    children = {
        document.name: document
        for document in documents
        if document.name in root.children and document.name not in replaced
    }
    for logical_id in kept:
        resource = body["Resources"].pop(logical_id, {})
        child = deployed.children.get(logical_id)
        if child is None:
            continue
        before = deployed.root["Resources"][logical_id]
        properties = {**before["Properties"], "TemplateURL": f"{child.name}.json", "Parameters": _handed(before, child)}
        body["Resources"][logical_id] = {**before, "Properties": properties, "DependsOn": [MASTERS]}
        if "DependsOn" in resource:
            body["Resources"][logical_id]["DependsOn"] = resource["DependsOn"]
        children[child.name] = Document(child.name, _frozen(child), root.module)
    return (*children.values(), replace(root, body=body, children=tuple(children)))


def _root(documents: Sequence[Document]) -> Document:
    return next(document for document in documents if document.children)


def _outputs(documents: Sequence[Document]) -> frozenset[tuple[str, str]]:
    """Return what a nested stack may be handed of another: logical id and attribute."""
    by_name = {document.name: document.body for document in documents}
    return frozenset(
        (logical_id, f"Outputs.{output}")
        for logical_id, name in nested(_root(documents).body).items()
        if not is_node_group(logical_id)
        for output in by_name[name].get("Outputs", {})
    )


def _handed(resource: Mapping[str, Any], child: Child) -> dict[str, Any]:
    """Return what a kept stack is handed: what it has, except what other stacks put out, which may change with them."""
    parameters = resource["Properties"].get("Parameters", {})
    return {
        name: value if _of_stacks(value) or name not in child.values else child.values[name]
        for name, value in parameters.items()
    }


def _of_stacks(value: Any) -> bool:
    return any(attribute.startswith("Outputs.") for _, attribute in references(value))


def _frozen(child: Child) -> dict[str, Any]:
    """Return a deployed template for a change set in which its resources are to stay as they are.

    Its images are those that it has, of which an update would look up the latest ones anew, and no parameter is of a
    type that CloudFormation holds against what there is in the account.
    """
    body: dict[str, Any] = json.loads(json.dumps(child.body))
    for name, definition in body.get("Parameters", {}).items():
        if definition["Type"].startswith(STORED) and name in child.values:
            kept = {key: definition[key] for key in ("Description",) if key in definition}
            body["Parameters"][name] = {"Type": "String", **kept}
        elif "AWS::" in definition["Type"]:
            # A change set fills what is not known yet with a text that is no id of anything.
            definition["Type"] = "CommaDelimitedList" if definition["Type"].startswith("List<") else "String"
    return body


def _hand_resolved(resource: dict[str, Any], child: Child) -> None:
    parameters = resource["Properties"].get("Parameters", {})
    for name, definition in child.body.get("Parameters", {}).items():
        if definition["Type"].startswith(STORED) and name in child.values:
            parameters[name] = child.values[name]


def _modify(
    content: dict[str, Any], wanted: Document, resource: dict[str, Any], root: dict[str, Any], wanted_root: Document
) -> None:
    """Let the masters' deployed stack have volumes as wanted, and what these refer to from the root on."""
    handed = wanted_root.body["Resources"][MASTERS]["Properties"].get("Parameters", {})
    for logical_id, before in content["Resources"].items():
        after = wanted.body["Resources"].get(logical_id)
        if before["Type"] != VOLUME or after is None:
            continue
        for name in MODIFIED:
            before["Properties"].pop(name, None)
            if name not in after["Properties"]:
                continue
            before["Properties"][name] = after["Properties"][name]
            for parameter, _ in references(after["Properties"][name]):
                content["Parameters"][parameter] = wanted.body["Parameters"][parameter]
                resource["Properties"].setdefault("Parameters", {})[parameter] = handed[parameter]
                for asked, _ in references(handed[parameter]):
                    root.setdefault("Parameters", {})[asked] = wanted_root.body["Parameters"][asked]
