"""Reads the routes to instances from the route table to which the cloud controller manager adds routes to pods.

The cloud controller manager reads the whole route table first. If a route leads to an existing instance without a Node,
it fails (`ListRoutes`, cloud-provider-aws v1.36.1, pkg/providers/v1/aws_routes.go), and no Node gets a route. It
removes routes to terminated instances (blackholes) itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import is_private
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import translate_aws_errors
from cfngen.deploy.inspection.private_network import PUBLIC_TABLE
from cfngen.deploy.stacks import ResourceView, StackView

ROUTE_TABLE = "AWS::EC2::RouteTable"


@dataclass(frozen=True)
class InstanceRoute:
    """A route that leads to an instance.

    Attributes:
        table: id of its route table.
        destination: its destination CIDR.
        instance: id of the instance.
    """

    table: str
    destination: str
    instance: str


def find_instance_routes(
    account: Account, cluster: Cluster, stack: StackView, resources: Iterable[ResourceView]
) -> tuple[InstanceRoute, ...]:
    """Return the routes to existing instances in the route table of the pods; none if the network plug-in needs none.

    Args:
        account: the AWS account.
        cluster: the cluster file, which names the network plug-in.
        stack: the root stack; its parameter RouteTableId names the route table of an existing VPC.
        resources: the resources of the cluster's stacks.

    Raises:
        AwsError: the call failed.
    """
    if not network_plugin(cluster).uses_vpc_routes:
        return ()
    table_ids = {
        resource.physical_id
        for resource in resources
        if resource.type == ROUTE_TABLE and resource.physical_id and resource.status != "DELETE_COMPLETE"
        # The route table of a private cluster's public subnets has no routes to pods.
        if resource.logical_id != PUBLIC_TABLE or not is_private(cluster)
    }
    if existing_route_table := stack.values.get("RouteTableId", ""):
        table_ids.add(existing_route_table)
    if not table_ids:
        return ()
    filters = [{"Name": "route-table-id", "Values": sorted(table_ids)}]
    with translate_aws_errors():
        route_tables = account.client("ec2").describe_route_tables(Filters=filters)["RouteTables"]
    return tuple(
        InstanceRoute(
            table=table["RouteTableId"], destination=route["DestinationCidrBlock"], instance=route["InstanceId"]
        )
        for table in route_tables
        for route in table["Routes"]
        if route.get("InstanceId") and route.get("DestinationCidrBlock") and route.get("State") != "blackhole"
    )
