"""`cfngen lint`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

GOOD = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "One handle",
    "Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}},
}
OPEN = """\
AWSTemplateFormatVersion: "2010-09-09"
Resources:
  Group:
    Type: AWS::EC2::SecurityGroup
    Properties:
      GroupDescription: !Sub "open to ${AWS::Region}"
      SecurityGroupIngress:
        - {CidrIp: 10.0.0.0/8, IpProtocol: tcp, FromPort: 22, ToPort: 22}
"""


def test_the_cluster_is_judged_and_nothing_is_written(cfngen, directory):
    ran = cfngen("lint")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "8 templates linted for us-west-2: nothing found.\n"
    assert list(directory.iterdir()) == []


def test_own_files_in_json_and_yaml(cfngen, directory):
    (directory / "good.json").write_text(json.dumps(GOOD))
    (directory / "open.yaml").write_text(OPEN)
    ran = cfngen("lint", "good.json", "open.yaml")
    assert ran.code == 1
    assert "open.yaml: " in ran.err
    assert "Resources.Group" in ran.err
    assert "good.json" not in ran.err
    assert "fault of cfngen" not in ran.err
    assert cfngen("lint", "good.json").out == "1 template linted for us-west-2: nothing found.\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "own.json:2: "),
        (b'{"Resources": {}, "Resources": {}}', "own.json:1: "),
        (b'{"name": "kubernetes"}', "own.json: is not a CloudFormation template: it has no Resources"),
        (b"caf\xe9", "own.json: is not UTF-8 text"),
        (b"", "own.json"),
    ],
)
def test_a_file_that_is_no_template(cfngen, directory, content, message):
    (directory / "own.json").write_bytes(content)
    ran = cfngen("lint", "own.json")
    assert ran.code == 1
    assert message in ran.err


def test_a_file_that_does_not_exist(cfngen):
    ran = cfngen("lint", "absent.json")
    assert (ran.code, ran.err) == (1, "error: absent.json: No such file or directory\n")


def test_the_region_of_generated_templates_is_the_clusters(cfngen):
    ran = cfngen("lint", "--region", "eu-west-1")
    assert ran.code == 2
    assert "--region is for FILES" in ran.err


def test_the_directory_of_rules_is_for_cfn_lint(cfngen):
    rules = Path(cfngen("lint", "--rules-dir").out.strip())
    assert rules.is_dir()
    assert list(rules.glob("*.py"))
