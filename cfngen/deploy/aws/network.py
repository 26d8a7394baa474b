"""Networks: what a VPC holds, listed by kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.tags import CLUSTER_TAG_PREFIX, cluster_tag, tag_map
from cfngen.deploy.aws.types import AwsObject

FILTER_BATCH_SIZE = 100  # values in one filter; EC2 takes 200
# What is read of the VPC with one paginated call each: attribute of `NetworkFacts`, operation, key of the response, and
# the filter that selects by VPC (API reference of Amazon EC2).
VPC_DESCRIPTIONS = (
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


def list_in_vpc(
    ec2: Any, operation: str, result_key: str, filter_name: str, vpc_id: str
) -> Callable[[], list[AwsObject]]:
    """Return a function that lists all objects of a kind in the VPC."""
    # DescribeNatGateways has `Filter`, the other operations have `Filters`.
    argument = "Filter" if operation == "describe_nat_gateways" else "Filters"
    arguments = {argument: [{"Name": filter_name, "Values": [vpc_id]}]}
    return lambda: [
        item for page in ec2.get_paginator(operation).paginate(**arguments) for item in page.get(result_key, ())
    ]


def describe_peerings(ec2: Any, vpc_id: str) -> list[AwsObject]:
    """Return the active peering connections of the VPC."""
    found: dict[str, AwsObject] = {}
    for side in _PEERING_FILTERS:
        filters = [{"Name": side, "Values": [vpc_id]}]
        for page in ec2.get_paginator("describe_vpc_peering_connections").paginate(Filters=filters):
            for peering in page["VpcPeeringConnections"]:
                if peering["Status"]["Code"] == "active":
                    found[peering["VpcPeeringConnectionId"]] = peering
    return list(found.values())


def read_vpc_attribute(ec2: Any, vpc_id: str, name: str) -> bool:
    """Return the value of an attribute of the VPC, e.g. `enableDnsSupport`."""
    response = ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute=name)
    return bool(response[f"{name[0].upper()}{name[1:]}"]["Value"])


def list_instances(ec2: Any, cluster: str, vpc_id: str) -> list[str]:
    """Return the ids of the instances that the cluster has already."""
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "tag-key", "Values": [cluster_tag(cluster)]}]
    return [
        instance["InstanceId"]
        for page in ec2.get_paginator("describe_instances").paginate(Filters=filters)
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    ]


def count_interfaces(account: Account) -> int:
    """Return how many network interfaces the account has in the region."""
    pages = account.client("ec2").get_paginator("describe_network_interfaces").paginate()
    return sum(len(page["NetworkInterfaces"]) for page in pages)


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
    pages = account.client("ec2").get_paginator("describe_vpc_endpoints")
    return sum(
        len(endpoint.get("SubnetIds", ()))
        for start in range(0, len(ids), FILTER_BATCH_SIZE)
        for page in pages.paginate(
            Filters=[{"Name": "vpc-endpoint-id", "Values": ids[start : start + FILTER_BATCH_SIZE]}]
        )
        for endpoint in page["VpcEndpoints"]
        if endpoint.get("VpcEndpointType") == "Interface"
    )


def describe_live_instances(account: Account, ids: list[str]) -> dict[str, str]:
    """Return descriptions of the instances that are not terminated, by id.

    A network interface may be listed as attached for a moment longer than its instance exists.
    """
    if not ids:
        return {}
    descriptions = {}
    filters = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
    filters.append({"Name": "instance-id", "Values": ids})
    for page in account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters):
        for instance in (instance for reservation in page["Reservations"] for instance in reservation["Instances"]):
            tags = tag_map(instance.get("Tags"))
            clusters = [key.removeprefix(CLUSTER_TAG_PREFIX) for key in tags if key.startswith(CLUSTER_TAG_PREFIX)]
            name = f" {tags['Name']}" if tags.get("Name") else ""
            owner = f" of the cluster {', '.join(clusters)}" if clusters else ""
            descriptions[instance["InstanceId"]] = f"instance{name}{owner}"
    return descriptions


def route_table_of(tables: Sequence[AwsObject], subnet_id: str) -> str:
    """Return the id of the route table that a subnet uses; empty if it is not among the tables.

    Args:
        tables: all route tables of the VPC, as EC2 describes them.
        subnet_id: id of the subnet.
    """
    main_table = ""
    for table in tables:
        for association in table["Associations"]:
            if association.get("SubnetId") == subnet_id:
                return str(table["RouteTableId"])
            if association.get("Main"):
                main_table = str(table["RouteTableId"])
    # Subnets without an explicit association use the VPC's main route table.
    return main_table
