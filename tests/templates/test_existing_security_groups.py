"""Templates of clusters whose security groups exist: which resources and rules are left, and what refers to whom."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from cfngen.cluster.load import load
from cfngen.templates import generate

CASES = Path(__file__).parents[1] / "golden" / "cases"


def templates(case: str, *overrides: str) -> dict[str, dict[str, Any]]:
    cluster = load(CASES / case / "cluster.yaml", environ={}, overrides=overrides).cluster
    return {document.name: document.body for document in generate(cluster)}


def resources(body: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = body["Resources"]
    return {name: resource["Properties"] for name, resource in found.items() if resource["Type"] == kind}


def test_without_groups_of_its_own_a_cluster_has_no_stack_for_them() -> None:
    bodies = templates("own-security-groups")
    assert "security-groups" not in bodies
    assert "SecurityGroupsStack" not in bodies["cluster"]["Resources"]
    for body in bodies.values():
        types = {resource["Type"] for resource in body["Resources"].values()}
        assert not {kind for kind in types if kind.startswith("AWS::EC2::SecurityGroup")}


@pytest.mark.parametrize("form", ["cluster", "standalone"])
def test_each_existing_group_is_a_parameter_whose_default_is_its_id(form: str) -> None:
    parameters = templates("own-security-groups")[form]["Parameters"]
    groups = {
        name: parameter["Default"]
        for name, parameter in parameters.items()
        if parameter["Type"] == "AWS::EC2::SecurityGroup::Id"
    }
    assert groups == {
        "MasterSecurityGroupId": "sg-0123456789abcdef0",
        "NodeSecurityGroupId": "sg-0123456789abcdef1",
        "ApiLoadBalancerSecurityGroupId": "sg-0123456789abcdef2",
        "InternalApiLoadBalancerSecurityGroupId": "sg-0123456789abcdef3",
        "EndpointsSecurityGroupId": "sg-0123456789abcdef4",
    }


def test_whatever_has_a_group_has_the_existing_one() -> None:
    body = templates("own-security-groups")["standalone"]
    interfaces = resources(body, "AWS::EC2::NetworkInterface")
    assert len(interfaces) == 3
    assert all(each["GroupSet"] == [{"Ref": "MasterSecurityGroupId"}] for each in interfaces.values())
    nodes = resources(body, "AWS::EC2::LaunchTemplate")["NodeGroupNodesLaunchTemplate"]["LaunchTemplateData"]
    assert nodes["NetworkInterfaces"][0]["Groups"] == [{"Ref": "NodeSecurityGroupId"}]
    balancers = resources(body, "AWS::ElasticLoadBalancingV2::LoadBalancer")
    assert {name: each["SecurityGroups"] for name, each in balancers.items()} == {
        "ApiLoadBalancer": [{"Ref": "ApiLoadBalancerSecurityGroupId"}],
        "InternalApiLoadBalancer": [{"Ref": "InternalApiLoadBalancerSecurityGroupId"}],
    }
    endpoints = resources(body, "AWS::EC2::VPCEndpoint").values()
    groups = [each["SecurityGroupIds"] for each in endpoints if each["VpcEndpointType"] == "Interface"]
    assert groups
    assert all(each == [{"Ref": "EndpointsSecurityGroupId"}] for each in groups)


def test_an_existing_group_gets_no_rule_and_is_a_source_in_those_of_others() -> None:
    body = templates("own-masters-security-group")["security-groups"]
    assert list(resources(body, "AWS::EC2::SecurityGroup")) == ["NodeSecurityGroup"]
    rules = resources(body, "AWS::EC2::SecurityGroupIngress")
    assert {each["GroupId"]["Fn::GetAtt"][0] for each in rules.values()} == {"NodeSecurityGroup"}
    assert rules["NodeFromMasters"]["SourceSecurityGroupId"] == {"Ref": "MasterSecurityGroupId"}
    assert "MasterSecurityGroupId" not in body["Outputs"]


def test_many_sources_need_no_further_group_beside_an_existing_one() -> None:
    ranges = [f"api.allowedCidrs[{number}]=198.51.{number}.0/24" for number in range(100)]
    body = templates("own-masters-security-group", *ranges)["standalone"]
    [interface] = resources(body, "AWS::EC2::NetworkInterface").values()
    assert interface["GroupSet"] == [{"Ref": "MasterSecurityGroupId"}]


def test_who_may_reach_the_api_is_asked_only_where_a_rule_would_follow() -> None:
    without_ranges = "api.allowedCidrs=[]"
    assert "ApiAllowedCidr" not in templates("own-masters-security-group", without_ranges)["cluster"]["Parameters"]
    several = templates("own-masters-security-group", without_ranges, "controlPlane.count=3")
    assert "ApiAllowedCidr" in several["cluster"]["Parameters"]
    assert "ApiLoadBalancerFromAllowedCidr" in several["standalone"]["Resources"]


GROUPS = ("masters", "nodes", "apiLoadBalancer", "internalApiLoadBalancer", "endpoints")


@pytest.mark.parametrize("named", [names for count in range(6) for names in combinations(GROUPS, count)], ids="+".join)
def test_whichever_groups_exist_no_template_has_a_parameter_that_nothing_uses(named: tuple[str, ...]) -> None:
    removed = [f"network.securityGroups.{group}=null" for group in GROUPS if group not in named]
    for name, body in templates("own-security-groups", *removed).items():
        text = json.dumps({"Resources": body["Resources"], "Outputs": body.get("Outputs", {})})
        unused = [key for key in body.get("Parameters", {}) if f'"{key}"' not in text and f"${{{key}}}" not in text]
        assert unused == [], name


def test_masters_and_nodes_with_one_group_have_no_rule_twice() -> None:
    one_group = [f"network.securityGroups.{group}=null" for group in GROUPS[2:]]
    one_group.append("network.securityGroups.nodes=sg-0123456789abcdef0")
    body = templates("own-security-groups", *one_group)["standalone"]
    rules = [
        {key: value for key, value in rule.items() if key != "Description"}
        for rule in resources(body, "AWS::EC2::SecurityGroupIngress").values()
    ]
    assert rules
    assert [rule for rule in rules if rules.count(rule) > 1] == []
    for group in resources(body, "AWS::EC2::SecurityGroup").values():
        assert len(group.get("SecurityGroupIngress", [])) <= 1
