"""Reads an existing VPC and what is in it: calls of EC2 and Service Quotas that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.deletion.kubernetes_tags import cluster_tag
from cfngen.deploy.network_check.network import named_subnets
from cfngen.deploy.network_check.situation import NetworkFacts, Situation
from cfngen.deploy.preview import existing_objects
from cfngen.deploy.quotas.quota import Quota, QuotaCheck, check_quota, known_usage
from cfngen.deploy.quotas.route_tables import route_table_of

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
# Codes and names: "Amazon Virtual Private Cloud endpoints and quotas", AWS General Reference.
_ROUTES_PER_TABLE = "L-93826ACB"
_INTERFACES_PER_REGION = "L-DF5E4CA3"
_RULES_PER_GROUP = "L-0EA8095F"
_DEFAULT_RULES_PER_GROUP = 60


def read(account: Account, cluster: Cluster, values: Mapping[str, str]) -> Situation:
    """Read the existing VPC that the cluster file or the parameters name.

    Args:
        account: the account and region.
        cluster: the cluster.
        values: values of the root's parameters; `VpcId` is among them.

    Returns:
        The situation. What may not be read is listed in `facts.unread`.

    Raises:
        AwsError: not even the VPC can be read.
    """
    vpc_id = values["VpcId"]
    ec2 = account.client("ec2")
    with translate_aws_errors():
        vpcs = ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["Vpcs"]
    subnets = named_subnets(cluster, values)
    if not vpcs:
        return Situation(cluster, account.region, vpc_id, values, subnets, NetworkFacts())
    reader = _Reader()
    described = {
        attribute: tuple(reader.read(attribute, _lister(ec2, operation, result_key, filter_name, vpc_id), []))
        for attribute, operation, result_key, filter_name in _DESCRIPTIONS
    }
    peerings = reader.read("peerings", lambda: _peerings(ec2, vpc_id), [])
    facts = NetworkFacts(
        vpc=vpcs[0],
        has_dns_support=reader.read("has_dns_support", lambda: _attribute(ec2, vpc_id, "enableDnsSupport"), None),
        has_dns_host_names=reader.read(
            "has_dns_host_names", lambda: _attribute(ec2, vpc_id, "enableDnsHostnames"), None
        ),
        foreign=tuple(
            reader.read(
                "foreign",
                lambda: list(
                    existing_objects.find_network_problems(account, cluster, values, vpc_id, judges_routes=False)
                ),
                [],
            )
        ),
        peerings=tuple(peerings),
        own_instances=frozenset(reader.read("own_instances", lambda: _instances(ec2, cluster.name, vpc_id), [])),
        quotas=tuple(_quotas(account, cluster, values, described)),
        unread=tuple(reader.unread),
        **described,
    )
    return Situation(cluster, account.region, vpc_id, values, subnets, facts)


class _Reader:
    """Carries out calls; what cannot be read is remembered in `unread`, and the others are still made."""

    def __init__(self) -> None:
        self.unread: list[tuple[str, str]] = []

    def read(self, name: str, call: Callable[[], Any], otherwise: Any) -> Any:
        """Return the result of a call, or `otherwise` if AWS refuses it; `name` is the attribute of `NetworkFacts`."""
        try:
            with translate_aws_errors():
                return call()
        except AwsError as error:
            self.unread.append((name, str(error)))
            return otherwise


def _lister(ec2: Any, operation: str, result_key: str, filter_name: str, vpc_id: str) -> Callable[[], list[AwsObject]]:
    """Return a function that lists all objects of a kind in the VPC."""
    # DescribeNatGateways has `Filter`, the other operations have `Filters`.
    argument = "Filter" if operation == "describe_nat_gateways" else "Filters"
    arguments = {argument: [{"Name": filter_name, "Values": [vpc_id]}]}
    return lambda: [
        item for page in ec2.get_paginator(operation).paginate(**arguments) for item in page.get(result_key, ())
    ]


def _peerings(ec2: Any, vpc_id: str) -> list[AwsObject]:
    """Return the active peering connections of the VPC."""
    found: dict[str, AwsObject] = {}
    for side in _PEERING_FILTERS:
        filters = [{"Name": side, "Values": [vpc_id]}]
        for page in ec2.get_paginator("describe_vpc_peering_connections").paginate(Filters=filters):
            for peering in page["VpcPeeringConnections"]:
                if peering["Status"]["Code"] == "active":
                    found[peering["VpcPeeringConnectionId"]] = peering
    return list(found.values())


def _attribute(ec2: Any, vpc_id: str, name: str) -> bool:
    """Return the value of an attribute of the VPC, e.g. `enableDnsSupport`."""
    response = ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute=name)
    return bool(response[f"{name[0].upper()}{name[1:]}"]["Value"])


def _instances(ec2: Any, cluster: str, vpc_id: str) -> list[str]:
    """Return the ids of the instances that the cluster has already."""
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "tag-key", "Values": [cluster_tag(cluster)]}]
    return [
        instance["InstanceId"]
        for page in ec2.get_paginator("describe_instances").paginate(Filters=filters)
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    ]


def _quotas(
    account: Account, cluster: Cluster, values: Mapping[str, str], described: Mapping[str, tuple[AwsObject, ...]]
) -> list[Quota]:
    """Return the quotas of networks; a quota that cannot be read has no limit."""
    masters = len(cluster.slots)
    initial = masters + sum(group.desired_size or group.min_size for group in cluster.node_groups)
    at_maximum = masters + sum(group.max_size for group in cluster.node_groups)
    checks = [
        QuotaCheck(
            "Network interfaces per Region",
            needed=initial,
            service="vpc",
            code=_INTERFACES_PER_REGION,
            used=_count_interfaces,
            needed_at_maximum=at_maximum,
        )
    ]
    table_id = values.get("RouteTableId") or next(
        (
            route_table_of(described["route_tables"], subnet.id)
            for subnet in named_subnets(cluster, values)
            if subnet.id
        ),
        "",
    )
    tables = [table for table in described["route_tables"] if table["RouteTableId"] == table_id]
    if network_plugin(cluster).uses_vpc_routes and tables:
        checks.append(
            QuotaCheck(
                f"Routes per route table ({table_id})",
                needed=initial,
                service="vpc",
                code=_ROUTES_PER_TABLE,
                used=known_usage(len(tables[0]["Routes"])),
                needed_at_maximum=at_maximum,
            )
        )
    rules = cluster.network.quotas.rules_per_security_group
    if rules > _DEFAULT_RULES_PER_GROUP:
        checks.append(
            QuotaCheck(
                "Inbound or outbound rules per security group",
                needed=rules,
                service="vpc",
                code=_RULES_PER_GROUP,
                used=known_usage(0),
            )
        )
    return [check_quota(account, check) for check in checks]


def _count_interfaces(account: Account) -> int:
    """Return how many network interfaces the account has in the region."""
    pages = account.client("ec2").get_paginator("describe_network_interfaces").paginate()
    return sum(len(page["NetworkInterfaces"]) for page in pages)
