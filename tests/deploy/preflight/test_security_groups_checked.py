"""Existing security groups against the rules that the cluster needs: what the check of a network says about them."""

from __future__ import annotations

import shlex
from ipaddress import IPv4Network
from typing import Any

import pytest
from cloud import Cloud
from existing_network import EVERYWHERE, REGION, ExistingNetwork

from cfngen.cluster.load import parse
from cfngen.cluster.security_groups.needed_rules import NeededRule, needed_rules
from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.preflight.findings import Finding, Severity
from cfngen.deploy.preflight.network.security_groups import permits

CLUSTER_TAG = "kubernetes.io/cluster/kubernetes"
ALLOWED = "203.0.113.0/24"


class Groups:
    """A network with existing security groups for masters and nodes, which have no rules but EC2's own."""

    def __init__(self, account: Account, *roles: str, topology: str = "public") -> None:
        self.network = ExistingNetwork(account, topology)
        self.network.file["api"] = {**self.network.file.get("api", {}), "allowedCidrs": [ALLOWED]}
        self.ids = {role: self.make(role) for role in roles or ("masters", "nodes")}
        self.network.network["securityGroups"] = self.ids
        if "nodes" in self.ids:
            self.network.tag(self.ids["nodes"], CLUSTER_TAG, "shared")

    @property
    def ec2(self) -> Any:
        return self.network.ec2

    def make(self, name: str) -> str:
        made = self.ec2.create_security_group(GroupName=name, Description=name, VpcId=self.network.vpc)
        return str(made["GroupId"])

    @property
    def needed(self) -> tuple[NeededRule, ...]:
        return needed_rules(parse({**self.network.file, "network": self.network.network}))

    def allow(self, *rules: NeededRule, **other: Any) -> None:
        """Add rules, each with other values where some are given."""
        for rule in rules:
            if rule.direction == "egress" and rule.peers == (EVERYWHERE,):
                continue  # every new group has this rule
            permission = rule.permission | other
            call = f"authorize_security_group_{rule.direction}"
            getattr(self.ec2, call)(GroupId=rule.group, IpPermissions=[permission])

    def findings(self) -> list[Finding]:
        return [finding for finding in self.network.found() if finding.check.startswith("security-group")]


@pytest.fixture
def account(cloud: Cloud) -> Account:
    return connect(cloud.session, REGION, clock=cloud.clock, attempts=1)


@pytest.fixture
def groups(account: Account) -> Groups:
    return Groups(account)


def test_groups_with_the_listed_rules_are_in_order(groups: Groups) -> None:
    groups.allow(*groups.needed)
    assert groups.findings() == []
    checks = {finding.check for finding in groups.network.check().findings if finding.severity is Severity.OK}
    assert {"security-groups", "security-group-tags"} <= checks


def test_each_missing_rule_is_named_with_the_command_that_adds_it(groups: Groups) -> None:
    findings = groups.findings()
    ingress = [rule for rule in groups.needed if rule.direction == "ingress"]
    assert [finding.commands for finding in findings] == [(rule.command(REGION),) for rule in ingress]
    assert all(finding.severity is Severity.PROBLEM for finding in findings)
    api = findings[1]
    masters, nodes = groups.ids["masters"], groups.ids["nodes"]
    assert api.key == "network.securityGroups.masters"
    assert api.text == f"{masters} has no rule for incoming TCP 443 from {nodes} (Nodes and pods to the API server)"
    words = shlex.split(api.commands[0])
    assert words[:7] == [
        "aws", "ec2", "authorize-security-group-ingress", "--region", REGION, "--group-id", masters,
    ]  # fmt: skip
    assert words[8] == (
        f"IpProtocol=tcp,FromPort=443,ToPort=443,"
        f'UserIdGroupPairs=[{{GroupId={nodes},Description="Nodes and pods to the API server"}}]'
    )


def test_one_rule_is_missing(groups: Groups) -> None:
    kubelet = next(rule for rule in groups.needed if rule.first_port == 10250)
    groups.allow(*(rule for rule in groups.needed if rule != kubelet))
    [finding] = groups.findings()
    assert finding.commands == (kubelet.command(REGION),)


