"""A cluster that is deployed, paused and resumed, and who does that."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import boto3
from deployed import Place, place
from deployments import Operator, groups

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.aws.groups import GroupView, find_groups
from cfngen.deploy.aws.stacks import find_stack, list_resource_tree
from cfngen.deploy.operations.pausing.pause import pause
from cfngen.deploy.operations.pausing.reports import Paused, Resumed
from cfngen.deploy.operations.pausing.resume import resume
from cfngen.deploy.status.validation import Validation, validate, wait_until_valid

NAME = "one"
SMALL: Mapping[str, Any] = {"name": NAME, "nodeGroups": [{"name": "general", "minSize": 1, "maxSize": 3}]}
LARGE: Mapping[str, Any] = {
    "name": NAME,
    "network": {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]},
    "controlPlane": {"count": 3},
    "nodeGroups": groups("general", "gpu"),
}
Sizes = dict[str, tuple[int, int, int]]


@dataclass
class Pauser:
    """Somebody who pauses and resumes a deployed cluster.

    Attributes:
        where: the account.
        operator: deploys; keeps what was reported and asked.
        file: the content of the cluster file.
    """

    where: Place
    operator: Operator
    file: Mapping[str, Any]
    cluster: Cluster = field(init=False)

    def __post_init__(self) -> None:
        self.cluster = parse(dict(self.file))

    def pause(self, **options: Any) -> Paused:
        self.operator.messages.clear()
        self.operator.questions.clear()
        return pause(self.where.account, NAME, self.cluster, self.operator.waiting, **options)

    def resume(self, **options: Any) -> Resumed:
        self.operator.messages.clear()
        self.operator.questions.clear()
        override = self.where.override
        return resume(
            self.where.account, NAME, self.cluster, self.operator.waiting, find_url_override=override, **options
        )

    def validate(self) -> Validation:
        return validate(self.where.account, NAME, self.cluster, find_url_override=self.where.override)

    def works(self) -> bool:
        """Whether the cluster is valid soon: Nodes of terminated instances are removed some time later."""
        return wait_until_valid(
            self.validate, self.where.account.clock, timedelta(minutes=5), self.operator.messages.append
        ).valid

    @property
    def groups(self) -> dict[str, GroupView]:
        """The groups, by what messages call them."""
        stack = find_stack(self.where.account, NAME)
        assert stack
        views = [resource.view for resource in list_resource_tree(self.where.account, stack.id)]
        return {group.title: group for group in find_groups(self.where.account, self.cluster, views)}

    @property
    def sizes(self) -> Sizes:
        """Minimum, maximum and desired size of every group."""
        return {title: (group.minimum, group.maximum, group.desired) for title, group in self.groups.items()}

    @property
    def kept(self) -> dict[str, str]:
        """The tags of the groups that keep sizes."""
        return {title: group.kept.text for title, group in self.groups.items() if group.kept}

    @property
    def instances(self) -> list[str]:
        """The instances of all groups."""
        return [instance.id for group in self.groups.values() for instance in group.instances]

    def change(self, title: str, minimum: int, maximum: int, desired: int) -> None:
        """Change the sizes of a group by hand."""
        self.where.account.client("autoscaling").update_auto_scaling_group(
            AutoScalingGroupName=self.groups[title].id, MinSize=minimum, MaxSize=maximum, DesiredCapacity=desired
        )
        self.where.world.machines.refresh()  # new instances begin to boot

    def cut(self, operation: str, nth: int, *, before: bool = False) -> None:
        """Interrupt whoever makes the n-th call of an operation from now."""
        when: Callable[..., None] = self.where.served.faults.before if before else self.where.served.faults.after
        when(operation, _interrupt, nth=nth)

    def changes(self) -> list[tuple[str, int]]:
        """Every call that changed something since the calls were last forgotten, as operation and number."""
        counts: dict[str, int] = {}
        found = []
        for call in self.where.served.faults.calls:
            if call.operation in CHANGING and call.key == boto_key(self.where):
                counts[call.operation] = counts.get(call.operation, 0) + 1
                found.append((call.operation, counts[call.operation]))
        return found


CHANGING = ("PutObject", "CreateOrUpdateTags", "UpdateAutoScalingGroup", "DeleteTags", "CompleteLifecycleAction")


def boto_key(where: Place) -> str:
    """The access key of the operator."""
    return str(where.account.session.get_credentials().access_key)


@contextlib.contextmanager
def running(file: Mapping[str, Any]) -> Iterator[Pauser]:
    """A cluster that `cfngen deploy` has created, and that has taken its first snapshot."""
    cluster = parse(dict(file))
    with place(cluster) as where:
        session = boto3.Session("AKIAOPERATOROPERATOR", "secret")
        operator = Operator(SimpleNamespace(session=session, cluster=cluster, clock=where.clock))  # type: ignore[arg-type]
        assert operator.deploy(file).status == "CREATE_COMPLETE"
        where.clock.sleep(60)
        yield Pauser(where, operator, file)


def protected_instance(pauser: Pauser, title: str, *, protected: bool = True) -> str:
    """Protect an instance of a group from scale-in, or take the protection from it; return its id."""
    group = pauser.groups[title]
    pauser.where.account.client("autoscaling").set_instance_protection(
        InstanceIds=[group.instances[0].id], AutoScalingGroupName=group.id, ProtectedFromScaleIn=protected
    )
    return group.instances[0].id


def remove_tag(pauser: Pauser, title: str) -> None:
    """Remove the tag that keeps the sizes of a group, by hand."""
    tag = {"ResourceId": pauser.groups[title].id, "ResourceType": "auto-scaling-group", "Key": PAUSED}
    pauser.where.account.client("autoscaling").delete_tags(Tags=[tag])


def _interrupt() -> None:
    raise KeyboardInterrupt
