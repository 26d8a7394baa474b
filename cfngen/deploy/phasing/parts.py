"""Divides the plan of an update into what is carried out together, in order."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cfngen.deploy.preview.plan import Change, Danger, Phase, PhaseKind, Plan, Replacement, StackPlan

MASTERS = "MasterStack"
VOLUME = "AWS::EC2::Volume"
# What ModifyVolume changes. All at once: EC2 takes the next modification of a volume only after a pause ("Request
# modifications to your EBS volumes", EC2 User Guide).
MODIFIED = ("Size", "Iops", "Throughput", "VolumeType")
_NODES = re.compile(r"NodeGroup\w+Stack\Z")
_MODIFIED = tuple(f"/Properties/{each}" for each in MODIFIED)


@dataclass(frozen=True)
class Part:
    """What is carried out together.

    Attributes:
        kind: what it is about.
        groups: logical ids of the nested stacks of the node groups that it is about.
        stacks: what happens in it.
    """

    kind: PhaseKind
    stacks: tuple[StackPlan, ...]
    groups: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it is about, in words."""
        return self.phase(foreseen=True).title

    def phase(self, *, foreseen: bool) -> Phase:
        """Return it as the plan shows it."""
        return Phase(self.kind, self.groups, foreseen, self.stacks)


def is_node_group(logical_id: str) -> bool:
    """Return whether a logical id of the root is that of a node group's stack."""
    return bool(_NODES.match(logical_id))


def divided(plan: Plan, separate: Collection[str], order: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts of an update, in the order in which they are carried out.

    Groups in which nothing is interrupted go together; each of the others goes by itself, new ones among them, and
    those that are removed go last, when what takes their place is there.

    Args:
        plan: the plan of the whole update.
        separate: logical ids of the node groups' stacks that can stay as they are while everything else is updated, or
            do not exist yet.
        order: logical ids of the wanted root, whose order the groups keep.
    """
    rest: list[StackPlan] = []
    groups: dict[str, list[StackPlan]] = {}
    for stack in plan.stacks:
        if stack.path and stack.path[0] in separate:
            groups.setdefault(stack.path[0], []).append(stack)
            continue
        mine = [change for change in stack.changes if not stack.path and change.logical_id in separate]
        for each in mine:
            groups.setdefault(each.logical_id, []).append(replace(stack, changes=(each,)))
        others = tuple(change for change in stack.changes if change not in mine)
        if others or not mine:
            rest.append(replace(stack, changes=others))
    volumes, control_plane = _without_volumes(rest) if _grows(rest) else ((), tuple(rest))
    parts = [Part("volumes", volumes), Part("control-plane", control_plane), *_of_groups(groups, order)]
    return tuple(part for part in parts if part.stacks)


def _of_groups(groups: dict[str, list[StackPlan]], order: Sequence[str]) -> Iterator[Part]:
    def stacks(keys: Iterable[str]) -> tuple[StackPlan, ...]:
        return tuple(stack for key in keys for stack in groups[key])

    rank = {logical_id: index for index, logical_id in enumerate(order)}
    names = sorted(groups, key=lambda each: (rank.get(each, len(rank)), each))
    removed = [name for name in names if any(stack.action == "delete" for stack in groups[name])]
    calm = [name for name in names if name not in removed and all(map(_is_calm, groups[name]))]
    yield Part("node-groups", stacks(calm), tuple(calm))
    for name in names:
        if name not in calm and name not in removed:
            yield Part("node-groups", stacks([name]), (name,))
    yield Part("removed-node-groups", stacks(removed), tuple(removed))


def _is_calm(stack: StackPlan) -> bool:
    return stack.action == "update" and stack.danger is Danger.NONE


def _is_modified(change: Change) -> bool:
    stays = change.action == "update" and change.replacement is Replacement.NO
    return stays and change.type == VOLUME and any(property_.path in _MODIFIED for property_ in change.properties)


def _grows(stacks: Iterable[StackPlan]) -> bool:
    return any(
        _is_modified(change) and any(property_.path == "/Properties/Size" for property_ in change.properties)
        for stack in stacks
        if stack.path == (MASTERS,)
        for change in stack.changes
    )


def _without_volumes(stacks: Sequence[StackPlan]) -> tuple[tuple[StackPlan, ...], tuple[StackPlan, ...]]:
    """Return what modifies volumes, and everything else."""
    volumes: list[StackPlan] = []
    others: list[StackPlan] = []
    for stack in stacks:
        modified = [change for change in stack.changes if stack.path == (MASTERS,) and _is_modified(change)]
        if not modified:
            others.append(stack)
            continue
        volumes.append(replace(stack, changes=tuple(_only(each, modified=True) for each in modified)))
        left = [change for change in stack.changes if change not in modified]
        left += [rest for each in modified if (rest := _only(each, modified=False)).properties]
        if left:
            others.append(replace(stack, changes=tuple(left)))
    return tuple(volumes), tuple(others)


def _only(change: Change, *, modified: bool) -> Change:
    """Return a volume's change without what belongs to the other part."""
    properties = tuple(property_ for property_ in change.properties if (property_.path in _MODIFIED) is modified)
    if modified:
        return replace(change, properties=properties)
    return replace(change, properties=properties, meaning=None, danger=Danger.NONE)
