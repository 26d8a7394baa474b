"""Checks that existing subnets use the one route table that the pods' routes are written to.

The cloud controller manager writes routes to one table only (cloud-provider-aws#432). Pods in a subnet with another
route table could not be reached, and no error would say so. So this is checked before anything is created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SubnetId
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.aws_types import AwsObject
from cfngen.errors import CfngenError


class RouteTablesError(CfngenError):
    """Subnets use route tables that would not contain the pods' routes.

    Attributes:
        other_tables: for each subnet that does not use the cluster's route table, the route table that the subnet
            uses; an empty text if it uses none.
    """

    code = "route-tables-conflict"

    def __init__(self, route_table: str, other_tables: Mapping[str, str]) -> None:
        usage = ", ".join(f"{subnet} uses {table or 'none'}" for subnet, table in sorted(other_tables.items()))
        super().__init__(
            f"pods' routes would be written to {route_table}, but {usage}: pods there could not be reached",
            hint="associate all subnets of the cluster with one route table, or set network.plugin to cilium, calico, "
            "flannel or amazon-vpc, which need no routes.",
        )
        self.other_tables = dict(other_tables)


def check(account: Account, cluster: Cluster, values: Mapping[str, str]) -> None:
    """Check that the existing subnets of a cluster with VPC routes use the cluster's route table.

    Args:
        account: the account and region.
        cluster: the cluster.
        values: values of the root's parameters.

    Raises:
        RouteTablesError: some subnets use another route table. Errors of AWS are ignored.
    """
    route_table = values.get("RouteTableId", "")
    subnets = [value for name, value in values.items() if value and _is_subnet_of_instances(name)]
    # Only some network plug-ins need routes of the VPC, and only subnets that exist already have a route table.
    if not (network_plugin(cluster).uses_vpc_routes and route_table and subnets):
        return
    filters = [{"Name": "vpc-id", "Values": [values.get("VpcId", "")]}]
    try:
        with translate_aws_errors():
            pages = account.client("ec2").get_paginator("describe_route_tables").paginate(Filters=filters)
            tables = [table for page in pages for table in page["RouteTables"]]
    except AwsError:
        return
    table_of_each_subnet = {subnet: route_table_of(tables, subnet) for subnet in subnets}
    other_tables = {subnet: table for subnet, table in table_of_each_subnet.items() if table != route_table}
    if tables and other_tables:
        raise RouteTablesError(route_table, other_tables)


def _is_subnet_of_instances(parameter: str) -> bool:
    """Return whether a parameter holds the id of a subnet of instances; those beside private subnets have none."""
    parsed = SubnetId.parse(parameter)
    return parsed is not None and parsed.part == "Id" and not parsed.is_public


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
