"""Draws the picture of a cluster from its templates: the part that a view shows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from cfngen.graph.api_endpoint import draw_api_endpoint
from cfngen.graph.changes import change_of
from cfngen.graph.cluster_templates import ClusterTemplates, read
from cfngen.graph.instances import NODE_GROUP, draw_instances
from cfngen.graph.network import draw_network
from cfngen.graph.permissions import draw_permissions
from cfngen.graph.picture import Box, Change, Part, Picture, with_containers
from cfngen.graph.traffic import draw_traffic
from cfngen.templates.document import Document

View = Literal["network", "access", "iam", "all"]
VIEWS: tuple[View, ...] = get_args(View)

LEFT_OUT: Mapping[str, str] = {
    "AWS::CloudFormation::Stack": "nested stacks are how the templates are divided, not what runs",
    "AWS::CloudFormation::WaitCondition": "a deployment waits for the first boot of a master with it; it makes nothing",
    "AWS::CloudFormation::WaitConditionHandle": "it is for text: a boot program, or the cluster file; it makes nothing",
}
"""Types of resources that no picture shows, each with the reason."""

# Texts in a snippet that are longer, such as user data, are cut off.
_MAX_TEXT = 300
_CHANGES_OF_NOTHING: Mapping[str, Change] = {}


def draw(
    templates: ClusterTemplates,
    view: View = "network",
    changes: Mapping[str, Change] = _CHANGES_OF_NOTHING,
    notes: Sequence[str] = (),
) -> Picture:
    """Draw a cluster.

    Args:
        changes: what a deployment does to resources, by logical id.
        notes: sentences below the picture about all of it.
    """
    network = draw_network(templates)
    parts: dict[str, Part] = {"network": Part(), "access": draw_traffic(templates, network)}
    for part in (network.part, draw_instances(templates, network), draw_api_endpoint(templates, network)):
        parts["network"].add(part)
    parts["iam"] = draw_permissions(templates)
    whole = Part()
    for part in parts.values():
        whole.add(part)
    shown = whole if view == "all" else parts[view]
    boxes = with_containers({box_id: whole.boxes[box_id] for box_id in shown.boxes}, whole.boxes)
    logical_ids = {logical_id for box in boxes for logical_id in box.logical_ids}
    logical_ids |= {logical_id for arrow in shown.arrows.values() for logical_id in arrow.logical_ids}
    name, region = templates.cluster or "cluster", templates.region
    return Picture(
        title=f"{name} in {region}" if region else name,
        boxes=boxes,
        arrows=tuple(shown.arrows.values()),
        snippets={
            logical_id: snippet(resource.body)
            for logical_id, resource in templates.resources.items()
            if logical_id in logical_ids
        },
        changes={logical_id: change for logical_id, change in changes.items() if logical_id in logical_ids},
        notes=tuple(notes),
    )


def draw_documents(documents: Sequence[Document], view: View = "network") -> Picture:
    """Draw a cluster from its templates, as they are generated or read from files.

    Raises:
        NotAClusterError: they are not the templates of one cluster, or some are missing.
    """
    return fold_node_groups(draw(read(documents), view))


def fold_node_groups(picture: Picture) -> Picture:
    """Return a picture in which node groups with the same subnets, lines and changes share their boxes.

    Otherwise twenty groups in three zones are sixty boxes. A group that an arrow reaches, or that is unlike all others,
    keeps its boxes.
    """
    ends = {end for arrow in picture.arrows for end in (arrow.source, arrow.target)}
    boxes_by_title: dict[str, list[Box]] = defaultdict(list)
    for box in picture.boxes:
        if box.kind == "instances" and box.title.startswith(NODE_GROUP):
            boxes_by_title[box.title].append(box)
    alike: dict[tuple[object, ...], list[list[Box]]] = defaultdict(list)
    for boxes in boxes_by_title.values():
        if not any(box.id in ends for box in boxes):
            alike[tuple((box.parent, box.lines, change_of(picture, box)) for box in boxes)].append(boxes)
    folded: dict[str, Box | None] = {}
    for groups in alike.values():
        if len(groups) == 1:
            continue
        names = ", ".join(boxes[0].title.removeprefix(NODE_GROUP) for boxes in groups)
        for same_place in zip(*groups, strict=True):
            first, *others = same_place
            logical_ids = tuple(dict.fromkeys(name for box in same_place for name in box.logical_ids))
            title = f"{len(groups)} node groups"
            folded[first.id] = replace(first, title=title, lines=(names, *first.lines), logical_ids=logical_ids)
            folded.update(dict.fromkeys((box.id for box in others), None))
    shown = (folded.get(box.id, box) for box in picture.boxes)
    return replace(picture, boxes=tuple(box for box in shown if box))


def snippet(body: Mapping[str, object]) -> str:
    """Return a resource as it stands in its template, as JSON text, with long texts cut off."""
    return json.dumps(_shortened(body), indent=2, ensure_ascii=False)


def _shortened(value: object) -> object:
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        return f"{value[:_MAX_TEXT]}… ({len(value):,} characters)"
    if isinstance(value, Mapping):
        return {key: _shortened(item) for key, item in value.items()}
    return [_shortened(item) for item in value] if isinstance(value, list) else value
