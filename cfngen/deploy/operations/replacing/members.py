"""The instance to replace, which the user names by its id or by a master's slot; whether etcd can do without it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cfngen.deploy.aws.groups import GroupView, InstanceView
from cfngen.deploy.status.cluster_problems import KubernetesReading, Problem
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
    """Return the instance in a slot: one that stays before one that is leaving."""
    return min(slot.instances, key=lambda instance: instance.leaving, default=None)


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


def why_not_working(instance: InstanceView, reading: KubernetesReading) -> str:
    """Return why a master's instance does not work; empty if its Node and its etcd member are ready."""
    if not instance.in_service:
        return f"its instance is {instance.lifecycle_and_health}"
    node = reading.nodes_by_instance_id.get(instance.id)
    if node is None:
        return "it has not registered its Node yet"
    if not node.ready:
        return f"its Node is not Ready ({node.reason})"
    etcd_pod = next((pod for pod in reading.pods if pod.name == f"etcd-{node.name}"), None)
    if etcd_pod is None:
        return "its etcd has no pod yet"
    # The readiness probe of kubeadm's static pod asks the member itself.
    return "" if etcd_pod.ready else f"its etcd is not ready ({etcd_pod.reason or etcd_pod.phase})"


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
    reasons = _reasons_by_slot(member, masters, reading)
    failing = {slot: reason for slot, reason in reasons.items() if reason}
    needed = len(masters) // 2 + 1
    working_count = len(reasons) - len(failing)
    if working_count < needed:
        details = join_and([f"master {slot}: {reason}" for slot, reason in failing.items()])
        raise QuorumError(
            f"etcd needs {needed} of {pluralize(len(masters), 'member')}, and without {member.title} only "
            f"{working_count} would work ({details}); nothing was changed",
            hint=CommandText("replace or repair the other one first; ", suggest("validate cluster"), " shows more."),
        )


def _reasons_by_slot(member: Member, masters: Sequence[GroupView], reading: KubernetesReading) -> Mapping[str, str]:
    reasons: dict[str, str] = {}
    for group in masters:
        if group.id == member.group.id:
            continue
        instance = next((instance for instance in group.instances if not instance.leaving), None)
        reasons[group.name] = why_not_working(instance, reading) if instance else "it has no instance"
    return reasons
