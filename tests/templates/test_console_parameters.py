"""What the console asks for, under which heading, what it takes and refuses, and what a person is told at the end."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from properties_others import CLUSTERS

from cfngen.cluster.load import parse
from cfngen.templates import generate

UBUNTU = "/aws/service/canonical/ubuntu/server"
Bodies = dict[str, dict[str, Any]]
SSM_IMAGE = "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"


@pytest.fixture(scope="module")
def bodies() -> Bodies:
    """The templates of each cluster, by name."""
    return {
        cluster: {document.name: document.body for document in generate(parse(configuration))}
        for cluster, configuration in CLUSTERS.items()
    }


# A cluster; a parameter's type, which decides what the console shows and CloudFormation looks up; its default.
ASKED: list[tuple[str, str, str, Any]] = [
    ("default", "VpcCidr", "String", "172.20.0.0/16"),
    ("default", "SubnetACidr", "String", "172.20.0.0/24"),
    ("default", "ZoneA", "AWS::EC2::AvailabilityZone::Name", "us-west-2a"),
    ("default", "KeyName", "AWS::EC2::KeyPair::KeyName", "mine"),
    ("default", "MasterAAddress", "String", "172.20.0.9"),
    ("default", "MasterVolumeSize", "Number", 20),
    ("default", "MasterVolumeType", "String", "gp3"),
    ("default", "MasterRootVolumeSize", "Number", 20),
    ("default", "MasterInstanceType", "String", "t3.medium"),
    ("default", "NodeGroupNodesRootVolumeSize", "Number", 32),
    ("default", "NodeGroupNodesInstanceType", "String", "t3.medium"),
    ("default", "NodeGroupNodesMinSize", "Number", 4),
    ("default", "NodeGroupNodesMaxSize", "Number", 4),
    ("default", "MasterImageUbuntu2404Amd64", SSM_IMAGE, f"{UBUNTU}/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"),
    ("default", "NodeImageUbuntu2404Amd64", SSM_IMAGE, f"{UBUNTU}/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"),
    ("several", "ApiAllowedCidr", "String", None),
    ("several", "MasterBAddress", "String", "172.20.2.9"),
    ("several", "ZoneLax1A", "AWS::EC2::AvailabilityZone::Name", "us-west-2-lax-1a"),
    ("private", "VpcId", "AWS::EC2::VPC::Id", "vpc-0123456789abcdef0"),
    ("private", "SubnetAId", "AWS::EC2::Subnet::Id", "subnet-0123456789abcdef0"),
    ("private", "MasterVolumeType", "String", "io2"),
    ("groups", "ApiElasticIpAllocationId", "String", "eipalloc-01234567"),
    ("groups", "ApiElasticIp", "String", "52.1.2.3"),
    ("groups", "NodeGroupSpotSpotPrice", "String", "0.05"),
    ("groups", "NodeImageDebian13Arm64", SSM_IMAGE, "/aws/service/debian/release/13/latest/arm64"),
    ("added", "InternetGatewayId", "String", "igw-0123456789abcdef0"),
    ("added", "MasterImageAmi0123456789abcdef0", "AWS::EC2::Image::Id", "ami-0123456789abcdef0"),
    ("added", "NodeImageUbuntu2204Amd64", SSM_IMAGE, f"{UBUNTU}/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"),
]


def test_what_is_asked_with_which_default(bodies: Bodies) -> None:
    found = [(cluster, name, bodies[cluster]["standalone"]["Parameters"][name]) for cluster, name, *_ in ASKED]
    assert [(cluster, name, each["Type"], each.get("Default")) for cluster, name, each in found] == ASKED


def test_no_other_parameter_is_asked_of_the_default_cluster(bodies: Bodies) -> None:
    assert set(bodies["default"]["standalone"]["Parameters"]) == {
        name for cluster, name, *_ in ASKED if cluster == "default"
    }


# A cluster; a parameter that a pattern or two numbers bound; what is taken, what is refused.
TAKEN: list[tuple[str, str, list[Any], list[Any]]] = [
    ("default", "VpcCidr", ["10.0.0.0/16", "10.0.0.0/28"], ["10.0.0.0/15", "10.0.0.0/29", "10.0.0.0", "256.0.0.0/16"]),
    ("default", "SubnetACidr", ["10.0.0.0/16", "10.0.0.0/28"], ["10.0.0.0/15", "10.0.0.0/29", "x"]),
    ("default", "MasterAAddress", ["172.20.0.9"], ["172.20.0", "172.20.0.9/32", "172.20.0.256", "host"]),
    ("default", "MasterVolumeSize", [1, 16384], [0, 16385]),
    ("default", "MasterRootVolumeSize", [8, 65536], [7, 65537]),
    ("default", "NodeGroupNodesRootVolumeSize", [8, 65536], [7, 65537]),
    ("default", "NodeGroupNodesMinSize", [0, 4], [-1, 5]),
    ("default", "NodeGroupNodesMaxSize", [4, 5000], [3, 5001]),
    ("default", "MasterVolumeType", ["gp3", "gp2"], ["io2", "standard"]),
    ("several", "ApiAllowedCidr", ["0.0.0.0/0", "203.0.113.7/32"], ["203.0.113.7", "203.0.113.7/33", ""]),
    ("private", "MasterVolumeType", ["io2"], ["gp3"]),
    ("private", "MasterVolumeSize", [4, 65536], [3, 65537]),
    ("groups", "ApiElasticIpAllocationId", ["eipalloc-01234567"], ["eipalloc-0123456", "eip-01234567", "52.1.2.3"]),
    ("groups", "ApiElasticIp", ["52.1.2.3"], ["52.1.2", "eipalloc-01234567"]),
    ("groups", "NodeGroupSpotSpotPrice", ["0.05", "1", "10.5"], ["", ".5", "1.", "$1", "a"]),
    ("groups", "NodeGroupSpotMinSize", [0, 2], [3]),
    ("groups", "NodeGroupSpotMaxSize", [2, 5000], [1, 5001]),
    (
        "added",
        "InternetGatewayId",
        ["igw-01234567", "igw-0123456789abcdef0"],
        ["igw-0123456", "igw-0123456789abcdef01"],
    ),
]


def takes(definition: dict[str, Any], value: Any) -> bool:
    """What CloudFormation looks at before anything is made ("Parameters", CloudFormation Template Reference)."""
    if "AllowedValues" in definition and value not in definition["AllowedValues"]:
        return False
    if "AllowedPattern" in definition and not re.fullmatch(definition["AllowedPattern"], str(value)):
        return False
    if definition["Type"] == "Number":
        return bool(definition["MinValue"] <= value <= definition["MaxValue"])
    return True


@pytest.mark.parametrize(("cluster", "name", "good", "bad"), TAKEN, ids=[f"{row[0]} {row[1]}" for row in TAKEN])
def test_what_a_parameter_takes(bodies: Bodies, cluster: str, name: str, good: list[Any], bad: list[Any]) -> None:
    definition = bodies[cluster]["standalone"]["Parameters"][name]
    assert [value for value in good if not takes(definition, value)] == []
    assert [value for value in bad if takes(definition, value)] == []


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_who_types_something_else_is_told_what_it_must_be(bodies: Bodies, cluster: str) -> None:
    for template in ("standalone", "cluster"):
        assert [
            name
            for name, definition in bodies[cluster][template]["Parameters"].items()
            if not definition.get("Description")
            or (
                "AllowedPattern" in definition
                and not definition.get("ConstraintDescription", "").startswith("must be ")
            )
        ] == []


# The headings in the order of the console, and what stands under each.
HEADINGS = {
    "several": {
        "Network": ["VpcCidr", "SubnetACidr", "ZoneA", "SubnetLax1ACidr", "ZoneLax1A", "SubnetBCidr", "ZoneB"],
        "Access": ["ApiAllowedCidr"],
        "Masters": [
            "MasterAAddress",
            "MasterBAddress",
            "MasterCAddress",
            "MasterVolumeSize",
            "MasterVolumeType",
            "MasterImageUbuntu2404Amd64",
            "MasterRootVolumeSize",
            "MasterInstanceType",
        ],
        "All nodes": ["NodeImageUbuntu2404Amd64"],
        "Node group nodes": [
            "NodeGroupNodesRootVolumeSize",
            "NodeGroupNodesInstanceType",
            "NodeGroupNodesMinSize",
            "NodeGroupNodesMaxSize",
        ],
    },
    "added": {
        "Network": ["VpcId", "InternetGatewayId", "SubnetACidr", "ZoneA"],
        "Access": ["ApiAllowedCidr"],
    },
    "private": {"Network": ["VpcId", "SubnetAId", "ZoneA", "ZoneB"]},
    "groups": {
        "Access": ["ApiAllowedCidr", "ApiElasticIpAllocationId", "ApiElasticIp"],
        "All nodes": ["NodeImageUbuntu2404Amd64", "NodeImageDebian13Arm64"],
    },
}


@pytest.mark.parametrize("cluster", HEADINGS)
def test_under_which_heading_a_parameter_stands(bodies: Bodies, cluster: str) -> None:
    interface = bodies[cluster]["standalone"]["Metadata"]["AWS::CloudFormation::Interface"]
    groups = {group["Label"]["default"]: group["Parameters"] for group in interface["ParameterGroups"]}
    known = ["Access", "Network", "Masters", "All nodes"]
    assert [heading for heading in groups if heading in known] == [heading for heading in known if heading in groups]
    for heading, names in HEADINGS[cluster].items():
        assert [name for name in names if name not in groups[heading]] == []
    of_root = bodies[cluster]["cluster"]["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert of_root[-1] == {
        "Label": {"default": "Location of the templates"},
        "Parameters": ["TemplateBucket", "TemplatePrefix"],
    }


def test_who_may_reach_the_api_is_the_first_question(bodies: Bodies) -> None:
    for cluster, template in product(bodies, ("cluster", "standalone")):
        body = bodies[cluster][template]
        groups = body["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
        if "Default" not in body["Parameters"].get("ApiAllowedCidr", {"Default": ""}):
            assert groups[0]["Parameters"][0] == "ApiAllowedCidr"
        for group in groups:
            have_default = ["Default" in body["Parameters"][name] for name in group["Parameters"]]
            assert have_default == sorted(have_default)


def test_the_description_names_the_version_where_an_upgrade_changes_the_template(bodies: Bodies) -> None:
    for documents in bodies.values():
        named = {name for name, body in documents.items() if "version 1." in body["Description"]}
        nodes = {name for name in documents if name.startswith("nodes-")}
        assert named == {"cluster", "standalone", "master", *nodes}


def test_what_the_root_takes_for_the_place_of_its_templates(bodies: Bodies) -> None:
    root = bodies["default"]["cluster"]["Parameters"]
    assert root["TemplatePrefix"]["Default"] == ""
    assert "Default" not in root["TemplateBucket"]
    assert all(takes(root["TemplateBucket"], name) for name in ("abc", "a.b-c", "b" * 63))
    assert not any(takes(root["TemplateBucket"], name) for name in ("ab", "b" * 64, "-abc", "abc-", "ABC", "a_b"))
    assert all(takes(root["TemplatePrefix"], prefix) for prefix in ("", "a/", "a/b-c_1.2/"))
    assert not any(takes(root["TemplatePrefix"], prefix) for prefix in ("a", "/", "/a/", "a//", "a b/"))
    # Looked up in the root, the nested stack would be handed the AMI for the name of a parameter.
    image = root["MasterImageUbuntu2404Amd64"]
    assert (image["Type"], image["Default"]) == ("String", f"{UBUNTU}/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id")
    assert bodies["default"]["master"]["Parameters"]["MasterImageUbuntu2404Amd64"]["Type"] == SSM_IMAGE


def test_where_the_root_finds_its_stacks_and_what_it_hands_them(bodies: Bodies) -> None:
    resources = bodies["default"]["cluster"]["Resources"]
    nested = {name: each for name, each in resources.items() if each["Type"] == "AWS::CloudFormation::Stack"}
    names = {
        "VpcStack": "vpc",
        "SecurityGroupsStack": "security-groups",
        "SecretsStack": "secrets",
        "IamStack": "iam",
        "MasterStack": "master",
        "NodeGroupNodesStack": "nodes-nodes",
    }
    assert list(nested) == list(names)
    for logical_id, name in names.items():
        stack = nested[logical_id]
        url = f"https://${{TemplateBucket}}.s3.${{AWS::Region}}.${{AWS::URLSuffix}}/${{TemplatePrefix}}{name}.json"
        assert stack["Properties"]["TemplateURL"] == {"Fn::Sub": url}
        assert (stack["DeletionPolicy"], stack["UpdateReplacePolicy"]) == ("Delete", "Delete")
        tags = {tag["Key"]: tag["Value"] for tag in stack["Properties"]["Tags"]}
        # What is in a stack takes over its tags, and the security group of a node group has none for controllers.
        for_controllers = {} if name == "nodes-nodes" else {"kubernetes.io/cluster/blue": "owned"}
        assert tags == {"KubernetesCluster": "blue", **for_controllers, "Name": f"blue-{name}", "team": "a"}
        assert bodies["default"][name]["Metadata"]["cfngen"] == {"cluster": "blue", "stack": name}
    # Nodes come after the masters although they take nothing from their stack.
    assert nested["NodeGroupNodesStack"]["DependsOn"] == ["MasterStack"]
    assert [name for name, stack in nested.items() if "DependsOn" in stack] == ["NodeGroupNodesStack"]
    handed = nested["MasterStack"]["Properties"]["Parameters"]
    assert handed["ClusterStackName"] == {"Ref": "AWS::StackName"}
    assert handed["MasterAAddress"] == {"Ref": "MasterAAddress"}
    assert handed["SubnetAId"] == {"Fn::GetAtt": ["VpcStack", "Outputs.SubnetAId"]}
    condition = resources["MasterAWaitCondition"]
    assert condition["DependsOn"] == ["MasterStack"]
    assert condition["CreationPolicy"]["ResourceSignal"] == {"Count": 1, "Timeout": "PT20M"}


@pytest.mark.parametrize(("cluster", "marked"), [("default", True), ("several", False), ("listed", False)])
def test_a_stack_bears_no_tag_that_a_group_in_it_must_not(bodies: Bodies, cluster: str, marked: bool) -> None:
    """What is in a stack takes over its tags."""
    stack = bodies[cluster]["cluster"]["Resources"]["SecurityGroupsStack"]["Properties"]
    keys = {tag["Key"] for tag in stack["Tags"]}
    assert {"KubernetesCluster", "Name"} <= keys
    assert ("kubernetes.io/cluster/blue" in keys) is marked


HOST = "${MasterAElasticIp.PublicIp}"
BALANCER = "${ApiLoadBalancer.DNSName}"
SESSION = (
    "aws ssm start-session --region us-west-2 --target $(aws ec2 describe-instances --region us-west-2 --query "
    "'Reservations[0].Instances[0].InstanceId' --output text --filters Name=tag:Name,Values=blue-master-a "
    "Name=instance-state-name,Values=running)"
)
SHOWN: list[tuple[str, str, Any]] = [
    ("default", "ApiEndpoint", {"Fn::Sub": f"https://{HOST}"}),
    ("default", "ShellCommand", {"Fn::Sub": f"ssh ubuntu@{HOST}"}),
    (
        "default",
        "KubeconfigCommand",
        {
            "Fn::Sub": f"(umask 077; ssh ubuntu@{HOST} sudo cat /etc/kubernetes/admin.conf | "
            f"sed 's#server: .*#server: https://{HOST}#' > kubeconfig)"
        },
    ),
    ("default", "VpcId", {"Ref": "Vpc"}),
    ("default", "CaSecretArn", {"Ref": "CaSecret"}),
    ("default", "BackupBucketName", {"Ref": "BackupBucket"}),
    ("several", "ApiEndpoint", {"Fn::Sub": f"https://{BALANCER}"}),
    ("several", "ShellCommand", SESSION),
    (
        "several",
        "KubeconfigCommand",
        {
            "Fn::Sub": f"(umask 077; {SESSION} --document-name AWS-StartInteractiveCommand --parameters "
            "'command=\"sudo cat /etc/kubernetes/admin.conf\"' | tr -d '\\r' | sed -n '/^apiVersion:/,/^$/p' | "
            f"sed 's#server: .*#server: https://{BALANCER}#' > kubeconfig)"
        },
    ),
    ("private", "ApiEndpoint", {"Fn::Sub": "https://${InternalApiLoadBalancer.DNSName}:6443"}),
    ("private", "BackupBucketName", "my-backups"),
    ("groups", "ApiEndpoint", {"Fn::Sub": "https://${ApiElasticIp}"}),
    ("groups", "BackupBucketName", None),
    ("private", "VpcId", None),
    ("added", "VpcId", {"Ref": "VpcId"}),
]


def test_what_a_person_is_told_at_the_end(bodies: Bodies) -> None:
    outputs = {cluster: (body["standalone"]["Outputs"], body["cluster"]["Outputs"]) for cluster, body in bodies.items()}
    found = [(cluster, name, outputs[cluster][0].get(name, {}).get("Value")) for cluster, name, _ in SHOWN]
    assert found == SHOWN
    for cluster, name, value in SHOWN:
        flat, root = outputs[cluster]
        assert (name in root) is (value is not None), f"{name} of {cluster}"
        if name in root:
            assert root[name]["Description"] == flat[name]["Description"]


def test_what_is_decided_for_good_is_noted_where_a_later_deployment_looks(bodies: Bodies) -> None:
    def noted(cluster: str, template: str = "standalone") -> dict[str, str]:
        return dict(bodies[cluster][template]["Metadata"]["cfngen"]["immutableSettings"])

    assert noted("default") == {
        "kubernetesVersion": "1.36.3",
        "controlPlane.count": "1",
        "controlPlane.zones": "us-west-2a",
        "controlPlane.volume.kmsKey": "the account's key for EBS",
        "certificateAuthority.secret": "made with the cluster",
        "api.port": "443",
        "network.plugin": "vpc-routes",
        "network.podCidr": "10.244.0.0/16",
        "network.serviceCidr": "10.0.0.0/16",
        "network.dnsServiceIp": "10.0.0.10",
        "network.dnsDomain": "cluster.local",
    }
    assert noted("several")["controlPlane.zones"] == "us-west-2a us-west-2b us-west-2a"
    private = noted("private")
    assert private["api.port"] == "6443"
    assert private["controlPlane.volume.kmsKey"].startswith("arn:aws:kms:")
    assert "network.podCidr" not in private
    assert all(noted(cluster) == noted(cluster, "cluster") for cluster in CLUSTERS)
    assert all(
        body["Metadata"]["cfn-lint"] == {"config": {"regions": ["us-west-2"]}} for body in bodies["default"].values()
    )
