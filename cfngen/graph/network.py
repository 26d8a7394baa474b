"""The network in a picture: region, VPC, zones, subnets, gateways, endpoints, and where routes lead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cfngen.cluster.naming.network_ids import SubnetId, ZonalId, ZoneId, zone_id
from cfngen.graph.cluster_templates import ClusterTemplates, Resource
from cfngen.graph.picture import Box, Part
from cfngen.graph.values import items, text

REGION = "region"
INTERNET = "internet"
INTERFACE_ENDPOINTS = "endpoints:interface"
EVERYWHERE = "0.0.0.0/0"
# Properties of a route that say where it leads (AWS::EC2::Route), with the words for what is there.
_ROUTE_TARGETS = {
    "TransitGatewayId": "transit gateway",
    "VpcPeeringConnectionId": "VPC peering connection",
    "NetworkInterfaceId": "network interface",
    "NatGatewayId": "NAT gateway",
    "GatewayId": "gateway",
}
_BESIDE_THE_VPC = ("TransitGatewayId", "VpcPeeringConnectionId")


@dataclass
class Network:
    """The network, and where other parts find their place in it.

    Attributes:
        vpc: id of the VPC's box.
        subnets: ids of the subnets' boxes: the logical id of the subnet, or the parameter for an existing one.
        zones: id of each zone's box, by the zone's name.
    """

    part: Part
    vpc: str
    subnets: list[str] = field(default_factory=list)
    zones: dict[str, str] = field(default_factory=dict)


def draw_network(templates: ClusterTemplates) -> Network:
    """Draw the network that the templates make, and the parts of an existing one that they use."""
    part = Part()
    part.box(Box(REGION, "region", templates.region or "region"))
    network = Network(part, _draw_vpc(templates, part))
    gateway = _draw_internet_gateway(templates, network)
    for subnet in templates.of_type("AWS::EC2::Subnet"):
        _draw_subnet(templates, network, subnet)
    for name in templates.parameters:
        parsed = SubnetId.parse(name)
        if parsed and parsed.part == "Id":
            _draw_existing_subnet(templates, network, name, parsed)
    _draw_nat_gateways(templates, network)
    for association in templates.of_type("AWS::EC2::SubnetRouteTableAssociation"):
        subnet_id = templates.referenced(association.properties.get("SubnetId"))
        if subnet_id in network.subnets:
            table = templates.find(association.properties.get("RouteTableId"))
            _add_ids(part, subnet_id, [association.logical_id, *([table.logical_id] if table else [])])
    for route in templates.of_type("AWS::EC2::Route"):
        _draw_route(templates, network, route)
    if gateway:
        part.box(Box(INTERNET, "source", "Internet"))
        part.arrow(gateway, INTERNET, "route")
    for endpoint in templates.of_type("AWS::EC2::VPCEndpoint"):
        _draw_endpoint(templates, network, endpoint)
    for flow_log in templates.of_type("AWS::EC2::FlowLog"):
        _draw_flow_log(templates, network, flow_log)
    return network


def _draw_vpc(templates: ClusterTemplates, part: Part) -> str:
    """Draw the VPC; return the id of its box."""
    options = [
        resource.logical_id
        for resource in templates.of_type("AWS::EC2::DHCPOptions", "AWS::EC2::VPCDHCPOptionsAssociation")
    ]
    for vpc in templates.of_type("AWS::EC2::VPC"):
        blocks = list(templates.of_type("AWS::EC2::VPCCidrBlock"))
        ranges = [templates.text(resource.properties.get("CidrBlock")) for resource in (vpc, *blocks)]
        ids = (vpc.logical_id, *options, *(block.logical_id for block in blocks))
        part.box(Box(vpc.logical_id, "vpc", vpc.tag("Name") or vpc.logical_id, tuple(ranges), REGION, ids))
        return vpc.logical_id
    value = next(
        (resource.properties["VpcId"] for resource in templates.resources.values() if "VpcId" in resource.properties),
        None,
    )
    ranges = [
        templates.text(block.properties.get("CidrBlock")) for block in templates.of_type("AWS::EC2::VPCCidrBlock")
    ]
    block_ids = [block.logical_id for block in templates.of_type("AWS::EC2::VPCCidrBlock")]
    name = templates.parameter(value) or "vpc:existing"
    lines = (*existing_lines(templates, value), *ranges)
    part.box(Box(name, "vpc", "existing VPC", lines, REGION, (*options, *block_ids)))
    return name


def existing_lines(templates: ClusterTemplates, value: object) -> tuple[str, ...]:
    """Return the line that identifies an existing part: its id, or its parameter; none if there is neither."""
    identity = templates.text(value)
    return (identity,) if identity else ()


def _draw_internet_gateway(templates: ClusterTemplates, network: Network) -> str:
    """Draw the internet gateway; return the id of its box, or an empty text if there is none."""
    attachments = tuple(resource.logical_id for resource in templates.of_type("AWS::EC2::VPCGatewayAttachment"))
    for gateway in templates.of_type("AWS::EC2::InternetGateway"):
        ids = (gateway.logical_id, *attachments)
        network.part.box(Box(gateway.logical_id, "gateway", "internet gateway", (), network.vpc, ids))
        return gateway.logical_id
    if "InternetGatewayId" in templates.parameters:
        lines = existing_lines(templates, {"Ref": "InternetGatewayId"})
        network.part.box(Box("InternetGatewayId", "gateway", "existing internet gateway", lines, network.vpc))
        return "InternetGatewayId"
    return ""


def _draw_zone(network: Network, zone: str) -> str:
    """Draw a zone if it is not there yet; return the id of its box."""
    if zone not in network.zones:
        network.zones[zone] = network.part.box(Box(f"zone:{zone}", "zone", zone, (), network.vpc)).id
    return network.zones[zone]


def _draw_subnet(templates: ClusterTemplates, network: Network, subnet: Resource) -> None:
    zone = _draw_zone(network, templates.text(subnet.properties.get("AvailabilityZone")) or "zone")
    title = {True: "public subnet", False: "private subnet", None: "subnet"}[_is_public(templates, subnet)]
    cidr = templates.text(subnet.properties.get("CidrBlock"))
    network.part.box(Box(subnet.logical_id, "subnet", title, (cidr,), zone, (subnet.logical_id,)))
    network.subnets.append(subnet.logical_id)


def _is_public(templates: ClusterTemplates, subnet: Resource) -> bool | None:
    """Return whether a subnet is public: by its tag for load balancers, else by its route; None if unknown."""
    if subnet.tag("kubernetes.io/role/elb"):
        return True
    if subnet.tag("kubernetes.io/role/internal-elb"):
        return False
    for association in templates.of_type("AWS::EC2::SubnetRouteTableAssociation"):
        if templates.find(association.properties.get("SubnetId")) is subnet:
            table = templates.find(association.properties.get("RouteTableId"))
            return None if table is None else any(_leads_to_internet(route) for route in _routes(templates, table))
    return None


def _routes(templates: ClusterTemplates, table: Resource) -> Iterator[Resource]:
    return (
        route
        for route in templates.of_type("AWS::EC2::Route")
        if templates.find(route.properties.get("RouteTableId")) is table
    )


def _leads_to_internet(route: Resource) -> bool:
    return route.properties.get("DestinationCidrBlock") == EVERYWHERE and "GatewayId" in route.properties


def _draw_existing_subnet(templates: ClusterTemplates, network: Network, name: str, parsed: SubnetId) -> None:
    zone_parameter = str(ZoneId(parsed.zone))
    if zone_parameter in templates.parameters:
        zone_name = templates.text({"Ref": zone_parameter})
    else:
        zone_name = parsed.zone_in(templates.region) if templates.region else zone_parameter
    title = "existing public subnet" if parsed.is_public else "existing subnet"
    lines = existing_lines(templates, {"Ref": name})
    network.part.box(Box(name, "subnet", title, lines, _draw_zone(network, zone_name)))
    network.subnets.append(name)


def _draw_nat_gateways(templates: ClusterTemplates, network: Network) -> None:
    gateways = list(templates.of_type("AWS::EC2::NatGateway"))
    remark = f"the only one, for {len(network.zones)} zones"
    lines = ("Elastic IP", *([remark] if len(gateways) == 1 < len(network.zones) else []))
    for gateway in gateways:
        subnet = templates.referenced(gateway.properties.get("SubnetId"))
        address = templates.find(gateway.properties.get("AllocationId"))
        ids = (gateway.logical_id, *((address.logical_id,) if address else ()))
        parent = subnet if subnet in network.subnets else network.vpc
        network.part.box(Box(gateway.logical_id, "gateway", "NAT gateway", lines, parent, ids))
    for name in templates.parameters:
        parsed = ZonalId.parse(name)
        if parsed and parsed.kind == "NatGateway" and parsed.is_parameter:
            zone_names = [zone for zone in network.zones if templates.region and ZoneId(parsed.zone) == _zone_id(zone)]
            parent = network.zones[zone_names[0]] if zone_names else network.vpc
            network.part.box(
                Box(name, "gateway", "existing NAT gateway", existing_lines(templates, {"Ref": name}), parent)
            )


def _zone_id(zone: str) -> ZoneId | None:
    """Return the logical id of a zone's parameter, or None if the text is not the name of a zone."""
    try:
        return ZoneId(zone_id(zone))
    except ValueError:
        return None


