"""What kube-up made is there, wired, tagged and closed, in every shape of the network."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

CONDITION = "AWS::CloudFormation::WaitCondition"
SHAPES: dict[str, dict[str, Any]] = {
    "default": {},
    "private api": {
        "api": {"public": False},
        "network": {
            "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "172.20.0.0/16"},
            "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "172.20.0.0/24"}],
        },
    },
    "three masters": {
        "controlPlane": {"count": 3},
        "network": {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]},
    },
    "three zones": {"network": {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]}},
    "existing": {
        "network": {
            "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "172.20.0.0/16"},
            "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "172.20.0.0/24"}],
        }
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_flat_template_holds_exactly_the_resources_of_the_stacks(templates: Any, shape: str) -> None:
    generated = templates(SHAPES[shape])
    children = [body for name, body in generated.bodies.items() if name not in ("cluster", "standalone")]
    types = [resource["Type"] for body in children for resource in body["Resources"].values()]
    # The root itself has what the creation waits for.
    types += [CONDITION for _ in generated.of_type(CONDITION)]
    assert sorted(types) == sorted(resource["Type"] for resource in generated["standalone"]["Resources"].values())


@pytest.mark.parametrize("shape", SHAPES)
def test_every_reference_of_the_flat_template_has_a_target(templates: Any, shape: str) -> None:
    body = templates(SHAPES[shape])["standalone"]
    known = {*body["Resources"], *body["Parameters"]}
    text = json.dumps({"Resources": body["Resources"], "Outputs": body["Outputs"]})
    references = {
        *re.findall(r'"Ref": "([A-Za-z0-9]+)"', text),
        *re.findall(r'"Fn::GetAtt": \["([A-Za-z0-9]+)"', text),
    }
    assert references <= known


@pytest.mark.parametrize("shape", SHAPES)
def test_the_root_passes_every_child_exactly_its_parameters(templates: Any, shape: str) -> None:
    generated = templates(SHAPES[shape])
    for resource in generated["cluster"]["Resources"].values():
        if resource["Type"] == CONDITION:
            continue
        name = resource["Properties"]["TemplateURL"]["Fn::Sub"].rpartition("}")[2].removesuffix(".json")
        assert set(resource["Properties"].get("Parameters", {})) == set(generated[name].get("Parameters", {})), name


@pytest.mark.parametrize("shape", SHAPES)
def test_root_and_flat_template_ask_for_the_same(templates: Any, shape: str) -> None:
    generated = templates(SHAPES[shape])
    where = {"TemplateBucket", "TemplatePrefix"}
    assert set(generated["cluster"]["Parameters"]) - where == set(generated["standalone"]["Parameters"])


def test_the_default_network_is_kube_ups(templates: Any) -> None:
    parameters = templates({})["standalone"]["Parameters"]
    assert parameters["VpcCidr"]["Default"] == "172.20.0.0/16"
    assert parameters["SubnetACidr"]["Default"] == "172.20.0.0/24"
    assert parameters["MasterAAddress"]["Default"] == "172.20.0.9"
    assert parameters["ZoneA"]["Default"] == "us-west-2a"
    assert (parameters["NodeGroupNodesMinSize"]["Default"], parameters["NodeGroupNodesMaxSize"]["Default"]) == (4, 4)


def test_the_vpc_resolves_names(templates: Any) -> None:
    vpc = templates({}).properties("Vpc")
    assert vpc["EnableDnsSupport"] is True
    assert vpc["EnableDnsHostnames"] is True


@pytest.mark.parametrize(
    ("region", "domain"), [("us-west-2", "us-west-2.compute.internal"), ("us-east-1", "ec2.internal")]
)
def test_dhcp_hands_out_the_regions_domain(templates: Any, region: str, domain: str) -> None:
    assert templates({"region": region}).properties("DhcpOptions")["DomainName"] == domain


def test_a_given_dhcp_option_set_is_associated_and_none_is_made(templates: Any) -> None:
    generated = templates({"network": {"dhcpOptions": "dopt-0123456789abcdef0"}})
    assert generated.properties("DhcpOptionsAssociation")["DhcpOptionsId"] == "dopt-0123456789abcdef0"
    assert not generated.of_type("AWS::EC2::DHCPOptions")
    assert not templates({"network": {"dhcpOptions": "default"}}).of_type("AWS::EC2::VPCDHCPOptionsAssociation")


def test_an_existing_network_makes_no_vpc_stack(templates: Any) -> None:
    generated = templates(SHAPES["existing"])
    assert "vpc" not in generated.bodies
    assert generated["cluster"]["Parameters"]["SubnetAId"]["Default"] == "subnet-0123456789abcdef0"
    assert "Default" not in generated["cluster"]["Parameters"]["RouteTableId"], (
        "the console must ask for the route table"
    )


def test_subnets_in_an_existing_vpc_ask_for_the_internet_gateway(templates: Any) -> None:
    vpc = {"id": "vpc-0123456789abcdef0", "cidr": "172.20.0.0/16"}
    generated = templates({"network": {"vpc": vpc, "subnets": [{"zone": "us-west-2a", "cidr": "172.20.8.0/24"}]}})
    assert "Default" not in generated["standalone"]["Parameters"]["InternetGatewayId"]
    assert not generated.of_type("AWS::EC2::VPC")
    assert generated.of_type("AWS::EC2::Subnet")


def test_a_master_keeps_address_and_volume_when_its_instance_goes(templates: Any) -> None:
    generated = templates({})
    group = generated.properties("MasterAAutoScalingGroup")
    assert (group["MinSize"], group["MaxSize"]) == ("1", "1")
    assert group["AvailabilityZones"] == [{"Ref": "ZoneA"}]
    data = generated.properties("MasterALaunchTemplate")["LaunchTemplateData"]
    assert data["NetworkInterfaces"] == [
        {"DeviceIndex": 0, "DeleteOnTermination": False, "NetworkInterfaceId": {"Ref": "MasterANetworkInterface"}}
    ]
    volume = generated.of_type("AWS::EC2::Volume")["MasterAVolume"]
    assert volume["DeletionPolicy"] == volume["UpdateReplacePolicy"] == "Snapshot"
    assert volume["Properties"]["Encrypted"] is True


def test_groups_wait_for_signals_on_creation_and_roll_one_at_a_time(templates: Any) -> None:
    generated = templates({})
    for logical_id, group in generated.of_type("AWS::AutoScaling::AutoScalingGroup").items():
        waits = generated["standalone"]["Resources"]["MasterAWaitCondition"] if "Master" in logical_id else group
        assert waits["CreationPolicy"]["ResourceSignal"]["Timeout"] == "PT20M", logical_id
        rolling = group["UpdatePolicy"]["AutoScalingRollingUpdate"]
        assert rolling["WaitOnResourceSignals"] is True
        assert rolling["MaxBatchSize"] == 1
        # What an autoscaler raised stays (kubernetes-retired/kube-aws#972).
        assert group["UpdatePolicy"]["AutoScalingScheduledAction"] == {"IgnoreUnmodifiedGroupSizeProperties": True}


def test_desired_capacity_is_set_only_when_asked_for(templates: Any) -> None:
    assert "DesiredCapacity" not in templates({}).properties("NodeGroupNodesAutoScalingGroup")
    generated = templates({"nodeGroups": [{"name": "nodes", "minSize": 1, "maxSize": 5, "desiredSize": 3}]})
    group = generated.of_type("AWS::AutoScaling::AutoScalingGroup")["NodeGroupNodesAutoScalingGroup"]
    assert group["Properties"]["DesiredCapacity"] == "3"
    assert group["CreationPolicy"]["ResourceSignal"]["Count"] == "3"


@pytest.mark.parametrize(
    ("group", "least", "greatest"),
    [
        ({"minSize": 4, "maxSize": 4}, (0, 4), (4, 5000)),
        ({"minSize": 2, "maxSize": 6}, (0, 6), (6, 5000)),
        ({"minSize": 2, "maxSize": 6, "desiredSize": 3}, (0, 3), (3, 5000)),
        ({"minSize": 0, "maxSize": 6, "desiredSize": 0}, (0, 0), (1, 5000)),
    ],
)
def test_no_two_sizes_that_may_be_typed_are_out_of_order(
    templates: Any, group: dict[str, int], least: tuple[int, int], greatest: tuple[int, int]
) -> None:
    generated = templates({"nodeGroups": [{"name": "nodes", **group}]})
    for name in ("cluster", "standalone", "nodes-nodes"):
        asked = [generated[name]["Parameters"][f"NodeGroupNodes{bound}Size"] for bound in ("Min", "Max")]
        assert [(each["MinValue"], each["MaxValue"]) for each in asked] == [least, greatest]
        assert all(each["MinValue"] <= each["Default"] <= each["MaxValue"] for each in asked)
        # Whichever two values pass their own bounds, minimum <= desired <= maximum holds.
        assert asked[0]["MaxValue"] <= group.get("desiredSize", asked[1]["MinValue"]) <= asked[1]["MinValue"]


@pytest.mark.parametrize(("count", "last"), [(1, "A"), (3, "C")])
def test_nodes_come_after_the_masters_groups_and_wait_for_no_master(templates: Any, count: int, last: str) -> None:
    """The groups of masters wait for their instances in updates alone, so this orders nothing but updates."""
    generated = templates({"controlPlane": {"count": count}, "nodeGroups": [{"name": "one"}, {"name": "two"}]})
    for name in ("NodeGroupOne", "NodeGroupTwo"):
        assert generated["cluster"]["Resources"][f"{name}Stack"]["DependsOn"] == ["MasterStack"]
        group = generated["standalone"]["Resources"][f"{name}AutoScalingGroup"]
        assert f"Master{last}AutoScalingGroup" in group["DependsOn"]
    assert "CreationPolicy" not in json.dumps(generated["master"])


def test_spot_instances_are_one_time_requests(templates: Any) -> None:
    generated = templates({"nodeGroups": [{"name": "spot", "spotPrice": "0.05"}]})
    options = generated.properties("NodeGroupSpotLaunchTemplate")["LaunchTemplateData"]["InstanceMarketOptions"]
    assert options["SpotOptions"] == {"MaxPrice": {"Ref": "NodeGroupSpotSpotPrice"}, "SpotInstanceType": "one-time"}


@pytest.mark.parametrize("shape", SHAPES)
def test_instances_require_imdsv2_and_encrypt_their_disks(templates: Any, shape: str) -> None:
    for logical_id, template in templates(SHAPES[shape]).of_type("AWS::EC2::LaunchTemplate").items():
        data = template["Properties"]["LaunchTemplateData"]
        assert data["MetadataOptions"]["HttpTokens"] == "required", logical_id
        assert data["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
        assert all(mapping["Ebs"]["Encrypted"] is True for mapping in data["BlockDeviceMappings"])


def test_an_ssh_key_is_named_imported_or_absent(templates: Any) -> None:
    def key(configuration: dict[str, Any]) -> Any:
        generated = templates({"ssh": configuration})
        return generated.properties("MasterALaunchTemplate")["LaunchTemplateData"].get("KeyName")

    assert key({}) is None
    assert key({"keyName": "any name at all"}) == {"Ref": "KeyName"}
    assert key({"publicKey": "ssh-ed25519 AAAA"}) == {"Ref": "SshKeyPair"}


def test_the_api_is_open_to_nobody_until_somebody_says_who(templates: Any) -> None:
    parameters = templates({})["standalone"]["Parameters"]
    assert "Default" not in parameters["ApiAllowedCidr"]
    given = templates({"api": {"allowedCidrs": ["203.0.113.0/24", "198.51.100.7/32"]}})
    assert "ApiAllowedCidr" not in given["standalone"]["Parameters"]
    open_to = [
        rule["Properties"]["CidrIp"]
        for rule in given.of_type("AWS::EC2::SecurityGroupIngress").values()
        if "CidrIp" in rule["Properties"]
    ]
    assert sorted(open_to) == ["198.51.100.7/32", "203.0.113.0/24"]


def test_ssh_is_closed_unless_ranges_are_given(templates: Any) -> None:
    def ports(configuration: dict[str, Any]) -> list[int]:
        rules = templates(configuration).of_type("AWS::EC2::SecurityGroupIngress").values()
        return [rule["Properties"].get("FromPort") for rule in rules]

    assert 22 not in ports({})
    assert ports({"ssh": {"keyName": "k", "allowedCidrs": ["203.0.113.0/24"]}}).count(22) == 2


def test_nodes_do_not_reach_etcd(templates: Any) -> None:
    for logical_id, rule in templates({}).of_type("AWS::EC2::SecurityGroupIngress").items():
        properties = rule["Properties"]
        to_master = properties["GroupId"] == {"Fn::GetAtt": ["MasterSecurityGroup", "GroupId"]}
        if to_master and properties.get("SourceSecurityGroupId") == {"Fn::GetAtt": ["NodeSecurityGroup", "GroupId"]}:
            assert properties["IpProtocol"] != "-1", logical_id
            assert not properties["FromPort"] <= 2379 <= properties["ToPort"], logical_id


@pytest.mark.parametrize("shape", SHAPES)
def test_only_the_clusters_own_groups_and_the_ranges_of_the_api_come_in(templates: Any, shape: str) -> None:
    """Of another cluster in the same VPC nothing does."""
    generated = templates(SHAPES[shape])
    own = [{"Fn::GetAtt": [group, "GroupId"]} for group in generated.of_type("AWS::EC2::SecurityGroup")]
    rules = {name: rule["Properties"] for name, rule in generated.of_type("AWS::EC2::SecurityGroupIngress").items()}
    assert rules
    for logical_id, rule in rules.items():
        assert not {"SourceSecurityGroupName", "SourcePrefixListId", "CidrIpv6"} & set(rule), logical_id
        if "SourceSecurityGroupId" in rule:
            assert rule["SourceSecurityGroupId"] in own, logical_id
        else:
            assert (rule["CidrIp"], rule["FromPort"], rule["ToPort"]) == ({"Ref": "ApiAllowedCidr"}, 443, 443)
    assert not [
        group
        for group in generated.of_type("AWS::EC2::SecurityGroup").values()
        if "SecurityGroupIngress" in group["Properties"]
    ]


def test_every_rule_says_what_it_is_for(templates: Any) -> None:
    generated = templates({"ssh": {"keyName": "k", "allowedCidrs": ["203.0.113.0/24"]}})
    rules = [rule["Properties"] for rule in generated.of_type("AWS::EC2::SecurityGroupIngress").values()]
    for group in generated.of_type("AWS::EC2::SecurityGroup").values():
        rules += group["Properties"]["SecurityGroupEgress"]
    assert rules
    assert all(rule["Description"] for rule in rules)


@pytest.mark.parametrize("shape", SHAPES)
def test_exactly_one_security_group_of_an_instance_carries_the_clusters_tag(templates: Any, shape: str) -> None:
    # The cloud controller manager fails when an instance has two.
    generated = templates(SHAPES[shape])
    tagged = {
        key
        for key, group in generated.of_type("AWS::EC2::SecurityGroup").items()
        if any(tag["Key"].startswith("kubernetes.io/cluster/") for tag in group["Properties"]["Tags"])
    }
    assert tagged == {"MasterSecurityGroup", "NodeSecurityGroup"}
    assert len(generated.properties("MasterANetworkInterface")["GroupSet"]) == 1
    assert len(generated.of_type("AWS::EC2::RouteTable")) <= 1


def test_stacks_are_bound_to_their_region(templates: Any) -> None:
    for name, body in templates({"region": "eu-west-1"}).bodies.items():
        rule = body["Rules"]["Region"]["Assertions"][0]
        assert rule["Assert"] == {"Fn::Equals": [{"Ref": "AWS::Region"}, "eu-west-1"]}, name
        assert "eu-west-1" in rule["AssertDescription"]


@pytest.mark.parametrize("name", ["cluster", "standalone"])
def test_every_parameter_is_described_labelled_and_grouped(templates: Any, name: str) -> None:
    body = templates(SHAPES["three zones"])[name]
    interface = body["Metadata"]["AWS::CloudFormation::Interface"]
    grouped = [parameter for group in interface["ParameterGroups"] for parameter in group["Parameters"]]
    assert sorted(grouped) == sorted(body["Parameters"]) == sorted(interface["ParameterLabels"])
    assert all(parameter["Description"] for parameter in body["Parameters"].values())


def test_a_person_is_told_endpoint_kubeconfig_shell_and_vpc(templates: Any) -> None:
    for name in ("cluster", "standalone"):
        assert {"ApiEndpoint", "KubeconfigCommand", "ShellCommand", "VpcId"} <= set(templates({})[name]["Outputs"])


def test_the_shell_command_follows_the_way_in_that_is_open(templates: Any) -> None:
    def shell(ssh: dict[str, Any]) -> str:
        return json.dumps(templates({"ssh": ssh})["standalone"]["Outputs"].get("ShellCommand", ""))

    assert "aws ssm start-session" in shell({})
    assert "ssh ubuntu@" in shell({"keyName": "k", "allowedCidrs": ["203.0.113.0/24"]})
    assert "ssm" in shell({"keyName": "k"}), "a key without an open port is no way in"
    assert shell({"sessionManager": False}) == '""'
    debian = templates({"image": {"distribution": "debian-13"}})["standalone"]["Outputs"]
    assert "ShellCommand" not in debian, "Debian's images have no SSM agent"


def test_the_data_volumes_type_can_be_changed_only_to_one_that_takes_the_same(templates: Any) -> None:
    def offered(volume: dict[str, Any]) -> list[str]:
        found = templates({"controlPlane": {"volume": volume}})["standalone"]["Parameters"]["MasterVolumeType"]
        return list(found["AllowedValues"])

    assert offered({}) == ["gp3", "gp2"]
    assert offered({"type": "io2", "iops": 5000, "size": 100}) == ["io2"]
    assert offered({"type": "gp3", "throughput": 250}) == ["gp3"]


def test_a_changed_key_or_tag_gives_the_imported_key_pair_another_name(templates: Any) -> None:
    # CloudFormation replaces the key pair then, which the old name would not allow.
    def name(configuration: dict[str, Any]) -> str:
        return str(templates(configuration).properties("SshKeyPair")["KeyName"])

    names = {
        name({"ssh": {"publicKey": "ssh-ed25519 AAAA"}}),
        name({"ssh": {"publicKey": "ssh-ed25519 BBBB"}}),
        name({"ssh": {"publicKey": "ssh-ed25519 AAAA"}, "tags": {"team": "platform"}}),
    }
    assert len(names) == 3
    assert all(name.startswith("kubernetes-ssh-") for name in names)


def test_the_types_that_the_console_offers_fit_the_image(templates: Any) -> None:
    amd64 = templates({})["standalone"]["Parameters"]["MasterInstanceType"]["AllowedPattern"]
    arm64 = templates({"controlPlane": {"instanceType": "t4g.medium"}})["standalone"]["Parameters"]
    graviton = arm64["MasterInstanceType"]["AllowedPattern"]
    for fits, pattern in (
        (("t3.medium", "m7i.metal-24xl", "g4dn.xlarge"), amd64),
        (("t4g.small", "t4g.medium", "a1.large"), graviton),
    ):
        assert all(re.match(pattern, example) for example in fits)
    small = ("t3.micro", "t2.nano", "t2.small", "m3.medium", "c1.medium")
    assert not any(re.match(amd64, each) for each in (*small, "m7g.large", "a1.large", "mac1.metal"))
    few = ("t4g.nano", "t4g.micro", "m7g.medium", "a1.medium")
    assert not any(re.match(graviton, each) for each in (*few, "m5.large", "g5.xlarge"))
