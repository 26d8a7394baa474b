"""Network plug-ins in the templates: the rules, permissions and properties that each needs, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from service_authorization import faults
from test_policies import policies, resolved

PLUGINS = ("vpc-routes", "cilium", "calico", "flannel", "amazon-vpc", "none")
# What nodes may send to masters whatever the plug-in is: the API, kubelets' metrics, path MTU discovery.
ALWAYS = {("tcp", 443, 443), ("tcp", 10250, 10250), ("icmp", 3, 4)}
DNS = {("tcp", 53, 53), ("udp", 53, 53)}
OPEN: dict[str, set[tuple[str, int, int]]] = {
    "vpc-routes": DNS,
    "cilium": {("udp", 8472, 8472), ("tcp", 4240, 4240), ("icmp", 8, -1)},
    "calico": {("udp", 4789, 4789), ("tcp", 5473, 5473)},
    "flannel": {("udp", 8472, 8472)},
    "amazon-vpc": DNS,
    "none": set(),
}
EXISTING = {
    "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
    "subnets": [
        {"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/20"},
        {"zone": "us-west-2b", "id": "subnet-0123456789abcdef1", "cidr": "10.20.16.0/20"},
    ],
    "serviceCidr": "10.250.0.0/16",
}


def of(plugin: str, **network: Any) -> dict[str, Any]:
    return {"network": {"plugin": plugin, **network}}


def rules(found: Any, group: str, source: str) -> set[tuple[str, int | None, int | None]]:
    """Protocol and ports of the rules from one security group to another."""
    ingress = (each["Properties"] for each in found.of_type("AWS::EC2::SecurityGroupIngress").values())
    return {
        (each["IpProtocol"], each.get("FromPort"), each.get("ToPort"))
        for each in ingress
        if each["GroupId"] == {"Fn::GetAtt": [group, "GroupId"]}
        and each.get("SourceSecurityGroupId") == {"Fn::GetAtt": [source, "GroupId"]}
    }


def granted(templates: Any, configuration: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each role may do; of a plug-in with addresses of the VPC the masters have that in a policy of its own."""
    documents = policies(templates, configuration)
    for policy in templates(configuration).of_type("AWS::IAM::ManagedPolicy").values():
        if policy["Properties"]["Description"].startswith("pods' addresses"):
            assert policy["Properties"]["Roles"] == [{"Ref": "MasterRole"}]
            more = policy["Properties"]["PolicyDocument"]["Statement"]
            documents["MasterRole"] = {
                **documents["MasterRole"],
                "Statement": documents["MasterRole"]["Statement"] + more,
            }
    return documents


def actions(policy: dict[str, Any], sid: str = "") -> set[str]:
    statements = (each for each in policy["Statement"] if each["Sid"].startswith(sid))
    return {action for statement in statements for action in statement["Action"]}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_nodes_reach_masters_where_the_plugin_needs_it_and_nowhere_else(templates: Any, plugin: str) -> None:
    generated = templates(of(plugin))
    assert rules(generated, "MasterSecurityGroup", "NodeSecurityGroup") == ALWAYS | OPEN[plugin]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_all_else_between_instances_is_open_whatever_the_plugin_is(templates: Any, plugin: str) -> None:
    generated = templates(of(plugin))
    every = {("-1", None, None)}
    assert rules(generated, "NodeSecurityGroup", "NodeSecurityGroup") == every
    assert rules(generated, "NodeSecurityGroup", "MasterSecurityGroup") == every
    assert rules(generated, "MasterSecurityGroup", "MasterSecurityGroup") == every


@pytest.mark.parametrize("plugin", PLUGINS)
def test_routes_may_be_written_only_where_pods_have_routes(templates: Any, plugin: str) -> None:
    documents = policies(templates, of(plugin))
    routing = {"ec2:CreateRoute", "ec2:DeleteRoute", "ec2:ModifyInstanceAttribute"}
    assert actions(documents["MasterRole"]) & routing == (routing if plugin == "vpc-routes" else set())
    assert not actions(documents["NodeRole"]) & routing


