"""What a VPC holds, read once into `NetworkFacts`, and what is in an account besides: interfaces and instances."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from cfngen.deploy.aws.account import Account, Filters
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.groups import describe_instances
from cfngen.deploy.aws.tags import CLUSTER_TAG_PREFIX, cluster_tag, tag_map
from cfngen.deploy.aws.types import AwsObject

_T = TypeVar("_T")

# What is read of the VPC with one paginated call each: attribute of `NetworkFacts`, operation, key of the response, and
# the filter that selects by VPC (API reference of Amazon EC2).
_DESCRIPTIONS = (
    ("subnets", "describe_subnets", "Subnets", "vpc-id"),
    ("route_tables", "describe_route_tables", "RouteTables", "vpc-id"),
    ("internet_gateways", "describe_internet_gateways", "InternetGateways", "attachment.vpc-id"),
    ("nat_gateways", "describe_nat_gateways", "NatGateways", "vpc-id"),
    ("network_acls", "describe_network_acls", "NetworkAcls", "vpc-id"),
    ("endpoints", "describe_vpc_endpoints", "VpcEndpoints", "vpc-id"),
    ("security_groups", "describe_security_groups", "SecurityGroups", "vpc-id"),
    ("interfaces", "describe_network_interfaces", "NetworkInterfaces", "vpc-id"),
)
# The two sides of a peering connection (DescribeVpcPeeringConnections).
_PEERING_FILTERS = ("requester-vpc-info.vpc-id", "accepter-vpc-info.vpc-id")


@dataclass(frozen=True)
class NetworkFacts:
    """An existing VPC and what is in it, as EC2 describes it.

    Attributes:
        vpc: the VPC; None if there is none with this id.
        has_dns_support: whether the Amazon DNS server answers (`enableDnsSupport`); None if that could not be read.
        has_dns_host_names: whether public addresses get DNS names (`enableDnsHostnames`); None if unknown.
        unread: the attributes that could not be read, each with the reason.
    """

    vpc: AwsObject | None = None
    has_dns_support: bool | None = None
    has_dns_host_names: bool | None = None
    subnets: tuple[AwsObject, ...] = ()
    route_tables: tuple[AwsObject, ...] = ()
    internet_gateways: tuple[AwsObject, ...] = ()
    nat_gateways: tuple[AwsObject, ...] = ()
    network_acls: tuple[AwsObject, ...] = ()
    endpoints: tuple[AwsObject, ...] = ()
    security_groups: tuple[AwsObject, ...] = ()
    peerings: tuple[AwsObject, ...] = ()
    interfaces: tuple[AwsObject, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()


class Reader:
    """Carries out calls; what cannot be read is remembered in `unread`, and the others are still made."""

    def __init__(self) -> None:
        self.unread: list[tuple[str, str]] = []

    def read(self, name: str, call: Callable[[], _T]) -> _T | None:
        """Return the result of a call, or None if AWS refuses it; `name` says what is read."""
        try:
            with translate_aws_errors():
                return call()
        except AwsError as error:
            self.unread.append((name, str(error)))
            return None


def read_network(account: Account, vpc_id: str) -> NetworkFacts:
    """Read an existing VPC and what is in it.

    Raises:
        AwsError: not even the VPC can be read.
    """
    with translate_aws_errors():
        vpc = next(account.items("ec2.describe_vpcs", "Vpcs", filters={"vpc-id": [vpc_id]}), None)
    if vpc is None:
        return NetworkFacts()
    reader = Reader()
    described = {
        attribute: reader.read(attribute, partial(_list_in_vpc, account, operation, key, id_filter, vpc_id)) or ()
        for attribute, operation, key, id_filter in _DESCRIPTIONS
    }
    peerings = reader.read("peerings", partial(_list_peerings, account, vpc_id)) or ()
    read_attribute = partial(_read_vpc_attribute, account, vpc_id)
    return NetworkFacts(
        vpc=vpc,
        has_dns_support=reader.read("has_dns_support", partial(read_attribute, "enableDnsSupport")),
        has_dns_host_names=reader.read("has_dns_host_names", partial(read_attribute, "enableDnsHostnames")),
        peerings=peerings,
        unread=tuple(reader.unread),
        **described,
    )


def _list_in_vpc(account: Account, operation: str, key: str, id_filter: str, vpc_id: str) -> tuple[AwsObject, ...]:
    return tuple(account.items(f"ec2.{operation}", key, filters={id_filter: [vpc_id]}))


def _list_peerings(account: Account, vpc_id: str) -> tuple[AwsObject, ...]:
    operation, key = "describe_vpc_peering_connections", "VpcPeeringConnections"
    peerings = {
        peering["VpcPeeringConnectionId"]: peering
        for side in _PEERING_FILTERS
        for peering in _list_in_vpc(account, operation, key, side, vpc_id)
        if peering["Status"]["Code"] == "active"
    }
    return tuple(peerings.values())


def _read_vpc_attribute(account: Account, vpc_id: str, name: str) -> bool:
    response = account.client("ec2").describe_vpc_attribute(VpcId=vpc_id, Attribute=name)
    return bool(response[f"{name[0].upper()}{name[1:]}"]["Value"])


def list_route_tables(account: Account, vpc_id: str) -> list[AwsObject]:
    """Return the route tables of a VPC, as EC2 describes them."""
    return list(account.items("ec2.describe_route_tables", "RouteTables", filters={"vpc-id": [vpc_id]}))


def find_route_tables(account: Account, ids: Collection[str]) -> list[AwsObject]:
    """Return the route tables that exist of some ids, as EC2 describes them."""
    return list(account.items("ec2.describe_route_tables", "RouteTables", filters={"route-table-id": ids}))


@dataclass(frozen=True)
class SubnetView:
    """A subnet with its Availability Zone, its IPv4 range (`none` if it is for IPv6 only) and its tags."""

    id: str
    vpc_id: str
    zone: str
    cidr: str
    tags: Mapping[str, str]


def list_subnets(account: Account, vpc_id: str) -> list[SubnetView]:
    """Return the subnets of a VPC."""
    return _describe_subnets(account, {"vpc-id": [vpc_id]})


def find_subnets(account: Account, ids: Collection[str]) -> dict[str, SubnetView]:
    """Return the subnets that exist of some ids, by id."""
    return {subnet.id: subnet for subnet in _describe_subnets(account, {"subnet-id": ids})}


def _describe_subnets(account: Account, filters: Filters) -> list[SubnetView]:
    return [
        SubnetView(
            id=subnet["SubnetId"],
            vpc_id=subnet["VpcId"],
            zone=subnet["AvailabilityZone"],
            cidr=subnet.get("CidrBlock", "none"),
            tags=tag_map(subnet.get("Tags")),
        )
        for subnet in account.items("ec2.describe_subnets", "Subnets", filters=filters)
    ]


@dataclass(frozen=True)
class SecurityGroupView:
    """A security group; its VPC is None if EC2 names none."""

    id: str
    vpc_id: str | None
    tags: Mapping[str, str]


def find_security_groups(account: Account, ids: Collection[str]) -> dict[str, SecurityGroupView]:
    """Return the security groups that exist of some ids, by id."""
    groups = account.items("ec2.describe_security_groups", "SecurityGroups", filters={"group-id": ids})
    return {
        group["GroupId"]: SecurityGroupView(group["GroupId"], group.get("VpcId"), tag_map(group.get("Tags")))
        for group in groups
    }


def find_internet_gateway_vpc(account: Account, gateway_id: str) -> str | None:
    """Return the VPC of an internet gateway; empty if it is attached to none, None if there is no such gateway."""
    filters = {"internet-gateway-id": [gateway_id]}
    for gateway in account.items("ec2.describe_internet_gateways", "InternetGateways", filters=filters):
        return next((attachment["VpcId"] for attachment in gateway["Attachments"]), "")
    return None


@dataclass(frozen=True)
class EndpointServiceView:
    """A service with VPC endpoints of a type, `Interface` or `Gateway`, which it has in these zones.

    Attributes:
        has_private_dns: whether EC2 gives interface endpoints the service's usual name.
        zones: empty if EC2 does not name them.
    """

    name: str
    type: str
    has_private_dns: bool
    zones: frozenset[str]


def list_endpoint_services(account: Account) -> list[EndpointServiceView]:
    """Return all services to which the account can create endpoints in the region; one with both types is there twice.

    A call with names fails if one of them does not exist. Of other accounts' services these are the ones that admit
    this account. A private DNS name whose owner is not verified cannot be used (`ServiceDetail`, EC2 API Reference).
    """
    return [
        EndpointServiceView(
            name=detail["ServiceName"],
            type=service_type["ServiceType"],
            has_private_dns=bool(detail.get("PrivateDnsName"))
            and detail.get("PrivateDnsNameVerificationState", "verified") == "verified",
            zones=frozenset(detail.get("AvailabilityZones", ())),
        )
        for detail in account.items("ec2.describe_vpc_endpoint_services", "ServiceDetails")
        for service_type in detail["ServiceType"]
    ]


def list_instances(account: Account, cluster: str, vpc_id: str) -> frozenset[str]:
    """Return the ids of the instances that the cluster has already."""
    filters = {"vpc-id": [vpc_id], "tag-key": [cluster_tag(cluster)]}
    return frozenset(instance["InstanceId"] for instance in describe_instances(account, filters))


@dataclass(frozen=True)
class InterfaceView:
    """A network interface; its description and the id of the instance it is attached to may be empty."""

    id: str
    description: str
    instance: str
    status: str
    subnet: str


def list_interfaces(account: Account, filter_name: str, value: str) -> list[InterfaceView]:
    """Return the network interfaces that a filter of DescribeNetworkInterfaces selects, e.g. `subnet-id`."""
    filters = [{"Name": filter_name, "Values": [value]}]
    return [
        InterfaceView(
            id=interface["NetworkInterfaceId"],
            description=interface.get("Description") or "",
            instance=interface.get("Attachment", {}).get("InstanceId") or "",
            status=interface.get("Status", ""),
            subnet=interface.get("SubnetId", ""),
        )
        for interface in account.client("ec2").describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
    ]


def count_endpoint_interfaces(account: Account, endpoint_ids: Collection[str]) -> int:
    """Return the number of network interfaces of interface endpoints: one in each zone of each."""
    ids = sorted(endpoint_ids)
    endpoints = account.items("ec2.describe_vpc_endpoints", "VpcEndpoints", filters={"vpc-endpoint-id": ids})
    return sum(
        len(endpoint.get("SubnetIds", ())) for endpoint in endpoints if endpoint.get("VpcEndpointType") == "Interface"
    )


def describe_live_instances(account: Account, ids: list[str]) -> dict[str, str]:
    """Return descriptions of the instances that are not terminated, by id.

    A network interface may be listed as attached for a moment longer than its instance exists.
    """
    descriptions = {}
    live = {"instance-id": ids, "instance-state-name": ["pending", "running", "stopping", "stopped"]}
    for instance in describe_instances(account, live):
        tags = tag_map(instance.get("Tags"))
        clusters = [key.removeprefix(CLUSTER_TAG_PREFIX) for key in tags if key.startswith(CLUSTER_TAG_PREFIX)]
        name = f" {tags['Name']}" if tags.get("Name") else ""
        owner = f" of the cluster {', '.join(clusters)}" if clusters else ""
        descriptions[instance["InstanceId"]] = f"instance{name}{owner}"
    return descriptions


def read_tags_of_subnets(account: Account, key: str) -> dict[str, dict[str, str]]:
    """Return all tags of each subnet in the region that has a tag with a key, by the subnet's id."""
    subnets = account.items("ec2.describe_subnets", "Subnets", filters={"tag-key": [key]})
    return {subnet["SubnetId"]: tag_map(subnet.get("Tags")) for subnet in subnets}


