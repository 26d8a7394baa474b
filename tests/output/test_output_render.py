"""The bytes of the output: readable, in a steady order, and the same data in both forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cfngen.deploy.preflight.parameters.parameter_file import read_file
from cfngen.output import render
from cfngen.output.readme import MARKER, files_listed_in
from cfngen.templates.document import Document
from cfngen.userdata import UserData


def user_data(role: str = "master", size: int = 12345, **files: str) -> UserData:
    files = files or {"user-data.py": "loader ü\n", "boot/master.py": "code\n"}
    return UserData(role, value=None, size=size, resource="", program="", show_files=lambda: files, instance_files={})


def vpc() -> Document:
    body = {
        "Resources": {
            "Vpc": {
                "DeletionPolicy": "Delete",
                "Properties": {"CidrBlock": "10.0.0.0/16", "Tags": [{"Key": "b", "Value": "1"}, {"Key": "a"}]},
                "Type": "AWS::EC2::VPC",
            },
            "Gateway": {"Type": "AWS::EC2::InternetGateway"},
        },
        "Parameters": {"Z": {"Type": "String", "Default": "yes"}, "A": {"Type": "String"}},
        "Outputs": {"Id": {"Value": {"Fn::GetAtt": ["Vpc", "VpcId"]}}},
        "Description": "Network | of the cluster … all of it",
        "AWSTemplateFormatVersion": "2010-09-09",
    }
    return Document("vpc", body, "cfngen.templates.vpc")


def root() -> Document:
    url = {"Fn::Sub": "https://${Bucket}.s3/${Prefix}vpc.json"}
    other = {"TemplateURL": "https://elsewhere/other.json", "Parameters": {"File": "vpc.json"}}
    resources = {
        "VpcStack": {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}},
        "Other": {"Type": "AWS::CloudFormation::Stack", "Properties": other},
    }
    names = {"Type": {"Default": "m7i.large"}, "Size": {"Default": 8}, "Cidr": {}, "TemplatePrefix": {"Default": ""}}
    body = {"Description": "The root", "Parameters": names, "Resources": resources}
    return Document("cluster", body, "cfngen.templates.root", ("vpc",))


def standalone() -> Document:
    return Document("standalone", {"Description": "All", "Resources": {}}, "cfngen.templates.standalone")


def test_every_file_is_there() -> None:
    files = render(
        [vpc(), root(), standalone()], [user_data(), user_data("nodes-gpu", **{"config.json": "{}"})], "json"
    )
    assert list(files) == [
        "README.md",
        "vpc.json",
        "cluster.json",
        "standalone.json",
        "parameters/aws-cli.json",
        "parameters/codepipeline.json",
        "userdata/master/user-data.py",
        "userdata/nodes-gpu/config.json",
    ]
    assert files["userdata/master/user-data.py"] == "loader ü\n".encode()


def test_what_the_cluster_file_says_of_parameters_is_written_as_pipelines_read_it(tmp_path: Path) -> None:
    files = render([vpc(), root(), standalone()])
    values = {"Type": "m7i.large", "Size": "8"}
    assert json.loads(files["parameters/aws-cli.json"]) == [f"{name}={value}" for name, value in values.items()]
    assert json.loads(files["parameters/codepipeline.json"]) == {"Parameters": values}
    for name in ("parameters/aws-cli.json", "parameters/codepipeline.json"):
        (path := tmp_path / Path(name).name).write_bytes(files[name])
        assert read_file(path).values == values  # `cfngen deploy --parameter-file` reads them, too


def test_json_is_in_the_order_of_reading_and_keeps_the_order_of_names() -> None:
    text = render([vpc()], [], "json")["vpc.json"].decode()
    assert json.loads(text) == vpc().body
    order = ["AWSTemplateFormatVersion", "Description", "Parameters", "Z", "A", "Resources"]
    order += ["Vpc", "Type", "Properties", "DeletionPolicy", "Gateway", "Outputs"]
    places = [text.index(f'"{name}"') for name in order if name != "Type"]
    assert places == sorted(places)
    assert text.index('"AWS::EC2::VPC"') < text.index('"Properties"')
    assert text.endswith("}\n")
    assert "…" in text


def test_the_same_input_gives_the_same_bytes() -> None:
    for form in ("json", "yaml"):
        assert render([vpc(), root()], [user_data()], form) == render([vpc(), root()], [user_data()], form)


AWKWARD = {
    "Resources": {
        "Text": {
            "A": "yes",
            "B": "2010-09-09",
            "C": "0755",
            "D": "1e3",
            "E": "",
            "F": "null",
            "G": "a: b # c",
            "H": "~",
        },
        "Lines": {
            "A": "one\ntwo\n",
            "B": "one\n  two",
            "C": "\n",
            "D": " lead\ntrail ",
            "E": "tab\there",
            "F": "x\n\n",
        },
        "Other": {"A": True, "B": 1, "C": 1.5, "D": [], "E": {}, "F": None, "G": "ü … \u2028", "H": "x" * 500 + " y"},
    }
}


def test_yaml_is_the_same_data() -> None:
    shared = [{"Key": "k", "Value": "v"}]
    body = {**AWKWARD, "Metadata": {"One": shared, "Two": shared}}
    text = render([Document("awkward", body, "tests"), vpc()], [], "yaml")["awkward.yaml"].decode()
    assert yaml.safe_load(text) == body
    assert "&id" not in text, "CloudFormation knows no aliases"
    assert text.endswith("\n")


def test_yaml_reads_well() -> None:
    text = render([vpc()], [], "yaml")["vpc.yaml"].decode()
    assert text.startswith("AWSTemplateFormatVersion: '2010-09-09'\nDescription: ")
    vpc_lines = ["  Vpc:", "    Type: AWS::EC2::VPC", "    Properties:", "      CidrBlock: 10.0.0.0/16", "      Tags:"]
    assert "\n".join([*vpc_lines, "        - Key: b", ""]) in text


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_nested_templates_are_named_as_they_are_written(form: Any) -> None:
    text = render([vpc(), root()], [], form)[f"cluster.{form}"].decode()
    resources = yaml.safe_load(text)["Resources"]
    assert resources["VpcStack"]["Properties"]["TemplateURL"] == {
        "Fn::Sub": f"https://${{Bucket}}.s3/${{Prefix}}vpc.{form}"
    }
    assert resources["Other"]["Properties"] == root().body["Resources"]["Other"]["Properties"]


def test_rendering_does_not_change_the_documents() -> None:
    document = root()
    render([vpc(), document], [], "yaml")
    assert document == root()


def test_the_readme_says_what_each_file_is_and_what_to_upload() -> None:
    files = render([vpc(), root(), standalone()], [user_data()], "json")
    text = files["README.md"].decode()
    assert text.startswith(MARKER)
    for line in (
        "| `vpc.json` | Network \\| of the cluster … all of it |",
        "| `cluster.json` | The root |",
        "| `userdata/master/` | what these instances get at boot: steps (`steps.md`), configuration and files |",
        "`standalone.json` is the whole cluster",
        "stack from the S3 URL of `cluster.json`",
    ):
        assert line in text
    assert files_listed_in(text) == files.keys() - {"README.md"}
    nearly_full = render([vpc()], [user_data(size=14746)], "json")["README.md"].decode()
    assert "files; packed, 14,746 of 16,384 bytes |" in nearly_full


def test_the_readme_of_a_cluster_too_large_for_one_template() -> None:
    text = render([vpc(), root()], [user_data()], "yaml")["README.md"].decode()
    assert "There is no `standalone.yaml`: the cluster exceeds the limits of one template (1 MB, 500" in text
    assert "The two ways" not in text
    assert "There is no" not in render([vpc(), root(), standalone()], [], "json")["README.md"].decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Notes\n\n<!-- The files of cfngen in this directory:\nvpc.json\n-->",
        MARKER,
        f"{MARKER}\n<!-- The files of cfngen in this directory:\nvpc.json\n",
        f"{MARKER}\n<!-- The files of cfngen in this directory:\n../secret\n/etc/passwd\na/../../b\n\n-->",
    ],
)
def test_what_cfngen_did_not_write_lists_nothing(text: str) -> None:
    assert files_listed_in(text) == frozenset()