@pytest.mark.parametrize(
    "wider",
    [
        {"IpProtocol": "-1"},
        {"FromPort": 0, "ToPort": 65535},
        {"FromPort": 10250, "ToPort": 10259},
        {"UserIdGroupPairs": [], "IpRanges": [{"CidrIp": "10.20.0.0/16"}]},
        {"UserIdGroupPairs": [], "IpRanges": [{"CidrIp": "10.20.0.0/20"}, {"CidrIp": "10.20.16.0/24"}]},
        {"UserIdGroupPairs": [], "IpRanges": [{"CidrIp": EVERYWHERE}]},
    ],
)
def test_a_wider_rule_does_as_well(groups: Groups, wider: dict[str, Any]) -> None:
    kubelet = next(rule for rule in groups.needed if rule.first_port == 10250)
    groups.allow(*(rule for rule in groups.needed if rule != kubelet))
    groups.allow(kubelet, **wider)
    assert groups.findings() == []


@pytest.mark.parametrize(
    "narrower",
    [
        {"FromPort": 10251, "ToPort": 10259},
        {"IpProtocol": "udp"},
        {"UserIdGroupPairs": [], "IpRanges": [{"CidrIp": "10.20.0.0/24"}]},
    ],
)
def test_a_narrower_rule_does_not(groups: Groups, narrower: dict[str, Any]) -> None:
    kubelet = next(rule for rule in groups.needed if rule.first_port == 10250)
    groups.allow(*(rule for rule in groups.needed if rule != kubelet))
    groups.allow(kubelet, **narrower)
    assert [finding.commands for finding in groups.findings()] == [(kubelet.command(REGION),)]


def test_all_traffic_may_be_allowed_by_protocol(groups: Groups) -> None:
    between_nodes = next(rule for rule in groups.needed if rule.group == groups.ids["nodes"] and rule.protocol == "-1")
    groups.allow(*(rule for rule in groups.needed if rule != between_nodes))
    groups.allow(between_nodes, IpProtocol="tcp", FromPort=0, ToPort=65535)
    groups.allow(between_nodes, IpProtocol="udp", FromPort=0, ToPort=65535)
    assert len(groups.findings()) == 1
    groups.allow(between_nodes, IpProtocol="icmp", FromPort=-1, ToPort=-1)
    assert groups.findings() == []


def test_rules_of_an_additional_group_of_all_masters_count(groups: Groups) -> None:
    clients = next(rule for rule in groups.needed if rule.peers == (ALLOWED,))
    groups.allow(*(rule for rule in groups.needed if rule != clients))
    assert len(groups.findings()) == 1
    additional = groups.make("clients")
    groups.network.file["controlPlane"] = {"additionalSecurityGroups": [additional]}
    groups.ec2.authorize_security_group_ingress(GroupId=additional, IpPermissions=[clients.permission])
    assert groups.findings() == []


def test_rules_of_an_additional_group_of_some_nodes_do_not_count(groups: Groups) -> None:
    of_nodes = [rule for rule in groups.needed if rule.group == groups.ids["nodes"]]
    groups.allow(*(rule for rule in groups.needed if rule not in of_nodes))
    additional = groups.make("some")
    for rule in of_nodes[:2]:
        groups.ec2.authorize_security_group_ingress(GroupId=additional, IpPermissions=[rule.permission])
    groups.network.file["nodeGroups"] = [{"name": "a", "additionalSecurityGroups": [additional]}, {"name": "b"}]
    assert len(groups.findings()) == 2
    groups.network.file["nodeGroups"][1]["additionalSecurityGroups"] = [additional]
    assert groups.findings() == []


