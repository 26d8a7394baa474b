"""The VPC stack: what a cluster's network needs and the cluster file does not name as existing.

That may be the VPC with DHCP options and internet gateway, route tables, and subnets. In a public cluster, instances
are in public subnets; in a private cluster they are in private ones, and public ones are for NAT gateways and load
balancers. The flow log of the VPC is in this stack, too. A cluster whose subnets all exist has no VPC stack otherwise.
"""

from __future__ import annotations

from ipaddress import IPv4Network

from troposphere import GetAtt, Ref, ec2

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SubnetId, VpcRangeId, zone_id
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import (
    created_subnets,
    is_private,
    nat_gateway_zones,
    public_subnets,
    uses_internet_gateway,
)
from cfngen.cluster.sections.network import Subnet
from cfngen.templates import route_tables
from cfngen.templates.flow_logs import add_flow_log
from cfngen.templates.network_references import (
    VPC_CIDR_PATTERN,
    internet_gateway_parameter,
    route_table_parameter,
    vpc_parameter,
    zone_parameter,
)
from cfngen.templates.route_tables import add_routes
from cfngen.templates.stack import NETWORK, PropertyValue, Stack
from cfngen.templates.tagging import tags

# The cloud controller manager puts internet-facing load balancers into subnets with the first of these tags, and
# internal ones into subnets with the second (Kubernetes documentation of the AWS Load Balancer Controller, "Subnet
# Auto Discovery").
_PUBLIC_ROLE = {"kubernetes.io/role/elb": "1"}
_PRIVATE_ROLE = {"kubernetes.io/role/internal-elb": "1"}


def build(cluster: Cluster) -> Stack | None:
    """Return the VPC stack, or None if all subnets of the cluster exist and it has no flow log."""
    network = cluster.network
    created_public_subnets = {zone: public for zone, public in public_subnets(cluster).items() if not public.id}
    if not created_subnets(cluster) and not created_public_subnets:
        return _build_for_flow_log(cluster) if network.flow_logs else None
    stack = Stack(
        cluster,
        name="vpc",
        logical_id="VpcStack",
        source_module=__name__,
        description=f"Network of the Kubernetes cluster {cluster.name}: {_contents(cluster)}",
    )
    vpc: PropertyValue = vpc_parameter(stack, cluster) if network.vpc.id else Ref(_add_vpc(stack, cluster))
    if not network.vpc.id:
        _add_further_ranges(stack, cluster, vpc)
        _add_dhcp_options(stack, cluster, vpc)
    public_route_table = _add_public_route_table(stack, cluster, vpc) if uses_internet_gateway(cluster) else None
    for zone, public in created_public_subnets.items():
        _add_public_subnet(stack, cluster, vpc, zone, str(public.cidr), public_route_table)
    private_tables = route_tables.add_route_tables(stack, cluster, vpc) if is_private(cluster) else {}
    for subnet in created_subnets(cluster):
        # None if the cluster file names a route table for the subnet.
        route_table = private_tables.get(subnet.zone) if is_private(cluster) else Ref(public_route_table)
        _add_subnet_of_instances(stack, cluster, vpc, subnet, route_table)
    add_flow_log(stack, cluster, vpc)
    stack.output("VpcId", value=vpc, description="VPC of the cluster", also_output_of_root=True)
    if network_plugin(cluster).uses_vpc_routes and not any(subnet.id for subnet in network.subnets):
        pods_table = private_tables[network.subnets[0].zone] if is_private(cluster) else Ref(public_route_table)
        stack.output("RouteTableId", value=pods_table, description="Route table with the routes to pods")
    return stack


def _add_public_subnet(
    stack: Stack, cluster: Cluster, vpc: PropertyValue, zone: str, cidr: str, route_table: ec2.RouteTable | None
) -> None:
    """Add a public subnet of a private cluster, for NAT gateways and load balancers."""
    subnet = _add_subnet(stack, cluster, vpc, zone=zone, cidr=cidr, is_public=True, role_tags=_PUBLIC_ROLE)
    _associate(stack, SubnetId(zone_id(zone), is_public=True), subnet, Ref(route_table))
    stack.output(
        str(SubnetId(zone_id(zone), "Id", is_public=True)),
        value=GetAtt(subnet, "SubnetId"),
        description=f"Public subnet in zone {zone_id(zone)}",
    )


