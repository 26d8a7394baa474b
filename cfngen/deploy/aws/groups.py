"""The Auto Scaling groups of a cluster and their instances."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, get_args

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import (
    BASTION_GROUP,
    MasterId,
    NodeGroupId,
    NodeGroupPart,
    auto_scaling_group_id,
    node_group_prefix,
)
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.aws.account import Account, Filters, batches
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, ResourceView
from cfngen.deploy.aws.types import AwsObject

MAX_NAMES_PER_CALL = 50  # maximum number of names in a call of DescribeAutoScalingGroups
IN_SERVICE = "InService"
HELD = "Terminating:Wait"
"""Lifecycle state of an instance whose termination a lifecycle hook delays."""
Role = Literal["master", "node", "bastion"]
_ROLES = get_args(Role)
_SIZE_PARTS: tuple[NodeGroupPart, NodeGroupPart] = ("MinSize", "MaxSize")


@dataclass(frozen=True)
class InstanceView:
    """An instance of an Auto Scaling group.

    Attributes:
        id: its id, which is also the name of its Node.
        lifecycle: its lifecycle state in the group, e.g. `InService`, `Pending:Wait`, `Terminating`.
        current: whether it was launched from the group's current version of the launch template.
        state: its instance state in EC2, e.g. `running`; empty if EC2 does not list it.
        public_address: its public IP address; empty if it has none.
        launched: when it was launched; None if EC2 does not list it.
        protected: whether it is protected from scale-in.
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
    protected: bool = False

    @property
    def lifecycle_and_health(self) -> str:
        """Its lifecycle state, and that it is unhealthy if it is."""
        return self.lifecycle if self.healthy else f"{self.lifecycle}, unhealthy"

    @property
    def in_service(self) -> bool:
        """Whether it is in service and healthy."""
        return self.lifecycle == IN_SERVICE and self.healthy

    @property
    def held(self) -> bool:
        """Whether a lifecycle hook delays its termination: a node is drained, a master waits for the others."""
        return self.lifecycle == HELD

    @property
    def leaving(self) -> bool:
        """Whether it is being terminated or detached."""
        return self.lifecycle.startswith(("Terminat", "Detach"))


@dataclass(frozen=True)
class Sizes:
    """The sizes of an Auto Scaling group."""

    minimum: int
    maximum: int
    desired: int

    def __str__(self) -> str:
        return f"{self.desired} ({self.minimum} to {self.maximum})"


@dataclass(frozen=True)
class KeptSizes:
    """The tag of a group that is paused, or was when a command was interrupted.

    Attributes:
        sizes: the sizes before the pause; None if somebody has damaged the tag.
        since: when the pause began; None if somebody has damaged the tag.
    """

    text: str
    sizes: Sizes | None = None
    since: datetime | None = None


@dataclass(frozen=True)
class GroupView:
    """An Auto Scaling group: of one master, of a node group, or of the bastion.

    Attributes:
        name: letter of the master's slot, or name of the node group; empty for the bastion.
        logical_id: its logical id in its stack.
        instances: all instances, whatever their lifecycle state.
        missing: whether the Auto Scaling group does not exist, although it is a resource of the stack.
        kept: the sizes that it had before a pause, from its tag; None if it is not paused.
        suspended: names of its suspended scaling processes.
        mixed_types: the instance types that a mixed instances policy lets it choose from; empty without one.
    """

    role: Role
    name: str
    id: str
    logical_id: str = ""
    minimum: int = 0
    maximum: int = 0
    desired: int = 0
    instances: tuple[InstanceView, ...] = ()
    missing: bool = False
    kept: KeptSizes | None = None
    suspended: tuple[str, ...] = ()
    tag_count: int = 0
    mixed_types: tuple[str, ...] = ()

    @property
    def sizes(self) -> Sizes:
        """Its sizes now."""
        return Sizes(minimum=self.minimum, maximum=self.maximum, desired=self.desired)

    @property
    def in_service(self) -> int:
        """Number of instances that are in service and healthy."""
        return sum(instance.in_service for instance in self.instances)

    @property
    def title(self) -> str:
        """What messages call the group, e.g. `master a`."""
        if self.role == "bastion":
            return "the bastion"
        return f"master {self.name}" if self.role == "master" else f"node group {self.name}"


