"""The instances in a picture: master slots with their volumes, node groups with a box in each zone, the bastion.

A node group is one Auto Scaling group over several subnets. It has a box in each of them, since that is what runs
there: what the loss of a zone takes away can be seen at a glance, and no line crosses the zones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cfngen.cluster.naming.logical_ids import BASTION_GROUP, MasterId, NodeGroupId
from cfngen.graph.cluster_templates import ClusterTemplates, Resource
from cfngen.graph.network import Network
from cfngen.graph.picture import Box, Part
from cfngen.graph.values import items, mapping

NODE_GROUP = "node group "
"""How the title of a node group's box begins; its name follows."""


@dataclass(frozen=True)
class InstanceGroup:
    """An Auto Scaling group, with what other parts of the picture say about its instances.

    Attributes:
        role: what its instances are.
        name: the letter of a master, the name of a node group; empty for the bastion.
        security_groups: the ids of its instances' security groups, as they stand in the templates.
        instance_profile: the instance profile's ARN or name likewise; None without one.
    """

    logical_id: str
    role: str
    name: str
    security_groups: tuple[object, ...]
    instance_profile: object


def instance_groups(templates: ClusterTemplates) -> tuple[InstanceGroup, ...]:
    """Return the Auto Scaling groups: masters, bastion, node groups."""
    groups = [
        InstanceGroup(
            group.logical_id,
            *_role_and_name(templates, group),
            tuple(_security_groups(templates, group)),
            _instance_profile(templates, group),
        )
        for group in templates.of_type("AWS::AutoScaling::AutoScalingGroup")
    ]
    return tuple(sorted(groups, key=lambda group: ("master", "bastion", "node group").index(group.role)))


def names_of_groups(groups: list[InstanceGroup]) -> tuple[str, ...]:
    """Return whose instances they are, a line for each role, e.g. `masters a, b, c`."""
    lines: list[str] = []
    for role in dict.fromkeys(group.role for group in groups):
        names = [group.name for group in groups if group.role == role]
        noun = role if len(names) == 1 else f"{role}s"
        lines.append(f"{noun} {', '.join(names)}".rstrip())
    return tuple(lines)


def draw_instances(templates: ClusterTemplates, network: Network) -> Part:
    """Draw the instances in the subnets of the network."""
    part = Part()
    for group in instance_groups(templates):
        resource = templates.resources[group.logical_id]
        if group.role == "node group":
            _draw_node_group(templates, network, part, resource, group.name)
        else:
            _draw_single_instance(templates, network, part, resource, group)
    return part


def _draw_single_instance(
    templates: ClusterTemplates, network: Network, part: Part, group: Resource, instance: InstanceGroup
) -> None:
    """Draw the slot of a master, or the bastion: an Auto Scaling group of one with a network interface that stays."""
    template = _launch_template(templates, group)
    interface = _network_interface(templates, template)
    ids = [group.logical_id, *(part.logical_id for part in (template, interface) if part)]
    lines = [_instance_types(templates, group, template)]
    parsed = MasterId.parse(group.logical_id)
    if interface:
        address = templates.text(interface.properties.get("PrivateIpAddress"))
        lines += [address] if address else []
        for association in templates.of_type("AWS::EC2::EIPAssociation"):
            if templates.find(association.properties.get("NetworkInterfaceId")) is interface:
                elastic_ip = templates.find(association.properties.get("AllocationId"))
                lines.append("Elastic IP" if elastic_ip else "existing Elastic IP")
                ids += [association.logical_id, *([elastic_ip.logical_id] if elastic_ip else [])]
    if parsed and (reservation := templates.resources.get(str(parsed.sibling("CapacityReservation")))):
        lines.append("capacity reservation")
        ids.append(reservation.logical_id)
    subnet = templates.referenced(interface.properties.get("SubnetId")) if interface else ""
    parent = subnet if subnet in network.subnets else network.vpc
    title = f"{instance.role} {instance.name}".strip()
    part.box(Box(group.logical_id, "instances", title, _texts(lines), parent, tuple(ids)))
    volume = templates.resources.get(str(parsed.sibling("Volume"))) if parsed else None
    if volume:
        size, kind = (templates.text(volume.properties.get(key)) for key in ("Size", "VolumeType"))
        part.box(
            Box(
                volume.logical_id,
                "volume",
                "etcd's volume",
                _texts([f"{size} GiB {kind}"]),
                group.logical_id,
                (volume.logical_id,),
            )
        )


