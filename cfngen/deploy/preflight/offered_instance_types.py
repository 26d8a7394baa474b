"""Checks that the zones of masters, nodes and the bastion offer their instance types.

Not every zone of a region has every type, older zones lack newer types most of all. A master and the bastion have one
zone each, so their launch would fail, and with it the creation or their replacement. An Auto Scaling group tries all of
its zones, and CloudFormation ends the creation of a group at its first failed launch (eksctl-io/eksctl#8383), even if
another zone has the type. So each zone of a node group must offer one of the group's types, whether it has one or more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from cfngen.cluster.instances.group_types import types_key, types_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import NodeGroupId
from cfngen.cluster.naming.network_ids import ZoneId, zone_id
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.instance_types import read_offerings
from cfngen.deploy.messages.message import Report
from cfngen.deploy.preflight.findings import Finding, FindingsError, refusal, unread
from cfngen.text import join_and, verb_form


class InstanceTypesNotOfferedError(FindingsError):
    """Some zones do not offer the instance types of their instances."""

    code = "instance-types-not-offered"
    advice = "nothing was changed; correct the keys, or the parameters that override them."


class MissingZonesError(FindingsError):
    """The cluster file, or a parameter, names zones that the region does not have for this account."""

    code = "zones-missing"
    advice = "nothing was changed; correct the keys, or the parameters that override them."


@dataclass(frozen=True)
class _Demand:
    """An instance type that at least one of some zones must offer.

    Attributes:
        key: the key in the cluster file; of a list, that of the type's position.
        zones: names of Availability Zones or Local Zones.
    """

    key: str
    instance_type: str
    zones: tuple[str, ...]


@dataclass(frozen=True)
class _Choice:
    """Instance types of a node group, of which each of its zones must offer one.

    Attributes:
        zones: names of Availability Zones or Local Zones.
    """

    key: str
    types: tuple[str, ...]
    zones: tuple[str, ...]


def check(account: Account, cluster: Cluster, values: Mapping[str, str], report: Report) -> None:
    """Check that each instance type is offered in a zone of its instances, and each zone offers one of its instances.

    Args:
        values: values of the root's parameters, among them types and zones that differ from the cluster file's.
        report: receives a notice if the offered types cannot be read.

    Raises:
        MissingZonesError: there is no such zone.
        InstanceTypesNotOfferedError: no zone offers a type, or a zone offers no type of its node group.
    """
    demands = list(_demands(cluster, values))
    choices = list(_choices(cluster, values))
    types = {demand.instance_type for demand in demands}.union(*(choice.types for choice in choices))
    try:
        with translate_aws_errors():
            zones_by_type = read_offerings(account, types)
            offering_zones = set[str]().union(*zones_by_type.values())
            missing_zones = tuple(_find_missing_zones(account, cluster, values, offering_zones))
    except AwsError as error:
        report(unread("which instance types the zones offer", error).notice)
        return
    if missing_zones:
        raise MissingZonesError(missing_zones)
    problems = (*_find_problems(demands, zones_by_type), *_find_zones_without_choice(choices, zones_by_type))
    if problems:
        raise InstanceTypesNotOfferedError(problems)


def _find_missing_zones(
    account: Account, cluster: Cluster, values: Mapping[str, str], known_zones: Collection[str]
) -> Iterator[Finding]:
    """Yield a sentence for each subnet whose zone does not exist; EC2 is asked if one is not among those known."""
    chosen_zones = [_chosen_zone(subnet.zone, values) for subnet in cluster.network.subnets]
    if set(chosen_zones) <= set(known_zones):
        return
    zones = sorted(zone["ZoneName"] for zone in account.items("ec2.describe_availability_zones", "AvailabilityZones"))
    for index, zone in enumerate(chosen_zones):
        if zone not in zones:
            text = f"{account.region} has no zone {zone} for this account; its zones are {join_and(zones)}"
            yield refusal(f"network.subnets[{index}].zone", text)


def _find_problems(demands: list[_Demand], zones_by_type: Mapping[str, set[str]]) -> Iterator[Finding]:
    """Yield a sentence for each demand that none of its zones meets."""
    for demand in demands:
        offering_zones = zones_by_type.get(demand.instance_type, set())
        if offering_zones.isdisjoint(demand.zones):
            remedy = (
                f"use another type, or a zone that has it: {join_and(sorted(offering_zones))}"
                if offering_zones
                else "use another type"
            )
            yield refusal(demand.key, f"{demand.instance_type} is not offered in {join_and(demand.zones)}; {remedy}")


def _find_zones_without_choice(choices: list[_Choice], zones_by_type: Mapping[str, set[str]]) -> Iterator[Finding]:
    """Yield a sentence for each choice of which a zone offers no type, while another zone offers one."""
    for choice in choices:
        offering_zones = set[str]().union(*(zones_by_type.get(name, set()) for name in choice.types))
        missing_zones = [zone for zone in choice.zones if zone not in offering_zones]
        if missing_zones and (choice.key.endswith("Requirements") or len(missing_zones) < len(choice.zones)):
            if choice.key.endswith(".instanceType"):
                missing, remedy = f"no {choice.types[0]}", "use another type"
            elif choice.key.endswith("Requirements"):
                missing, remedy = "none of the types", "ask for less"
            else:
                missing, remedy = "none of the types", "add a type that is offered there"
            verb = verb_form(len(missing_zones), "offer")
            text = f"{join_and(missing_zones)} {verb} {missing}; {remedy}, or remove the zone from the group"
            yield refusal(choice.key, text)


def _demands(cluster: Cluster, values: Mapping[str, str]) -> Iterator[_Demand]:
    """Yield the demand of each master, of the bastion and of each node group."""
    master_type = values.get("MasterInstanceType", cluster.control_plane.instance_type)
    for zone in dict.fromkeys(slot.subnet.zone for slot in cluster.slots):
        yield _Demand("controlPlane.instanceType", master_type, (_chosen_zone(zone, values),))
    if cluster.bastion and cluster.bastion.zone:
        bastion_type = values.get("BastionInstanceType", cluster.bastion.instance_type)
        yield _Demand("bastion.instanceType", bastion_type, (_chosen_zone(cluster.bastion.zone, values),))
    for index, group in enumerate(cluster.node_groups):
        zones = tuple(_chosen_zone(zone, values) for zone in group.zones)
        for position, node_type in enumerate(group.instance_types):
            yield _Demand(f"nodeGroups[{index}].instanceTypes[{position}]", node_type, zones)
        if types_key(group) == "instanceType":
            yield _Demand(f"nodeGroups[{index}].instanceType", _single_type(group, values), zones)


def _choices(cluster: Cluster, values: Mapping[str, str]) -> Iterator[_Choice]:
    """Yield the types of each node group: one, or several."""
    for index, group in enumerate(cluster.node_groups):
        zones = tuple(_chosen_zone(zone, values) for zone in group.zones)
        types = types_of(cluster, group)
        if types_key(group) == "instanceType":
            types = (_single_type(group, values),)
        yield _Choice(f"nodeGroups[{index}].{types_key(group)}", types, zones)


def _single_type(group: NodeGroup, values: Mapping[str, str]) -> str:
    """Return the type of a node group that has one, which a parameter may name in place of the cluster file."""
    return values.get(str(NodeGroupId(group.name, "InstanceType")), group.instance_type)


def _chosen_zone(zone: str, values: Mapping[str, str]) -> str:
    """Return the zone that a parameter names in place of a zone of the cluster file."""
    return values.get(str(ZoneId(zone_id(zone))), zone)