def find_groups(account: Account, cluster: Cluster, resources: Iterable[ResourceView]) -> tuple[GroupView, ...]:
    """Return the Auto Scaling groups of a cluster: masters first, the bastion last.

    Args:
        cluster: the cluster file, which names the node groups; a group that is not in it is named by its logical id.
    """
    resources_by_name = {
        resource.physical_id: resource
        for resource in resources
        if resource.type == AUTO_SCALING_GROUP and resource.physical_id and resource.status != "DELETE_COMPLETE"
    }
    with translate_aws_errors():
        groups_by_name = {group["AutoScalingGroupName"]: group for group in describe_groups(account, resources_by_name)}
        ids = [instance["InstanceId"] for group in groups_by_name.values() for instance in group["Instances"]]
        instances = {instance["InstanceId"]: instance for instance in describe_instances(account, {"instance-id": ids})}
    node_group_names = {
        auto_scaling_group_id(node_group_prefix(node_group.name)): node_group.name for node_group in cluster.node_groups
    }
    group_views: list[GroupView] = []
    for group_name, resource in resources_by_name.items():
        role, name = _role_and_name(resource.logical_id, node_group_names)
        description = groups_by_name.get(group_name)
        view = _build_group_view(role, name, group_name, description, instances)
        group_views.append(replace(view, logical_id=resource.logical_id))
    return tuple(sorted(group_views, key=lambda group: (_ROLES.index(group.role), group.name)))


@dataclass(frozen=True)
class ResizedGroup:
    """A group whose minimum or maximum is not the stack's: somebody has changed it, and CloudFormation leaves it so.

    Attributes:
        minimum: its minimum in the stack.
        maximum: its maximum in the stack.
    """

    group: GroupView
    region: str
    minimum: int
    maximum: int

    @property
    def text(self) -> str:
        """The difference, without the group's title."""
        group = self.group
        return (
            f"may have {group.minimum} to {group.maximum} instances, where the stack says "
            f"{self.minimum} to {self.maximum}"
        )

    @property
    def command(self) -> str:
        """The command that puts the sizes back."""
        desired = min(max(self.group.desired, self.minimum), self.maximum)
        return (
            f"aws autoscaling update-auto-scaling-group --region {self.region} "
            f"--auto-scaling-group-name {self.group.id} --min-size {self.minimum} --max-size {self.maximum} "
            f"--desired-capacity {desired}"
        )

    @property
    def hint(self) -> str:
        """What puts the sizes back, if they are not meant to be so."""
        return f"unless it is meant so: {self.command}"


def find_resized_groups(region: str, groups: Iterable[GroupView], values: Mapping[str, str]) -> Iterator[ResizedGroup]:
    """Yield the groups that have other sizes than in the stack, unless a pause keeps their sizes.

    Args:
        values: the values of the root stack's parameters; a group whose sizes they do not have is left out.
    """
    for group in groups:
        if group.missing or group.kept:
            continue
        minimum, maximum = ONE_INSTANCE.minimum, ONE_INSTANCE.maximum
        if group.role == "node":
            node_group = NodeGroupId.parse(group.logical_id)
            sizes = [values.get(str(replace(node_group, part=part)), "") for part in _SIZE_PARTS] if node_group else []
            if not sizes or not all(size.isdigit() for size in sizes):
                continue
            minimum, maximum = map(int, sizes)
        if (group.minimum, group.maximum) != (minimum, maximum):
            yield ResizedGroup(group, region, minimum, maximum)


def _role_and_name(logical_id: str, node_group_names: Mapping[str, str]) -> tuple[Role, str]:
    if master := MasterId.parse(logical_id):
        return "master", master.letter
    if logical_id == BASTION_GROUP:
        return "bastion", ""
    if logical_id in node_group_names:
        return "node", node_group_names[logical_id]
    node_group = NodeGroupId.parse(logical_id)
    return "node", node_group.group if node_group else logical_id


def _build_group_view(
    role: Role, name: str, group_name: str, description: AwsObject | None, instances: Mapping[str, AwsObject]
) -> GroupView:
    """Return a group; it is marked as missing if Auto Scaling does not describe it."""
    if description is None:
        return GroupView(role=role, name=name, id=group_name, missing=True)
    version = launch_template_specification(description).get("Version", "")
    tags = {tag["Key"]: tag.get("Value", "") for tag in description.get("Tags") or ()}
    return GroupView(
        role=role,
        name=name,
        id=group_name,
        minimum=description["MinSize"],
        maximum=description["MaxSize"],
        desired=description["DesiredCapacity"],
        instances=tuple(
            _build_instance_view(member, instances.get(member["InstanceId"], {}), version)
            for member in sorted(
                description["Instances"], key=lambda member: (member["AvailabilityZone"], member["InstanceId"])
            )
        ),
        kept=parse_tags(tags),
        suspended=tuple(sorted(process["ProcessName"] for process in description.get("SuspendedProcesses") or ())),
        # The quota on tags does not count those of AWS itself.
        tag_count=sum(not key.startswith("aws:") for key in tags),
        mixed_types=_mixed_types(description),
    )