def _draw_node_group(templates: ClusterTemplates, network: Network, part: Part, group: Resource, name: str) -> None:
    template = _launch_template(templates, group)
    subnets = [
        subnet
        for value in items(group.properties.get("VPCZoneIdentifier"))
        if (subnet := templates.referenced(value)) in network.subnets
    ] or [network.vpc]
    smallest, largest = (templates.text(group.properties.get(key)) for key in ("MinSize", "MaxSize"))
    size = _size_in_zone(smallest, largest, len(subnets))
    lines = [_instance_types(templates, group, template), size, _market(templates, group, template)]
    target_groups = items(group.properties.get("TargetGroupARNs"))
    if target_groups:
        lines.append("in an existing target group" if len(target_groups) == 1 else "in existing target groups")
    ids = (group.logical_id, *((template.logical_id,) if template else ()))
    for subnet in subnets:
        box_id = group.logical_id if len(subnets) == 1 else f"{group.logical_id}:{subnet}"
        part.box(Box(box_id, "instances", NODE_GROUP + name, _texts(lines), subnet, ids))


def _size_in_zone(smallest: str, largest: str, zone_count: int) -> str:
    """Return how many nodes of a group are in each of its zones, over which Auto Scaling spreads them evenly."""
    nodes = _number_range(smallest, largest) + (" node" if smallest == largest == "1" else " nodes")
    if zone_count == 1:
        return nodes
    if not (smallest.isdecimal() and largest.isdecimal()):
        return f"some of {nodes}"
    return f"{_number_range(str(int(smallest) // zone_count), str(-(-int(largest) // zone_count)))} of {nodes}"


def _number_range(smallest: str, largest: str) -> str:
    return smallest if smallest == largest else f"{smallest} to {largest}"


def _texts(lines: list[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if line)


def _role_and_name(templates: ClusterTemplates, group: Resource) -> tuple[str, str]:
    """Return what the instances of a group are, and the letter of the master or the name of the node group."""
    master = MasterId.parse(group.logical_id)
    if master:
        return "master", master.letter
    if group.logical_id == BASTION_GROUP:
        return "bastion", ""
    prefix = f"{templates.cluster}-nodes-"
    tagged_name = group.tag("Name")
    if tagged_name.startswith(prefix):
        return "node group", tagged_name.removeprefix(prefix)
    parsed = NodeGroupId.parse(group.logical_id)
    return "node group", parsed.group if parsed else group.logical_id


def _launch_template(templates: ClusterTemplates, group: Resource) -> Resource | None:
    policy = mapping(mapping(group.properties.get("MixedInstancesPolicy")).get("LaunchTemplate"))
    specification = mapping(group.properties.get("LaunchTemplate") or policy.get("LaunchTemplateSpecification"))
    return templates.find(specification.get("LaunchTemplateId"))


def _data(template: Resource | None) -> Mapping[str, object]:
    return mapping(template.properties.get("LaunchTemplateData")) if template else {}


def _interfaces(template: Resource | None) -> Iterator[Mapping[str, object]]:
    return map(mapping, items(_data(template).get("NetworkInterfaces")))


def _network_interface(templates: ClusterTemplates, template: Resource | None) -> Resource | None:
    """Return the network interface that stays, which a launch template attaches; None if it makes new ones."""
    resources = (templates.find(interface.get("NetworkInterfaceId")) for interface in _interfaces(template))
    return next((interface for interface in resources if interface), None)


def _security_groups(templates: ClusterTemplates, group: Resource) -> Iterator[object]:
    template = _launch_template(templates, group)
    interface = _network_interface(templates, template)
    if interface:
        yield from items(interface.properties.get("GroupSet"))
    for interface_of_template in _interfaces(template):
        yield from items(interface_of_template.get("Groups"))
    yield from items(_data(template).get("SecurityGroupIds"))


def _instance_profile(templates: ClusterTemplates, group: Resource) -> object:
    """Return the ARN or name of the instance profile of a group's instances; None if they have none."""
    profile = mapping(_data(_launch_template(templates, group)).get("IamInstanceProfile"))
    return profile.get("Arn") or profile.get("Name")


def _instance_types(templates: ClusterTemplates, group: Resource, template: Resource | None) -> str:
    policy = mapping(mapping(group.properties.get("MixedInstancesPolicy")).get("LaunchTemplate"))
    overrides = [mapping(override) for override in items(policy.get("Overrides"))]
    types = [templates.text(override["InstanceType"]) for override in overrides if "InstanceType" in override]
    if len(types) > 2:
        return f"{types[0]} or {len(types) - 1} other types"
    if types:
        return " or ".join(types)
    data = _data(template)
    if "InstanceRequirements" in data or any("InstanceRequirements" in override for override in overrides):
        return "types by requirements"
    return templates.text(data.get("InstanceType"))


def _market(templates: ClusterTemplates, group: Resource, template: Resource | None) -> str:
    """Return whether a group has spot instances, in words; empty if it has none."""
    options = mapping(_data(template).get("InstanceMarketOptions"))
    if options.get("MarketType") == "spot":
        return "spot instances"
    distribution = mapping(mapping(group.properties.get("MixedInstancesPolicy")).get("InstancesDistribution"))
    share = templates.text(distribution.get("OnDemandPercentageAboveBaseCapacity"))
    base = templates.text(distribution.get("OnDemandBaseCapacity")) or "0"
    if not share or share == "100":
        return ""
    return "spot instances" if (share, base) == ("0", "0") else "spot and on-demand instances"
