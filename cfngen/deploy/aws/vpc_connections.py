"""What routes lead to: NAT gateways, transit gateways, peering connections, VPN gateways and interfaces, by their ids.

They are found by filters, since a call with an id fails if nothing has it; a function returns None then. Errors of
boto3 are not translated.
"""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.types import AwsObject


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
