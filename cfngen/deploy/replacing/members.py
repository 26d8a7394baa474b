"""Finds the instance that the user names, by its id or by a master's slot, among the cluster's groups."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from cfngen.deploy.inspection.machines import GroupView, InstanceView
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest


class UnknownInstanceError(CfngenError):
    """No instance and no slot of the cluster has this name."""

    code = "unknown-instance"


@dataclass(frozen=True)
class Member:
    """The group whose instance is to be replaced, and the instance.

    Attributes:
        group: the Auto Scaling group of the slot, of the node group or of the bastion.
        instance: the instance; None if the slot has none.
    """

    group: GroupView
    instance: InstanceView | None

    @property
    def is_master(self) -> bool:
        """Whether it is a master."""
        return self.group.role == "master"

    @property
    def title(self) -> str:
        """What messages call it, e.g. `master a` or `i-0123456789abcdef0 of node group gpu`."""
        if self.group.role == "node" and self.instance:
            return f"{self.instance.id} of {self.group.title}"
        return self.group.title


def find_member(groups: Sequence[GroupView], name: str) -> Member:
    """Return the group and the instance that the user names.

    Args:
        groups: the groups of the cluster that exist.
        name: an instance id, or the letter of a master's slot.

    Raises:
        UnknownInstanceError: the cluster has neither.
    """
    slots = {group.name: group for group in groups if group.role == "master"}
    if slot := slots.get(name.lower()):
        return Member(slot, _current_instance(slot))
    for group in groups:
        for instance in group.instances:
            if instance.id == name:
                # A slot's own instance may be terminating already, beside the new one.
                return Member(group, instance)
    raise _unknown_name_error(groups, name, list(slots))


def _current_instance(slot: GroupView) -> InstanceView | None:
    """Return the instance in a slot: one that stays before one that is leaving; None if there is none."""
    return min(slot.instances, key=lambda instance: instance.leaving, default=None)


def _unknown_name_error(groups: Sequence[GroupView], name: str, slots: Sequence[str]) -> UnknownInstanceError:
    """Return the error for a name that neither a slot nor an instance has."""
    hint = CommandText(
        suggest("status"), " shows the slots; `kubectl get nodes` the instances, by which Nodes are named."
    )
    node_group = next((group for group in groups if group.role == "node" and group.name == name), None)
    if node_group:
        instance_ids = ", ".join(instance.id for instance in node_group.instances) or "none now"
        return UnknownInstanceError(f"{name} is a node group; name one of its instances ({instance_ids})", hint=hint)
    instance_ids_of_cluster = [instance.id for group in groups for instance in group.instances]
    if name.startswith("i-"):
        similar = difflib.get_close_matches(name, instance_ids_of_cluster, n=1, cutoff=0.8)
        advice = f"; did you mean {similar[0]}?" if similar else ""
        return UnknownInstanceError(
            f"{name} is no instance of the cluster's groups{advice}",
            hint=CommandText("if it was a master's, name the slot; ", hint),
        )
    return UnknownInstanceError(
        f"there is no master slot and no instance {name!r}; the slots are {', '.join(slots) or 'none'}", hint=hint
    )
