"""The pictures before and after a deployment as one: each part is said to be added, changed or removed, or is left."""

from __future__ import annotations

import re
from dataclasses import replace

from cfngen.graph.changes import captions, change_of, compare, focus
from cfngen.graph.dot import dot
from cfngen.graph.drawing import fold_node_groups
from cfngen.graph.html import html
from cfngen.graph.mermaid import mermaid
from cfngen.graph.picture import Arrow, Box, Change, Picture
from cfngen.graph.svg import svg

ROLE = Box("Role", "role", "role of masters", ("master a",), None, ("Role", "Profile"))
BUCKET = Box("Bucket", "bucket", "backup bucket", (), None, ("Bucket",))
KEY = Box("Key", "key", "secrets key", (), None, ("Key",))


def permission(service: str, *lines: str) -> Box:
    return Box(f"Role:{service}", "permission", service, lines, "Role", ("Role",))


def picture(*parts: Box | Arrow, **changes: Change) -> Picture:
    boxes = tuple(part for part in parts if isinstance(part, Box))
    arrows = tuple(part for part in parts if isinstance(part, Arrow))
    names = {name for part in parts for name in part.logical_ids}
    shown = {name: change for name, change in changes.items() if name in names}
    return Picture("one", boxes, arrows, {name: f"{{{name}}}" for name in sorted(names)}, shown)


def compared(before: tuple[Box | Arrow, ...], after: tuple[Box | Arrow, ...], **changes: Change) -> Picture:
    return compare(picture(*before, **changes), picture(*after, **changes))


def boxes_of(drawn: Picture) -> dict[str, Change | None]:
    return {box.id: change_of(drawn, box) for box in drawn.boxes}


def arrows_of(drawn: Picture) -> dict[tuple[str, str, str], Change | None]:
    return {(arrow.source, arrow.target, arrow.label): change_of(drawn, arrow) for arrow in drawn.arrows}


def test_a_role_that_is_changed_shows_which_permissions_come_and_go() -> None:
    before = (ROLE, permission("ec2", "read", "create"), permission("iam", "create"), permission("ecr", "read"))
    after = (ROLE, permission("ec2", "read"), permission("ecr", "read"), permission("s3", "write"))
    drawn = compared(before, after, Role="changed")
    assert boxes_of(drawn) == {
        "Role": "changed",
        "Role:ec2": "changed",
        "Role:ecr": None,
        "Role:s3": "added",
        "Role:iam": "removed",
    }


def test_arrows_of_a_role_that_is_changed_come_and_go() -> None:
    parts = (ROLE, permission("s3"), permission("kms"), BUCKET, KEY)
    before = (
        *parts,
        Arrow("Role:s3", "Bucket", "permission", "read, write", ("Role",)),
        Arrow("Role:kms", "Key", "permission", "decrypt", ("Role",)),
        Arrow("Role", "Bucket", "use", "trusts", ("Role",)),
    )
    after = (
        *parts,
        Arrow("Role:s3", "Bucket", "permission", "read", ("Role",)),
        Arrow("Role", "Bucket", "use", "trusts", ("Role",)),
        Arrow("Role", "Key", "use", "trusts", ("Role",)),
    )
    drawn = compared(before, after, Role="changed")
    assert arrows_of(drawn) == {
        ("Role:s3", "Bucket", "read, write \N{RIGHTWARDS ARROW} read"): "changed",
        ("Role", "Bucket", "trusts"): None,
        ("Role", "Key", "trusts"): "added",
        ("Role:kms", "Key", "decrypt"): "removed",
    }


def test_a_change_that_no_word_of_the_picture_says_is_still_seen() -> None:
    """A policy of its own has no box beside those of what it allows, and a rule none but its arrow."""
    policy = replace(permission("ec2", "read"), logical_ids=("Policy",))
    rule = Arrow("Bucket", "Key", "traffic", "TCP 443", ("Rule",))
    drawn = compared(
        (ROLE, policy, BUCKET, KEY, rule), (ROLE, policy, BUCKET, KEY, rule), Policy="changed", Rule="changed"
    )
    assert boxes_of(drawn)["Role:ec2"] == "changed"
    assert arrows_of(drawn) == {("Bucket", "Key", "TCP 443"): "changed"}


def test_a_box_says_what_it_was() -> None:
    group = Box("Nodes", "instances", "node group a", ("t3.large", "1 to 4 nodes"), None, ("Nodes",))
    larger = replace(group, lines=("m6i.large", "1 to 4 nodes", "spot instances"))
    drawn = compared((group, BUCKET), (replace(group, lines=("m6i.large", "1 to 4 nodes")), BUCKET), Nodes="changed")
    assert [box.lines for box in drawn.boxes] == [("t3.large \N{RIGHTWARDS ARROW} m6i.large", "1 to 4 nodes"), ()]
    drawn = compared((group,), (larger,), Nodes="changed")
    assert drawn.boxes[0].lines == ("m6i.large", "1 to 4 nodes", "spot instances", "no longer: t3.large")
    drawn = compared((ROLE, permission("ec2", "read")), (ROLE, permission("ec2", "create")), Role="changed")
    assert drawn.boxes[1].lines == ("create", "no longer: read")