@pytest.mark.parametrize("plugin", PLUGINS)
def test_instances_carry_other_peoples_packets_only_where_pods_have_routes(templates: Any, plugin: str) -> None:
    interface = templates(of(plugin)).properties("MasterANetworkInterface")
    assert interface["SourceDestCheck"] is (plugin != "vpc-routes")


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_route_table_is_asked_for_only_where_pods_have_routes(templates: Any, plugin: str) -> None:
    parameters = templates(of(plugin, **EXISTING))["standalone"]["Parameters"]
    assert ("RouteTableId" in parameters) is (plugin == "vpc-routes")


@pytest.mark.parametrize("plugin", PLUGINS)
def test_network_interfaces_are_made_only_where_pods_have_their_addresses(templates: Any, plugin: str) -> None:
    for role, policy in granted(templates, of(plugin)).items():
        assert ("ec2:CreateNetworkInterface" in actions(policy)) is (plugin == "amazon-vpc"), role


@pytest.mark.parametrize("plugin", PLUGINS)
def test_policies_of_every_plugin_are_sound(templates: Any, plugin: str) -> None:
    for role, policy in granted(templates, of(plugin)).items():
        assert faults(resolved(policy)) == [], role


def test_the_vpc_plugin_may_do_what_its_documentation_asks_for(templates: Any) -> None:
    # amazon-vpc-cni-k8s, docs/iam-policy.md, less the calls of what is off: custom security groups.
    wanted = {
        "ec2:AssignPrivateIpAddresses",
        "ec2:AttachNetworkInterface",
        "ec2:CreateNetworkInterface",
        "ec2:CreateTags",
        "ec2:DeleteNetworkInterface",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeInstances",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "ec2:DetachNetworkInterface",
        "ec2:ModifyNetworkInterfaceAttribute",
        "ec2:UnassignPrivateIpAddresses",
    }
    for role, policy in granted(templates, of("amazon-vpc")).items():
        assert actions(policy, "PodAddresses") == wanted, role


def test_the_vpc_plugin_changes_only_what_is_the_clusters(templates: Any) -> None:
    for role, policy in granted(templates, {"name": "prod", **of("amazon-vpc")}).items():
        for statement in (each for each in policy["Statement"] if each["Sid"].startswith("PodAddresses")):
            if all(action.startswith("ec2:Describe") for action in statement["Action"]):
                continue
            condition = json.dumps(statement["Condition"])
            assert '/KubernetesCluster": "prod"' in condition or "ec2:Vpc" in condition, (role, statement["Sid"])
            assert statement["Resource"] != ["*"], (role, statement["Sid"])


def test_nodes_leave_the_interfaces_of_masters_alone(templates: Any) -> None:
    tag = "aws:ResourceTag/k8s.io/role/master"
    generated = templates(of("amazon-vpc"))
    own = [each for each in policies(templates, of("amazon-vpc"))["NodeRole"]["Statement"] if "Own" in each["Sid"]]
    changing = [each for each in own if each["Sid"].startswith("PodAddressesOwn")]
    assert len(changing) == 2
    assert all(each["Condition"]["StringNotEquals"] == {tag: "1"} for each in changing)
    tags = {tag["Key"]: tag["Value"] for tag in generated.properties("MasterANetworkInterface")["Tags"]}
    assert tags["k8s.io/role/master"] == "1"
    # Nor can they give that tag away or take it.
    marking = next(each for each in own if each["Sid"] == "PodAddressesMarkOwnInterfaces")
    keys = marking["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"]
    assert not [key for key in keys if "role" in key]


def test_a_group_with_a_role_of_its_own_has_the_plugins_permissions_too(templates: Any) -> None:
    group = {"name": "batch", "additionalPolicies": ["arn:aws:iam::123456789012:policy/batch"]}
    documents = policies(templates, {**of("amazon-vpc"), "nodeGroups": [group]})
    assert "ec2:AttachNetworkInterface" in actions(documents["NodeGroupBatchRole"])


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_plugin_is_noted_for_later_deployments(templates: Any, plugin: str) -> None:
    notes = templates(of(plugin))["cluster"]["Metadata"]["cfngen"]["immutableSettings"]
    assert notes["network.plugin"] == plugin
    assert ("network.podCidr" in notes) is (plugin != "amazon-vpc")