def test_a_group_that_restricts_outgoing_traffic_needs_the_clusters_own(groups: Groups) -> None:
    groups.allow(*groups.needed)
    everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": EVERYWHERE}]}]
    groups.ec2.revoke_security_group_egress(GroupId=groups.ids["nodes"], IpPermissions=everything)
    *problems, egress = groups.findings()
    assert egress.severity is Severity.WARNING
    assert "`config --egress`" in egress.remedy
    assert all("no rule for outgoing" in finding.text for finding in problems)
    assert any(f"outgoing TCP 443 to {groups.ids['masters']}" in finding.text for finding in problems)
    inside = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "10.20.0.0/16"}]}]
    groups.ec2.authorize_security_group_egress(GroupId=groups.ids["nodes"], IpPermissions=inside)
    assert groups.findings() == [egress]


def test_before_the_nodes_have_their_group_the_masters_need_ranges(account: Account) -> None:
    groups = Groups(account, "masters")
    api = next(rule for rule in groups.needed if "Nodes and pods to the API" in rule.description)
    assert api.peers == ("10.20.0.0/24", "10.20.16.0/24")
    groups.allow(*groups.needed)
    assert groups.findings() == []


def test_the_nodes_group_that_the_stack_has_made_may_be_named(account: Account) -> None:
    groups = Groups(account, "masters")
    made = groups.make("kubernetes-SecurityGroupsStack-0123-NodeSecurityGroup-4567")
    of_nodes = [rule for rule in groups.needed if len(rule.peers) == 2]
    groups.allow(*(rule for rule in groups.needed if rule not in of_nodes))
    groups.allow(*of_nodes, IpRanges=[], UserIdGroupPairs=[{"GroupId": made}])
    assert len(groups.findings()) == len(of_nodes)  # it might be anybody's group
    groups.network.tag(made, "KubernetesCluster", "kubernetes")
    assert groups.findings() == []


def test_the_bastions_group_may_be_named_once_it_exists(groups: Groups) -> None:
    groups.network.file |= {"bastion": {"allowedCidrs": [ALLOWED]}, "ssh": {"keyName": "admin"}}
    ssh = [rule for rule in groups.needed if "bastion" in rule.description]
    assert [rule.peers for rule in ssh] == [("10.20.0.0/24",)] * 2
    groups.allow(*(rule for rule in groups.needed if rule not in ssh))
    made = groups.make("kubernetes-BastionStack-0123-BastionSecurityGroup-4567")
    groups.allow(*ssh, IpRanges=[], UserIdGroupPairs=[{"GroupId": made}])
    assert len(groups.findings()) == 2  # it might be anybody's group
    groups.network.tag(made, "KubernetesCluster", "kubernetes")
    assert groups.findings() == []


def test_the_bastions_group_is_no_source_for_others(groups: Groups) -> None:
    clients = next(rule for rule in groups.needed if rule.peers == (ALLOWED,))
    groups.allow(*(rule for rule in groups.needed if rule != clients))
    made = groups.make("kubernetes-BastionStack-0123-BastionSecurityGroup-4567")
    groups.network.tag(made, "KubernetesCluster", "kubernetes")
    groups.allow(clients, IpRanges=[], UserIdGroupPairs=[{"GroupId": made}])
    assert [finding.commands for finding in groups.findings()] == [(clients.command(REGION),)]


def test_the_range_of_the_bastions_public_subnet_is_looked_up(account: Account) -> None:
    groups = Groups(account, topology="private")
    groups.network.network["subnets"][0]["public"] = {"id": groups.network.public_subnet}
    groups.network.file |= {"bastion": {"allowedCidrs": [ALLOWED]}, "ssh": {"keyName": "admin"}}
    ssh = [rule for rule in groups.needed if "bastion" in rule.description]
    assert [rule.peers for rule in ssh] == [("10.20.0.0/16",)] * 2
    groups.allow(*(rule for rule in groups.needed if rule not in ssh))
    findings = groups.findings()
    assert ["TCP 22 from 10.20.200.0/26 (SSH" in finding.text for finding in findings] == [True, True]
    groups.allow(*ssh, IpRanges=[{"CidrIp": "10.20.200.0/26"}])
    assert groups.findings() == []