def _draw_route(templates: ClusterTemplates, network: Network, route: Resource) -> None:
    """Draw a route: an arrow from each subnet with its route table to where it leads."""
    target = _route_target(templates, network, route)
    if not target:
        return
    properties = route.properties
    destination = templates.text(
        properties.get("DestinationCidrBlock")
        or properties.get("DestinationPrefixListId")
        or properties.get("DestinationIpv6CidrBlock")
    )
    for subnet in _subnets_with_table(templates, network, properties.get("RouteTableId")):
        network.part.arrow(subnet, target, "route", destination, [route.logical_id])


def _route_target(templates: ClusterTemplates, network: Network, route: Resource) -> str:
    """Return the id of the box where a route leads, which is drawn if it is not there yet; empty if nothing says it."""
    for key, noun in _ROUTE_TARGETS.items():
        value = route.properties.get(key)
        if value is None:
            continue
        name = templates.referenced(value) or f"gateway:{templates.text(value)}"
        if name in network.part.boxes:
            return name
        identity = templates.text(value)
        title = "virtual private gateway" if identity.startswith("vgw-") else noun
        parent = REGION if key in _BESIDE_THE_VPC else network.vpc
        return network.part.box(Box(name, "gateway", f"existing {title}", (identity,), parent)).id
    return ""


