"""Who may come in from outside, spread over as many security groups as the quotas of EC2 ask for."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

import pytest

from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError
from cfngen.cluster.sections.base import Plugin
from cfngen.cluster.security_groups.rules import CFNGEN_RULES, RESERVED_RULES

SUBNETS = [{"zone": f"us-west-2{zone}"} for zone in "abc"]
THREE = {"network": {"subnets": SUBNETS}, "controlPlane": {"count": 3}}


def ranges(count: int, first: int = 10) -> list[str]:
    return [f"{first}.{number // 256}.{number % 256}.0/24" for number in range(count)]


def lists(*weights: int) -> list[dict[str, Any]]:
    return [{"id": f"pl-{number:08x}", "maxEntries": weight} for number, weight in enumerate(weights)]


def rules(found: Any, weights: dict[str, int] | None = None) -> Counter[str]:
    """How many ingress rules each security group has, a prefix list by its entries."""
    count: Counter[str] = Counter()
    for rule in found.of_type("AWS::EC2::SecurityGroupIngress").values():
        properties = rule["Properties"]
        count[properties["GroupId"]["Fn::GetAtt"][0]] += (weights or {}).get(properties.get("SourcePrefixListId"), 1)
    return count


def cluster_tagged(found: Any) -> set[str]:
    return {
        name
        for name, group in found.of_type("AWS::EC2::SecurityGroup").items()
        if any(tag["Key"].startswith("kubernetes.io/cluster/") for tag in group["Properties"]["Tags"])
    }


@pytest.mark.parametrize("plugin", get_args(Plugin))
@pytest.mark.parametrize("file", [{}, THREE])
def test_what_a_cluster_brings_itself_is_allowed_for(templates: Any, file: dict[str, Any], plugin: str) -> None:
    network = {**file.get("network", {}), "plugin": plugin}
    if plugin == "amazon-vpc":
        network["subnets"] = [
            {"zone": f"us-west-2{zone}", "cidr": f"172.20.{16 * position}.0/20"} for position, zone in enumerate("abc")
        ]
    assert max(rules(templates({**file, "network": network})).values()) <= CFNGEN_RULES


def test_a_few_ranges_need_no_further_group(templates: Any) -> None:
    generated = templates({"api": {"allowedCidrs": ranges(20)}, "ssh": {"keyName": "k", "allowedCidrs": ranges(10)}})
    groups = {"MasterSecurityGroup", "NodeSecurityGroup", "NodeGroupNodesSecurityGroup"}
    assert set(generated.of_type("AWS::EC2::SecurityGroup")) == groups


def test_many_ranges_go_into_further_groups_without_the_clusters_tag(templates: Any) -> None:
    generated = templates(
        {"api": {"allowedCidrs": ranges(120)}, "ssh": {"keyName": "k", "allowedCidrs": ranges(60, 11)}}
    )
    assert all(count <= 60 - RESERVED_RULES for count in rules(generated).values())
    opened = [
        rule["Properties"]["CidrIp"]
        for rule in generated.of_type("AWS::EC2::SecurityGroupIngress").values()
        if "CidrIp" in rule["Properties"]
    ]
    assert Counter(opened) == Counter([*ranges(120), *ranges(60, 11), *ranges(60, 11)])
    further = ["MasterAccessSecurityGroup2", "MasterAccessSecurityGroup3", "MasterAccessSecurityGroup4"]
    interface = generated.properties("MasterANetworkInterface")["GroupSet"]
    assert [each["Fn::GetAtt"][0] for each in interface] == ["MasterSecurityGroup", *further]
    nodes = generated.properties("NodeGroupNodesLaunchTemplate")["LaunchTemplateData"]["NetworkInterfaces"][0]["Groups"]
    assert [node["Fn::GetAtt"][0] for node in nodes] == [
        "NodeSecurityGroup", "NodeAccessSecurityGroup2", "NodeGroupNodesSecurityGroup"
    ]  # fmt: skip
    assert cluster_tagged(generated) == {"MasterSecurityGroup", "NodeSecurityGroup"}
    # What is in a nested stack takes over its tags.
    for stack in ("SecurityGroupsStack", "NodeGroupNodesStack"):
        tags = generated["cluster"]["Resources"][stack]["Properties"]["Tags"]
        assert not any(tag["Key"].startswith("kubernetes.io/cluster/") for tag in tags)


def test_the_load_balancer_has_further_groups_too_which_lead_to_masters_only(templates: Any) -> None:
    generated = templates({**THREE, "api": {"allowedCidrs": ranges(80)}})
    names = [
        security_group["Fn::GetAtt"][0] for security_group in generated.properties("ApiLoadBalancer")["SecurityGroups"]
    ]
    assert names == ["ApiLoadBalancerSecurityGroup", "ApiLoadBalancerAccessSecurityGroup2"]
    for name in names:
        [way_out] = generated.properties(name)["SecurityGroupEgress"]
        assert way_out["DestinationSecurityGroupId"] == {"Fn::GetAtt": ["MasterSecurityGroup", "GroupId"]}


def test_a_range_at_the_end_moves_no_other(templates: Any) -> None:
    before, after = (
        templates({"api": {"allowedCidrs": ranges(count)}}).of_type("AWS::EC2::SecurityGroupIngress")
        for count in (36, 37)
    )
    assert {name: after[name] for name in before} == before
    [new] = after.keys() - before.keys()
    assert after[new]["Properties"]["GroupId"] == {"Fn::GetAtt": ["MasterAccessSecurityGroup2", "GroupId"]}


def test_prefix_lists_count_by_their_entries(templates: Any) -> None:
    generated = templates({"api": {"allowedPrefixLists": lists(30, 30, 20)}})
    assert "ApiAllowedCidr" not in generated["cluster"]["Parameters"]
    weights = {"pl-00000000": 30, "pl-00000001": 30, "pl-00000002": 20}
    assert rules(generated, weights)["MasterAccessSecurityGroup2"] == 50
    rule = generated.properties("MasterApiFromPl00000000")
    assert (rule["SourcePrefixListId"], rule["FromPort"]) == ("pl-00000000", 443)
    assert "CidrIp" not in rule
    assert generated.properties("MasterApiFromPl00000001")["GroupId"] != rule["GroupId"]


def test_prefix_lists_open_ssh(templates: Any) -> None:
    generated = templates({"ssh": {"keyName": "k", "allowedPrefixLists": lists(5)}})
    assert generated.properties("NodeSshFromPl00000000")["FromPort"] == 22
    assert "ssh ubuntu@" in str(generated["standalone"]["Outputs"]["ShellCommand"])


@pytest.mark.parametrize(
    ("file", "key", "says"),
    [
        ({"api": {"allowedCidrs": ranges(237)}}, "api.allowedCidrs", "237 sources count as 237 rules of the masters"),
        (
            {"api": {"allowedCidrs": ranges(150)},
             "controlPlane": {"additionalSecurityGroups": ["sg-00000001", "sg-00000002"]}},
            "api.allowedCidrs", "the 3 security groups that an interface may have for them hold 136 at most",
        ),
        ({**THREE, "api": {"allowedCidrs": ranges(237)}}, "api.allowedCidrs", "rules of the API's load balancer"),
        ({"ssh": {"keyName": "k", "allowedPrefixLists": lists(50, 50, 50, 50, 50)}}, "ssh.allowedPrefixLists",
         "5 sources count as 250 rules"),
        ({"api": {"allowedPrefixLists": lists(51)}}, "api.allowedPrefixLists[0].maxEntries", "counts as 51 rules"),
        ({"api": {"allowedCidrs": ranges(461)}, "network": {"quotas": {"rulesPerSecurityGroup": 200}}},
         "api.allowedCidrs", "put ranges into a prefix list"),
        ({"network": {"quotas": {"rulesPerSecurityGroup": 201}}}, "network.quotas.rulesPerSecurityGroup",
         "make 1005 of an interface; AWS allows 1000"),
        ({"nodeGroups": [{"additionalSecurityGroups": [f"sg-0000000{each}" for each in range(5)]}]},
         "nodeGroups[0].additionalSecurityGroups", "more than the 5 of an interface"),
    ],
)  # fmt: skip
def test_more_than_an_interface_holds_is_refused(file: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(ClusterFileError) as raised:
        parse(file)
    assert f"{key}: " in str(raised.value)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    "file",
    [
        {"api": {"allowedCidrs": ranges(236)}},
        {"api": {"allowedCidrs": ranges(450)}, "network": {"quotas": {"rulesPerSecurityGroup": 200}}},
        {"nodeGroups": [{"additionalSecurityGroups": [f"sg-0000000{each}" for each in range(5)]}],
         "network": {"quotas": {"securityGroupsPerInterface": 7}}},
    ],
)  # fmt: skip
def test_a_raised_quota_makes_room(templates: Any, file: dict[str, Any]) -> None:
    generated = templates(file)
    limit = file.get("network", {}).get("quotas", {}).get("rulesPerSecurityGroup", 60)
    assert max(rules(generated).values()) <= limit


OPENED = {
    "ports": "30000-32767",
    "cidrs": ["198.51.100.0/24"],
    "prefixLists": lists(20),
    "securityGroups": ["sg-0123456789abcdef0"],
}


def groups_with(*rules_of_one: dict[str, Any]) -> dict[str, Any]:
    return {"nodeGroups": [{"name": "one", "ingress": list(rules_of_one)}, {"name": "two"}]}


def test_a_port_of_a_node_group_is_open_on_its_own_nodes_only(templates: Any) -> None:
    generated = templates(groups_with(OPENED, {"protocol": "all", "cidrs": ["10.0.0.0/8"], "description": "VPN"}))
    opened = {
        name: rule["Properties"]
        for name, rule in generated.of_type("AWS::EC2::SecurityGroupIngress").items()
        if name.startswith("NodeGroup")
    }
    node_ports = {"IpProtocol": "tcp", "FromPort": 30000, "ToPort": 32767}
    group = {"GroupId": {"Fn::GetAtt": ["NodeGroupOneSecurityGroup", "GroupId"]}}
    assert opened == {
        f"NodeGroupOne{name}": {**group, **properties}
        for name, properties in {
            "Tcp30000To32767From198x51x100x0x24": {
                **node_ports, "CidrIp": "198.51.100.0/24", "Description": "TCP 30000-32767 from 198.51.100.0/24",
            },
            "Tcp30000To32767FromPl00000000": {
                **node_ports, "SourcePrefixListId": "pl-00000000", "Description": "TCP 30000-32767 from pl-00000000",
            },
            "Tcp30000To32767FromSg0123456789abcdef0": {
                **node_ports, "SourceSecurityGroupId": "sg-0123456789abcdef0",
                "Description": "TCP 30000-32767 from sg-0123456789abcdef0",
            },
            "AllFrom10x0x0x0x8": {"IpProtocol": "-1", "CidrIp": "10.0.0.0/8", "Description": "VPN"},
        }.items()
    }  # fmt: skip
    for name in ("One", "Two"):
        [interface] = generated.properties(f"NodeGroup{name}LaunchTemplate")["LaunchTemplateData"]["NetworkInterfaces"]
        names = [group["Fn::GetAtt"][0] for group in interface["Groups"]]
        assert names == ["NodeSecurityGroup", f"NodeGroup{name}SecurityGroup"]
        # By this tag the Amazon VPC plug-in of nodes may give the group to further interfaces.
        tags = generated.properties(f"NodeGroup{name}SecurityGroup")["Tags"]
        assert {"Key": "k8s.io/role/node", "Value": "1"} in tags
    assert cluster_tagged(generated) == {"MasterSecurityGroup", "NodeSecurityGroup"}


BASTION = {"allowedCidrs": ["203.0.113.7/32"]}


@pytest.mark.parametrize(
    ("before", "after", "stack"),
    [
        (groups_with(), groups_with(OPENED), "nodes-one"),
        ({}, {"controlPlane": {"ingress": [OPENED]}}, "security-groups"),
        ({"bastion": BASTION}, {"bastion": {**BASTION, "ingress": [OPENED]}}, "bastion"),
    ],
)
def test_the_first_rule_is_one_resource_more_and_changes_no_other(
    templates: Any, before: dict[str, Any], after: dict[str, Any], stack: str
) -> None:
    """Neither a launch template, nor a security group to which one refers, nor what the root passes on."""
    old, new = (templates({"ssh": {"keyName": "k"}, **file}).bodies for file in (before, after))
    for name in old:
        resources, now = old[name]["Resources"], new[name]["Resources"]
        assert {logical_id: now.get(logical_id) for logical_id in resources} == resources
        added = [now[logical_id]["Type"] for logical_id in now.keys() - resources.keys()]
        assert added == ["AWS::EC2::SecurityGroupIngress"] * (3 if name in (stack, "standalone") else 0)
