"""Tells from the tags of a cluster's Auto Scaling groups whether it is paused, and which sizes they are to get back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.groups import NO_INSTANCES, GroupView, find_groups
from cfngen.deploy.aws.stacks import StackTree
from cfngen.hints import CommandText, Hint, suggest


@dataclass(frozen=True)
class KeptGroup:
    """A group whose sizes before the pause are kept.

    Attributes:
        role: `master`, `node` or `bastion`.
        name: letter of the master's slot, or name of the node group; empty for the bastion.
        minimum: minimum size before the pause.
        maximum: maximum size before the pause.
        desired: desired capacity before the pause.
    """

    role: str
    name: str
    minimum: int
    maximum: int
    desired: int


@dataclass(frozen=True)
class PauseState:
    """The pause of a cluster.

    Attributes:
        since: when it began; None if somebody has damaged the tags of the groups.
        complete: whether no group has an instance, or may launch one. If not, `pause` or `resume` is in progress, or
            was interrupted.
        groups: the sizes that are kept.
    """

    since: datetime | None
    complete: bool
    groups: tuple[KeptGroup, ...]

    @property
    def text(self) -> str:
        """The state without its subject, e.g. `has been paused since 2026-11-21 20:00 UTC (sizes kept)`."""
        since = f" since {self.since:%Y-%m-%d %H:%M} UTC" if self.since else ""
        if self.complete:
            return f"has been paused{since} (sizes kept)"
        return f"has been partly paused{since} (sizes kept): a pause or its end is in progress, or was interrupted"

    @property
    def hint(self) -> Hint:
        """What to do about it."""
        if self.complete:
            return CommandText(suggest("resume"), " starts it again.")
        return CommandText(suggest("resume"), " starts it again; ", suggest("pause"), " completes the pause.")


def find_pause(groups: Iterable[GroupView]) -> PauseState | None:
    """Return the pause of a cluster with these groups; None if none of them keeps sizes."""
    existing_groups = [group for group in groups if not group.missing]
    kept_groups = [group for group in existing_groups if group.kept]
    if not kept_groups:
        return None
    times = [group.kept.since for group in kept_groups if group.kept and group.kept.since]
    return PauseState(
        since=min(times, default=None),
        complete=all(group.sizes == NO_INSTANCES and not group.instances for group in existing_groups),
        groups=tuple(
            KeptGroup(
                role=group.role,
                name=group.name,
                minimum=group.kept.sizes.minimum,
                maximum=group.kept.sizes.maximum,
                desired=group.kept.sizes.desired,
            )
            for group in kept_groups
            if group.kept and group.kept.sizes
        ),
    )


def read_pause(deployed: StackTree, cluster: Cluster) -> PauseState | None:
    """Return the pause of a deployed cluster; None if it is not paused."""
    with translate_aws_errors():
        paused_groups = deployed.account.items(
            "autoscaling.describe_auto_scaling_groups", "AutoScalingGroups", filters={"tag-key": [PAUSED]}
        )
        # In most accounts no cluster is paused: then this is the only call.
        if next(paused_groups, None) is None:
            return None
        resources = [resource.view for resource in deployed.resources]
    return find_pause(find_groups(deployed.account, cluster, resources))