def route_table_of(tables: Sequence[AwsObject], subnet_id: str) -> str:
    """Return the id of the route table that a subnet uses; empty if it is not among the tables."""
    main_table = ""
    for table in tables:
        for association in table["Associations"]:
            if association.get("SubnetId") == subnet_id:
                return str(table["RouteTableId"])
            if association.get("Main"):
                main_table = str(table["RouteTableId"])
    # Subnets without an explicit association use the VPC's main route table.
    return main_table


@dataclass(frozen=True)
class NatGatewayView:
    """A NAT gateway; its subnet is None if it is a regional one, which belongs to the whole VPC."""

    vpc_id: str
    state: str
    is_private: bool
    subnet_id: str | None


def find_nat_gateway(account: Account, gateway_id: str) -> NatGatewayView | None:
    """Return a NAT gateway that is not deleted."""
    gateway = _find(account, "ec2.describe_nat_gateways", "NatGateways", "nat-gateway-id", gateway_id)
    # EC2 describes a deleted gateway for about an hour (DescribeNatGateways, EC2 API Reference).
    if gateway is None or gateway["State"] == "deleted":
        return None
    is_private = gateway.get("ConnectivityType", "public") == "private"
    return NatGatewayView(gateway["VpcId"], gateway["State"], is_private, gateway.get("SubnetId"))