def test_commands_add_only_what_a_group_lacks(account: Account) -> None:
    """EC2 refuses a whole command if the group has one of its rules."""
    groups = Groups(account, "masters")
    api = next(rule for rule in groups.needed if "Nodes and pods to the API" in rule.description)
    groups.allow(*(rule for rule in groups.needed if rule != api))
    groups.allow(api, IpRanges=[{"CidrIp": api.peers[0]}])
    [finding] = groups.findings()
    assert (api.peers[0] in finding.commands[0], api.peers[1] in finding.commands[0]) == (False, True)


def test_the_nodes_group_without_the_clusters_tag_is_a_warning(groups: Groups) -> None:
    groups.allow(*groups.needed)
    groups.ec2.delete_tags(Resources=[groups.ids["nodes"]], Tags=[{"Key": CLUSTER_TAG}])
    [finding] = groups.findings()
    assert (finding.severity, finding.key) == (Severity.WARNING, "network.securityGroups.nodes")
    assert "load balancers of Services" in finding.text
    assert finding.commands[0].endswith(f"--tags Key={CLUSTER_TAG},Value=shared")


def test_an_additional_group_may_have_the_tag_instead(groups: Groups) -> None:
    groups.allow(*groups.needed)
    groups.ec2.delete_tags(Resources=[groups.ids["nodes"]], Tags=[{"Key": CLUSTER_TAG}])
    additional = groups.make("tagged")
    groups.network.tag(additional, CLUSTER_TAG, "shared")
    groups.network.file["nodeGroups"] = [{"additionalSecurityGroups": [additional]}]
    assert groups.findings() == []


@pytest.mark.parametrize(("key", "value"), [(CLUSTER_TAG, "owned"), ("KubernetesCluster", "kubernetes")])
def test_a_group_tagged_as_the_clusters_own_would_be_deleted(account: Account, key: str, value: str) -> None:
    groups = Groups(account, "masters")
    groups.allow(*groups.needed)
    groups.network.tag(groups.ids["masters"], key, value)
    [finding] = groups.findings()
    assert finding.severity is Severity.PROBLEM
    assert "is deleted with it" in finding.text
    groups.network.tag(groups.ids["masters"], CLUSTER_TAG, "shared")
    assert groups.findings() == []


def test_a_group_of_another_vpc_is_refused(groups: Groups) -> None:
    groups.allow(*groups.needed)
    other = groups.ec2.create_vpc(CidrBlock="10.30.0.0/16")["Vpc"]["VpcId"]
    elsewhere = groups.ec2.create_security_group(GroupName="x", Description="x", VpcId=other)["GroupId"]
    groups.ids["masters"] = elsewhere
    [finding] = [found for found in groups.network.found() if found.check == "objects"]
    assert finding.key == "network.securityGroups.masters"
    assert finding.text.startswith(f"{elsewhere} belongs to {other}, and the cluster is in {groups.network.vpc}")


def test_a_group_that_two_roles_share_is_judged_once(account: Account) -> None:
    groups = Groups(account, "masters")
    groups.ids["nodes"] = groups.ids["masters"]
    groups.network.tag(groups.ids["nodes"], CLUSTER_TAG, "shared")
    commands = [finding.commands[0] for finding in groups.findings()]
    assert len(commands) == len(set(commands))
    everything = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": groups.ids["masters"]}]}
    groups.ec2.authorize_security_group_ingress(GroupId=groups.ids["masters"], IpPermissions=[everything])
    assert [ALLOWED in finding.text for finding in groups.findings()] == [True]


def permission(protocol: str = "tcp", first: int | None = 443, last: int | None = 443, **peers: Any) -> dict[str, Any]:
    ports = {} if first is None else {"FromPort": first, "ToPort": last}
    return {"IpProtocol": protocol, **ports, "UserIdGroupPairs": [{"GroupId": "sg-1"}], **peers}


