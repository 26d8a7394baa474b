"""The bastion: what it may reach, who may reach it, and that it changes nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.security_groups.rules import CFNGEN_RULES, RESERVED_RULES
from cfngen.permissions.references import MASTER_ROLE_TAG

KEY = {"ssh": {"keyName": "admin"}}
BASTION = {**KEY, "bastion": {"allowedCidrs": ["203.0.113.0/24"]}}
PRIVATE = {"network": {"topology": "private", "plugin": "cilium"}}
TWO_ZONES = [{"zone": "us-west-2a"}, {"zone": "us-west-2b"}]


def ingress(found: Any, group: str) -> list[dict[str, Any]]:
    """The ingress rules of a security group of the flat template."""
    rules = found.of_type("AWS::EC2::SecurityGroupIngress").values()
    properties = (rule["Properties"] for rule in rules)
    return [each for each in properties if each["GroupId"] == {"Fn::GetAtt": [group, "GroupId"]}]


@pytest.mark.parametrize("more", [{}, PRIVATE], ids=["public", "private"])
def test_a_bastion_adds_a_stack_and_changes_no_other(templates: Any, more: dict[str, Any]) -> None:
    without, with_bastion = templates({**KEY, **more}), templates({**BASTION, **more})
    shared = set(without.bodies) - {"cluster", "standalone"}
    assert set(with_bastion.bodies) - set(without.bodies) == {"bastion"}
    assert all(with_bastion[name] == without[name] for name in shared)
    for name, resource in without["cluster"]["Resources"].items():
        assert with_bastion["cluster"]["Resources"][name] == resource


def test_of_a_fully_private_cluster_it_changes_the_network_only(templates: Any) -> None:
    file = {"network": {**PRIVATE["network"], "nat": "none"}, "api": {"public": False}, **KEY}
    without, with_bastion = templates(file), templates({**file, **BASTION})
    changed = {name for name in without.bodies if with_bastion[name] != without[name]}
    assert changed == {"vpc", "cluster", "standalone"}
    added = with_bastion["vpc"]["Resources"].keys() - without["vpc"]["Resources"].keys()
    assert added == {
        "PublicSubnetA", "PublicSubnetARouteTableAssociation", "RouteTable", "InternetRoute", "InternetGateway",
        "InternetGatewayAttachment",
    }  # fmt: skip


def test_ssh_goes_through_it_and_nothing_else_does(templates: Any) -> None:
    found = templates({**BASTION, "ssh": {"keyName": "admin"}})
    bastion = {"Fn::GetAtt": ["BastionSecurityGroup", "GroupId"]}
    for group in ("MasterSecurityGroup", "NodeSecurityGroup"):
        [rule] = [rule for rule in ingress(found, group) if rule.get("SourceSecurityGroupId") == bastion]
        assert (rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("tcp", 22, 22)
    [rule] = ingress(found, "BastionSecurityGroup")
    assert (rule["CidrIp"], rule["FromPort"], rule["ToPort"]) == ("203.0.113.0/24", 22, 22)
    egress = found.properties("BastionSecurityGroup")["SecurityGroupEgress"]
    assert {(rule["FromPort"], rule["ToPort"], rule.get("CidrIp")) for rule in egress} == {
        (22, 22, None), (80, 80, "0.0.0.0/0"), (443, 443, "0.0.0.0/0"),
    }  # fmt: skip


def test_prefix_lists_may_reach_it(templates: Any) -> None:
    listed = {"allowedPrefixLists": [{"id": "pl-0123456789abcdef0", "maxEntries": 10}]}
    found = templates({**KEY, "bastion": listed})
    [rule] = ingress(found, "BastionSecurityGroup")
    assert (rule["SourcePrefixListId"], rule["FromPort"]) == ("pl-0123456789abcdef0", 22)


def test_its_instance_has_neither_role_nor_boot_program_and_needs_tokens_for_metadata(templates: Any) -> None:
    data = templates(BASTION).properties("BastionLaunchTemplate")["LaunchTemplateData"]
    assert "IamInstanceProfile" not in data
    assert "UserData" not in data
    assert data["MetadataOptions"]["HttpTokens"] == "required"
    [device] = data["BlockDeviceMappings"]
    assert (device["Ebs"]["Encrypted"], device["Ebs"]["VolumeType"]) == (True, "gp3")
    [interface] = data["NetworkInterfaces"]
    assert interface["NetworkInterfaceId"] == {"Ref": "BastionNetworkInterface"}
    assert data["KeyName"] == {"Ref": "KeyName"}


def test_nothing_waits_for_it(templates: Any) -> None:
    found = templates(BASTION)
    group = found["bastion"]["Resources"]["BastionAutoScalingGroup"]
    assert "CreationPolicy" not in group
    assert "WaitOnResourceSignals" not in group["UpdatePolicy"]["AutoScalingRollingUpdate"]
    assert "BastionStack" not in str(
        [resource for name, resource in found["cluster"]["Resources"].items() if name != "BastionStack"]
    )


def test_the_masters_addresses_are_taken_before_its_own(templates: Any) -> None:
    found = templates({**BASTION, "controlPlane": {"count": 3}})
    interface = found["standalone"]["Resources"]["BastionNetworkInterface"]
    assert interface["DependsOn"] == [f"Master{letter}NetworkInterface" for letter in "ABC"]
    parameters = found["cluster"]["Resources"]["BastionStack"]["Properties"]["Parameters"]
    assert parameters["ApiPrivateAddress"] == {"Fn::GetAtt": ["MasterStack", "Outputs.ApiPrivateAddress"]}


@pytest.mark.parametrize(
    ("more", "zone", "subnet"),
    [
        ({"network": {"subnets": TWO_ZONES}}, "us-west-2b", "SubnetB"),
        ({"network": {**PRIVATE["network"], "subnets": TWO_ZONES}}, "us-west-2a", "PublicSubnetA"),
    ],
    ids=["public", "private"],
)
def test_its_subnet_leads_to_the_internet(templates: Any, more: dict[str, Any], zone: str, subnet: str) -> None:
    found = templates({**KEY, **more, "bastion": {"allowedCidrs": ["203.0.113.0/24"], "zone": zone}})
    assert found.properties("BastionNetworkInterface")["SubnetId"] == {"Fn::GetAtt": [subnet, "SubnetId"]}
    group = found["standalone"]["Resources"]["BastionAutoScalingGroup"]
    assert {"InternetRoute", f"{subnet}RouteTableAssociation"} <= set(group["DependsOn"])


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_its_image_is_that_of_its_region_and_architecture(templates: Any, architecture: str) -> None:
    wanted = {"allowedCidrs": ["203.0.113.0/24"], "image": {"distribution": "debian-13", "architecture": architecture}}
    parameters = templates({**KEY, "bastion": wanted})["bastion"]["Parameters"]
    image = parameters[f"BastionImageDebian13{architecture.capitalize()}"]
    assert image["Default"] == f"/aws/service/debian/release/13/latest/{architecture}"


def test_the_command_names_the_users_of_both_images(templates: Any) -> None:
    wanted = {"allowedCidrs": ["203.0.113.0/24"], "image": {"distribution": "debian-13"}}
    found = templates({**KEY, "bastion": wanted, "controlPlane": {"image": {"distribution": "amazon-linux-2023"}}})
    command, _ = found["bastion"]["Outputs"]["BastionCommand"]["Value"]["Fn::Sub"]
    assert command == "ssh -J admin@${Bastion} ec2-user@${Master}"
    assert "BastionAddress" in found["cluster"]["Outputs"]


def test_nodes_whose_plug_in_manages_interfaces_may_not_change_it(templates: Any) -> None:
    subnets = [{"zone": "us-west-2a", "cidr": "172.20.0.0/20"}]
    found = templates({**BASTION, "network": {"plugin": "amazon-vpc", "subnets": subnets}})
    [(key, value)] = MASTER_ROLE_TAG.items()
    for resource in ("BastionNetworkInterface", "BastionAutoScalingGroup"):
        tags = {tag["Key"]: tag["Value"] for tag in found.properties(resource)["Tags"]}
        assert tags[key] == value
    tags = {tag["Key"]: tag["Value"] for tag in templates(BASTION).properties("BastionNetworkInterface")["Tags"]}
    assert key not in tags


def test_its_rules_fit_into_the_room_that_is_kept_free(templates: Any) -> None:
    """The rules for the bastion are in another stack than the others of the masters' and the nodes' groups."""
    subnets = [{"zone": "us-west-2a", "cidr": "172.20.0.0/20"}]
    for plugin in ("vpc-routes", "cilium", "calico", "flannel", "amazon-vpc"):
        file = {**BASTION, "network": {"plugin": plugin, "subnets": subnets}, "controlPlane": {"count": 3}}
        found = templates(file)
        for group in ("MasterSecurityGroup", "NodeSecurityGroup"):
            assert len(ingress(found, group)) <= CFNGEN_RULES + RESERVED_RULES