def _build_instance_view(member: AwsObject, description: AwsObject, group_version: str) -> InstanceView:
    """Return an instance from its descriptions by Auto Scaling (`member`) and EC2 (`description`)."""
    instance_version = (member.get("LaunchTemplate") or {}).get("Version", "")
    return InstanceView(
        id=member["InstanceId"],
        zone=member["AvailabilityZone"],
        lifecycle=member["LifecycleState"],
        healthy=str(member["HealthStatus"]).lower() == "healthy",
        # Only numbered versions can be compared: a group may also name `$Latest` or `$Default`.
        current=not (instance_version and group_version.isdigit()) or instance_version == group_version,
        type=member.get("InstanceType") or description.get("InstanceType", ""),
        state=description.get("State", {}).get("Name", ""),
        address=description.get("PrivateIpAddress", ""),
        public_address=description.get("PublicIpAddress", ""),
        image=description.get("ImageId", ""),
        launched=description.get("LaunchTime"),
        protected=bool(member.get("ProtectedFromScaleIn")),
    )


def describe_groups(account: Account, names: Collection[str]) -> Iterator[AwsObject]:
    """Yield the Auto Scaling groups with these names as Auto Scaling describes them; missing groups are left out."""
    for batch in batches(names, MAX_NAMES_PER_CALL):
        yield from account.items(
            "autoscaling.describe_auto_scaling_groups", "AutoScalingGroups", AutoScalingGroupNames=batch, MaxRecords=100
        )


def describe_instances(account: Account, filters: Filters | None = None) -> Iterator[AwsObject]:
    """Yield the instances that match all filters, as EC2 describes them."""
    for reservation in account.items("ec2.describe_instances", "Reservations", filters=filters):
        yield from reservation["Instances"]


def launch_template_specification(group: AwsObject) -> AwsObject:
    """Return the launch template and version that a group uses, as `LaunchTemplateId` and `Version`; may be empty.

    Args:
        group: the group as Auto Scaling describes it; a mixed instances policy names the launch template itself.
    """
    mixed: AwsObject = (group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    return group.get("LaunchTemplate") or mixed.get("LaunchTemplateSpecification") or {}


def _mixed_types(group: AwsObject) -> tuple[str, ...]:
    mixed: AwsObject = (group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    types = [override.get("InstanceType", "") for override in mixed.get("Overrides") or ()]
    return tuple(dict.fromkeys(filter(None, types)))


def count_instances(account: Account, group_name: str) -> int | None:
    """Return how many instances an Auto Scaling group has; None if it does not exist."""
    group = next(iter(describe_groups(account, (group_name,))), None)
    return len(group["Instances"]) if group else None


def read_image_dates(account: Account, ids: Collection[str]) -> dict[str, datetime]:
    """Return when machine images were created, by id.

    Deleted and private images are left out, and those with a date that cannot be read.
    """
    values = sorted(filter(None, ids))
    if not values:
        return {}
    filters = [{"Name": "image-id", "Values": values}]
    response = account.client("ec2").describe_images(Filters=filters, IncludeDeprecated=True)
    dates: dict[str, datetime] = {}
    for image in response["Images"]:
        with suppress(ValueError):
            date = datetime.fromisoformat(image.get("CreationDate", "").replace("Z", "+00:00"))
            dates[image["ImageId"]] = date if date.tzinfo else date.replace(tzinfo=UTC)
    return dates


# Values of tags have at most 256 characters: letters, digits, spaces and `+ - = . _ : / @` ("Tag naming and usage
# restrictions", Amazon EC2 Auto Scaling User Guide).
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_VALUE = re.compile(r"min=(?P<minimum>\d+) max=(?P<maximum>\d+) desired=(?P<desired>\d+) since=(?P<since>\S+)")
NO_INSTANCES = Sizes(minimum=0, maximum=0, desired=0)
ONE_INSTANCE = Sizes(minimum=1, maximum=1, desired=1)
"""The sizes of the group of a master, and of the bastion."""


def tag_value(sizes: Sizes, since: datetime) -> str:
    """Return the value of the tag that keeps the sizes of a group."""
    time = since.astimezone(UTC).strftime(_TIME_FORMAT)
    return f"min={sizes.minimum} max={sizes.maximum} desired={sizes.desired} since={time}"


def parse_tags(tags: dict[str, str]) -> KeptSizes | None:
    """Return the sizes that the tags of a group keep; None if the group is not paused."""
    text = tags.get(PAUSED)
    if text is None:
        return None
    match = _VALUE.fullmatch(text)
    if match is None:
        return KeptSizes(text)
    try:
        since = datetime.strptime(match["since"], _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return KeptSizes(text)
    sizes = Sizes(minimum=int(match["minimum"]), maximum=int(match["maximum"]), desired=int(match["desired"]))
    if not sizes.minimum <= sizes.desired <= sizes.maximum:
        return KeptSizes(text)
    return KeptSizes(text, sizes, since)
