"""Checks that the targets of routes exist and are connected with the cluster's VPC.

Otherwise EC2 refuses the route in the middle of a creation or update; of a peering connection that nobody has accepted
it makes a route that leads nowhere ("Update your route tables for a VPC peering connection", Amazon VPC Peering Guide).
Objects are described by filters, since a call with ids fails if one of them does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.routes import destination_range, target_ids
from cfngen.deploy.account import Account
from cfngen.deploy.aws_types import AwsObject

# Routes lead through an attachment in these states (TransitGatewayVpcAttachment, EC2 API Reference).
_USABLE_ATTACHMENTS = ("available", "modifying")


def find_unconnected_targets(cluster: Cluster) -> Iterator[str]:
    """Yield a problem for each route out of a VPC that the stack has yet to create: no target is connected with it."""
    for index, route in enumerate(cluster.network.routes):
        for key, target_id in target_ids(route).items():
            yield (
                f"network.routes[{index}].{key}: {target_id} is not connected with the VPC that the stack will create, "
                "so EC2 would refuse the route; deploy without it, connect the new VPC, and deploy again with it, or "
                "set network.vpc.id to an existing VPC"
            )


def find_problems(account: Account, cluster: Cluster, vpc_id: str) -> Iterator[str]:
    """Yield a problem for each prefix list or target of a route that does not exist, or does not lead out of the VPC.

    Args:
        account: the account and region.
        cluster: the cluster.
        vpc_id: the cluster's VPC.

    Raises:
        cfngen.deploy.aws_errors.AwsError: AWS does not answer; the caller translates boto3's errors.
    """
    targets = _Targets(account, vpc_id)
    for index, route in enumerate(cluster.network.routes):
        path = f"network.routes[{index}]"
        if destination_range(route) is None and not targets.has_prefix_list(route.destination):
            yield f"{path}.destination: there is no prefix list {route.destination} in {account.region}; correct it"
        for key, target_id in target_ids(route).items():
            if problem := targets.problem(key, target_id):
                yield f"{path}.{key}: {problem}"


class _Targets:
    """What routes of the cluster file may lead to, and what is wrong with it for a VPC."""

    def __init__(self, account: Account, vpc_id: str) -> None:
        self._client = account.client("ec2")
        self._region = account.region
        self._vpc_id = vpc_id

    def problem(self, key: str, target_id: str) -> str:
        """Return what is wrong with the target that a key of the cluster file names; empty if nothing is."""
        problems_by_key: Mapping[str, Callable[[str], str]] = {
            "transitGateway": self._transit_gateway_problem,
            "peeringConnection": self._peering_problem,
            "vpnGateway": self._vpn_gateway_problem,
            "networkInterface": self._interface_problem,
        }
        return problems_by_key[key](target_id)

    def has_prefix_list(self, list_id: str) -> bool:
        """Return whether there is a prefix list with this id: one of the account, of AWS, or a shared one."""
        return bool(self._find("describe_managed_prefix_lists", "PrefixLists", "prefix-list-id", list_id))

    def _transit_gateway_problem(self, gateway_id: str) -> str:
        if not self._find("describe_transit_gateways", "TransitGateways", "transit-gateway-id", gateway_id):
            return self._missing("transit gateway", gateway_id)
        attachments = self._find(
            "describe_transit_gateway_vpc_attachments",
            "TransitGatewayVpcAttachments",
            "transit-gateway-id",
            gateway_id,
            {"Name": "vpc-id", "Values": [self._vpc_id]},
        )
        if any(attachment["State"] in _USABLE_ATTACHMENTS for attachment in attachments):
            return ""
        if pending := next((each for each in attachments if each["State"].startswith("pending")), None):
            return (
                f"the attachment {pending['TransitGatewayAttachmentId']} of {self._vpc_id} to {gateway_id} is "
                f"{pending['State']} and not available; have it accepted, or wait until it is available"
            )
        return (
            f"{self._vpc_id} is not attached to {gateway_id}; attach the VPC, with a subnet in each zone of the cluster"
        )

    def _peering_problem(self, connection_id: str) -> str:
        found = self._find(
            "describe_vpc_peering_connections",
            "VpcPeeringConnections",
            "vpc-peering-connection-id",
            connection_id,
        )
        connection = next((each for each in found if each["VpcPeeringConnectionId"] == connection_id), None)
        # EC2 describes a deleted connection for some time (VpcPeeringConnectionStateReason, EC2 API Reference).
        if connection is None or connection["Status"]["Code"] == "deleted":
            return self._missing("peering connection", connection_id)
        sides = [connection[side].get("VpcId") for side in ("RequesterVpcInfo", "AccepterVpcInfo")]
        if self._vpc_id not in sides:
            return (
                f"{connection_id} connects {' and '.join(map(str, sides))}, and the cluster is in {self._vpc_id}; use "
                f"a connection of {self._vpc_id}"
            )
        state = connection["Status"]["Code"]
        if state != "active":
            remedy = "have it accepted" if state == "pending-acceptance" else "use another one"
            return f"{connection_id} is {state} and not active; {remedy}"
        return ""

    def _vpn_gateway_problem(self, gateway_id: str) -> str:
        found = self._find("describe_vpn_gateways", "VpnGateways", "vpn-gateway-id", gateway_id)
        if not found or found[0]["State"] == "deleted":
            return self._missing("virtual private gateway", gateway_id)
        attached = [each["VpcId"] for each in found[0]["VpcAttachments"] if each["State"] == "attached"]
        if self._vpc_id in attached:
            return ""
        return (
            f"{gateway_id} is attached to {attached[0] if attached else 'no VPC'}, and the cluster is in "
            f"{self._vpc_id}; attach it to {self._vpc_id}, or use the one that is"
        )

    def _interface_problem(self, interface_id: str) -> str:
        found = self._find("describe_network_interfaces", "NetworkInterfaces", "network-interface-id", interface_id)
        if not found:
            return self._missing("network interface", interface_id)
        if found[0]["VpcId"] != self._vpc_id:
            return (
                f"{interface_id} belongs to {found[0]['VpcId']}, and the cluster is in {self._vpc_id}; use one of "
                f"{self._vpc_id}"
            )
        return ""

    def _missing(self, kind: str, object_id: str) -> str:
        """Return the problem of an object that does not exist."""
        return f"there is no {kind} {object_id} in {self._region}; enter an existing one"

    def _find(
        self, operation: str, result_key: str, id_filter: str, object_id: str, *more_filters: AwsObject
    ) -> list[AwsObject]:
        """Return the descriptions that an operation of EC2 has of an object.

        Args:
            operation: the method of boto3's client, e.g. `describe_vpn_gateways`.
            result_key: key of the descriptions in the response, e.g. `VpnGateways`.
            id_filter: the filter that selects by the object's id.
            object_id: the object's id.
            more_filters: further filters.
        """
        filters = [{"Name": id_filter, "Values": [object_id]}, *more_filters]
        if not self._client.can_paginate(operation):
            return list(getattr(self._client, operation)(Filters=filters)[result_key])
        pages = self._client.get_paginator(operation).paginate(Filters=filters)
        return [item for page in pages for item in page[result_key]]
