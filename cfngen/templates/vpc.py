"""The VPC stack: VPC, DHCP options, internet gateway, route table and one public subnet for each zone.

In an existing VPC the stack creates a route table and subnets only. A cluster in existing subnets has no VPC stack.
"""

from __future__ import annotations

from collections.abc import Iterable

from troposphere import GetAtt, Ref, ec2

from cfngen.cluster.model import Cluster, Subnet
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.subnet_ids import SubnetId, ZoneId, zone_id
from cfngen.templates.patterns import VPC_CIDR_PATTERN
from cfngen.templates.property_value import PropertyValue
from cfngen.templates.stack import NETWORK, Stack
from cfngen.templates.tagging import tags


def build(cluster: Cluster) -> Stack | None:
    """Return the VPC stack, or None if the cluster uses existing subnets."""
    network = cluster.network
    if network.subnets[0].id:
        return None
    stack = Stack(
        cluster,
        name="vpc",
        logical_id="VpcStack",
        source_module=__name__,
        description=f"Network of the Kubernetes cluster {cluster.name}: "
        + (
            "route table and subnets in an existing VPC"
            if network.vpc.id
            else "VPC, internet gateway, route table and subnets"
        ),
    )
    if network.vpc.id:
        vpc_reference: PropertyValue = vpc_parameter(stack, cluster)
        gateway_reference: PropertyValue = stack.parameter(
            "InternetGatewayId",
            label="Internet gateway",
            parameter_group=NETWORK,
            description="Internet gateway that is attached to the VPC",
            default=network.internet_gateway,
            AllowedPattern="^igw-[0-9a-f]{8,17}$",
            ConstraintDescription="must be the id of an internet gateway, igw-…",
        )
        gateway_attachment = None
    else:
        vpc_reference = Ref(_add_vpc(stack, cluster))
        _add_dhcp_options(stack, cluster, vpc_reference)
        gateway_reference, gateway_attachment = _add_internet_gateway(stack, cluster, vpc_reference)

    route_table = stack.add(
        ec2.RouteTable("RouteTable", VpcId=vpc_reference, Tags=tags(cluster, f"{cluster.name}-public"))
    )
    # EC2 rejects the route until the gateway is attached. The route refers to the gateway only, so the dependency on
    # the attachment must be explicit.
    depends_on = {"DependsOn": [gateway_attachment]} if gateway_attachment else {}
    stack.add(
        ec2.Route(
            "InternetRoute",
            RouteTableId=Ref(route_table),
            DestinationCidrBlock="0.0.0.0/0",
            GatewayId=gateway_reference,
            **depends_on,
        )
    )
    for subnet in network.subnets:
        _add_subnet(stack, cluster, vpc_reference, route_table, subnet)
    stack.output("VpcId", value=vpc_reference, description="VPC of the cluster", also_output_of_root=True)
    if network_plugin(cluster).uses_vpc_routes:
        stack.output("RouteTableId", value=Ref(route_table), description="Route table that holds the pods' routes")
    return stack


def vpc_parameter(stack: Stack, cluster: Cluster) -> PropertyValue:
    """Add the parameter for an existing VPC and return the reference to it."""
    return stack.parameter(
        "VpcId",
        type="AWS::EC2::VPC::Id",
        label="VPC",
        parameter_group=NETWORK,
        description="Existing VPC to run the cluster in",
        default=cluster.network.vpc.id,
    )


def zone_parameter(stack: Stack, zone: str) -> PropertyValue:
    """Add the parameter for an Availability Zone and return the reference to it."""
    short_zone = zone_id(zone)
    return stack.parameter(
        str(ZoneId(short_zone)),
        type="AWS::EC2::AvailabilityZone::Name",
        label=f"Availability Zone {short_zone}",
        parameter_group=NETWORK,
        description=f"Availability Zone of what is named {short_zone} in this cluster",
        default=zone,
    )


def internet_access_resources(zones: Iterable[str]) -> tuple[str, ...]:
    """Return the logical ids of the resources without which instances in `zones` cannot reach the internet."""
    return ("InternetRoute", *(str(SubnetId(zone_id(zone), "RouteTableAssociation")) for zone in zones))


def _add_vpc(stack: Stack, cluster: Cluster) -> ec2.VPC:
    """Add the VPC, and the parameter for its address range."""
    cidr = stack.parameter(
        "VpcCidr",
        label="Address range of the VPC",
        parameter_group=NETWORK,
        description="IPv4 address range of the VPC; the subnets and the masters' addresses lie in it. Decided once",
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


def _add_dhcp_options(stack: Stack, cluster: Cluster, vpc_reference: PropertyValue) -> None:
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
    stack.add(ec2.VPCDHCPOptionsAssociation("DhcpOptionsAssociation", VpcId=vpc_reference, DhcpOptionsId=dhcp_options))


def _add_internet_gateway(
    stack: Stack, cluster: Cluster, vpc_reference: PropertyValue
) -> tuple[PropertyValue, ec2.VPCGatewayAttachment]:
    """Add an internet gateway and attach it to the VPC; return a reference to the gateway, and the attachment."""
    gateway = stack.add(ec2.InternetGateway("InternetGateway", Tags=tags(cluster, cluster.name)))
    attachment = stack.add(
        ec2.VPCGatewayAttachment("InternetGatewayAttachment", VpcId=vpc_reference, InternetGatewayId=Ref(gateway))
    )
    return Ref(gateway), attachment


def _add_subnet(
    stack: Stack, cluster: Cluster, vpc_reference: PropertyValue, route_table: ec2.RouteTable, subnet: Subnet
) -> None:
    """Add a public subnet, its association with the route table, and an output with its id."""
    short_zone = zone_id(subnet.zone)
    cidr = stack.parameter(
        str(SubnetId(short_zone, "Cidr")),
        label=f"Address range of subnet {short_zone}",
        parameter_group=NETWORK,
        description=f"IPv4 address range of the subnet in zone {short_zone}. Decided once",
        default=str(subnet.cidr),
        AllowedPattern=VPC_CIDR_PATTERN,
        ConstraintDescription="must be an IPv4 CIDR from /16 to /28 inside the VPC's",
    )
    subnet_resource = stack.add(
        ec2.Subnet(
            str(SubnetId(short_zone)),
            VpcId=vpc_reference,
            CidrBlock=cidr,
            AvailabilityZone=zone_parameter(stack, subnet.zone),
            # The cloud controller manager puts internet-facing load balancers into subnets with this role.
            Tags=tags(cluster, f"{cluster.name}-public-{short_zone.lower()}", **{"kubernetes.io/role/elb": "1"}),
        )
    )
    stack.add(
        ec2.SubnetRouteTableAssociation(
            str(SubnetId(short_zone, "RouteTableAssociation")),
            SubnetId=Ref(subnet_resource),
            RouteTableId=Ref(route_table),
        )
    )
    stack.output(
        str(SubnetId(short_zone, "Id")),
        value=GetAtt(subnet_resource, "SubnetId"),
        description=f"Subnet in zone {short_zone}",
    )
