"""A living cluster whose security groups are replaced by existing ones, and the other way round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator
from existing_network import REGION, ExistingNetwork

from cfngen.cluster.load import parse
from cfngen.cluster.security_groups.needed_rules import needed_rules
from cfngen.deploy.aws.account import connect
from cfngen.deploy.messages.message import Finished, Message
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.preflight.findings import NetworkProblemsError

pytestmark = pytest.mark.drill


class Watched(list[Message]):
    """Messages of a deployment; with each, somebody looks at the security groups of the nodes."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.unreachable: list[str] = []

    def append(self, message: Message) -> None:
        super().append(message)
        self.unreachable += self.world.nodes_that_do_not_reach_the_api()


class World:
    """A VPC of somebody else's, a cluster in it, and security groups with the rules that the cluster needs."""

    def __init__(self, cloud: Cloud) -> None:
        self.network = ExistingNetwork(connect(cloud.session, REGION, clock=cloud.clock))
        self.ec2: Any = self.network.ec2
        self.operator = Operator(cloud)
        self.ids = {name: self._group(name) for name in ("masters", "nodes")}
        self.network.tag(self.ids["nodes"], "kubernetes.io/cluster/kubernetes", "shared")

    def _group(self, name: str) -> str:
        made = self.ec2.create_security_group(GroupName=name, Description=name, VpcId=self.network.vpc)
        return str(made["GroupId"])

    def file(self, *roles: str) -> dict[str, Any]:
        network = {**self.network.network, "securityGroups": {role: self.ids[role] for role in roles}}
        return {
            "network": network,
            "api": {"allowedCidrs": ["203.0.113.0/24"]},
            "nodeGroups": [{"name": "nodes", "minSize": 1, "maxSize": 2, "drainTimeout": 0}],
        }

    def fill(self, *roles: str) -> None:
        """Add the rules that the existing groups of these roles need."""
        for rule in needed_rules(parse(self.file(*roles))):
            if rule.direction == "ingress":
                self.ec2.authorize_security_group_ingress(GroupId=rule.group, IpPermissions=[rule.permission])

    def deploy(self, file: Mapping[str, Any]) -> Finished:
        """Deploy a file; the next operation begins later than this one has ended."""
        finished = self.operator.deploy(file, flags={})
        self.operator.cloud.clock.sleep(60)
        return finished

    def groups(self) -> dict[str, Mapping[str, Any]]:
        """The security groups of the VPC by name, but for its default one."""
        filters = [{"Name": "vpc-id", "Values": [self.network.vpc]}]
        described = self.ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
        return {group["GroupName"]: group for group in described if group["GroupName"] != "default"}

    def groups_of_masters(self) -> set[str]:
        """The security groups of the master's network interface, which outlives its instances."""
        filters = [{"Name": "tag:Name", "Values": ["kubernetes-master-a"]}]
        [interface] = self.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
        return {group["GroupId"] for group in interface["Groups"]}

    def groups_of_nodes(self) -> list[set[str]]:
        """The security groups of each running node."""
        filters = [
            {"Name": "tag:Name", "Values": ["kubernetes-nodes-*"]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        reservations = self.ec2.describe_instances(Filters=filters)["Reservations"]
        instances = [instance for reservation in reservations for instance in reservation["Instances"]]
        return [
            {group["GroupId"] for interface in instance["NetworkInterfaces"] for group in interface["Groups"]}
            for instance in instances
        ]

    def nodes_that_do_not_reach_the_api(self) -> list[str]:
        """The groups of running nodes from which no rule of the masters' groups admits port 443."""
        admitted = set()
        masters = self.groups_of_masters()
        for group in self.groups().values():
            for permission in group["IpPermissions"] if group["GroupId"] in masters else ():
                if permission["IpProtocol"] == "-1" or permission["FromPort"] <= 443 <= permission["ToPort"]:
                    admitted |= {pair["GroupId"] for pair in permission["UserIdGroupPairs"]}
                    admitted |= {"range" for each in permission["IpRanges"] if each["CidrIp"].startswith("10.20.")}
        if "range" in admitted:
            return []
        return [str(groups) for groups in self.groups_of_nodes() if not groups & admitted]


@pytest.fixture
def world(cloud: Cloud) -> World:
    return World(cloud)


def consequences(plan: Plan) -> list[str]:
    return [impact.text for impact in plan.consequences]


def test_existing_groups_take_the_place_of_the_clusters_own_and_leave_it_again(world: World) -> None:
    world.fill("masters", "nodes")
    before = world.groups()
    own = world.file()
    existing = world.file("masters", "nodes")
    assert world.deploy(own).succeeded
    texts = consequences(world.operator.plan(existing, flags={}))
    assert (
        f"{world.ids['masters']} becomes the security group of the masters; the present one is removed with its "
        in ("\n".join(texts))
    )
    assert "other security groups apply to master a at once" in texts
    assert any("node group `nodes`" in text and "replace" in text for text in texts)
    world.operator.messages = Watched(world)
    assert world.deploy(existing).succeeded
    assert world.operator.messages.unreachable == []
    assert world.groups() == before
    assert world.groups_of_nodes() == [{world.ids["nodes"]}]
    assert world.groups_of_masters() == {world.ids["masters"]}
    assert world.deploy(existing).action == "none"

    world.operator.messages = Watched(world)
    assert world.deploy(own).succeeded
    assert world.operator.messages.unreachable == []
    after = world.groups()
    assert {name: after[name] for name in before} == before
    [nodes] = world.groups_of_nodes()
    assert nodes.isdisjoint(world.ids.values())


def test_nodes_reach_the_api_while_they_change_their_group(world: World) -> None:
    world.fill("nodes")
    assert world.deploy(world.file()).succeeded
    for roles in (("nodes",), ()):
        world.operator.messages = Watched(world)
        assert world.deploy(world.file(*roles)).succeeded
        assert world.operator.messages.unreachable == []


def test_another_existing_group_of_the_nodes(world: World) -> None:
    world.fill("nodes")
    assert world.deploy(world.file("nodes")).succeeded
    world.ids["nodes"] = world._group("other")
    world.network.tag(world.ids["nodes"], "kubernetes.io/cluster/kubernetes", "shared")
    world.fill("nodes")
    world.operator.messages = Watched(world)
    assert world.deploy(world.file("nodes")).succeeded
    assert world.operator.messages.unreachable == []
    assert world.groups_of_nodes() == [{world.ids["nodes"]}]


def test_groups_without_the_needed_rules_are_refused_before_anything_changes(world: World) -> None:
    assert world.deploy(world.file()).succeeded
    groups = world.groups_of_nodes()
    with pytest.raises(NetworkProblemsError, match=r"nothing was changed: .*network\.securityGroups\.nodes"):
        world.deploy(world.file("nodes"))
    assert world.groups_of_nodes() == groups
    assert world.operator.deploy(world.file("nodes"), flags={}, skip_network_check=True).succeeded
