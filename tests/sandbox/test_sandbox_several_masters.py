"""Three masters in the sandbox, as they are created: together, by the first one's leave, and waited for one by one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sandboxed import Place, said
from several_masters import LETTERS, group, masters, three_masters

from cfngen.sandbox.cloudformation import Stack, client


@pytest.fixture(scope="module")
def created() -> Iterator[tuple[Place, Stack]]:
    """Three masters, created; tests only look at them."""
    with three_masters() as where:
        yield where, where.create()


def test_three_masters_are_created(created: tuple[Place, Stack]) -> None:
    where, stack = created
    assert stack.status == "CREATE_COMPLETE", [(event.logical_id, event.reason) for event in stack.events][-5:]
    assert len(masters(where)) == 3


def test_they_start_together_and_only_the_first_makes_the_cluster(created: tuple[Place, Stack]) -> None:
    where, _ = created
    launched = [master.launched for master in masters(where)]
    assert max(launched) - min(launched) < 30
    ways = [next(line for line in said(master) if "control plane: " in line) for master in masters(where)]
    assert "initialised a new cluster" in ways[0]
    assert all("joined the cluster" in way for way in ways[1:])


def test_creation_waits_for_every_one_of_them(created: tuple[Place, Stack]) -> None:
    where, stack = created
    ended = {event.logical_id: event.time for event in stack.events if event.status == "CREATE_COMPLETE"}
    for letter, instance in zip(LETTERS, masters(where), strict=True):
        signals = [
            event.time
            for event in stack.events
            if event.logical_id == f"Master{letter}WaitCondition" and instance.id in event.reason
        ]
        assert len(signals) == 1
        assert ended[group(letter)] < signals[0] <= ended[f"Master{letter}WaitCondition"]


def test_each_is_a_node_with_its_own_fixed_address(created: tuple[Place, Stack]) -> None:
    where, _ = created
    state = where.account.cluster("kubernetes").state
    nodes = [state.get("nodes", master.id) for master in masters(where)]
    addresses = [
        address["address"]
        for node in nodes
        if node
        for address in node["status"]["addresses"]
        if address["type"] == "InternalIP"
    ]
    assert addresses == ["172.20.0.9", "172.20.1.9", "172.20.2.9"]


def test_the_load_balancer_is_the_endpoint_and_leads_to_the_fixed_addresses(created: tuple[Place, Stack]) -> None:
    where, stack = created
    elbv2 = client("elbv2", where.account.region)
    [balancer] = elbv2.describe_load_balancers()["LoadBalancers"]
    assert stack.outputs["ApiEndpoint"] == f"https://{balancer['DNSName']}"
    assert (balancer["LoadBalancerName"], balancer["Scheme"], balancer["Type"]) == (
        "kubernetes-api",
        "internet-facing",
        "network",
    )
    [targets] = elbv2.describe_target_groups()["TargetGroups"]
    healths = elbv2.describe_target_health(TargetGroupArn=targets["TargetGroupArn"])["TargetHealthDescriptions"]
    assert {health["Target"]["Id"] for health in healths} == {"172.20.0.9", "172.20.1.9", "172.20.2.9"}
    assert (targets["HealthCheckProtocol"], targets["HealthCheckPath"]) == ("HTTPS", "/readyz")
    assert where.account.cluster("kubernetes").api_endpoint == stack.outputs["ApiEndpoint"]


def test_the_api_serves_under_the_load_balancers_name(created: tuple[Place, Stack]) -> None:
    where, stack = created
    names = where.account.cluster("kubernetes").server_names()
    assert stack.outputs["ApiEndpoint"].removeprefix("https://") in names


def test_nodes_are_told_the_addresses_of_all_of_them(created: tuple[Place, Stack]) -> None:
    where, _ = created
    found = where.secret("joinSecretArn")
    assert found["addresses"] == ["172.20.0.9", "172.20.1.9", "172.20.2.9"]
    assert found["endpoint"] == "api.kubernetes.internal:443"
