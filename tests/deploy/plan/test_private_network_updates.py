"""Updates of a private network: at no time are there instances without a way to the internet or to AWS's services."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator

from cfngen.cluster.load import parse
from cfngen.cluster.network.endpoints import interface_endpoints
from cfngen.deploy.messages.message import Danger, Message
from cfngen.deploy.plan.plan import Plan

pytestmark = pytest.mark.drill

ZONES = [{"zone": f"us-west-2{letter}", "cidr": f"172.20.{number}.0/24"} for number, letter in enumerate("abc")]
MIRROR = {"assets": {"mirror": "https://mirror.example.com"}}


def private(nat: str, zones: int = 2, **more: Any) -> dict[str, Any]:
    """A cluster with a node group in each zone."""
    network = {"topology": "private", "plugin": "cilium", "nat": nat, "subnets": ZONES[:zones]}
    node_groups = [
        {"name": subnet["zone"][-1], "minSize": 1, "maxSize": 2, "zones": [subnet["zone"]]} for subnet in ZONES[:zones]
    ]
    return {"name": "one", "nodeGroups": node_groups, "network": network, **more}


class Watched(list[Message]):
    """Messages of a deployment; with each, somebody looks at the account."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__()
        self.look = look

    def append(self, message: Message) -> None:
        super().append(message)
        self.look()


class Network:
    """What leads out of each subnet."""

    def __init__(self, cloud: Cloud) -> None:
        self.ec2: Any = cloud.session.client("ec2", region_name=cloud.cluster.region)
        self.ways_out: list[Mapping[str, str]] = []

    def instances(self) -> dict[str, str]:
        """The subnet of each node; moto places masters by their interface only."""
        filters = [
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
            {"Name": "tag:Name", "Values": ["one-nodes-*"]},
        ]
        found = self.ec2.describe_instances(Filters=filters)["Reservations"]
        return {each["InstanceId"]: each["SubnetId"] for one in found for each in one["Instances"]}

    def way_out(self, subnet: str) -> str:
        """The id of the available NAT gateway that a subnet's route table leads to; empty if there is none."""
        [table] = [
            table
            for table in self.ec2.describe_route_tables()["RouteTables"]
            if any(association.get("SubnetId") == subnet for association in table["Associations"])
        ]
        targets = [
            route["NatGatewayId"]
            for route in table["Routes"]
            if route.get("DestinationCidrBlock") == "0.0.0.0/0" and route.get("NatGatewayId")
        ]
        available = [{"Name": "state", "Values": ["available"]}]
        gateways = {each["NatGatewayId"] for each in self.ec2.describe_nat_gateways(Filter=available)["NatGateways"]}
        return next((target for target in targets if target in gateways), "")

    def services(self) -> int:
        """How many interface endpoints are available."""
        endpoints = self.ec2.describe_vpc_endpoints()["VpcEndpoints"]
        return sum(each["VpcEndpointType"] == "Interface" and each["State"] == "available" for each in endpoints)

    def look(self) -> None:
        self.ways_out.append({subnet: self.way_out(subnet) for subnet in set(self.instances().values())})


@pytest.fixture
def network(cloud: Cloud) -> Network:
    return Network(cloud)


def deployed(cloud: Cloud, file: Mapping[str, Any]) -> Operator:
    operator = Operator(cloud)
    assert operator.deploy(file).succeeded
    return operator


def consequences(plan: Plan) -> list[str]:
    return [impact.text for impact in plan.consequences]


@pytest.mark.parametrize(("before", "after", "gateways"), [("single", "perZone", 2), ("perZone", "single", 1)])
def test_other_nat_gateways_leave_no_instance_without_a_way_out(
    cloud: Cloud, network: Network, before: str, after: str, gateways: int
) -> None:
    operator = deployed(cloud, private(before))
    plan = operator.plan(private(after))
    assert any("instances in us-west-2b reach the internet through another NAT" in text for text in consequences(plan))
    assert not any("instances in us-west-2a reach the internet through another" in text for text in consequences(plan))
    operator.messages = Watched(network.look)
    assert operator.deploy(private(after)).succeeded
    assert network.ways_out
    assert all(all(ways.values()) for ways in network.ways_out)
    assert len(set(network.ways_out[-1].values())) == gateways
    assert operator.deploy(private(after)).action == "none"


def test_instances_in_a_new_zone_have_a_way_out_when_they_start(cloud: Cloud, network: Network) -> None:
    operator = deployed(cloud, private("perZone"))
    operator.messages = Watched(network.look)
    assert operator.deploy(private("perZone", 3)).succeeded
    assert all(all(ways.values()) for ways in network.ways_out)
    assert len(set(network.ways_out[-1].values())) == 3


def test_endpoints_are_there_before_the_nat_gateways_go(cloud: Cloud, network: Network) -> None:
    operator = deployed(cloud, private("perZone", **MIRROR))
    closed = private("none", **MIRROR)
    needed = len(interface_endpoints(parse(closed)))
    plan = operator.plan(closed)
    assert plan.danger is Danger.DANGEROUS
    assert any("instances in us-west-2a no longer reach the internet" in text for text in consequences(plan))
    assert plan.downloads is not None
    seen: list[bool] = []

    def look() -> None:
        network.look()
        seen.append(all(network.ways_out[-1].values()) or network.services() == needed)

    operator.messages = Watched(look)
    assert operator.deploy(closed).succeeded
    assert seen
    assert all(seen)
    assert network.services() == needed


def test_a_new_private_cluster_is_told_by_its_ways_out_and_their_price(cloud: Cloud) -> None:
    plan = Operator(cloud).plan(private("perZone"))
    assert plan.creation is not None
    counts = {item.what: item.count for item in plan.creation.items}
    assert counts["NAT gateway"] == counts["public address of a NAT gateway (Elastic IP)"] == 2
    assert "public address of a master (Elastic IP)" not in counts
    costs = {cost.what: (cost.quantity, cost.detail) for cost in plan.creation.costs}
    assert costs["public IPv4"] == (4, "the API's and the NAT gateways'")
    assert costs["NAT"] == (2, "each by the hour, and by GB")
    assert plan.downloads is None


def test_a_new_cluster_without_a_way_out_is_told_by_its_endpoints(cloud: Cloud) -> None:
    plan = Operator(cloud).plan(private("none", **MIRROR))
    assert plan.creation is not None
    needed = len(interface_endpoints(parse(private("none", **MIRROR))))
    counts = {item.what: item.count for item in plan.creation.items}
    assert (counts["interface endpoint"], counts["gateway endpoint"]) == (needed, 1)
    costs = {cost.what: cost.quantity for cost in plan.creation.costs}
    assert costs["PrivateLink"] == 2 * needed
    assert "NAT" not in costs
    assert plan.downloads is not None
    assert any("kubelet" in url for url in plan.downloads.files)
