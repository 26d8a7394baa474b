"""How an update is divided into phases: what goes together, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.naming.logical_ids import is_node_group_stack
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.operations.deployment.update_series import find_worse_changes
from cfngen.deploy.plan.phases.phases import UpdatePart, divide_into_parts
from cfngen.deploy.plan.plan import Change, Plan, PropertyChange, Replacement, StackPlan

VOLUME, GROUP = "AWS::EC2::Volume", "AWS::AutoScaling::AutoScalingGroup"
MASTERS, VPC = ("MasterStack",), ("VpcStack",)
A, B, C = "NodeGroupAStack", "NodeGroupBStack", "NodeGroupCStack"
CALM, ROLLS = Danger.NONE, Danger.DISRUPTIVE


def change(logical_id: str, type_: str = "AWS::X::Y", *paths: str, **more: Any) -> Change:
    properties = tuple(PropertyChange(f"/Properties/{path}", "1", "2") for path in paths)
    return Change(logical_id, "id", type_, more.pop("action", "update"), properties=properties, **more)


def stack(path: tuple[str, ...], *changes: Change, action: str = "update", meaning: Impact | None = None) -> StackPlan:
    return StackPlan(path, "name", action, changes, meaning)


def group(name: str, danger: Danger = ROLLS, action: str = "update") -> StackPlan:
    return stack((name,), change("Group", GROUP, danger=danger), action=action)


def parts(*stacks: StackPlan, separate: tuple[str, ...] = (A, B, C), order: tuple[str, ...] = (A, B, C)) -> Any:
    """The kind of each part, its groups, and the changes in it behind their stacks."""
    return [
        (
            part.kind,
            part.groups,
            ["/".join((*stack.path, one.logical_id)) for stack in part.stacks for one in stack.changes],
        )
        for part in divide_into_parts(Plan("one", "arn", "update", "arn", stacks=stacks), separate, order)
    ]


GROWS = change("V", VOLUME, "Size")
ROLE = change("Role")
REPLACED = change("V", VOLUME, "Size", replacement=Replacement.WILL)
MIGHT = change("V", VOLUME, "Size", replacement=Replacement.MIGHT)


@pytest.mark.parametrize(
    ("stacks", "expected"),
    [
        ([], []),
        ([stack(VPC, ROLE)], [("control-plane", (), ["VpcStack/Role"])]),
        (
            [stack((), change("Root")), stack(MASTERS, ROLE), group(A)],
            [("control-plane", (), ["Root", "MasterStack/Role"]), ("node-groups", (A,), [f"{A}/Group"])],
        ),
        # Each group that is interrupted by itself, in the root's order; a new one is not interrupted, but may fail.
        (
            [group(C, action="create", danger=CALM), group(B), group(A)],
            [("node-groups", (name,), [f"{name}/Group"]) for name in (A, B, C)],
        ),
        # What nobody notices together and first, what goes last.
        (
            [group(A), group(B, CALM), group(C, CALM)],
            [("node-groups", (B, C), [f"{B}/Group", f"{C}/Group"]), ("node-groups", (A,), [f"{A}/Group"])],
        ),
        (
            [group(A, action="delete"), group(B), group(C, CALM, action="delete")],
            [
                ("node-groups", (B,), [f"{B}/Group"]),
                ("removed-node-groups", (A, C), [f"{A}/Group", f"{C}/Group"]),
            ],
        ),
        # A group's own stack may be an entry of the root.
        (
            [stack((), change(A, danger=ROLLS), change("Root"), change(B))],
            [
                ("control-plane", (), ["Root"]),
                ("node-groups", (B,), [B]),
                ("node-groups", (A,), [A]),
            ],
        ),
        ([stack((), change(A))], [("node-groups", (A,), [A])]),
        # Of the same name in another stack it is no node group's.
        ([stack(VPC, change(A))], [("control-plane", (), [f"VpcStack/{A}"])]),
        # A stack without changes of its resources is carried out, too.
        ([stack(MASTERS)], [("control-plane", (), [])]),
        # Volumes that grow go first.
        (
            [stack(VPC, ROLE), stack(MASTERS, GROWS, ROLE)],
            [("volumes", (), ["MasterStack/V"]), ("control-plane", (), ["VpcStack/Role", "MasterStack/Role"])],
        ),
        ([stack(MASTERS, GROWS)], [("volumes", (), ["MasterStack/V"])]),
        (
            [stack(MASTERS, GROWS, change("W", VOLUME, "Iops")), stack(VPC, ROLE)],
            [("volumes", (), ["MasterStack/V", "MasterStack/W"]), ("control-plane", (), ["VpcStack/Role"])],
        ),
        # Only growing needs a phase: what else is modified can be rolled back.
        (
            [stack(MASTERS, change("V", VOLUME, "Iops"), ROLE)],
            [("control-plane", (), ["MasterStack/V", "MasterStack/Role"])],
        ),
        *(
            ([stack(path, each)], [("control-plane", (), [f"{path[0]}/V"])])
            for path, each in (
                (MASTERS, REPLACED),
                (MASTERS, MIGHT),
                (MASTERS, change("V", "AWS::X::Y", "Size")),
                (MASTERS, change("V", VOLUME, "Size", action="add")),
                (MASTERS, change("V", VOLUME, "Encrypted")),
                (VPC, GROWS),
            )
        ),
        (
            [stack(MASTERS, GROWS, REPLACED, change("W", VOLUME, "Encrypted")), stack(VPC, GROWS)],
            [
                ("volumes", (), ["MasterStack/V"]),
                ("control-plane", (), ["MasterStack/V", "MasterStack/W", "VpcStack/V"]),
            ],
        ),
    ],
)
def test_what_goes_together(stacks: list[StackPlan], expected: Any) -> None:
    assert parts(*stacks) == expected


def test_groups_that_cannot_stay_go_with_the_rest() -> None:
    assert parts(group(A), group(B), separate=(B,)) == [
        ("control-plane", (), [f"{A}/Group"]),
        ("node-groups", (B,), [f"{B}/Group"]),
    ]


def test_groups_that_the_root_no_longer_has_come_behind_the_others_by_name() -> None:
    found = parts(group(C), group(A), group(B), order=("VpcStack", B))
    assert [each[1] for each in found] == [(B,), (A,), (C,)]


@pytest.mark.parametrize(
    ("parallel_groups", "expected"), [(1, [(A,), (B,), (C,)]), (2, [(A, B), (C,)]), (9, [(A, B, C)])]
)
def test_as_many_groups_are_updated_together_as_the_user_wants(
    parallel_groups: int, expected: list[tuple[str, ...]]
) -> None:
    plan = Plan("one", "arn", "update", "arn", stacks=(group(A), group(B), group(C)))
    divided = divide_into_parts(plan, (A, B, C), (A, B, C), parallel_groups=parallel_groups)
    assert [part.groups for part in divided] == expected


@pytest.mark.parametrize("name", ["Size", "Iops", "Throughput", "VolumeType"])
def test_what_modifies_a_volume_goes_at_once_and_all_else_of_it_later(name: str) -> None:
    """EC2 takes the next modification of a volume only after a pause."""
    both = change("V", VOLUME, "Size", name, "Tags/0", danger=ROLLS, impact=Impact("grows", ROLLS))
    plan = Plan("one", "arn", "update", "arn", stacks=(stack(MASTERS, both),))
    volumes, rest = divide_into_parts(plan, (), ())
    [now], [later] = volumes.stacks[0].changes, rest.stacks[0].changes
    assert {each.path for each in now.properties} == {"/Properties/Size", f"/Properties/{name}"}
    assert (now.impact, now.danger) == (both.impact, ROLLS)
    assert [each.path for each in later.properties] == ["/Properties/Tags/0"]
    assert (later.impact, later.danger) == (None, CALM)


@pytest.mark.parametrize(
    ("kind", "groups", "title"),
    [
        ("volumes", (), "data volumes of the masters"),
        ("control-plane", (), "control plane"),
        ("node-groups", (A,), "node group A"),
        ("node-groups", (A, B), "node groups A, B"),
        ("removed-node-groups", (A,), "removal of node group A"),
    ],
)
def test_how_a_part_is_called(kind: Any, groups: tuple[str, ...], title: str) -> None:
    part = UpdatePart(kind, (group(A),), groups)
    assert part.title == title
    assert part.phase(predicted=True).danger is ROLLS
    assert UpdatePart(kind, (), groups).phase(predicted=False).danger is CALM


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (A, True),
        ("MasterStack", False),
        ("NodeGroupStack", False),
        (f"{A}X", False),
        (f"The{A}", False),
        (f"{A}\n", False),
    ],
)
def test_what_a_node_groups_stack_is_called(name: str, expected: bool) -> None:
    assert is_node_group_stack(name) is expected


def hurting(logical_id: str, danger: Danger, text: str = "") -> Change:
    return change(logical_id, danger=danger, impact=Impact(text, danger) if text else None)


@pytest.mark.parametrize(
    ("agreed", "actual", "expected"),
    [
        ([hurting("G", ROLLS)], [hurting("G", ROLLS)], {}),
        ([hurting("G", Danger.DANGEROUS)], [hurting("G", ROLLS)], {}),
        ([], [hurting("G", CALM)], {}),
        ([], [hurting("G", ROLLS)], {"VpcStack/G updates": ROLLS}),
        ([hurting("H", ROLLS)], [hurting("G", ROLLS)], {"VpcStack/G updates": ROLLS}),
        ([hurting("G", CALM)], [hurting("G", ROLLS, "it goes")], {"VpcStack/G: it goes": ROLLS}),
        ([hurting("G", ROLLS)], [hurting("G", Danger.DANGEROUS, "lost")], {"VpcStack/G: lost": Danger.DANGEROUS}),
    ],
)
def test_what_is_worse_than_agreed(agreed: list[Change], actual: list[Change], expected: dict[str, Danger]) -> None:
    plan = Plan("one", "arn", "update", "arn", stacks=(stack(VPC, *actual),))
    assert dict(find_worse_changes([stack(VPC, *agreed)], plan)) == expected


def test_what_was_agreed_to_of_another_stack_does_not_count() -> None:
    plan = Plan("one", "arn", "update", "arn", stacks=(stack(VPC, hurting("G", ROLLS)),))
    assert find_worse_changes([stack(MASTERS, hurting("G", ROLLS))], plan) == (("VpcStack/G updates", ROLLS),)