def test_groups_that_are_alike_share_a_box_but_not_with_one_that_changes() -> None:
    boxes = tuple(
        Box(f"{name}:{subnet}", "instances", f"node group {name}", ("t3.large",), None, (name,))
        for name in "abc"
        for subnet in ("A", "B")
    )
    after = tuple(replace(box, lines=("m6i.large",)) if box.logical_ids == ("a",) else box for box in boxes)
    other = replace(boxes[0], id="d", title="node group d", logical_ids=("d",))
    drawn = fold_node_groups(compared((*boxes, other), (*after, other), a="changed"))
    assert [(box.id, box.title, box.lines, box.logical_ids) for box in drawn.boxes if ":B" not in box.id] == [
        ("a:A", "node group a", ("t3.large \N{RIGHTWARDS ARROW} m6i.large",), ("a",)),
        ("b:A", "2 node groups", ("b, c", "t3.large"), ("b", "c")),
        ("d", "node group d", ("t3.large",), ("d",)),  # in one subnet
    ]
    ssh = Arrow("d", "b:A", "traffic", "TCP 22", ("Ssh",))
    assert len(fold_node_groups(picture(*boxes, ssh)).boxes) == 4


def test_what_is_removed_is_drawn_where_it_was_with_what_contains_it() -> None:
    vpc = Box("Vpc", "vpc", "VPC", (), None, ("Vpc",))
    zone = Box("zone:b", "zone", "b", (), "Vpc")
    group = Box("Batch", "instances", "node group batch", (), "zone:b", ("Batch", "BatchTemplate"))
    source = Box("source:office", "source", "office")
    rule = Arrow("source:office", "Batch", "traffic", "TCP 22", ("Ssh",))
    drawn = compared((vpc, zone, group, source, rule), (vpc,), Batch="removed", BatchTemplate="removed", Ssh="removed")
    assert [(box.id, box.parent) for box in drawn.boxes] == [
        ("Vpc", None),
        ("zone:b", "Vpc"),
        ("Batch", "zone:b"),
        ("source:office", None),
    ]
    assert boxes_of(drawn)["Batch"] == "removed"
    assert arrows_of(drawn) == {("source:office", "Batch", "TCP 22"): "removed"}
    assert drawn.snippets["Ssh"] == "{Ssh}"


def test_a_part_that_loses_one_of_its_resources_is_changed() -> None:
    with_policy = replace(BUCKET, logical_ids=("Bucket", "BucketPolicy"))
    drawn = compared((with_policy,), (BUCKET,), BucketPolicy="removed")
    assert boxes_of(drawn) == {"Bucket": "changed"}
    assert "BucketPolicy (removed)" in svg(drawn)


def test_what_the_plan_does_not_name_has_no_colour() -> None:
    """Templates of another version may be drawn in other words, or with other boxes."""
    other = Box("policy:Role:Old", "permission", "Old", (), "Role", ("Role",))
    drawn = compared((ROLE, other), (ROLE, permission("ec2", "read"), KEY))
    assert boxes_of(drawn) == {"Role": None, "Role:ec2": None, "Key": None}


def test_notes_and_the_meaning_of_colours_stand_in_each_format() -> None:
    note = "The deployment takes 3 updates."
    drawn = replace(compared((ROLE,), (ROLE, KEY), Key="added"), notes=(note,))
    assert captions(drawn) == ["what is green is added", note]
    for text in (dot(drawn), mermaid(drawn)):
        assert "what is green is added" in text
        assert note in text
    for text in (svg(drawn), html(drawn)):
        assert note in " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", text))
        assert ">is added</text>" in text
        assert "is removed" not in text


def test_the_picture_of_a_change_has_the_network_and_what_changes_with_its_surroundings() -> None:
    subnet = Box("Subnet", "subnet", "subnet", ("10.0.0.0/24",), None, ("Subnet",))
    master = Box("Master", "instances", "master a", ("m6i.large",), "Subnet", ("Master",))
    nodes = Box("Nodes", "instances", "node group nodes", ("m6i.large",), "Subnet", ("Nodes",))
    other = Box("Other", "role", "role of nodes", (), None, ("Other",))
    parts = (subnet, master, nodes, other, replace(permission("ecr", "read"), parent="Other"), ROLE, BUCKET, KEY)
    use = (Arrow("Role", "Bucket", "permission", "read"), Arrow("Master", "Nodes", "traffic", "TCP 10250"))
    drawn = focus(
        compared((*parts, *use), (*parts, permission("s3", "write"), *use), Role="changed", Nodes="changed"),
        {"Subnet", "Master", "Nodes"},
    )
    assert {box.id: box.lines for box in drawn.boxes} == {
        "Subnet": ("10.0.0.0/24",),
        "Master": (),
        "Nodes": ("m6i.large",),
        "Role": ("master a",),
        "Role:s3": ("write",),
    }
    assert [(arrow.source, arrow.target) for arrow in drawn.arrows] == [("Master", "Nodes")]
