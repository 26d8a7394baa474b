"""The Auto Scaling groups of a cluster and the instances in them, as EC2 sees them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from cfngen.cluster.model import Cluster
from cfngen.cluster.names import auto_scaling_group, group_id
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import translate_aws_errors
from cfngen.deploy.stacks import GROUP, ResourceView

AT_ONCE = 50  # names in one DescribeAutoScalingGroups
FILTERED_AT_ONCE = 200  # values of one filter
IN_SERVICE = "InService"
_SLOT = re.compile(r"Master([A-Z])AutoScalingGroup")


@dataclass(frozen=True)
class Instance:
    """An instance of a group.

    Attributes:
        id: its id, which is the name of its Node too.
        zone: its Availability Zone.
        lifecycle: as Auto Scaling spells it, e.g. `InService`, `Pending:Wait`, `Terminating`.
        healthy: whether Auto Scaling thinks so.
        current: whether it was launched from the group's present version of the launch template.
        type: its instance type.
        state: as EC2 spells it, e.g. `running`; empty if EC2 does not know it (any more).
        address: its private address.
        public_address: its public address; empty if it has none.
        image: id of its machine image.
        launched: when; None if EC2 does not know it.
    """

    id: str
    zone: str
    lifecycle: str
    healthy: bool = True
    current: bool = True
    type: str = ""
    state: str = ""
    address: str = ""
    public_address: str = ""
    image: str = ""
    launched: datetime | None = None

    @property
    def in_service(self) -> bool:
        """Whether it counts as a member that works."""
        return self.lifecycle == IN_SERVICE and self.healthy

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out."""
        return self.lifecycle.startswith(("Terminat", "Detach"))


@dataclass(frozen=True)
class Group:
    """An Auto Scaling group: a master's slot, or a group of nodes.

    Attributes:
        role: which of the two.
        name: letter of the slot, or name of the node group.
        id: name of the Auto Scaling group.
        minimum: least number of instances.
        maximum: greatest number of instances.
        desired: number of instances there should be now.
        instances: those there are, of every lifecycle.
        missing: whether there is no such Auto Scaling group although the stack has one.
    """

    role: Literal["master", "node"]
    name: str
    id: str
    minimum: int = 0
    maximum: int = 0
    desired: int = 0
    instances: tuple[Instance, ...] = ()
    missing: bool = False

    @property
    def in_service(self) -> int:
        """Number of instances that work."""
        return sum(instance.in_service for instance in self.instances)

    @property
    def title(self) -> str:
        """The group in words."""
        return f"master {self.name}" if self.role == "master" else f"node group {self.name}"


def groups(account: Account, cluster: Cluster, resources: Iterable[ResourceView]) -> tuple[Group, ...]:
    """Return the groups of a cluster, masters first.

    Args:
        account: where they are.
        cluster: tells the names of node groups; those that it does not have go by their logical id.
        resources: of the cluster's stacks.

    Raises:
        AwsError: a call failed.
    """
    known = {
        each.physical_id: each
        for each in resources
        if each.type == GROUP and each.physical_id and each.status != "DELETE_COMPLETE"
    }
    with translate_aws_errors():
        found = {each["AutoScalingGroupName"]: each for each in _described(account, tuple(known))}
        instances = _instances(
            account, [instance["InstanceId"] for group in found.values() for instance in group["Instances"]]
        )
    names = {auto_scaling_group(group_id(node_group.name)): node_group.name for node_group in cluster.node_groups}
    made = []
    for identifier, resource in known.items():
        slot = _SLOT.fullmatch(resource.logical_id)
        logical = resource.logical_id.removesuffix("AutoScalingGroup").removeprefix("NodeGroup")
        name = slot[1].lower() if slot else names.get(resource.logical_id, logical)
        made.append(_group("master" if slot else "node", name, identifier, found.get(identifier), instances))
    return tuple(sorted(made, key=lambda each: (each.role, each.name)))


def _group(role: Literal["master", "node"], name: str, identifier: str, found: Any, instances: dict[str, Any]) -> Group:
    if found is None:
        return Group(role, name, identifier, missing=True)
    version = (found.get("LaunchTemplate") or {}).get("Version", "")
    return Group(
        role,
        name,
        identifier,
        minimum=found["MinSize"],
        maximum=found["MaxSize"],
        desired=found["DesiredCapacity"],
        instances=tuple(
            _instance(each, instances.get(each["InstanceId"], {}), version)
            for each in sorted(found["Instances"], key=lambda each: (each["AvailabilityZone"], each["InstanceId"]))
        ),
    )


def _instance(member: Any, described: Any, version: str) -> Instance:
    own = (member.get("LaunchTemplate") or {}).get("Version", "")
    return Instance(
        id=member["InstanceId"],
        zone=member["AvailabilityZone"],
        lifecycle=member["LifecycleState"],
        healthy=str(member["HealthStatus"]).lower() == "healthy",
        current=not (own and version.isdigit()) or own == version,
        type=member.get("InstanceType") or described.get("InstanceType", ""),
        state=described.get("State", {}).get("Name", ""),
        address=described.get("PrivateIpAddress", ""),
        public_address=described.get("PublicIpAddress", ""),
        image=described.get("ImageId", ""),
        launched=described.get("LaunchTime"),
    )


def _described(account: Account, names: Sequence[str]) -> Iterator[Any]:
    client = account.client("autoscaling")
    for start in range(0, len(names), AT_ONCE):
        some = list(names[start : start + AT_ONCE])
        yield from client.describe_auto_scaling_groups(AutoScalingGroupNames=some, MaxRecords=100)["AutoScalingGroups"]


def _instances(account: Account, ids: Sequence[str]) -> dict[str, Any]:
    """Return what EC2 knows of instances; by a filter, since one unknown id would fail the whole call."""
    found: dict[str, Any] = {}
    pages = account.client("ec2").get_paginator("describe_instances")
    for start in range(0, len(ids), FILTERED_AT_ONCE):
        chosen = [{"Name": "instance-id", "Values": list(ids[start : start + FILTERED_AT_ONCE])}]
        for page in pages.paginate(Filters=chosen):
            for reservation in page["Reservations"]:
                found |= {instance["InstanceId"]: instance for instance in reservation["Instances"]}
    return found
