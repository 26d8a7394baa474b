"""How people reach the API, in a picture: the load balancers before the masters, and the names in hosted zones."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.graph.cluster_templates import ClusterTemplates, Resource
from cfngen.graph.instances import instance_groups
from cfngen.graph.network import INTERNET, REGION, Network
from cfngen.graph.picture import Box, Part
from cfngen.graph.traffic import draw_sources
from cfngen.graph.values import items, mapping


def draw_api_endpoint(templates: ClusterTemplates, network: Network) -> Part:
    """Draw the load balancers, or who reaches the masters without any, and the hosted zones."""
    part = Part()
    load_balancers = list(templates.of_type("AWS::ElasticLoadBalancingV2::LoadBalancer"))
    for load_balancer in load_balancers:
        _draw_load_balancer(templates, network, part, load_balancer)
    for group in instance_groups(templates):
        if group.role == "master" and not load_balancers:
            draw_sources(templates, network, part, group.logical_id, group.security_groups)
    for zone in templates.of_type("AWS::Route53::HostedZone"):
        title = "private hosted zone" if "VPCs" in zone.properties else "public hosted zone"
        name = templates.text(zone.properties.get("Name"))
        part.box(Box(zone.logical_id, "dns", title, (name,), REGION, (zone.logical_id,)))
    for record in templates.of_type("AWS::Route53::RecordSet"):
        _draw_record(templates, part, record)
    return part


def _draw_load_balancer(templates: ClusterTemplates, network: Network, part: Part, load_balancer: Resource) -> None:
    scheme = templates.text(load_balancer.properties.get("Scheme"))
    title = "internal load balancer" if scheme == "internal" else "load balancer"
    box_id = load_balancer.logical_id
    zones = len(items(load_balancer.properties.get("Subnets")))
    lines = [templates.text(load_balancer.properties.get("Name")), f"in {zones} zones" if zones > 1 else ""]
    part.box(Box(box_id, "load-balancer", title, tuple(filter(None, lines)), network.vpc, (box_id,)))
    draw_sources(templates, network, part, box_id, items(load_balancer.properties.get("SecurityGroups")))
    for listener in templates.of_type("AWS::ElasticLoadBalancingV2::Listener"):
        if templates.find(listener.properties.get("LoadBalancerArn")) is not load_balancer:
            continue
        port = (
            f"{templates.text(listener.properties.get('Protocol'))} {templates.text(listener.properties.get('Port'))}"
        )
        for target_group in _target_groups(templates, listener):
            ids = (listener.logical_id, target_group.logical_id)
            part.box(Box(box_id, "load-balancer", title, (port,), network.vpc, ids))
            if scheme != "internal" and not any(arrow.target == box_id for arrow in part.arrows.values()):
                # Who may reach it is not in the templates: its security group exists already.
                part.box(Box(INTERNET, "source", "Internet"))
                part.arrow(INTERNET, box_id, "traffic", port, [listener.logical_id])
            for group in _masters_behind(templates, target_group):
                part.arrow(box_id, group, "traffic", port, ids)


def _target_groups(templates: ClusterTemplates, listener: Resource) -> Iterator[Resource]:
    for action in map(mapping, items(listener.properties.get("DefaultActions"))):
        target_group = templates.find(action.get("TargetGroupArn"))
        if target_group:
            yield target_group


def _masters_behind(templates: ClusterTemplates, target_group: Resource) -> Iterator[str]:
    """Yield the ids of the boxes of the masters whose addresses are targets of a target group."""
    for target in map(mapping, items(target_group.properties.get("Targets"))):
        interface = templates.find(target.get("Id"))
        if interface is None:
            continue
        # What belongs to one master has logical ids that begin alike.
        group = interface.logical_id.removesuffix("NetworkInterface") + "AutoScalingGroup"
        if group in templates.resources:
            yield group


def _draw_record(templates: ClusterTemplates, part: Part, record: Resource) -> None:
    """Draw a record: an arrow from its hosted zone to the load balancer, or to the masters, that it names."""
    zone_value = record.properties.get("HostedZoneId")
    zone = templates.referenced(zone_value) or f"zone:{templates.text(zone_value)}"
    if zone not in part.boxes:
        part.box(Box(zone, "dns", "existing hosted zone", (templates.text(zone_value),), REGION))
    box = part.boxes[zone]
    name = templates.text(record.properties.get("Name"))
    part.box(Box(box.id, box.kind, box.title, (name,), logical_ids=(record.logical_id,)))
    alias = mapping(record.properties.get("AliasTarget"))
    for value in (alias.get("DNSName"), *items(record.properties.get("ResourceRecords"))):
        target = templates.find(value)
        if target is None:
            continue
        box_id = target.logical_id
        for suffix in ("NetworkInterface", "ElasticIp"):
            if box_id.endswith(suffix):
                box_id = box_id.removesuffix(suffix) + "AutoScalingGroup"
        part.arrow(zone, box_id, "use", name, [record.logical_id])
