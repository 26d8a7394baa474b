"""cfngen's rules about resources: what each refuses and lets pass, and that the cfn-lint command can load them all."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from cfngen.lint.linter import RULES, Linter
from cfngen.lint.views import View

TAGS = [{"Key": "KubernetesCluster", "Value": "test"}]


def waiting() -> dict[str, Any]:
    return {"Type": "AWS::CloudFormation::WaitConditionHandle"}


def launch_template(**data: Any) -> dict[str, Any]:
    return {
        "Type": "AWS::EC2::LaunchTemplate",
        "Properties": {
            "TagSpecifications": [{"ResourceType": "launch-template", "Tags": TAGS}],
            "LaunchTemplateData": {"MetadataOptions": {"HttpTokens": "required"}, **data},
        },
    }


DATA = ("Resources", "Template", "Properties", "LaunchTemplateData")
PARAMETERS = {
    "Long": {"Type": "String", "MaxLength": "200"},
    "Choice": {"Type": "String", "AllowedValues": ["short", "l" * 300]},
    "Free": {"Type": "String"},
}


@pytest.mark.parametrize(
    ("user_data", "refused"),
    [
        ({"Fn::Base64": "x" * 16384}, False),
        ({"Fn::Base64": "x" * 16385}, True),
        ({"Fn::Base64": "ü" * 8193}, True),
        (base64.b64encode(b"x" * 16384).decode(), False),
        (base64.b64encode(b"x" * 16385).decode(), True),
        ({"Fn::Base64": {"Fn::Join": ["", ["x" * 16000, "y" * 385]]}}, True),
        ({"Fn::Base64": {"Fn::Join": ["\n", ["x" * 8192, "y" * 8191]]}}, False),
        ({"Fn::Base64": {"Fn::Join": ["\n", ["x" * 8192, "y" * 8192]]}}, True),
        ({"Fn::Base64": {"Fn::Sub": "x" * 16184 + "${Long}"}}, False),
        ({"Fn::Base64": {"Fn::Sub": "x" * 16185 + "${Long}"}}, True),
        ({"Fn::Base64": {"Fn::Sub": ["x" * 16185 + "${V}", {"V": {"Ref": "Long"}}]}}, True),
        ({"Fn::Base64": {"Fn::Sub": "x" * 16380 + "${!a}"}}, False),
        ({"Fn::Base64": {"Fn::Sub": "x" * 16381 + "${!a}"}}, True),
        ({"Fn::Base64": {"Fn::Join": ["", ["x" * 16084, {"Ref": "Choice"}]]}}, False),
        ({"Fn::Base64": {"Fn::Join": ["", ["x" * 16085, {"Ref": "Choice"}]]}}, True),
        ({"Fn::Base64": {"Fn::Join": ["", ["x" * 16257, {"Ref": "AWS::StackName"}]]}}, True),
        ({"Fn::Base64": {"Fn::Join": ["", ["x" * 16384, {"Ref": "Free"}]]}}, False),
        ({"Fn::Base64": {"Fn::If": ["Condition", "x" * 16385, "short"]}}, True),
        ({"Ref": "Free"}, False),
    ],
    ids=str,
)
def test_user_data_size(reported_paths: Any, user_data: Any, refused: bool) -> None:
    template = {"Parameters": PARAMETERS, "Resources": {"Template": launch_template(UserData=user_data)}}
    assert reported_paths("E9001", template) == ([(*DATA, "UserData")] if refused else [])


def test_template_size(judge: Linter, tmp_path: Path) -> None:
    expected = {50_000: [], 60_000: ["I9003"], 1_000_001: ["E9002", "I9003"]}
    templates = {
        tmp_path / f"{size}.json": {"Resources": {"Wait": waiting()}, "Metadata": {"Padding": "x" * size}}
        for size in expected
    }
    for path, template in templates.items():
        path.write_text(json.dumps(template))
    listed = json.loads(cfn_lint("--include-checks", "I", "--", *map(str, templates)))
    for (path, template), rules in zip(templates.items(), expected.values(), strict=True):
        of_command = [item["Rule"]["Id"] for item in listed if item["Filename"] == str(path)]
        assert sorted(rule for rule in of_command if rule[1] == "9") == rules
        ours = judge.judge(View("tested", template, {}))
        assert [finding["rule"] for finding in ours if finding["rule"][1] == "9"] == [
            rule for rule in rules if rule != "I9003"
        ]


@pytest.mark.parametrize(
    ("waiting_resources", "outputs", "rules"),
    [
        (1, 190, []),
        (1, 201, ["E6010"]),
        pytest.param(460, 1, [], marks=pytest.mark.drill),
        pytest.param(501, 1, ["E3010"], marks=pytest.mark.drill),
    ],
)
def test_a_template_close_to_a_limit_is_as_good_as_any(
    judge: Linter, waiting_resources: int, outputs: int, rules: list[str]
) -> None:
    template = {
        "Resources": {f"Wait{number}": waiting() for number in range(waiting_resources)},
        "Outputs": {f"Output{number}": {"Value": str(number)} for number in range(outputs)},
    }
    assert [finding["rule"] for finding in judge.judge(View("tested", template, {}))] == rules


RULE = {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "CidrIp": "10.0.0.0/8"}
DESCRIBED = {**RULE, "Description": "why"}
GROUP = ("Resources", "Group", "Properties")


@pytest.mark.parametrize(
    ("resource", "paths"),
    [
        ({"SecurityGroupIngress": [DESCRIBED], "SecurityGroupEgress": [DESCRIBED]}, []),
        ({"SecurityGroupIngress": [DESCRIBED, RULE]}, [(*GROUP, "SecurityGroupIngress", 1)]),
        ({"SecurityGroupEgress": [{**RULE, "Description": ""}]}, [(*GROUP, "SecurityGroupEgress", 0)]),
        (
            {"SecurityGroupIngress": [{"Fn::If": ["Condition", RULE, {"Ref": "AWS::NoValue"}]}]},
            [(*GROUP, "SecurityGroupIngress", 0, "Fn::If", 1)],
        ),
    ],
)
def test_inline_security_group_rule_descriptions(
    reported_paths: Any, resource: dict[str, Any], paths: list[Any]
) -> None:
    group = {
        "Type": "AWS::EC2::SecurityGroup",
        "Properties": {"GroupDescription": "x", "VpcId": "vpc-1", "Tags": TAGS, **resource},
    }
    assert reported_paths("W9010", {"Resources": {"Group": group}}) == paths


@pytest.mark.parametrize("kind", ["Ingress", "Egress"])
def test_separate_security_group_rule_descriptions(reported_paths: Any, kind: str) -> None:
    def rule(properties: dict[str, Any]) -> dict[str, Any]:
        return {"Type": f"AWS::EC2::SecurityGroup{kind}", "Properties": {"GroupId": "sg-1", **properties}}

    template = {"Resources": {"Good": rule(DESCRIBED), "Bad": rule(RULE)}}
    assert reported_paths("W9010", template) == [("Resources", "Bad", "Properties")]


@pytest.mark.parametrize(
    ("kind", "properties", "refused"),
    [
        ("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"}, True),
        ("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16", "Tags": []}, True),
        ("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16", "Tags": TAGS}, False),
        ("AWS::EC2::InternetGateway", None, True),
        ("AWS::EC2::VPCGatewayAttachment", {"VpcId": "vpc-1", "InternetGatewayId": "igw-1"}, False),
        ("AWS::IAM::InstanceProfile", {"Roles": ["role"]}, False),
        ("AWS::SSM::Parameter", {"Type": "String", "Value": "v", "Tags": {"Key": "value"}}, False),
        ("AWS::EC2::LaunchTemplate", {"LaunchTemplateData": {}}, True),
        ("AWS::EC2::LaunchTemplate", launch_template()["Properties"], False),
        ("AWS::CloudFormation::Stack", {"TemplateURL": "https://bucket.s3.amazonaws.com/vpc.json"}, False),
        ("Custom::Anything", {"ServiceToken": "arn:aws:lambda:us-west-2:123456789012:function:f"}, False),
    ],
)
def test_untagged_resources(reported_paths: Any, kind: str, properties: dict[str, Any] | None, refused: bool) -> None:
    resource = {"Type": kind, **({"Properties": properties} if properties is not None else {})}
    assert bool(reported_paths("W9011", {"Resources": {"Tested": resource}})) == refused


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"MetadataOptions": {"HttpTokens": "required"}}, False),
        ({"MetadataOptions": {"HttpTokens": "optional"}}, True),
        ({"MetadataOptions": {"HttpEndpoint": "enabled"}}, True),
        ({"MetadataOptions": {"HttpEndpoint": "disabled"}}, False),
        ({"MetadataOptions": {"HttpTokens": {"Ref": "Free"}}}, False),
        ({"MetadataOptions": {"HttpTokens": {"Fn::If": ["C", "required", "optional"]}}}, False),
        ({"MetadataOptions": {"Fn::If": ["C", {"HttpTokens": "required"}, {"HttpTokens": "optional"}]}}, True),
        ({}, True),
    ],
)
@pytest.mark.parametrize("kind", ["AWS::EC2::LaunchTemplate", "AWS::EC2::Instance"])
def test_instance_metadata(reported_paths: Any, kind: str, options: dict[str, Any], refused: bool) -> None:
    properties = {"LaunchTemplateData": options} if kind == "AWS::EC2::LaunchTemplate" else options
    template = {"Parameters": PARAMETERS, "Resources": {"Tested": {"Type": kind, "Properties": properties}}}
    assert bool(reported_paths("W9012", template)) == refused


def test_instance_metadata_of_an_instance_is_its_launch_templates(reported_paths: Any) -> None:
    instance = {
        "Type": "AWS::EC2::Instance",
        "Properties": {"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "1"}},
    }
    assert reported_paths("W9012", {"Resources": {"Instance": instance}}) == []


@pytest.mark.parametrize(
    ("encrypted", "refused"),
    [({"Encrypted": True}, False), ({"Encrypted": "true"}, False), ({"Encrypted": False}, True), ({}, True)],
)
def test_volume_encryption(reported_paths: Any, encrypted: dict[str, Any], refused: bool) -> None:
    volume = {"Type": "AWS::EC2::Volume", "Properties": {"AvailabilityZone": "us-west-2a", "Size": 1, **encrypted}}
    assert bool(reported_paths("W9013", {"Resources": {"Volume": volume}})) == refused
    mapping = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 8, **encrypted}}
    expected = [(*DATA, "BlockDeviceMappings", 1, "Ebs")] if refused else []
    devices = [{"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"}, mapping]
    assert (
        reported_paths("W9013", {"Resources": {"Template": launch_template(BlockDeviceMappings=devices)}}) == expected
    )
    either = [{"Fn::If": ["Condition", mapping, {"Ref": "AWS::NoValue"}]}]
    assert (
        bool(reported_paths("W9013", {"Resources": {"Template": launch_template(BlockDeviceMappings=either)}}))
        == refused
    )


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE"
ACCESS_KEY = "AKIA" + "IOSFODNN7EXAMPLE".replace("7", "Z")


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        ("hunter2", True),
        ({"Fn::Sub": "hunter2"}, True),
        ({"Fn::Join": ["", ["hunter", "2"]]}, True),
        ({"Fn::Sub": "${Free}"}, False),
        ({"Ref": "Free"}, False),
        ("{{resolve:secretsmanager:other}}", False),
        ("", False),
    ],
)
def test_secret_strings(reported_paths: Any, value: Any, refused: bool) -> None:
    secret = {"Type": "AWS::SecretsManager::Secret", "Properties": {"SecretString": value, "Tags": TAGS}}
    template = {"Parameters": PARAMETERS, "Resources": {"Secret": secret}}
    assert bool(reported_paths("E9014", template)) == refused


@pytest.mark.parametrize(
    ("name", "definition", "refused"),
    [
        ("DatabasePassword", {}, True),
        ("DatabasePassword", {"NoEcho": True}, False),
        ("DatabasePassword", {"NoEcho": "true", "Default": "hunter2"}, True),
        ("DatabasePassword", {"NoEcho": True, "Default": "{{resolve:secretsmanager:other}}"}, False),
        ("JoinToken", {"Default": "x"}, True),
        ("JoinSecretArn", {"Default": "x"}, False),
    ],
)
def test_secret_parameters(reported_paths: Any, name: str, definition: dict[str, Any], refused: bool) -> None:
    template = {"Parameters": {name: {"Type": "String", **definition}}}
    assert bool(reported_paths("E9014", template)) == refused


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (PEM, True),
        (base64.b64encode(PEM.encode()).decode(), True),
        ("-----BEGIN CERTIFICATE-----", False),
        (f"key={ACCESS_KEY} ", True),
        (f"QUJD{ACCESS_KEY}QUJD", False),
        ("ghp_" + "a1B2" * 9, True),
        ("nothing at all", False),
    ],
)
def test_secrets_in_text(reported_paths: Any, text: str, refused: bool) -> None:
    template = {"Resources": {"Template": launch_template(UserData={"Fn::Base64": {"Fn::Join": ["", ["#!", text]]}})}}
    expected = [(*DATA, "UserData", "Fn::Base64", "Fn::Join", 1, 1)] if refused else []
    assert reported_paths("E9014", template) == expected


@lru_cache
def catalogue() -> tuple[tuple[str, str], ...]:
    """Ids and short descriptions that the cfn-lint command lists with cfngen's rules loaded."""
    lines = cfn_lint("--list-rules", json_output=False).splitlines()
    return tuple(tuple(line.split(": ", 1)) for line in lines if line[1:2] == "9" and ": " in line)


def cfn_lint(*arguments: str, json_output: bool = True) -> str:
    """Run the cfn-lint command with cfngen's rules, as a user would, from a place where cfngen cannot be imported."""
    form = ["--format", "json"] if json_output else []
    command = [
        sys.executable,
        "-I",
        "-c",
        "from cfnlint.runner import main; main()",
        "-a",
        str(RULES),
        *form,
        *arguments,
    ]
    return subprocess.run(command, cwd=RULES, capture_output=True, text=True, check=False).stdout


def test_the_command_loads_every_rule() -> None:
    documented = [
        line.split("|")[1].strip() for line in (RULES / "__init__.py").read_text().splitlines() if "| " in line
    ]
    assert [rule for rule, _ in catalogue()] == sorted(rule for rule in documented if rule[1:2] == "9")


def test_every_rule_says_what_it_is_and_why(judge: Linter) -> None:
    for rule in [rule for name, rule in judge._rules.items() if name[1] == "9"]:
        assert rule.shortdesc, rule.id
        assert rule.description, rule.id
        assert rule.source_url.startswith("https://docs.aws.amazon.com/"), rule.id
        assert rule.tags, rule.id