def _add_subnet_of_instances(
    stack: Stack, cluster: Cluster, vpc: PropertyValue, subnet: Subnet, route_table: PropertyValue
) -> None:
    """Add a subnet, with its route table in the cluster file, or else with this one."""
    short_zone = zone_id(subnet.zone)
    subnet_resource = _add_subnet(
        stack,
        cluster,
        vpc,
        zone=subnet.zone,
        cidr=str(subnet.cidr),
        is_public=False,
        role_tags=_PRIVATE_ROLE if is_private(cluster) else _PUBLIC_ROLE,
    )
    if subnet.route_table:
        route_table = route_table_parameter(stack, subnet.zone, subnet.route_table)
    _associate(stack, SubnetId(short_zone), subnet_resource, route_table)
    stack.output(str(SubnetId(short_zone, "Id")), GetAtt(subnet_resource, "SubnetId"), f"Subnet in zone {short_zone}")


def _build_for_flow_log(cluster: Cluster) -> Stack:
    """Return a VPC stack with nothing but the flow log of an existing VPC.

    It has no outputs: the other stacks take the id of the VPC from the parameter, as they do without a flow log.
    """
    stack = Stack(
        cluster,
        name="vpc",
        logical_id="VpcStack",
        source_module=__name__,
        description=f"Network of the Kubernetes cluster {cluster.name}: flow log of an existing VPC",
    )
    add_flow_log(stack, cluster, vpc_parameter(stack, cluster))
    return stack


def _contents(cluster: Cluster) -> str:
    """Return what the stack contains, for its description."""
    if not is_private(cluster):
        contents = (
            ["route table and subnets"]
            if cluster.network.vpc.id
            else ["VPC, internet gateway, route table and subnets"]
        )
    else:
        contents = ["private subnets"]
        if public_subnets(cluster):
            contents.append("public subnets")
        if nat_gateway_zones(cluster):
            contents.append("NAT gateways")
    return ", ".join(contents) + (" in an existing VPC" if cluster.network.vpc.id else "")


def _add_vpc(stack: Stack, cluster: Cluster) -> ec2.VPC:
    cidr = stack.parameter(
        "VpcCidr",
        label="Address range of the VPC",
        parameter_group=NETWORK,
        description="IPv4 address range of the VPC. It cannot be changed later",
        default=str(cluster.network.vpc.cidr),
        AllowedPattern=VPC_CIDR_PATTERN,
        ConstraintDescription="must be an IPv4 CIDR from /16 to /28",
    )
    return stack.add(
        ec2.VPC(
            "Vpc",
            CidrBlock=cidr,
            EnableDnsSupport=True,
            EnableDnsHostnames=True,
            Tags=tags(cluster, cluster.network.vpc.name),
        )
    )


def _add_dhcp_options(stack: Stack, cluster: Cluster, vpc: PropertyValue) -> None:
    """Associate DHCP options with the VPC.

    They are the DHCP options whose id is in the cluster file. If the file has no id, they are new ones with the
    region's domain name, as kube-up created them. If the file says `default`, the VPC keeps the account's default
    DHCP options.
    """
    dhcp_options: PropertyValue = cluster.network.dhcp_options
    if dhcp_options == "default":
        return
    if dhcp_options is None:
        domain = "ec2.internal" if cluster.region == "us-east-1" else f"{cluster.region}.compute.internal"
        dhcp_options = Ref(
            stack.add(
                ec2.DHCPOptions(
                    "DhcpOptions",
                    DomainName=domain,
                    DomainNameServers=["AmazonProvidedDNS"],
                    Tags=tags(cluster, f"{cluster.name}-dhcp-options"),
                )
            )
        )
    stack.add(ec2.VPCDHCPOptionsAssociation("DhcpOptionsAssociation", VpcId=vpc, DhcpOptionsId=dhcp_options))