def _subnets_with_table(templates: ClusterTemplates, network: Network, table: object) -> Iterator[str]:
    name = templates.referenced(table)
    for association in templates.of_type("AWS::EC2::SubnetRouteTableAssociation"):
        subnet = templates.referenced(association.properties.get("SubnetId"))
        has_table = templates.referenced(association.properties.get("RouteTableId")) == name
        if name and has_table and subnet in network.subnets:
            yield subnet


def _draw_endpoint(templates: ClusterTemplates, network: Network, endpoint: Resource) -> None:
    service = ".".join(templates.text(endpoint.properties.get("ServiceName")).split(".")[3:]) or endpoint.logical_id
    if endpoint.properties.get("VpcEndpointType") == "Interface":
        ids = (endpoint.logical_id,)
        network.part.box(Box(INTERFACE_ENDPOINTS, "endpoint", "interface endpoints", (service,), network.vpc, ids))
        return
    title = f"gateway endpoint of {service}"
    network.part.box(Box(endpoint.logical_id, "endpoint", title, (), network.vpc, (endpoint.logical_id,)))
    for table in items(endpoint.properties.get("RouteTableIds")):
        for subnet in _subnets_with_table(templates, network, table):
            network.part.arrow(subnet, endpoint.logical_id, "route", service, [endpoint.logical_id])


def _draw_flow_log(templates: ClusterTemplates, network: Network, flow_log: Resource) -> None:
    traffic = text(flow_log.properties.get("TrafficType")).lower()
    line = {"all": "all traffic", "reject": "rejected traffic", "accept": "accepted traffic"}.get(traffic, traffic)
    network.part.box(Box(flow_log.logical_id, "service", "flow log", (line,), network.vpc, (flow_log.logical_id,)))
    log_group = templates.find(flow_log.properties.get("LogGroupName"))
    destination = flow_log.properties.get("LogDestination")
    if log_group:
        days = text(log_group.properties.get("RetentionInDays"))
        lines = (f"kept {days} {'day' if days == '1' else 'days'}",) if days else ()
        target = network.part.box(
            Box(log_group.logical_id, "service", "log group", lines, REGION, (log_group.logical_id,))
        )
    elif destination is not None:
        bucket = templates.text(destination).partition(":::")[2].partition("/")[0]
        target = network.part.box(Box(f"bucket:{bucket}", "bucket", "existing bucket", (bucket,), REGION))
    else:
        name = templates.text(flow_log.properties.get("LogGroupName"))
        target = network.part.box(Box(f"log-group:{name}", "service", "existing log group", (name,), REGION))
    network.part.arrow(flow_log.logical_id, target.id, "use", "records")


def _add_ids(part: Part, box_id: str, logical_ids: list[str]) -> None:
    box = part.boxes[box_id]
    part.box(Box(box.id, box.kind, box.title, logical_ids=tuple(logical_ids)))
