"""The impact of changes of a private cluster's ways out, and of the names by which the API is found.

An update creates first and removes last, also across nested stacks: what is removed is removed once the whole update
has succeeded. So a route has its new target before the old NAT gateway goes; only open connections break.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import EndpointId
from cfngen.cluster.naming.network_ids import SubnetId, ZonalId, ZonalKind
from cfngen.cluster.network.endpoints import S3, known_endpoints
from cfngen.cluster.network.topology import created_subnets, nat_gateway_zone, nat_gateway_zones
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact.context import ChangeContext
from cfngen.deploy.plan.plan import Change
from cfngen.text import join_and


def _nat_gateway_impact(context: ChangeContext) -> Impact | None:
    zone = _zone(context)
    users = _instances_that_use(context.cluster, zone)
    if context.change.action == "remove":
        return Impact(
            f"network: the NAT gateway in {zone} is removed once the update has succeeded; connections through it "
            "break",
            Danger.DISRUPTIVE,
        )
    if context.disappears:
        return Impact(
            f"network: the NAT gateway in {zone} {context.verb}; {users} reach the internet through the new one, and "
            "open connections break. If the new one needs the Elastic IP of the old one, the update fails",
            Danger.DISRUPTIVE,
        )
    if context.change.action == "add":
        return Impact(f"a NAT gateway in {zone}, through which {users} reach the internet; billed by hour and traffic")
    return Impact(f"network: the NAT gateway in {zone} changes; {users} use it for the internet", Danger.DISRUPTIVE)


def _nat_elastic_ip_impact(context: ChangeContext) -> Impact | None:
    zone = _zone(context)
    users = _instances_that_use(context.cluster, zone)
    if context.change.action == "remove":
        return Impact(
            f"the Elastic IP of the NAT gateway in {zone} is released; remove it where others allow it by address",
            Danger.DISRUPTIVE,
        )
    if context.disappears:
        return Impact(
            f"the Elastic IP of the NAT gateway in {zone} {context.verb}: others see {users} under another address; "
            "where they allow the old one, add the new one",
            Danger.DISRUPTIVE,
        )
    if context.change.action == "add":
        return Impact(
            f"the public address under which others see {users}; known once the update has succeeded, add it where "
            "they allow addresses"
        )
    return None


def _private_routing_impact(context: ChangeContext) -> Impact | None:
    instances = f"instances in {_route_zones(context)}"
    if context.change.type == "AWS::EC2::RouteTable":
        if not context.disappears:
            return None
        return Impact(
            f"network: the route table of {instances} {context.verb}; their connections to the internet and to S3 are "
            "interrupted, and with vpc-routes the pods' routes are missing until the cloud controller manager has "
            "written them again",
            Danger.DISRUPTIVE,
        )
    if context.change.action == "add":
        return Impact(f"network: {instances} reach the internet through a NAT gateway from now on", Danger.DISRUPTIVE)
    if context.change.action == "remove":
        return _lost_route_impact(context, instances)
    if context.disappears or context.touches("NatGatewayId"):
        verb = "might reach" if context.might_be_replaced else "reach"
        return Impact(
            f"network: {instances} {verb} the internet through another NAT gateway: others see another address, and "
            "open connections break",
            Danger.DISRUPTIVE,
        )
    return None


def _lost_route_impact(context: ChangeContext, instances: str) -> Impact:
    """Return the impact of removing the route to a NAT gateway: with its zone, its table, or for good."""
    cluster = context.cluster
    if cluster.network.nat != "none" and nat_gateway_zones(cluster):
        return Impact(f"network: the route of {instances} to a NAT gateway is removed", Danger.DISRUPTIVE)
    return Impact(
        f"network: {instances} no longer reach the internet, only AWS services with VPC endpoints; deploy "
        "assets.mirror and mirrors of the registries in an update before this one, so that new instances use them",
        Danger.DANGEROUS,
    )


def _public_subnet_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of a private cluster's public subnet, which has no instances."""
    parsed = SubnetId.parse(context.change.logical_id)
    zone = parsed.zone_in(context.cluster.region) if parsed else context.change.logical_id
    if not context.disappears:
        return None
    if context.change.type == "AWS::EC2::SubnetRouteTableAssociation":
        text = f"network: the route of the public subnet in {zone} to the internet gateway {context.verb}"
    else:
        text = f"network: the public subnet in {zone} {context.verb}, with the NAT gateway and load balancers in it"
    return Impact(
        f"{text}; connections through them are interrupted, and load balancers of services must be moved first",
        Danger.DISRUPTIVE,
    )