def _add_public_route_table(stack: Stack, cluster: Cluster, vpc: PropertyValue) -> ec2.RouteTable:
    attachment = None
    if cluster.network.vpc.id:
        gateway: PropertyValue = internet_gateway_parameter(stack, cluster)
    else:
        gateway, attachment = _add_internet_gateway(stack, cluster, vpc)
    route_table = stack.add(ec2.RouteTable("RouteTable", VpcId=vpc, Tags=tags(cluster, f"{cluster.name}-public")))
    # EC2 rejects the route until the gateway is attached. The route refers to the gateway only, so the dependency on
    # the attachment must be explicit.
    depends_on = {"DependsOn": [attachment]} if attachment else {}
    stack.add(
        ec2.Route(
            "InternetRoute",
            RouteTableId=Ref(route_table),
            DestinationCidrBlock="0.0.0.0/0",
            GatewayId=gateway,
            **depends_on,
        )
    )
    add_routes(stack, cluster, route_table)
    return route_table


def _add_internet_gateway(
    stack: Stack, cluster: Cluster, vpc: PropertyValue
) -> tuple[PropertyValue, ec2.VPCGatewayAttachment]:
    gateway = stack.add(ec2.InternetGateway("InternetGateway", Tags=tags(cluster, cluster.name)))
    attachment = stack.add(
        ec2.VPCGatewayAttachment("InternetGatewayAttachment", VpcId=vpc, InternetGatewayId=Ref(gateway))
    )
    return Ref(gateway), attachment


def _add_subnet(
    stack: Stack,
    cluster: Cluster,
    vpc: PropertyValue,
    *,
    zone: str,
    cidr: str,
    is_public: bool,
    role_tags: dict[str, str],
) -> ec2.Subnet:
    """Add a subnet and return it.

    Args:
        cidr: the default of the parameter with its address range.
        is_public: whether it is a public subnet of a private cluster, rather than a subnet of instances.
        role_tags: tags by which the cloud controller manager finds subnets for load balancers.
    """
    short_zone = zone_id(zone)
    kind = "private" if is_private(cluster) and not is_public else "public"
    name = "public subnet" if is_public else "subnet"
    cidr_parameter = stack.parameter(
        str(SubnetId(short_zone, "Cidr", is_public=is_public)),
        label=f"Address range of {name} {short_zone}",
        parameter_group=NETWORK,
        description=f"IPv4 address range of the {name} in zone {short_zone}. It cannot be changed later",
        default=cidr,
        AllowedPattern=VPC_CIDR_PATTERN,
        ConstraintDescription="must be an IPv4 CIDR from /16 to /28 inside the VPC's",
    )
    return stack.add(
        ec2.Subnet(
            str(SubnetId(short_zone, is_public=is_public)),
            VpcId=vpc,
            CidrBlock=cidr_parameter,
            AvailabilityZone=zone_parameter(stack, zone),
            Tags=tags(cluster, f"{cluster.name}-{kind}-{short_zone.lower()}", **role_tags),
            **_depends_on_range(cluster, cidr),
        )
    )


def _add_further_ranges(stack: Stack, cluster: Cluster, vpc: PropertyValue) -> None:
    for cidr in cluster.network.vpc.additional_cidrs:
        stack.add(ec2.VPCCidrBlock(str(VpcRangeId(str(cidr))), VpcId=vpc, CidrBlock=str(cidr)))


def _depends_on_range(cluster: Cluster, cidr: str) -> dict[str, list[str]]:
    """Return the dependency of a subnet in a further range of a created VPC: without the range, EC2 refuses it."""
    if cluster.network.vpc.id:
        return {}
    ranges = [further for further in cluster.network.vpc.additional_cidrs if IPv4Network(cidr).subnet_of(further)]
    return {"DependsOn": [str(VpcRangeId(str(further))) for further in ranges]} if ranges else {}


def _associate(stack: Stack, subnet_id: SubnetId, subnet: ec2.Subnet, route_table: PropertyValue) -> None:
    logical_id = SubnetId(subnet_id.zone, "RouteTableAssociation", is_public=subnet_id.is_public)
    stack.add(ec2.SubnetRouteTableAssociation(str(logical_id), SubnetId=Ref(subnet), RouteTableId=route_table))
