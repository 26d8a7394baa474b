"""Networks: what a VPC holds, listed by kind."""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.groups import describe_instances
from cfngen.deploy.aws.tags import CLUSTER_TAG_PREFIX, cluster_tag, tag_map
from cfngen.deploy.aws.types import AwsObject

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


def list_in_vpc(account: Account, operation: str, key: str, filter_name: str, vpc_id: str) -> list[AwsObject]:
    """Return all objects of a kind in the VPC."""
    return list(account.items(f"ec2.{operation}", key, filters={filter_name: [vpc_id]}))


def describe_peerings(account: Account, vpc_id: str) -> list[AwsObject]:
    """Return the active peering connections of the VPC."""
    found = {
        peering["VpcPeeringConnectionId"]: peering
        for side in _PEERING_FILTERS
        for peering in list_in_vpc(account, "describe_vpc_peering_connections", "VpcPeeringConnections", side, vpc_id)
        if peering["Status"]["Code"] == "active"
    }
    return list(found.values())


def read_vpc_attribute(account: Account, vpc_id: str, name: str) -> bool:
    """Return the value of an attribute of the VPC, e.g. `enableDnsSupport`."""
    response = account.client("ec2").describe_vpc_attribute(VpcId=vpc_id, Attribute=name)
    return bool(response[f"{name[0].upper()}{name[1:]}"]["Value"])


def list_instances(account: Account, cluster: str, vpc_id: str) -> list[str]:
    """Return the ids of the instances that the cluster has already."""
    filters = {"vpc-id": [vpc_id], "tag-key": [cluster_tag(cluster)]}
    return [instance["InstanceId"] for instance in describe_instances(account, filters)]


def count_interfaces(account: Account) -> int:
    """Return how many network interfaces the account has in the region."""
    return sum(1 for _ in account.items("ec2.describe_network_interfaces", "NetworkInterfaces"))


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
