"""Lists the resources that are in a VPC or attached to it, and prevent EC2 from deleting the VPC.

Sources: "Delete your VPC", Amazon VPC User Guide, and "Why can't I delete my VPC?", re:Post knowledge center. EC2
deletes the main route table, default network ACL and default security group together with the VPC, so they are left
out. Load balancers, instances and network interfaces are listed by `blockers`, which also checks to whom they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import suppress_codes
from cfngen.deploy.aws.types import AwsObject

_ENDED_STATES = frozenset({"deleted", "deleting", "failed", "rejected", "expired", "detached", "detaching"})
# The region or partition does not offer this kind of resource.
_UNSUPPORTED_CODES = frozenset({"InvalidAction", "UnsupportedOperation"})


NAT_GATEWAY = "NAT gateway"
VPC_ENDPOINT = "VPC endpoint"


@dataclass(frozen=True)
class VpcContent:
    """A resource that is in a VPC or attached to it.

    Attributes:
        kind: its type in words, e.g. `VPC endpoint`.
    """

    id: str
    kind: str
    item: AwsObject

    @property
    def is_requester_managed(self) -> bool:
        """Whether an AWS service manages a VPC endpoint, which nobody else may delete then.

        Source: `RequesterManaged` of DescribeVpcEndpoints; gruntwork-io/cloud-nuke#1037.
        """
        return bool(self.item.get("RequesterManaged"))

    @property
    def interface_ids(self) -> frozenset[str]:
        """Ids of the network interfaces of a NAT gateway or VPC endpoint; AWS deletes them together with it."""
        of_addresses = (address.get("NetworkInterfaceId", "") for address in self.item.get("NatGatewayAddresses", ()))
        return frozenset((*self.item.get("NetworkInterfaceIds", ()), *of_addresses)) - {""}

    def command(self, region: str) -> str:
        """Return the AWS CLI command that deletes a NAT gateway or VPC endpoint; empty for anything else.

        These hold nothing of their own, while others, such as subnets, may have contents.
        """
        subcommand = _DELETE_COMMAND_BY_KIND.get(self.kind, "")
        if not subcommand or self.is_requester_managed:
            return ""
        return f"aws {subcommand} {self.id} --region {region}"


def _is_in_vpc(item: AwsObject, vpc_id: str) -> bool:
    """Return whether a resource is in the VPC and has not been deleted."""
    return item.get("VpcId") == vpc_id and str(item.get("State", "")).lower() not in _ENDED_STATES


@dataclass(frozen=True)
class _ResourceKind:
    """How EC2 lists resources of one kind.

    Attributes:
        key: key of the list in EC2's response, e.g. `NatGateways`, which names the operation too.
        blocks: whether a resource blocks the deletion of the VPC; called with its description and the VPC's id.
        filters: names of the filters by VPC id; each is used in a separate call. Empty if EC2 has no such filter.
    """

    name: str
    key: str
    id_key: str
    blocks: Callable[[AwsObject, str], bool] = _is_in_vpc
    filters: tuple[str, ...] = ("vpc-id",)


def find_vpc_contents(account: Account, vpc_id: str, kinds: Collection[str] = ()) -> Iterator[VpcContent]:
    """Yield the resources that are in a VPC or attached to it, by kind.

    Args:
        kinds: the kinds to list, such as `VPC endpoint`; if empty, all kinds.
    """
    for kind in _RESOURCE_KINDS:
        if kinds and kind.name not in kinds:
            continue
        items_by_id = {
            item[kind.id_key]: item for item in _describe_resources(account, kind, vpc_id) if kind.blocks(item, vpc_id)
        }
        yield from (VpcContent(id=key, kind=kind.name, item=items_by_id[key]) for key in sorted(items_by_id))


def _describe_resources(account: Account, kind: _ResourceKind, vpc_id: str) -> Iterator[AwsObject]:
    """Yield the resources of one kind as EC2 describes them; none if the region does not offer this kind."""
    from botocore import xform_name

    for filter_name in kind.filters or ("",):
        filters = {filter_name: [vpc_id]} if filter_name else None
        with suppress_codes(_UNSUPPORTED_CODES):
            yield from account.items(f"ec2.describe_{xform_name(kind.key)}", kind.key, filters=filters)


def _is_attached(item: AwsObject, vpc_id: str) -> bool:
    attachments = item.get("VpcAttachments", item.get("Attachments", ()))
    return any(
        attachment.get("VpcId") == vpc_id and attachment.get("State") not in _ENDED_STATES for attachment in attachments
    )


def _is_custom_group(item: AwsObject, vpc_id: str) -> bool:
    return item.get("VpcId") == vpc_id and item["GroupName"] != "default"


def _is_custom_acl(item: AwsObject, vpc_id: str) -> bool:
    return item.get("VpcId") == vpc_id and not item["IsDefault"]


def _is_custom_route_table(item: AwsObject, vpc_id: str) -> bool:
    return item.get("VpcId") == vpc_id and not any(
        association.get("Main") for association in item.get("Associations", ())
    )


def _is_peered(item: AwsObject, vpc_id: str) -> bool:
    sides = (item.get(side, {}).get("VpcId") for side in ("RequesterVpcInfo", "AccepterVpcInfo"))
    return vpc_id in sides and item.get("Status", {}).get("Code", "") not in _ENDED_STATES


_DELETE_COMMAND_BY_KIND = {
    NAT_GATEWAY: "ec2 delete-nat-gateway --nat-gateway-id",
    VPC_ENDPOINT: "ec2 delete-vpc-endpoints --vpc-endpoint-ids",
}
_RESOURCE_KINDS = (
    _ResourceKind(NAT_GATEWAY, "NatGateways", "NatGatewayId"),
    _ResourceKind(VPC_ENDPOINT, "VpcEndpoints", "VpcEndpointId"),
    _ResourceKind("transit gateway attachment", "TransitGatewayVpcAttachments", "TransitGatewayAttachmentId"),
    _ResourceKind(
        "peering connection",
        "VpcPeeringConnections",
        "VpcPeeringConnectionId",
        _is_peered,
        filters=("requester-vpc-info.vpc-id", "accepter-vpc-info.vpc-id"),
    ),
    _ResourceKind(
        "internet gateway", "InternetGateways", "InternetGatewayId", _is_attached, filters=("attachment.vpc-id",)
    ),
    _ResourceKind(
        "egress-only internet gateway",
        "EgressOnlyInternetGateways",
        "EgressOnlyInternetGatewayId",
        _is_attached,
        filters=(),
    ),
    _ResourceKind("carrier gateway", "CarrierGateways", "CarrierGatewayId"),
    _ResourceKind("subnet", "Subnets", "SubnetId"),
    _ResourceKind("route table", "RouteTables", "RouteTableId", _is_custom_route_table),
    _ResourceKind("network ACL", "NetworkAcls", "NetworkAclId", _is_custom_acl),
    _ResourceKind("security group", "SecurityGroups", "GroupId", _is_custom_group),
)
