"""The templates of a phase: what is deployed stays as it is, and what is wanted comes in its turn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recorded import NOW, STACK_ID, Recorded

from cfngen.deploy.aws.stacks import StackTree, StackView
from cfngen.deploy.aws.templates import DeployedStack, DeployedTemplates, read_deployed
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.plan.phases.documents import (
    parameters_of_volumes,
    separable_groups,
    volume_phase_documents,
    with_unchanged_groups,
)
from cfngen.templates.document import Document

NESTED, VOLUME = "AWS::CloudFormation::Stack", "AWS::EC2::Volume"
IMAGE = "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"
NUMBER, TEXT = {"Type": "Number"}, {"Type": "String"}


TAGS = [{"Key": "KubernetesCluster", "Value": "one"}]


def stack(name: str, folder: str = "new", parameters: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    handed = {"Parameters": parameters} if parameters is not None else {}
    properties = {"TemplateURL": f"https://bucket/{folder}/{name}.json", "Tags": TAGS, **handed}
    return {"Type": NESTED, "Properties": properties, **more}


def ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def output(supplier: str, name: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [supplier, f"Outputs.{name}"]}


VPC = {"Resources": {}, "Outputs": {"SubnetId": {"Value": "x"}}}
MASTER = {
    "Parameters": {"Size": NUMBER, "Iops": {"Type": "Number", "Default": 9}, "Image": {"Type": IMAGE}},
    "Resources": {
        "MasterAVolume": {
            "Type": VOLUME,
            "Properties": {"Size": ref("Size"), "Iops": ref("Iops"), "VolumeType": "gp3"},
        },
        "MasterBVolume": {"Type": VOLUME, "Properties": {"Size": ref("Size")}},
        "MasterAGroup": {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": {"Iops": ref("Image")}},
    },
    "Outputs": {"Address": {"Value": "x"}},
}
GROUP = {"Parameters": {"Image": {"Type": IMAGE}}, "Resources": {"New": {"Type": "AWS::EC2::LaunchTemplate"}}}
ROOT = Document(
    "cluster",
    {
        "Parameters": {"VolumeSize": NUMBER, "VolumeIops": NUMBER, "Image": TEXT, "Group": TEXT},
        "Resources": {
            "VpcStack": stack("vpc"),
            "IamStack": stack("iam"),
            "MasterStack": stack(
                "master",
                parameters={"Size": ref("VolumeSize"), "Iops": ref("VolumeIops"), "Image": ref("Image")},
            ),
            "NodeGroupKeptStack": stack("nodes-kept", parameters={"Image": ref("Image")}, DependsOn=["VpcStack"]),
            "NodeGroupNewStack": stack("nodes-new"),
        },
    },
    "cfngen.templates.root",
    ("vpc", "iam", "master", "nodes-kept", "nodes-new"),
)
WANTED = (
    Document("vpc", VPC, "m"),
    Document("iam", {"Resources": {}}, "m"),
    Document("master", MASTER, "m"),
    Document("nodes-kept", GROUP, "m"),
    Document("nodes-new", GROUP, "m"),
    ROOT,
    Document("standalone", {"Resources": {}}, "m"),
)

OLD_MASTER = {
    "Parameters": {
        "Size": TEXT,
        "Image": {"Type": IMAGE, "Description": "of masters", "Default": "/latest"},
        "Other": {"Type": IMAGE, "Description": "not told", "Default": "/other"},
        "Port": {"Type": "Number", "Default": 443},
        "Subnets": {"Type": "List<AWS::EC2::Subnet::Id>", "Description": "several"},
        "Zone": {"Type": "AWS::EC2::AvailabilityZone::Name"},
    },
    "Resources": {
        "MasterAGroup": {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": {"Iops": 1}},
        "MasterOldVolume": {"Type": VOLUME, "Properties": {"Size": 20}},
        "MasterAVolume": {"Type": VOLUME, "Properties": {"Size": 20, "Throughput": 125, "Encrypted": True}},
    },
}
OLD_GROUP = {"Parameters": {"Image": {"Type": IMAGE}, "SubnetId": TEXT}, "Resources": {"Old": {"Type": "AWS::X::Y"}}}
HANDED = {"Image": ref("Image"), "SubnetId": output("VpcStack", "SubnetId")}
DEPLOYED = DeployedTemplates(
    {
        "Parameters": {"Image": TEXT},
        "Resources": {
            "VpcStack": stack("vpc", "old"),
            "MasterStack": stack("master", "old", {"Image": ref("Image"), "Size": 20}),
            "NodeGroupKeptStack": stack("nodes-kept", "old", HANDED, DependsOn=["IamStack"]),
            "NodeGroupGoneStack": stack("nodes-gone", "old", HANDED, Metadata={"a": "b"}),
        },
    },
    {
        "VpcStack": DeployedStack("vpc", {"Resources": {}}, {}),
        "MasterStack": DeployedStack(
            "master", OLD_MASTER, {"Image": "ami-1", "Size": "20", "Port": "443", "Zone": "us-west-2a"}
        ),
        "NodeGroupKeptStack": DeployedStack("nodes-kept", OLD_GROUP, {"Image": "ami-1", "SubnetId": "subnet-1"}),
        "NodeGroupGoneStack": DeployedStack("nodes-gone", OLD_GROUP, {"Image": "ami-2", "SubnetId": "subnet-1"}),
    },
)
STAYING = {**OLD_GROUP, "Parameters": {"Image": TEXT, "SubnetId": TEXT}}


def only(**handed: Any) -> DeployedTemplates:
    """One deployed node group that is handed this, of which only one value is told."""
    body = {"Resources": {"NodeGroupKeptStack": stack("nodes-kept", "old", handed)}}
    return DeployedTemplates(body, {"NodeGroupKeptStack": DeployedStack("nodes-kept", OLD_GROUP, {"Told": "x"})})


def test_node_groups_can_stay_that_are_there_or_come_later() -> None:
    expected = {"NodeGroupKeptStack", "NodeGroupGoneStack", "NodeGroupNewStack"}
    assert separable_groups(DEPLOYED, WANTED) == expected


@pytest.mark.parametrize(
    ("handed", "stays"),
    [
        ({"A": ref("Image")}, True),
        ({"A": ref("AWS::StackName")}, True),
        ({"A": output("VpcStack", "SubnetId")}, True),
        ({"A": output("MasterStack", "Address")}, True),
        ({"Told": ref("NoLongerThere")}, True),
        ({"A": ref("NoLongerThere")}, False),
        ({"Told": output("VpcStack", "NoLongerThere")}, False),
        ({"A": output("IamStack", "SubnetId")}, False),
        ({"Told": {"Fn::Join": ["", [ref("Image"), output("VpcStack", "NoLongerThere")]]}}, False),
        ({"A": output("NodeGroupNewStack", "SubnetId")}, False),
    ],
)
def test_a_group_stays_only_where_all_that_it_is_handed_is_still_there(handed: dict[str, Any], stays: bool) -> None:
    assert ("NodeGroupKeptStack" in separable_groups(only(**handed), WANTED)) is stays


def test_a_group_whose_template_cannot_be_read_goes_with_the_rest() -> None:
    assert "NodeGroupKeptStack" not in separable_groups(DeployedTemplates(DEPLOYED.root_template), WANTED)


def test_volumes_change_alone() -> None:
    made = {document.name: document for document in volume_phase_documents(DEPLOYED, WANTED)}
    assert list(made) == ["vpc", "master", "nodes-kept", "nodes-gone", "cluster"]
    assert made["cluster"].children == ("vpc", "master", "nodes-kept", "nodes-gone")
    assert {each.module for each in made.values()} == {"cfngen.templates.root"}
    assert made["vpc"].body == {"Resources": {}}
    assert made["nodes-gone"].body == STAYING
    assert made["master"].body == {
        "Parameters": {
            "Size": NUMBER,
            "Iops": {"Type": "Number", "Default": 9},
            "Image": {"Type": "String", "Description": "of masters"},
            "Other": {"Type": "String", "Description": "not told", "Default": "/other"},
            "Port": {"Type": "Number", "Default": 443},
            "Subnets": {"Type": "CommaDelimitedList", "Description": "several"},
            "Zone": {"Type": "String"},
        },
        "Resources": {
            "MasterAVolume": {
                "Type": VOLUME,
                "Properties": {"Size": ref("Size"), "Iops": ref("Iops"), "VolumeType": "gp3", "Encrypted": True},
            },
            "MasterOldVolume": OLD_MASTER["Resources"]["MasterOldVolume"],
            "MasterAGroup": OLD_MASTER["Resources"]["MasterAGroup"],
        },
    }
    assert made["cluster"].body["Parameters"] == {"Image": TEXT, "VolumeSize": NUMBER, "VolumeIops": NUMBER}
    handed = {name: each["Properties"].get("Parameters") for name, each in made["cluster"].body["Resources"].items()}
    assert handed == {
        "VpcStack": None,
        "MasterStack": {"Image": "ami-1", "Size": ref("VolumeSize"), "Iops": ref("VolumeIops")},
        "NodeGroupKeptStack": {**HANDED, "Image": "ami-1"},
        "NodeGroupGoneStack": {**HANDED, "Image": "ami-2"},
    }
    # What is deployed is not changed by it: later phases read it again.
    assert DEPLOYED.root_template["Parameters"] == {"Image": TEXT}
    assert OLD_MASTER["Resources"]["MasterAVolume"]["Properties"]["Size"] == 20


def test_a_root_that_handed_its_masters_nothing_hands_them_their_volumes() -> None:
    body = {"Resources": {"MasterStack": stack("master", "old")}}
    resources = {"MasterAVolume": {"Type": VOLUME, "Properties": {"Size": 20}}}
    bare = DeployedTemplates(
        body, {"MasterStack": DeployedStack("master", {"Resources": resources, "Parameters": {}}, {})}
    )
    root = volume_phase_documents(bare, WANTED)[-1].body
    assert root["Parameters"] == {"VolumeSize": NUMBER, "VolumeIops": NUMBER}
    handed = root["Resources"]["MasterStack"]["Properties"]["Parameters"]
    assert handed == {"Size": ref("VolumeSize"), "Iops": ref("VolumeIops")}


def test_parameters_of_volumes_are_those_of_what_ebs_modifies() -> None:
    assert parameters_of_volumes(WANTED) == {"VolumeSize", "VolumeIops"}


@pytest.mark.parametrize("name", ["Size", "Iops", "Throughput", "VolumeType"])
def test_what_ebs_modifies(name: str) -> None:
    master = {"Parameters": {"P": TEXT}, "Resources": {"V": {"Type": VOLUME, "Properties": {name: ref("P")}}}}
    root = {
        "Parameters": {"Asked": TEXT},
        "Resources": {"MasterStack": stack("master", parameters={"P": ref("Asked")})},
    }
    wanted = (Document("master", master, "m"), Document("cluster", root, "m", ("master",)))
    assert parameters_of_volumes(wanted) == {"Asked"}


def test_kept_groups_stay_as_they_are_deployed() -> None:
    kept = ["NodeGroupNewStack", "NodeGroupKeptStack", "NodeGroupGoneStack"]
    made = {document.name: document for document in with_unchanged_groups(DEPLOYED, WANTED, kept)}
    assert list(made) == ["vpc", "iam", "master", "nodes-kept", "nodes-gone", "cluster"]
    assert made["cluster"].children == ("vpc", "iam", "master", "nodes-kept", "nodes-gone")
    assert made["cluster"].module == "cfngen.templates.root"
    assert (made["vpc"].body, made["master"].body) == (VPC, MASTER)
    assert (made["nodes-kept"].body, made["nodes-gone"].body) == (STAYING, STAYING)
    resources = made["cluster"].body["Resources"]
    assert list(resources) == ["VpcStack", "IamStack", "MasterStack", "NodeGroupKeptStack", "NodeGroupGoneStack"]
    assert resources["NodeGroupKeptStack"] == {
        "Type": NESTED,
        "Properties": {"TemplateURL": "nodes-kept.json", "Tags": TAGS, "Parameters": {**HANDED, "Image": "ami-1"}},
        "DependsOn": ["VpcStack"],
    }
    assert resources["NodeGroupGoneStack"] == {
        "Type": NESTED,
        "Metadata": {"a": "b"},
        "Properties": {"TemplateURL": "nodes-gone.json", "Tags": TAGS, "Parameters": {**HANDED, "Image": "ami-2"}},
        "DependsOn": ["MasterStack"],
    }
    assert "NodeGroupNewStack" in ROOT.body["Resources"]


def test_what_is_not_kept_is_as_wanted() -> None:
    made = {document.name: document for document in with_unchanged_groups(DEPLOYED, WANTED, ["NodeGroupNewStack"])}
    assert list(made) == ["vpc", "iam", "master", "nodes-kept", "cluster"]
    assert made["nodes-kept"].body == GROUP
    assert made["cluster"].body["Resources"]["NodeGroupKeptStack"] == ROOT.body["Resources"]["NodeGroupKeptStack"]


def test_what_nested_stacks_have_now() -> None:
    def resource(logical_id: str, type_: str, status: str = "UPDATE_COMPLETE", physical: str = "arn") -> dict[str, Any]:
        found = {"LogicalResourceId": logical_id, "ResourceType": type_, "ResourceStatus": status}
        there = {"PhysicalResourceId": f"{physical}:{logical_id}"} if physical else {}
        return {**found, **there, "LastUpdatedTimestamp": NOW}

    api = Recorded()
    root_resources = [
        resource("NodeGroupKeptStack", NESTED, "DELETE_FAILED"),
        resource("NodeGroupGoneStack", NESTED, "CREATE_FAILED"),
        resource("VpcStack", NESTED, physical=""),
        resource("OtherStack", NESTED),
        resource("Vpc", "AWS::EC2::VPC"),
        resource("MasterStack", NESTED),
    ]
    api.answers["ListStackResources"] = lambda sent: {
        "StackResourceSummaries": root_resources if sent["StackName"] == "root" else []
    }
    body = {
        "Parameters": {"Secret": {"Type": "String", "NoEcho": True}, "Hidden": {"Type": "String", "NoEcho": "true"}},
        "Resources": {},
    }
    api.stack = {
        "StackName": "kubernetes-MasterStack-1",
        "StackId": STACK_ID,
        "StackStatus": "UPDATE_COMPLETE",
        "CreationTime": NOW,
        "Parameters": [
            {"ParameterKey": "Secret", "ParameterValue": "****"},
            {"ParameterKey": "Hidden", "ParameterValue": "****"},
            {"ParameterKey": "Image", "ParameterValue": "/latest", "ResolvedValue": "ami-1"},
            {"ParameterKey": "Size", "ParameterValue": "20"},
            {"ParameterKey": "Empty"},
        ],
    }
    root = {
        **DEPLOYED.root_template,
        "Resources": {**DEPLOYED.root_template["Resources"], "Vpc": {"Type": "AWS::EC2::VPC"}},
    }
    api.answers["GetTemplate"] = lambda sent: {
        "TemplateBody": json.dumps(root if sent["StackName"] == "root" else body)
    }
    read = read_deployed(StackTree(api.account, StackView("kubernetes", "root", StackStatus("UPDATE_COMPLETE"))))
    assert read.root_template == root
    assert read.nested_stacks == {
        "MasterStack": DeployedStack("master", body, {"Image": "ami-1", "Size": "20", "Empty": ""})
    }
    assert [each["StackName"] for each in api.named("DescribeStacks")] == ["arn:MasterStack"]
