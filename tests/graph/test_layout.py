"""Where everything in a picture is drawn: nothing is cut, nothing covers what is to be read."""

from __future__ import annotations

import itertools

import pytest
from drawn import EXAMPLES as CLUSTER_FILES
from drawn import production_with_twenty_groups, templates, twenty_groups
from drawn_pictures import pictures
from example_pictures import EXAMPLES
from hypothesis import given, settings

from cfngen.graph.drawing import View, draw, fold_node_groups
from cfngen.graph.layout import Drawing, Line, Point, layout
from cfngen.graph.layout.edges import edges_of, joined_labels
from cfngen.graph.layout.nodes import TRACK, Node
from cfngen.graph.layout.nodes import Rectangle as Area
from cfngen.graph.layout.text_metrics import LABEL, LINE, TITLE, width, wrapped
from cfngen.graph.picture import Arrow, Box, Picture

Rectangle = tuple[float, float, float, float]  # left, top, right, bottom


@pytest.fixture(scope="module", params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> Drawing:
    return layout(EXAMPLES[request.param]())


@settings(max_examples=20)
@given(pictures())
def test_nothing_in_any_picture_is_cut_or_covered(picture: Picture) -> None:
    check_layout(picture)


@pytest.mark.drill
@settings(max_examples=200)
@given(pictures())
def test_nothing_in_many_pictures_is_cut_or_covered(picture: Picture) -> None:
    check_layout(picture)


def check_layout(picture: Picture) -> None:
    drawing = layout(picture)
    assert faults_of(drawing) == []
    shown = {id(line.edge) for line in drawing.lines if line.label} | {id(line.edge) for line in drawing.unplaced}
    assert [line.edge for line in drawing.lines if line.edge.label.strip() and id(line.edge) not in shown] == []


def test_nothing_in_a_picture_of_a_cluster_is_cut_or_covered(example: Drawing) -> None:
    assert faults_of(example) == []


def test_each_arrow_of_a_cluster_has_a_line_and_its_label(example: Drawing) -> None:
    assert [line.edge for line in example.lines if not line.clear] == []
    assert not example.unplaced
    drawn = [arrow for line in example.lines for arrow in line.edge.arrows]
    loops = [loop for placed in example.nodes for loop in placed.loops]
    assert sorted(map(repr, drawn + loops)) == sorted(map(repr, example.picture.arrows))


def test_a_picture_of_a_cluster_suits_a_page(example: Drawing) -> None:
    assert example.width <= 1400
    assert example.width > 0.6 * example.height


def test_lines_of_different_arrows_share_no_stretch(example: Drawing) -> None:
    stretches: dict[tuple[Point, Point], int] = {}
    for number, line in enumerate(example.lines):
        for stretch in {stretch for path in line.paths for stretch in stretches_of(path)}:
            assert stretches.setdefault(stretch, number) == number


def test_arrows_end_at_their_boxes(example: Drawing) -> None:
    boxes = {placed.box.id: placed for placed in example.nodes}
    for line in example.lines:
        for leaf_end, *_ in line.paths:
            assert [leaf for leaf in line.edge.leaves if on_border(leaf_end, boxes[leaf])]
        assert [path for path in line.paths if on_border(path[-1], boxes[line.edge.root])]
        for target in {link.target for link in line.edge.links}:
            assert [tip for tip, _ in line.heads if on_border(tip, boxes[target])]


MANY_GROUPS = {"20 groups": twenty_groups, "production with 20 groups": production_with_twenty_groups}
NAMES = ("", *MANY_GROUPS, *sorted(path.stem for path in CLUSTER_FILES.glob("*.yaml")))
DRAWN: list[tuple[str, View]] = [
    *((name, view) for name in NAMES for view in ("network", "access", "iam")),  # type: ignore[misc]
    *((name, "all") for name in (*MANY_GROUPS, "kube-up", "production")),
]


@pytest.mark.parametrize(("name", "view"), DRAWN)
def test_no_labels_touch_and_no_arrow_crosses_a_foreign_box(name: str, view: View) -> None:
    file = CLUSTER_FILES / f"{name}.yaml" if name else None
    cluster = MANY_GROUPS[name]() if name in MANY_GROUPS else templates(file)
    picture = fold_node_groups(draw(cluster, view))
    drawing = layout(picture)
    assert faults_of(drawing) == []
    assert not drawing.unplaced
    labels = [line.label.area for line in drawing.lines if line.label]
    assert [pair for pair in itertools.combinations(labels, 2) if pair[0].enlarged(4).overlaps(pair[1])] == []
    assert [label for label in labels if sticks_out(label, drawing)] == []
    assert [crossing for line in drawing.lines for crossing in crossed_boxes(drawing, line)] == []
    empty = [node.box.id for node in drawing.nodes if node.box.kind == "role" and node.children
             and node.y + node.height - max(child.y + child.height for child in node.children) > 6]  # fmt: skip
    assert empty == []


def sticks_out(label: Area, drawing: Drawing) -> bool:
    """Return whether a label lies over the left or the right border of all that is within the region and beside it."""
    outermost = [node for node in drawing.nodes if node.box.parent is None and node.children]
    sides = (min(node.x for node in outermost), max(node.x + node.width for node in outermost))
    top = min(node.y for node in outermost)
    return label.top > top * TRACK and any(label.left < side * TRACK < label.left + label.width for side in sides)


def crossed_boxes(drawing: Drawing, line: Line) -> list[str]:
    """Return the boxes, and subnets and roles, that an arrow crosses and that hold none of its ends."""
    nodes = {node.box.id: node for node in drawing.nodes}
    own: set[str | None] = {None}
    for name in (line.edge.root, *line.edge.leaves):
        end: str | None = name
        while end not in own:
            own.add(end)
            end = nodes[end].box.parent if end else None
    foreign = [node for node in drawing.nodes if node.box.id not in own
               and (not node.children or node.box.kind in {"subnet", "role", "instances"})]  # fmt: skip
    pieces = [
        Area(*start, to_x - start[0], to_y - start[1]).enlarged(0.1)
        for path in line.paths
        for start, (to_x, to_y) in stretches_of(path)
    ]
    areas = [Area(node.x * TRACK, node.y * TRACK, node.width * TRACK, node.height * TRACK) for node in foreign]
    return [
        f"{line.edge.root}: {node.box.id}"
        for node, area in zip(foreign, areas, strict=True)
        if any(piece.overlaps(area) for piece in pieces)
    ]


def test_zones_stand_side_by_side_below_the_internet() -> None:
    boxes = {placed.box.id: placed for placed in layout(EXAMPLES["production"]()).nodes}
    zones = [boxes[f"zone:{zone}"] for zone in "abc"]
    assert len({zone.y for zone in zones}) == 1
    assert len({boxes[f"Private{zone}"].y for zone in "ABC"}) == 1
    assert boxes["source:internet"].y + boxes["source:internet"].height < boxes["Vpc"].y
    assert boxes["Bucket"].y > boxes["Vpc"].y + boxes["Vpc"].height


def test_six_zones_stay_on_a_page() -> None:
    boxes = [Box("vpc", "vpc", "VPC")]
    for zone in "abcdef":
        boxes += [
            Box(f"zone:{zone}", "zone", f"us-east-1{zone}", (), "vpc"),
            Box(f"subnet:{zone}", "subnet", "Private subnet", ("10.0.0.0/19",), f"zone:{zone}"),
            Box(f"nodes:{zone}", "instances", "nodes", ("3 x m6i.xlarge",), f"subnet:{zone}"),
        ]
    drawing = layout(Picture("six zones", tuple(boxes)))
    assert faults_of(drawing) == []
    assert drawing.width <= 1460


def test_the_same_picture_is_laid_out_the_same_way() -> None:
    assert repr(layout(EXAMPLES["access"]())) == repr(layout(EXAMPLES["access"]()))


@pytest.mark.parametrize(
    ("labels", "joined"),
    [
        (["TCP 443"], "TCP 443"),
        (["TCP 80", "TCP 443", "TCP 80"], "TCP 80, 443"),
        (["TCP 53", "UDP 53", "all"], "TCP 53, UDP 53, all"),
        (["", ""], ""),
        ([f"TCP {port}" for port in range(9)], "TCP 0, 1, 2, 3, 4 and 4 more"),
    ],
)
def test_labels_of_arrows_between_the_same_boxes_are_joined(labels: list[str], joined: str) -> None:
    assert joined_labels([Arrow("a", "b", "traffic", label) for label in labels]) == joined


def test_arrows_with_one_label_that_meet_in_a_box_are_one_tree() -> None:
    boxes = tuple(Box(name, "instances", name) for name in "abcd")
    arrows = (*(Arrow(name, "d", "traffic", "TCP 443") for name in "abc"), Arrow("d", "a", "traffic", "TCP 10250"))
    trees = edges_of(Picture("", boxes, arrows))
    assert [(tree.root, tree.leaves, tree.outward) for tree in trees] == [("d", ("a", "b", "c"), False),
                                                                          ("a", ("d",), False)]  # fmt: skip


def test_the_same_arrow_in_both_directions_is_one_with_two_heads() -> None:
    boxes = (Box("a", "security-group", "a"), Box("b", "security-group", "b"))
    arrows = (Arrow("a", "b", "traffic", "UDP 8472"), Arrow("b", "a", "traffic", "UDP 8472"))
    (line,) = layout(Picture("", boxes, arrows)).lines
    assert len(line.paths) == 1
    assert len(line.heads) == 2


@pytest.mark.parametrize("text", ["kubernetes-backups-123456789012", "a b c " * 20, "x" * 200, "", "  ", "节点组" * 20])
def test_wrapped_lines_fit_and_lose_nothing(text: str) -> None:
    for font in (TITLE, LINE, LABEL):
        lines = wrapped(text, 90, font)
        assert "".join("".join(lines).split()) == "".join(text.split())
        assert [line for line in lines if width(line, font) > 90] == []


def faults_of(drawing: Drawing) -> list[str]:
    """Return what is cut or covered in a drawing."""
    faults = []
    outlines = {placed.box.id: outline(placed) for placed in drawing.nodes}
    headers = {placed.box.id: bounds(placed.header_area()) for placed in drawing.nodes}
    labels = [bounds(line.label.area) for line in drawing.lines if line.label]
    by_id = {placed.box.id: placed for placed in drawing.nodes}
    page = (0, 0, drawing.width, drawing.height)
    for name, placed in by_id.items():
        container = outlines[placed.box.parent] if placed.box.parent else page
        if not inside(outlines[name], container):
            faults.append(f"{name} leaves what contains it")
        if not inside(headers[name], outlines[name]):
            faults.append(f"the title of {name} leaves it")
        texts = placed.texts()
        if any(upper.y + upper.font.line > lower.y + 0.01 for upper, lower in itertools.pairwise(texts)):
            faults.append(f"lines of {name} overlap")
        faults += [f"{child.box.id} covers the title of {name}" for child in placed.children
                   if overlap(outlines[child.box.id], headers[name])]  # fmt: skip
    for one, other in itertools.combinations(by_id.values(), 2):
        if one.box.parent == other.box.parent and overlap(outlines[one.box.id], outlines[other.box.id]):
            faults.append(f"{one.box.id} covers {other.box.id}")
    for index, label in enumerate(labels):
        if not inside(label, page):
            faults.append(f"label {index} is cut")
        faults += [f"labels {index} and {index + 1 + after} overlap" for after, other in enumerate(labels[index + 1 :])
                   if overlap(label, other)]  # fmt: skip
        for name, placed in by_id.items():
            if overlap(label, headers[name] if placed.children else outlines[name]):
                faults.append(f"label {index} covers {name}")
    for line in drawing.lines:
        for start, end in (stretch for path in line.paths for stretch in stretches_of(path)):
            piece = (min(start[0], end[0]), min(start[1], end[1]), max(start[0], end[0]), max(start[1], end[1]))
            if line.clear:
                crossed = [name for name, header in headers.items() if overlap(piece, header)]
                faults += [f"an arrow of {line.edge.root} crosses the title of {name}" for name in crossed]
            if not inside(piece, page):
                faults.append(f"an arrow of {line.edge.root} is cut")
    return faults


def outline(placed: Node) -> Rectangle:
    return bounds((placed.x * TRACK, placed.y * TRACK, placed.width * TRACK, placed.height * TRACK))


def bounds(area: tuple[float, float, float, float]) -> Rectangle:
    left, top, w, h = area
    return left, top, left + w, top + h


def inside(inner: Rectangle, outer: Rectangle) -> bool:
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def overlap(one: Rectangle, other: Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def stretches_of(path: tuple[Point, ...]) -> list[tuple[Point, Point]]:
    """Return the pieces of a way, each one track long, in one direction whichever way it was gone."""
    pieces = []
    for (x, y), (to_x, to_y) in itertools.pairwise(path):
        steps = max(abs(to_x - x), abs(to_y - y)) // TRACK
        for step in range(steps):
            ends = [(x + (to_x - x) * at // steps, y + (to_y - y) * at // steps) for at in (step, step + 1)]
            pieces.append((min(ends), max(ends)))
    return pieces


def on_border(point: Point, placed: Node) -> bool:
    left, top, right, bottom = outline(placed)
    x, y = point
    return (x in (left, right) and top <= y <= bottom) or (y in (top, bottom) and left <= x <= right)
