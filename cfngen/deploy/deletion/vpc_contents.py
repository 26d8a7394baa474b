"""What lies in a VPC or is attached to it, of the kinds that keep EC2 from deleting the VPC.

Sources: "Delete your VPC", Amazon VPC User Guide, and "Why can't I delete my VPC?", re:Post knowledge center. What goes
with a VPC by itself is not among them: its main route table, its default network ACL, its default security group.
Load balancers, instances and network interfaces are looked up elsewhere, since whose they are is not told by their id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import error_code

_Item = Mapping[str, Any]
_ENDED = frozenset({"deleted", "deleting", "failed", "rejected", "expired", "detached", "detaching"})
# A region, or a partition, that does not have the thing at all.
_UNKNOWN_THERE = frozenset({"InvalidAction", "UnsupportedOperation"})


@dataclass(frozen=True)
class Content:
    """Something that lies in a VPC or is attached to it.

    Attributes:
        id: its id.
        kind: what it is.
        item: as EC2 describes it.
    """

    id: str
    kind: str
    item: _Item


@dataclass(frozen=True)
class _Kind:
    """How things of one kind are asked for.

    Attributes:
        name: what they are, in the singular.
        operation: the call, in boto3's spelling.
        answer: where they stand in its answer.
        id: where the id of each stands.
        stays: whether one is in the way of the VPC; told of it and of the VPC's id.
        filters: filters by the VPC's id, each asked for by itself; none where EC2 has none.
        argument: how the call names its filters.
    """

    name: str
    operation: str
    answer: str
    id: str
    stays: Callable[[_Item, str], bool]
    filters: tuple[str, ...] = ("vpc-id",)
    argument: str = "Filters"


def find(account: Account, vpc_id: str) -> Iterator[Content]:
    """Return what lies in a VPC or is attached to it, by kind."""
    for kind in _KINDS:
        items = {each[kind.id]: each for each in _described(account, kind, vpc_id) if kind.stays(each, vpc_id)}
        yield from (Content(key, kind.name, items[key]) for key in sorted(items))


def _described(account: Account, kind: _Kind, vpc_id: str) -> Iterator[_Item]:
    from botocore.exceptions import ClientError

    pages = account.client("ec2").get_paginator(kind.operation)
    for name in kind.filters or ("",):
        filters = {kind.argument: [{"Name": name, "Values": [vpc_id]}]} if name else {}
        try:
            for page in pages.paginate(**filters):
                yield from page[kind.answer]
        except ClientError as error:
            if error_code(error) not in _UNKNOWN_THERE:
                raise


def _is_there(item: _Item, vpc_id: str) -> bool:
    return item.get("VpcId") == vpc_id and str(item.get("State", "")).lower() not in _ENDED


def _is_attached(item: _Item, vpc_id: str) -> bool:
    attachments = item.get("VpcAttachments", item.get("Attachments", ()))
    return any(
        attachment.get("VpcId") == vpc_id and attachment.get("State") not in _ENDED for attachment in attachments
    )


def _is_no_default_group(item: _Item, vpc_id: str) -> bool:
    return item.get("VpcId") == vpc_id and item["GroupName"] != "default"


def _is_no_default_acl(item: _Item, vpc_id: str) -> bool:
    return item.get("VpcId") == vpc_id and not item["IsDefault"]


def _is_no_main_table(item: _Item, vpc_id: str) -> bool:
    return item.get("VpcId") == vpc_id and not any(
        association.get("Main") for association in item.get("Associations", ())
    )


def _is_connected(item: _Item, vpc_id: str) -> bool:
    sides = (item.get(side, {}).get("VpcId") for side in ("RequesterVpcInfo", "AccepterVpcInfo"))
    return vpc_id in sides and item.get("Status", {}).get("Code", "") not in _ENDED


_KINDS = (
    _Kind("NAT gateway", "describe_nat_gateways", "NatGateways", "NatGatewayId", _is_there, argument="Filter"),
    _Kind("VPC endpoint", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId", _is_there),
    _Kind(
        "transit gateway attachment",
        "describe_transit_gateway_vpc_attachments",
        "TransitGatewayVpcAttachments",
        "TransitGatewayAttachmentId",
        _is_there,
    ),
    _Kind(
        "peering connection",
        "describe_vpc_peering_connections",
        "VpcPeeringConnections",
        "VpcPeeringConnectionId",
        _is_connected,
        ("requester-vpc-info.vpc-id", "accepter-vpc-info.vpc-id"),
    ),
    _Kind(
        "internet gateway",
        "describe_internet_gateways",
        "InternetGateways",
        "InternetGatewayId",
        _is_attached,
        ("attachment.vpc-id",),
    ),
    _Kind(
        "egress-only internet gateway",
        "describe_egress_only_internet_gateways",
        "EgressOnlyInternetGateways",
        "EgressOnlyInternetGatewayId",
        _is_attached,
        (),
    ),
    _Kind("carrier gateway", "describe_carrier_gateways", "CarrierGateways", "CarrierGatewayId", _is_there),
    _Kind("subnet", "describe_subnets", "Subnets", "SubnetId", _is_there),
    _Kind("route table", "describe_route_tables", "RouteTables", "RouteTableId", _is_no_main_table),
    _Kind("network ACL", "describe_network_acls", "NetworkAcls", "NetworkAclId", _is_no_default_acl),
    _Kind("security group", "describe_security_groups", "SecurityGroups", "GroupId", _is_no_default_group),
)
