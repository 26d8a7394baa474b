"""Divides the plan of an update into parts, each carried out as one stack update, in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cfngen.cluster.logical_ids import MASTER_STACK
from cfngen.deploy.messages.message import Danger
from cfngen.deploy.plan.plan import Change, Phase, PhaseKind, Plan, Replacement, StackPlan

VOLUME = "AWS::EC2::Volume"
# Properties that ModifyVolume changes. They are changed together, since EC2 accepts the next modification of a volume
# only after some hours ("Request modifications to your EBS volumes", EC2 User Guide).
MODIFIABLE_PROPERTIES = ("Size", "Iops", "Throughput", "VolumeType")
_MODIFIABLE_PATHS = tuple(f"/Properties/{name}" for name in MODIFIABLE_PROPERTIES)


@dataclass(frozen=True)
class UpdatePart:
    """A part of an update that is carried out as one stack update; the plan shows it as a `Phase`.

    Attributes:
        kind: what the part updates, e.g. `volumes` or `node-groups`.
        groups: logical ids of the node group stacks that the part updates; empty for other kinds.
    """

    kind: PhaseKind
    stacks: tuple[StackPlan, ...]
    groups: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What the part updates, in words."""
        return self.phase(predicted=True).title

    def phase(self, *, predicted: bool) -> Phase:
        """Return the part as the plan shows it; `predicted` if the part has no change set yet."""
        return Phase(self.kind, self.groups, predicted=predicted, stacks=self.stacks)


def divide_into_parts(
    plan: Plan, separable_groups: Collection[str], resource_order: Sequence[str], *, parallel_groups: int = 1
) -> tuple[UpdatePart, ...]:
    """Return the parts of an update, in the order in which they are carried out.

    Volumes come first if one of them grows, then the control plane with everything else that is not a node group, then
    node groups. Node groups without disruptive changes are updated together. The others, including new ones, are
    updated one by one, or as many at a time as the user wants. Node groups that are removed come last, when their
    replacements exist.

    Args:
        separable_groups: logical ids of the node group stacks that can be updated separately from everything else.
        resource_order: logical ids of the requested root's resources; node groups are updated in this order.
        parallel_groups: how many node groups with disruptive changes are updated together.
    """
    other_stacks: list[StackPlan] = []
    changes_by_group: dict[str, list[StackPlan]] = {}
    for stack in plan.stacks:
        if stack.path and stack.path[0] in separable_groups:
            changes_by_group.setdefault(stack.path[0], []).append(stack)
            continue
        # The root's own changes: a nested stack is also listed as a resource of the root.
        group_changes = [change for change in stack.changes if not stack.path and change.logical_id in separable_groups]
        for group_change in group_changes:
            changes_by_group.setdefault(group_change.logical_id, []).append(replace(stack, changes=(group_change,)))
        other_changes = tuple(change for change in stack.changes if change not in group_changes)
        if other_changes or not group_changes:
            other_stacks.append(replace(stack, changes=other_changes))
    volumes: tuple[StackPlan, ...] = ()
    control_plane = tuple(other_stacks)
    if _any_volume_grows(other_stacks):
        volumes, control_plane = _split_volume_changes(other_stacks)
    parts = [
        UpdatePart("volumes", stacks=volumes),
        UpdatePart("control-plane", stacks=control_plane),
        *_node_group_parts(changes_by_group, resource_order, parallel_groups),
    ]
    return tuple(part for part in parts if part.stacks)


def _node_group_parts(
    changes_by_group: Mapping[str, Sequence[StackPlan]], resource_order: Sequence[str], parallel_groups: int
) -> Iterator[UpdatePart]:
    """Yield the parts that update node groups; a part without stacks is dropped by the caller.

    Args:
        resource_order: logical ids of the requested root's resources; node groups are updated in this order.
        parallel_groups: how many node groups with disruptive changes are updated together.
    """

    def part_of(kind: PhaseKind, groups: Sequence[str]) -> UpdatePart:
        stacks = tuple(stack for group in groups for stack in changes_by_group[group])
        return UpdatePart(kind, stacks=stacks, groups=tuple(groups))

    # Node groups that the requested root no longer has are missing in its order, and come last.
    position = {logical_id: index for index, logical_id in enumerate(resource_order)}
    ordered_groups = sorted(changes_by_group, key=lambda group: (position.get(group, len(position)), group))
    removed_groups: list[str] = []
    undisrupted_groups: list[str] = []
    other_groups: list[str] = []
    for group in ordered_groups:
        stacks = changes_by_group[group]
        if any(stack.action == "delete" for stack in stacks):
            removed_groups.append(group)
        elif all(stack.action == "update" and stack.danger is Danger.NONE for stack in stacks):
            undisrupted_groups.append(group)
        else:
            other_groups.append(group)
    yield part_of("node-groups", undisrupted_groups)
    for first in range(0, len(other_groups), parallel_groups):
        yield part_of("node-groups", other_groups[first : first + parallel_groups])
    yield part_of("removed-node-groups", removed_groups)


def _modifies_volume(change: Change) -> bool:
    is_update_in_place = change.action == "update" and change.replacement is Replacement.NO
    return (
        is_update_in_place
        and change.type == VOLUME
        and any(property_.path in _MODIFIABLE_PATHS for property_ in change.properties)
    )


def _any_volume_grows(stacks: Iterable[StackPlan]) -> bool:
    """Return whether the size of a master's volume changes; EBS accepts only larger sizes."""
    return any(
        _modifies_volume(change) and any(property_.path == "/Properties/Size" for property_ in change.properties)
        for stack in stacks
        if stack.path == (MASTER_STACK,)
        for change in stack.changes
    )


def _split_volume_changes(stacks: Sequence[StackPlan]) -> tuple[tuple[StackPlan, ...], tuple[StackPlan, ...]]:
    """Return the changes that modify the masters' volumes, and all other changes, both by stack.

    A change of a volume is split if it also has properties that ModifyVolume does not change, such as tags.
    """
    volume_stacks: list[StackPlan] = []
    other_stacks: list[StackPlan] = []
    for stack in stacks:
        is_masters_stack = stack.path == (MASTER_STACK,)
        volume_changes = [change for change in stack.changes if is_masters_stack and _modifies_volume(change)]
        if not volume_changes:
            other_stacks.append(stack)
            continue
        modifications = tuple(_only_modifiable_properties(change) for change in volume_changes)
        volume_stacks.append(replace(stack, changes=modifications))
        other_changes = [change for change in stack.changes if change not in volume_changes]
        for change in volume_changes:
            rest_of_change = _without_modifiable_properties(change)
            if rest_of_change.properties:
                other_changes.append(rest_of_change)
        if other_changes:
            other_stacks.append(replace(stack, changes=tuple(other_changes)))
    return tuple(volume_stacks), tuple(other_stacks)


def _only_modifiable_properties(change: Change) -> Change:
    properties = tuple(property_ for property_ in change.properties if property_.path in _MODIFIABLE_PATHS)
    return replace(change, properties=properties)


def _without_modifiable_properties(change: Change) -> Change:
    properties = tuple(property_ for property_ in change.properties if property_.path not in _MODIFIABLE_PATHS)
    # The impact and the danger describe the modification.
    return replace(change, properties=properties, impact=None, danger=Danger.NONE)
