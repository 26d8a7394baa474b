"""Clusters whose pods have no VPC routes: the sandbox makes none, and finds its way without a route table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from cluster_objects import add_load_balancer, install_network_plugin, kubectl
from sandboxed import NODES, Place, place, said

from cfngen.cluster.load import parse
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster

NOT_INITIALISED = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin "
    "returns error: cni plugin not initialized"
)


@pytest.fixture(params=["cilium", "amazon-vpc"])
def plugged(request: pytest.FixtureRequest) -> Iterator[Place]:
    group = {"name": "nodes", "minSize": 1, "maxSize": 2}
    with place() as where:
        yield replace(where, cluster=parse({"network": {"plugin": request.param}, "nodeGroups": [group]}))


def test_without_a_plug_in_nodes_are_not_ready_until_one_is_applied() -> None:
    group = {"name": "nodes", "minSize": 1, "maxSize": 2}
    with place() as where:
        plugged = replace(where, cluster=parse({"network": {"plugin": "none"}, "nodeGroups": [group]}))
        assert plugged.create().status == "CREATE_COMPLETE"
        [node] = plugged.instances(NODES)
        joined = f"ready: node {node.id} has joined; it becomes Ready once you install a network plug-in"
        assert [line for line in said(node) if joined in line]
        cluster = where.account.cluster("kubernetes")
        assert readiness(cluster) == [("False", NOT_INITIALISED)] * 2
        coredns = [pod for pod in cluster.state.list("pods") if pod["metadata"]["name"].startswith("coredns-")]
        assert {pod["status"]["phase"] for pod in coredns} == {"Pending"}
        other = {"metadata": {"name": "logs"}, "spec": {}}
        kubectl(cluster, "POST", "/apis/apps/v1/namespaces/kube-system/daemonsets", other)
        where.account.advance(60)
        assert {status for status, _ in readiness(cluster)} == {"False"}
        install_network_plugin(cluster)
        where.account.advance(60)
        assert {status for status, _ in readiness(cluster)} == {"True"}
        assert {pod["status"]["phase"] for pod in coredns} == {"Running"}
        client("ec2", "us-west-2").terminate_instances(InstanceIds=[node.id])
        where.account.advance(1200)
        assert [status for status, _ in readiness(cluster)] == ["True"] * 2  # the plug-in is on the new node, too


def readiness(cluster: KubernetesCluster) -> list[tuple[str, str]]:
    """Status and message of the condition Ready of all nodes."""
    conditions = [condition for node in cluster.state.list("nodes") for condition in node["status"]["conditions"]]
    return [(each["status"], each["message"]) for each in conditions if each["type"] == "Ready"]


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