def has_prefix_list(account: Account, list_id: str) -> bool:
    """Return whether there is a prefix list with this id: one of the account, of AWS, or a shared one."""
    call = "ec2.describe_managed_prefix_lists"
    return _find(account, call, "PrefixLists", "prefix-list-id", list_id) is not None


def has_transit_gateway(account: Account, gateway_id: str) -> bool:
    """Return whether there is a transit gateway with this id."""
    call = "ec2.describe_transit_gateways"
    return _find(account, call, "TransitGateways", "transit-gateway-id", gateway_id) is not None


@dataclass(frozen=True)
class TransitGatewayAttachment:
    """An attachment of a VPC to a transit gateway."""

    id: str
    state: str


def list_transit_gateway_attachments(account: Account, gateway_id: str, vpc_id: str) -> list[TransitGatewayAttachment]:
    """Return the attachments of a VPC to a transit gateway, in any state."""
    call, key = "ec2.describe_transit_gateway_vpc_attachments", "TransitGatewayVpcAttachments"
    filters = {"transit-gateway-id": [gateway_id], "vpc-id": [vpc_id]}
    return [
        TransitGatewayAttachment(attachment["TransitGatewayAttachmentId"], attachment["State"])
        for attachment in account.items(call, key, filters=filters)
    ]


