"""`cfngen lint`."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
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
    assert "Resources.Group" in ran.err
    assert "good.json" not in ran.err
    assert "made by" not in ran.err
    assert "hint: " not in ran.err
    assert cfngen("lint", "good.json").out == "1 template linted for us-west-2: nothing found.\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "own.json:2: "),
        (b'{"Resources": {}, "Resources": {}}', "own.json:1: "),
        (b'{"name": "kubernetes"}', "own.json: is not a CloudFormation template: it has no Resources"),
        (b"caf\xe9", "own.json: is not UTF-8 text"),
        (b"", "error: own.json: is empty\n"),
        (b"[1, 2]", "own.json: holds a list; a CloudFormation template is keys and values"),
        (b"text", "own.json: holds a single value"),
        (b'{\n"Resources": []}', "own.json:2: Resources is a list; CloudFormation takes keys and values there"),
        (b'{"Resources": {"A": 3}}', "own.json:1: Resources.A is a number"),
        (b"Metadata: hello\nResources: {}\n", "own.json:1: Metadata is text"),
        (b"Resources: {}\nMetadata:\n  cfn-lint: [1]\n", "own.json:3: Metadata.cfn-lint is a list"),
        (b"Resources:\n  A:\n    Metadata: 5\n", "own.json:3: Resources.A.Metadata is a number"),
        (b"Resources: {}\n---\n{}\n", "own.json:1: Template could not be parsed: expected a single document"),
    ],
)
def test_a_file_that_is_no_template(cfngen, directory, content, message):
    (directory / "own.json").write_bytes(content)
    ran = cfngen("lint", "own.json")
    assert ran.code == 1
    assert message in ran.err
    assert "fault" not in ran.err


def test_files_that_cannot_be_read_are_all_named(cfngen, directory):
    (directory / "folder.json").mkdir()
    ran = cfngen("lint", "absent.json", "folder.json")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "error: absent.json: cannot be read: no such file or directory",
        "error: folder.json: cannot be read: is a directory",
        "hint: a CloudFormation template is JSON or YAML with Resources; correct the file or leave it out.",
    ]


def test_a_finding_says_line_and_column(cfngen, directory):
    (directory / "open.yaml").write_text(OPEN)
    (directory / "odd.json").write_text('{"Resources": {\n  "Vpc": {"Type": "AWS::EC2::Vpc"}}}')
    ran = cfngen("lint", "open.yaml", "odd.json")
    assert ran.code == 1
    assert "error: the templates do not pass lint (1 error, 2 warnings):\n" in ran.err
    lines = ran.err.splitlines()
    assert [line.partition(") ")[0] + ")" for line in lines if line.startswith("o")] == [
        "open.yaml:5:5: W9011 (warning)",
        "open.yaml:8:11: W9010 (warning)",
        "odd.json:2:11: E3006 (error)",
    ]
    # The second time from the cache.
    assert cfngen("lint", "open.yaml", "odd.json") == ran


def test_what_cfn_lint_fails_on_is_named(cfngen, directory, monkeypatch):
    def fail(*_):
        raise AttributeError("'list' object has no attribute 'get'")

    (directory / "good.json").write_text(json.dumps(GOOD))
    monkeypatch.setattr("cfngen.lint.linter.Linter._judge", fail)
    ran = cfngen("lint", "good.json", "--no-cache")
    assert ran.code == 1
    assert "error: good.json: cannot be judged: cfn-lint itself fails on it (AttributeError: 'list'" in ran.err


def test_the_region_of_files_is_asked_for_the_least_possible(cfngen, directory):
    (directory / "good.json").write_text(json.dumps(GOOD))
    here = {"cfn-lint": {"config": {"regions": ["eu-north-1"]}}}
    (directory / "north.json").write_text(json.dumps({**GOOD, "Metadata": here}))
    assert cfngen("lint", "good.json", KUBE_AWS_ZONE="eu-west-1a").out.endswith(
        "linted for eu-west-1: nothing found.\n"
    )
    assert cfngen("lint", "good.json", "north.json").out == (
        "2 templates linted for us-west-2, eu-north-1: nothing found.\n"
    )
    (directory / "cluster.yaml").write_text("nonsense: 1\nname: [\n")
    for ran in (cfngen("lint", "north.json"), cfngen("lint", "good.json", "--region", "eu-north-1")):
        assert (ran.out, ran.err) == ("1 template linted for eu-north-1: nothing found.\n", "")


def test_without_a_usable_cluster_files_are_judged_for_a_region_that_is_named(cfngen, directory):
    (directory / "good.json").write_text(json.dumps(GOOD))
    (directory / "cluster.yaml").write_text("region: mars\n")
    ran = cfngen("lint", "good.json")
    assert ran.out == "1 template linted for us-east-1: nothing found.\n"
    assert ran.err.startswith(
        "warning: linting for us-east-1, since the cluster's region is not known (cluster.yaml:1: "
    )
    assert "use --region for another" in ran.err
    # Of a cluster that the user names, nothing is guessed.
    ran = cfngen("lint", "good.json", "-f", "cluster.yaml")
    assert ran.code == 1
    assert ran.err.startswith("error: cluster.yaml:1: region: ")


def test_the_region_of_generated_templates_is_the_clusters(cfngen):
    ran = cfngen("lint", "--region", "eu-west-1")
    assert ran.code == 64
    assert "--region applies only to FILES" in ran.err


def test_the_directory_of_rules_is_for_cfn_lint(cfngen):
    rules = Path(cfngen("lint", "--rules-dir").out.strip())
    assert rules.is_dir()
    assert list(rules.glob("*.py"))


def test_the_example_for_cfn_lint_works(cfngen, directory):
    (directory / "your-own.yaml").write_text(OPEN)
    example = next(line.strip() for line in cfngen("lint", "--help").out.splitlines() if "cfn-lint your" in line)
    rules = cfngen("lint", "--rules-dir").out.strip()
    command = shlex.split(example.replace("$(cfngen lint --rules-dir)", rules))
    assert command[0] == "cfn-lint"
    start = "import sys; from cfnlint.runner import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", start, *command[1:]], capture_output=True, text=True, timeout=120)
    assert "W9010" in done.stdout, done.stderr


def test_a_program_gets_the_findings(cfngen, directory):
    (directory / "good.json").write_text(json.dumps(GOOD))
    (directory / "open.yaml").write_text(OPEN)
    assert json.loads(cfngen("lint", "good.json", "-o", "json").out) == {
        "type": "lint",
        "templates": 1,
        "regions": ["us-west-2"],
        "findings": [],
    }
    ran = cfngen("lint", "good.json", "open.yaml", "-o", "json")
    linted, error = map(json.loads, ran.out.splitlines())
    assert (ran.code, error["code"], linted["templates"]) == (1, "lint-findings", 2)
    finding = linted["findings"][0]
    assert (finding["document"], finding["path"][:2], finding["line"] > 0) == (
        "open.yaml",
        ["Resources", "Group"],
        True,
    )
