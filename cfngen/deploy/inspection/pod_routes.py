"""The routes to instances in the table that the cloud controller manager writes the pods' routes to.

It reads the whole table before it writes one, and gives up when a route leads to a living instance that no Node names
(`ListRoutes`, cloud-provider-aws v1.36.1, pkg/providers/v1/aws_routes.go): no Node gets a route then. Routes whose
instance is gone (blackholes) it removes by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import translate_aws_errors
from cfngen.deploy.stacks import ResourceView, StackView

ROUTE_TABLE = "AWS::EC2::RouteTable"


@dataclass(frozen=True)
class InstanceRoute:
    """A route that leads to an instance.

    Attributes:
        table: id of its route table.
        destination: the range of addresses that it is for.
        instance: id of the instance.
    """

    table: str
    destination: str
    instance: str


def instance_routes(
    account: Account, cluster: Cluster, stack: StackView, resources: Iterable[ResourceView]
) -> tuple[InstanceRoute, ...]:
    """Return the routes to instances that are there, of the table which the pods' routes are in.

    Args:
        account: where the cluster is.
        cluster: says whether pods have routes at all.
        stack: the root stack, whose parameter names a table that existed before.
        resources: of the cluster's stacks.

    Raises:
        AwsError: the call failed.
    """
    if not network_plugin(cluster).routes:
        return ()
    tables = {
        resource.physical_id
        for resource in resources
        if resource.type == ROUTE_TABLE and resource.physical_id and resource.status != "DELETE_COMPLETE"
    }
    tables |= {stack.parameters.get("RouteTableId", "")} - {""}
    if not tables:
        return ()
    filters = [{"Name": "route-table-id", "Values": sorted(tables)}]
    with translate_aws_errors():
        answer = account.client("ec2").describe_route_tables(Filters=filters)["RouteTables"]
    return tuple(
        InstanceRoute(table["RouteTableId"], route["DestinationCidrBlock"], route["InstanceId"])
        for table in answer
        for route in table["Routes"]
        if route.get("InstanceId") and route.get("DestinationCidrBlock") and route.get("State") != "blackhole"
    )