@pytest.mark.parametrize(("protocol", "ports", "permissions", "is_permitted"), [
    ("tcp", (443, 444), [permission("tcp", 443, 444)], True),
    ("tcp", (443, 444), [permission("tcp", 0, 65535)], True),
    ("tcp", (443, 444), [permission("6", 443, 444)], True),
    ("tcp", (443, 444), [permission("tcp", None)], True),
    ("tcp", (443, 444), [permission("-1", None)], True),
    ("tcp", (443, 444), [permission("tcp", 444, 444)], False),
    ("tcp", (443, 444), [permission("tcp", 443, 443)], False),
    ("tcp", (443, 444), [permission("udp", 443, 444)], False),
    ("tcp", (443, 444), [], False),
    ("icmp", (3, 4), [permission("icmp", 3, 4)], True),
    ("icmp", (3, 4), [permission("1", 3, -1)], True),
    ("icmp", (3, 4), [permission("icmp", -1, -1)], True),
    ("icmp", (3, 4), [permission("icmp", 3, 3)], False),
    ("icmp", (3, 4), [permission("icmp", 8, 4)], False),
    ("-1", None, [permission("-1", None)], True),
    ("-1", None, [permission("tcp", 0, 65535), permission("17", 0, 65535), permission("icmp", -1, -1)], True),
    ("-1", None, [permission("tcp", 1, 65535), permission("udp", 0, 65535), permission("icmp", -1, -1)], False),
    ("-1", None, [permission("tcp", 0, 65535), permission("udp", 0, 65534), permission("icmp", -1, -1)], False),
    ("-1", None, [permission("tcp", 0, 65535), permission("udp", 0, 65535), permission("icmp", -1, 0)], False),
    ("-1", None, [permission("tcp", 0, 65535), permission("udp", 0, 65535), permission("icmp", 3, -1)], False),
    ("-1", None, [permission("tcp", 0, 65535), permission("udp", 0, 65535)], False),
])  # fmt: skip
def test_permissions_allow_traffic(
    protocol: str, ports: tuple[int, int] | None, permissions: list[dict[str, Any]], is_permitted: bool
) -> None:
    assert permits(permissions, protocol, ports, group_ids=["sg-1"]) is is_permitted
    assert not permits(permissions, protocol, ports, group_ids=["sg-2"])


def from_ranges(*cidrs: str, lists: tuple[str, ...] = ()) -> dict[str, Any]:
    ranges = {"IpRanges": [{"CidrIp": cidr} for cidr in cidrs]}
    return permission(UserIdGroupPairs=[], PrefixListIds=[{"PrefixListId": each} for each in lists], **ranges)


@pytest.mark.parametrize(("permissions", "peers", "is_permitted"), [
    ([from_ranges("10.0.0.0/25"), from_ranges("10.0.0.128/25")], {"cidrs": ["10.0.0.0/24"]}, True),
    ([from_ranges("10.0.0.0/25")], {"cidrs": ["10.0.0.0/24"]}, False),
    ([from_ranges("10.0.0.0/24")], {"cidrs": ["10.0.0.0/24", "10.0.1.0/24"]}, False),
    ([from_ranges("10.0.0.0/24")], {"cidrs": []}, False),
    ([from_ranges(lists=("pl-1",))], {"cidrs": ["10.0.0.0/24"]}, True),
    ([from_ranges(lists=("pl-1",))], {"cidrs": []}, False),
    ([from_ranges(lists=("pl-1",))], {"prefix_list": "pl-1"}, True),
    ([from_ranges(lists=("pl-1",))], {"prefix_list": "pl-2"}, False),
    ([from_ranges(EVERYWHERE)], {"prefix_list": "pl-2"}, True),
    ([from_ranges("10.0.0.0/8")], {"prefix_list": "pl-2"}, False),
    ([permission()], {"group_ids": ["sg-1"], "cidrs": ["10.0.0.0/24"]}, True),
])  # fmt: skip
def test_permissions_allow_peers(permissions: list[dict[str, Any]], peers: dict[str, Any], is_permitted: bool) -> None:
    cidrs = map(IPv4Network, peers.pop("cidrs", ()))
    assert permits(permissions, "tcp", (443, 443), cidrs=cidrs, **peers) is is_permitted
