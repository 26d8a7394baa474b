"""Which masters work, and whether etcd keeps its quorum without one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cfngen.deploy.inspection.cluster_problems import KubernetesReading, Problem
from cfngen.deploy.inspection.machines import GroupView, InstanceView
from cfngen.deploy.replacing.members import Member
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import join_and, pluralize


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
        member: the master.
        masters: the groups of all masters.
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
    """Return for each other master why it does not work; empty for those that do."""
    reasons: dict[str, str] = {}
    for group in masters:
        if group.id == member.group.id:
            continue
        instance = next((instance for instance in group.instances if not instance.leaving), None)
        reasons[group.name] = why_not_working(instance, reading) if instance else "it has no instance"
    return reasons