def _endpoint_impact(context: ChangeContext) -> Impact | None:
    service = _service(context)
    if context.change.action == "add":
        return Impact(f"instances reach {service} through a VPC endpoint from now on")
    if context.change.action == "remove":
        if nat_gateway_zones(context.cluster):
            return Impact(f"instances reach {service} through a NAT gateway instead of a VPC endpoint")
        return Impact(
            f"instances no longer reach {service}, unless the VPC has another endpoint or way: its VPC endpoint is "
            "removed, and there is no NAT gateway",
            Danger.DISRUPTIVE,
        )
    if context.disappears:
        return Impact(
            f"the VPC endpoint of {service} {context.verb}; while both exist, the new one cannot have the private DNS "
            "name of the old one, so the update may fail",
            Danger.DISRUPTIVE,
        )
    if context.touches("SubnetIds"):
        return Impact(f"the VPC endpoint of {service} gets an address in other zones, or loses one")
    if context.touches("RouteTableIds"):
        return Impact(f"instances of other subnets reach {service} through its VPC endpoint, or no longer do")
    if context.touches("SecurityGroupIds", "PolicyDocument", "PrivateDnsEnabled"):
        return Impact(
            f"who may use the VPC endpoint of {service}, or by which name, changes at once", Danger.DISRUPTIVE
        )
    return None


def _service(context: ChangeContext) -> str:
    """Return the service of a VPC endpoint, and what needs it if that is known."""
    logical_id = context.change.logical_id
    if logical_id == str(EndpointId.of(S3)):
        return f"{S3} (backups of etcd, and layers of images in Amazon ECR)"
    for endpoint in known_endpoints():
        if logical_id == str(EndpointId.of(endpoint.service)):
            return f"{endpoint.service} ({endpoint.reason})"
    name = context.after("ServiceName") or context.before("ServiceName") or logical_id
    return str(name).removeprefix(f"com.amazonaws.{context.cluster.region}.")


def _endpoints_group_impact(context: ChangeContext) -> Impact | None:
    if context.disappears:
        return Impact(
            f"the security group of the VPC endpoints {context.verb}, with every rule in it", Danger.DISRUPTIVE
        )
    if context.touches("SecurityGroupIngress"):
        return Impact("which instances may use the VPC endpoints changes at once", Danger.DISRUPTIVE)
    return None


def _zone(context: ChangeContext) -> str:
    """Return the zone of a resource, e.g. `us-west-2a` for `NatGatewayA`."""
    parsed = ZonalId.parse(context.change.logical_id)
    return SubnetId(parsed.zone).zone_in(context.cluster.region) if parsed else context.change.logical_id


def _route_zones(context: ChangeContext) -> str:
    """Return the zones whose instances use a private route table, in words."""
    if ZonalId.parse(context.change.logical_id):
        return _zone(context)
    zones = _zones_with_created_table(context.cluster)
    return join_and(zones) if zones else "private subnets"


def _instances_that_use(cluster: Cluster, gateway_zone: str) -> str:
    zones = [zone for zone in _zones_with_created_table(cluster) if nat_gateway_zone(cluster, zone) == gateway_zone]
    return f"instances in {join_and(zones or [gateway_zone])}"


def _zones_with_created_table(cluster: Cluster) -> list[str]:
    return [subnet.zone for subnet in created_subnets(cluster) if not subnet.route_table]


