"""The instance to replace, which the user names by its id or by a master's slot; whether etcd can do without it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from cfngen.deploy.aws.groups import GroupView, InstanceView
from cfngen.deploy.status.cluster_problems import KubernetesReading, Problem, etcd_quorum, find_failing_masters
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import join_and, pluralize


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
        name: an instance id, or the letter of a master's slot.

    Raises:
        UnknownInstanceError: the cluster has neither.
    """
    slots = {group.name: group for group in groups if group.role == "master"}
    if slot := slots.get(name.lower()):
        # One that stays comes before one that is leaving.
        return Member(slot, min(slot.instances, key=lambda instance: instance.leaving, default=None))
    for group in groups:
        for instance in group.instances:
            if instance.id == name:
                # A slot's own instance may be terminating already, beside the new one.
                return Member(group, instance)
    raise _unknown_name_error(groups, name, list(slots))


def _unknown_name_error(groups: Sequence[GroupView], name: str, slots: Sequence[str]) -> UnknownInstanceError:
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


class QuorumError(CfngenError):
    """Without this master, etcd would lose its quorum, or nobody knows whether it would."""

    code = "quorum-would-be-lost"


def check_quorum(member: Member, masters: Sequence[GroupView], reading: KubernetesReading | Problem) -> None:
    """Refuse to terminate a master's instance if etcd would lose its quorum.

    A cluster of one master has no quorum to lose: its API is away until the new instance works.

    Args:
        reading: what the Kubernetes API says, or why it could not be read.

    Raises:
        QuorumError: too few of the other masters work; or the API cannot be read.
    """
    if len(masters) == 1:
        return
    if isinstance(reading, Problem):
        raise QuorumError(
            f"whether the other masters work is not known: {reading.sentence}",
            hint=CommandText(
                suggest("validate cluster"),
                " shows what is wrong; a slot that has no instance can be replaced in any case.",
            ),
        )
    if not reading.readiness.ready:
        return  # the quorum is lost already, and a new instance may bring it back
    others = [group for group in masters if group.id != member.group.id]
    failing = find_failing_masters(others, reading)
    needed = etcd_quorum(len(masters))
    working_count = len(others) - len(failing)
    if working_count < needed:
        details = join_and([f"master {slot}: {reason}" for slot, reason in failing.items()])
        raise QuorumError(
            f"etcd needs {needed} of {pluralize(len(masters), 'member')}, and without {member.title} only "
            f"{working_count} would work ({details}); nothing was changed",
            hint=CommandText("replace or repair the other one first; ", suggest("validate cluster"), " shows more."),
        )
