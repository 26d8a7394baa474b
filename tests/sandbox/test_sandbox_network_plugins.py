"""Clusters whose pods have no VPC routes: the sandbox makes none, and finds its way without a route table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from cluster_objects import add_load_balancer
from sandboxed import NODES, Place, place

from cfngen.cluster.load import parse
from cfngen.sandbox.cloudformation import client


@pytest.fixture(params=["cilium", "amazon-vpc"])
def plugged(request: pytest.FixtureRequest) -> Iterator[Place]:
    group = {"name": "nodes", "minSize": 1, "maxSize": 2}
    with place() as where:
        yield replace(where, cluster=parse({"network": {"plugin": request.param}, "nodeGroups": [group]}))


def test_no_routes_are_made_and_balancers_find_the_network(plugged: Place) -> None:
    stack = plugged.create()
    assert stack.status == "CREATE_COMPLETE", stack.reason
    assert len(plugged.instances(NODES)) == 1
    table = stack.resources["RouteTable"].physical_id
    ec2 = client("ec2", "us-west-2")
    [found] = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    assert {route["DestinationCidrBlock"] for route in found["Routes"]} == {"0.0.0.0/0", "172.20.0.0/16"}

    cluster = plugged.account.cluster("kubernetes")
    nodes = cluster.state.list("nodes")
    assert len(nodes) == 2
    ranged = [node for node in nodes if "podCIDR" in node["spec"]]
    assert len(ranged) == (0 if plugged.cluster.network.plugin == "amazon-vpc" else 2)

    add_load_balancer(cluster.controllers, "web", network_load_balancer=True)
    [balancer] = client("elbv2", "us-west-2").describe_load_balancers()["LoadBalancers"]
    assert balancer["VpcId"] == stack.resources["Vpc"].physical_id