@dataclass(frozen=True)
class PeeringConnectionView:
    """A peering connection: its state, and the VPCs of requester and accepter, None where EC2 does not name it."""

    state: str
    vpc_ids: tuple[str | None, str | None]


def find_peering_connection(account: Account, connection_id: str) -> PeeringConnectionView | None:
    """Return a peering connection that is not deleted."""
    call, key = "ec2.describe_vpc_peering_connections", "VpcPeeringConnections"
    for connection in account.items(call, key, filters={"vpc-peering-connection-id": [connection_id]}):
        state = connection["Status"]["Code"]
        # EC2 describes a deleted connection for some time (VpcPeeringConnectionStateReason, EC2 API Reference).
        if connection["VpcPeeringConnectionId"] == connection_id and state != "deleted":
            vpc_ids = (connection["RequesterVpcInfo"].get("VpcId"), connection["AccepterVpcInfo"].get("VpcId"))
            return PeeringConnectionView(state, vpc_ids)
    return None


def find_vpn_gateway_vpcs(account: Account, gateway_id: str) -> list[str] | None:
    """Return the VPCs that a virtual private gateway is attached to, unless it is deleted."""
    gateway = _find(account, "ec2.describe_vpn_gateways", "VpnGateways", "vpn-gateway-id", gateway_id)
    if gateway is None or gateway["State"] == "deleted":
        return None
    return [attachment["VpcId"] for attachment in gateway["VpcAttachments"] if attachment["State"] == "attached"]


def find_interface_vpc(account: Account, interface_id: str) -> str | None:
    """Return the VPC of a network interface."""
    call = "ec2.describe_network_interfaces"
    interface = _find(account, call, "NetworkInterfaces", "network-interface-id", interface_id)
    return None if interface is None else str(interface["VpcId"])


def _find(account: Account, call: str, key: str, id_filter: str, object_id: str) -> AwsObject | None:
    """Return EC2's description of what has an id."""
    return next(account.items(call, key, filters={id_filter: [object_id]}), None)
