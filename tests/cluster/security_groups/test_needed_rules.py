"""The rules that existing security groups need are those that cfngen's own groups would have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.cluster.security_groups.needed_rules import needed_rules, terraform_rules
from cfngen.templates import generate

CASES = Path(__file__).parents[2] / "golden" / "cases"
OWN = CASES / "own-security-groups" / "cluster.yaml"
OPENED = "{ports: 30000-32767, prefixLists: [{id: pl-01234567, maxEntries: 5}], securityGroups: [sg-01234567]}"
PREFIXES = {
    "Master": "masters",
    "Node": "nodes",
    "ApiLoadBalancer": "apiLoadBalancer",
    "InternalApiLoadBalancer": "internalApiLoadBalancer",
    "Endpoints": "endpoints",
}


def cluster(*overrides: str, file: Path = OWN) -> Cluster:
    return load(file, environ={}, overrides=overrides).cluster


def rules_in_template(body: dict[str, Any]) -> set[tuple[Any, ...]]:
    """Every rule of a template: its group, direction, protocol, ports, peer and description."""
    rules = set()
    for name, resource in body["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::EC2::SecurityGroupIngress":
            rules.add(rule_of(properties["GroupId"]["Fn::GetAtt"][0], "ingress", properties))
        elif resource["Type"] == "AWS::EC2::SecurityGroup":
            for direction in ("Ingress", "Egress"):
                for rule in properties.get(f"SecurityGroup{direction}", ()):
                    rules.add(rule_of(name, direction.lower(), rule))
    return rules


def rule_of(group: str, direction: str, rule: dict[str, Any]) -> tuple[Any, ...]:
    peer = next(rule[key] for key in rule if key == "CidrIp" or key.startswith(("Source", "Destination")))
    if isinstance(peer, dict):
        peer = PREFIXES[peer["Fn::GetAtt"][0].removesuffix("SecurityGroup")]
    return (
        # A node group has a security group of its own only where nodes have no existing one.
        "nodes" if group.startswith("NodeGroup") else PREFIXES[group.removesuffix("SecurityGroup")],
        direction,
        rule["IpProtocol"],
        rule.get("FromPort"),
        rule.get("ToPort"),
        peer,
        rule["Description"],
    )


@pytest.mark.parametrize("plugin", ["cilium", "calico", "flannel", "amazon-vpc"])
def test_the_list_has_every_rule_of_the_templates(plugin: str) -> None:
    overrides = (
        f"network.plugin={plugin}",
        "addons.prometheus={enabled: true}",
        "ssh={allowedCidrs: [192.0.2.0/24], allowedPrefixLists: [{id: pl-0123456789abcdef0, maxEntries: 5}]}",
        "controlPlane.ingress=[{ports: 9200, cidrs: [192.0.2.0/24], description: Logs}]",
        f"nodeGroups=[{{name: web, ingress: [{OPENED}, {{protocol: icmp, cidrs: [192.0.2.0/24]}}]}}]",
    )
    existing = cluster(*overrides)
    ids = existing.network.security_groups.model_dump(by_alias=True)
    names = {group_id: name for name, group_id in ids.items()}
    listed = {
        (
            names[rule.group],
            rule.direction,
            rule.protocol,
            rule.first_port,
            rule.last_port,
            names.get(rule.peers[0], rule.peers[0]),
            rule.description,
        )
        for rule in needed_rules(existing)
    }
    created = cluster(*overrides, "network.securityGroups={}")
    [standalone] = [document.body for document in generate(created) if document.name == "standalone"]
    assert listed == rules_in_template(standalone)


def test_a_port_of_a_node_group_is_opened_in_the_existing_group_of_nodes() -> None:
    rules = {
        rule.peers[0]: rule
        for rule in needed_rules(
            cluster(f"nodeGroups=[{{name: a, ingress: [{OPENED}]}}, {{name: b, ingress: [{OPENED}]}}]")
        )
        if rule.first_port == 30000
    }
    # Both node groups ask for it, and a group has a rule once.
    assert set(rules) == {"pl-01234567", "sg-01234567"}
    assert {rule.key for rule in rules.values()} == {"network.securityGroups.nodes"}
    assert "ToPort=32767,UserIdGroupPairs=[{GroupId=sg-01234567," in rules["sg-01234567"].command("us-west-2")
    terraform = terraform_rules(rules.values())
    assert 'referenced_security_group_id = "sg-01234567"' in terraform
    assert 'prefix_list_id               = "pl-01234567"' in terraform


def test_terraform_has_one_resource_with_ports_for_each_rule_and_peer() -> None:
    rules = needed_rules(cluster("addons.prometheus={enabled: true}"))
    terraform = terraform_rules(rules)
    names = re.findall(r'^resource "aws_vpc_security_group_(ingress|egress)_rule" "(\w+)"', terraform, re.MULTILINE)
    assert len(names) == len(set(names)) == sum(len(rule.peers) for rule in rules)
    assert terraform.count("from_port") == terraform.count("to_port")
    assert ("ingress", "masters_tcp_443_nodes") in names


def test_nothing_is_listed_where_cfngen_creates_all_groups() -> None:
    assert needed_rules(cluster("network.securityGroups={}")) == ()


def test_ranges_stand_for_groups_that_are_created_later() -> None:
    file = CASES / "own-masters-security-group" / "cluster.yaml"
    by_description = {rule.description: rule for rule in needed_rules(cluster(file=file))}
    # With VPC routes, pods keep their addresses on the way to pods on masters.
    assert by_description["Nodes and pods to the API server"].peers == ("10.20.128.0/24", "10.244.0.0/16")
    assert by_description["Masters to each other: etcd, API server, kubelet"].peers == ("sg-0123456789abcdef0",)


def test_the_public_load_balancer_of_a_private_cluster_is_in_the_public_subnets() -> None:
    existing = cluster("network.securityGroups={masters: sg-0123456789abcdef0}")
    [balancer] = [rule for rule in needed_rules(existing) if rule.description.startswith("Load balancer")]
    assert balancer.peers == ("10.20.192.0/26", "10.20.192.64/26", "10.20.192.128/26")


def test_a_rule_that_serves_two_purposes_is_listed_once() -> None:
    """The internal load balancer has addresses in the subnets of nodes; EC2 refuses the same rule a second time."""
    existing = cluster("network.securityGroups={masters: sg-0123456789abcdef0}")
    subnets = ("10.20.128.0/20", "10.20.144.0/20", "10.20.160.0/20")
    assert [
        rule.description for rule in needed_rules(existing) if rule.peers == subnets and rule.first_port == 443
    ] == ["Nodes and pods to the API server"]


def test_a_group_that_two_roles_share_has_each_rule_once() -> None:
    group = "sg-0123456789abcdef0"
    rules = needed_rules(cluster(f"network.securityGroups={{masters: {group}, nodes: {group}}}"))
    traffic = [(rule.direction, rule.traffic, rule.peers) for rule in rules]
    assert len(traffic) == len(set(traffic))


def test_a_peer_is_in_one_rule_of_the_same_traffic() -> None:
    """EC2 refuses a command if one of its rules is there: only masters' subnets are not nodes' subnets."""
    existing = cluster(
        "network.securityGroups={masters: sg-0123456789abcdef0}",
        "nodeGroups=[{name: a, zones: [us-west-2a]}]",
    )
    rules = needed_rules(existing)
    balancer = "10.20.128.0/20", "10.20.144.0/20", "10.20.160.0/20"
    api = [peer for rule in rules if rule.first_port == rule.last_port == 443 for peer in rule.peers]
    assert [rule.peers for rule in rules if rule.peers[0] in balancer and rule.first_port == 443] == [
        balancer[:1],
        balancer[1:],
    ]
    assert len(api) == len(set(api))


@pytest.mark.parametrize("reference", ["stack:network.MastersGroup", "ssm:/network/masters"])
def test_a_variable_stands_for_a_reference(reference: str) -> None:
    nodes = "sg-0123456789abcdef1"
    rules = needed_rules(cluster(f"network.securityGroups={{masters: '{reference}', nodes: {nodes}}}"))
    commands = {(rule.group, rule.peers): rule.command("us-west-2") for rule in rules}
    assert """UserIdGroupPairs=[{GroupId='"$MASTERS_GROUP"',""" in commands[nodes, (reference,)]
    assert '--group-id "$MASTERS_GROUP" ' in commands[reference, (nodes,)]
    assert "$" not in commands[nodes, (nodes,)]
    terraform = terraform_rules(rules)
    assert 'variable "masters_group" {' in terraform
    assert "security_group_id            = var.masters_group\n" in terraform
    assert f"UserIdGroupPairs=[{{GroupId={nodes}," in commands[nodes, (nodes,)]


def test_the_bastion_has_an_unknown_range_in_the_vpc() -> None:
    overrides = (
        "network.securityGroups={masters: sg-0123456789abcdef0}",
        "bastion={allowedCidrs: [192.0.2.0/24]}",
        "ssh.keyName=admin",
    )
    [ssh] = [rule for rule in needed_rules(cluster(*overrides)) if "bastion" in rule.description]
    assert (ssh.peers, ssh.description) == (("10.20.192.0/26",), "SSH from the subnet of the bastion")
    unknown = "network.subnets=[{zone: us-west-2a, cidr: 10.20.128.0/20, public: {id: subnet-0123456789abcdef0}}]"
    rules = needed_rules(cluster(*overrides, unknown, "controlPlane.count=1", "network.internetGateway=null"))
    [ssh] = [rule for rule in rules if "bastion" in rule.description]
    assert ssh.peers == ("10.20.0.0/16",)
    assert ssh.description.endswith("because public.cidr of its subnet is missing")