_ImpactFunction: TypeAlias = Callable[[ChangeContext], Impact | None]
_FUNCTION_BY_ZONAL_KIND: Mapping[ZonalKind, _ImpactFunction] = {
    "NatElasticIp": _nat_elastic_ip_impact,
    "NatGateway": _nat_gateway_impact,
    "NatRoute": _private_routing_impact,
    "PrivateRouteTable": _private_routing_impact,
}
_FUNCTION_BY_ID: Mapping[str, _ImpactFunction] = {
    "EndpointsSecurityGroup": _endpoints_group_impact,
    # What all private subnets share.
    "NatRoute": _private_routing_impact,
    "PrivateRouteTable": _private_routing_impact,
}


def private_network_impact(change: Change) -> _ImpactFunction | None:
    """Return the function that describes a change of a part of a private network; None for any other resource."""
    if change.type == "AWS::EC2::VPCEndpoint":
        return _endpoint_impact
    subnet, zonal = SubnetId.parse(change.logical_id), ZonalId.parse(change.logical_id)
    if subnet and subnet.is_public:
        return _public_subnet_impact
    return _FUNCTION_BY_ZONAL_KIND.get(zonal.kind) if zonal else _FUNCTION_BY_ID.get(change.logical_id)


def _endpoint(context: ChangeContext) -> str:
    return "internal endpoint" if context.change.logical_id == "ApiPrivateRecord" else "public endpoint"


def _record_impact(context: ChangeContext) -> Impact | None:
    old_name, new_name = context.before("Name"), context.after("Name")
    endpoint = _endpoint(context)
    if context.change.action == "add":
        return Impact(
            f"the API's {endpoint} gets the name {new_name or 'of api.dns'}: fetch kubeconfigs again to use it; the "
            "masters are replaced one after another, for the name in their certificate",
            Danger.DISRUPTIVE,
        )
    if context.change.action == "remove":
        return Impact(
            f"the name {old_name or 'of the API'} no longer leads to its {endpoint}; kubeconfigs with the name stop "
            "working: fetch them again",
            Danger.DANGEROUS,
        )
    if context.touches("Name"):
        renamed = f" from {old_name} to {new_name}" if old_name and new_name else ""
        return Impact(
            f"the name of the API's {endpoint} changes{renamed}; kubeconfigs with the old name stop working: fetch "
            "them again; the masters are replaced one after another, for the new name in their certificate",
            Danger.DANGEROUS,
        )
    if context.disappears:
        return Impact(
            f"the record of the API's {endpoint} moves to another hosted zone; clients find it if they resolve names "
            "there",
            Danger.DISRUPTIVE,
        )
    if context.touches("AliasTarget", "ResourceRecords"):
        return Impact(
            f"the API's name leads to another address of its {endpoint}; clients may use the old one for 60 seconds "
            "(the record's TTL)",
            Danger.DISRUPTIVE,
        )
    return None


def _zone_impact(context: ChangeContext) -> Impact | None:
    is_public = context.change.logical_id == "ApiPublicZone"
    if context.change.action == "add":
        if not is_public:
            return None
        return Impact(
            "a new public zone: nobody finds the names in it until its parent domain has an NS record with the name "
            "servers in the stack's output ApiNameServers",
            Danger.DISRUPTIVE,
        )
    if not context.disappears:
        return None
    if is_public:
        verb = "leaves the stack" if context.change.action == "remove" else context.verb
        return Impact(
            f"the public zone of the API's name {verb}; the old zone is kept with its other records, and billed",
            Danger.DANGEROUS,
        )
    return Impact(
        f"the private zone of the API's name {context.verb}; Route 53 deletes a zone only if it has no records of "
        "others, such as external-dns",
        Danger.DANGEROUS,
    )


IMPACT_BY_TYPE: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    "AWS::Route53::HostedZone": _zone_impact,
    "AWS::Route53::RecordSet": _record_impact,
}
