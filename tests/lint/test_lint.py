"""What `lint` finds in whole sets of templates, and that nothing but its arguments decides it."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cfngen.errors import CfngenError
from cfngen.lint import LintError, LintFinding, lint
from cfngen.lint.findings import MESSAGE_LENGTH, shorten
from cfngen.lint.process import LintProcess
from cfngen.templates.document import Document

TAGS = [{"Key": "KubernetesCluster", "Value": "test"}]
KEPT = {"DeletionPolicy": "Delete", "UpdateReplacePolicy": "Delete"}


def vpc() -> Document:
    body = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"Cidr": {"Type": "String"}},
        "Resources": {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": {"Ref": "Cidr"}, "Tags": TAGS}}},
        "Outputs": {"VpcId": {"Value": {"Ref": "Vpc"}}},
    }
    return Document("vpc", body, "cfngen.templates.vpc")


def security_groups() -> Document:
    group = {"GroupDescription": "of nodes", "VpcId": {"Ref": "VpcId"}, "Tags": TAGS}
    body = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"VpcId": {"Type": "String"}},
        "Resources": {"Nodes": {"Type": "AWS::EC2::SecurityGroup", "Properties": group}},
        "Outputs": {"NodesId": {"Value": {"Fn::GetAtt": ["Nodes", "GroupId"]}}},
    }
    return Document("security-groups", body, "cfngen.templates.security_groups")


def root(**changes: Any) -> Document:
    """The root of the two, or with parts changed: `vpc_parameters`, `group_parameters`, `url`, `output`."""

    def stack(url: Any, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
        properties = {"TemplateURL": url, "Tags": TAGS, **({} if parameters is None else {"Parameters": parameters})}
        return {"Type": "AWS::CloudFormation::Stack", "Properties": properties, **KEPT}

    wired = {"VpcId": {"Fn::GetAtt": ["VpcStack", "Outputs.VpcId"]}}
    resources = {
        "VpcStack": stack({"Fn::Sub": "${Base}vpc.json"}, changes.get("vpc_parameters", {"Cidr": "10.0.0.0/16"})),
        "GroupStack": stack(
            changes.get("url", {"Fn::Join": ["", [{"Ref": "Base"}, "security-groups.json"]]}),
            changes.get("group_parameters", wired),
        ),
    }
    body = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"Base": {"Type": "String"}},
        "Resources": resources,
        "Outputs": {"Nodes": {"Value": changes.get("output", {"Fn::GetAtt": ["GroupStack", "Outputs.NodesId"]})}},
    }
    return Document("cluster", body, "cfngen.templates.root", ("vpc", "security-groups"))


def test_clean_templates_give_nothing() -> None:
    assert lint([vpc(), security_groups(), root()], region="us-west-2") == ()


def test_everything_wrong_is_found_with_where_and_by_whom() -> None:
    bad = security_groups()
    bad.body["Resources"]["Nodes"]["Properties"]["SecurityGroupIngress"] = [
        {"IpProtocol": "tcp", "FromPort": "many", "ToPort": 1, "CidrIp": "10.0.0.0/8"}
    ]
    findings = lint([vpc(), bad, root()], region="us-west-2")
    path = ("Resources", "Nodes", "Properties", "SecurityGroupIngress", 0)
    assert [(finding.rule, finding.severity, finding.path) for finding in findings] == [
        ("E3012", "error", (*path, "FromPort")),
        ("W9010", "warning", path),
    ]
    assert {(finding.document, finding.module) for finding in findings} == {
        ("security-groups", "cfngen.templates.security_groups")
    }
    assert findings[0].further.endswith("https://github.com/aws-cloudformation/cfn-lint/blob/main/docs/rules.md#E3012")
    assert "https://docs.aws.amazon.com/" in findings[1].further


@pytest.mark.parametrize(
    ("changes", "rule", "path"),
    [
        ({"vpc_parameters": None}, "E9018", ("VpcStack", "Properties", "TemplateURL")),
        ({"vpc_parameters": {}}, "E3043", ("VpcStack", "Properties", "Parameters")),
        ({"vpc_parameters": {"Cidr": ["10.0.0.0/16"]}}, "E9018", ("VpcStack", "Properties", "Parameters", "Cidr")),
        (
            {"vpc_parameters": {"Cidr": "10.0.0.0/16", "Cider": "x"}},
            "E3043",
            ("VpcStack", "Properties", "Parameters", "Cider"),
        ),
        (
            {"group_parameters": {"VpcId": {"Fn::GetAtt": ["VpcStack", "Outputs.Vpc"]}}},
            "E1010",
            ("GroupStack", "Properties", "Parameters", "VpcId", "Fn::GetAtt", 1),
        ),
        (
            {"group_parameters": {"VpcId": {"Fn::Sub": "${VpcStack.Outputs.Vpc}"}}},
            "E1019",
            ("GroupStack", "Properties", "Parameters", "VpcId", "Fn::Sub"),
        ),
        ({"url": {"Fn::Sub": "${Base}other.json"}}, "E9000", ("GroupStack", "Properties", "TemplateURL")),
        ({"url": {"Ref": "Base"}}, "E9000", ("GroupStack", "Properties", "TemplateURL")),
    ],
)
def test_what_nested_stacks_are_passed(changes: dict[str, Any], rule: str, path: tuple[Any, ...]) -> None:
    findings = lint([vpc(), security_groups(), root(**changes)], region="us-west-2")
    assert (rule, ("Resources", *path), "cluster") in {
        (finding.rule, finding.path, finding.document) for finding in findings
    }


def test_an_output_that_a_nested_stack_does_not_have() -> None:
    output = {"Fn::GetAtt": ["GroupStack", "Outputs.Nothing"]}
    (finding,) = lint([vpc(), security_groups(), root(output=output)], region="us-west-2")
    assert finding.rule == "E6101"
    assert finding.path[:2] == ("Outputs", "Nodes")


def test_a_local_template_url_is_still_refused_in_the_document_itself() -> None:
    findings = lint([vpc(), security_groups(), root(url="security-groups.json")], region="us-west-2")
    assert [finding.rule for finding in findings] == ["W3002"]


def test_an_unused_parameter_of_the_root_is_found() -> None:
    document = root()
    document.body["Parameters"]["Unused"] = {"Type": "String"}
    assert [finding.rule for finding in lint([vpc(), security_groups(), document], region="us-west-2")] == ["W2001"]


def test_the_region_counts() -> None:
    instance = {
        "ImageId": "ami-12345678",
        "InstanceType": "t2.micro",
        "SubnetId": "subnet-12345678",
        "MetadataOptions": {"HttpTokens": "required"},
        "Tags": TAGS,
    }
    body = {"Resources": {"Instance": {"Type": "AWS::EC2::Instance", "Properties": instance}}}
    document = Document("instance", body, "tests")
    # Stockholm has no t2.
    assert [finding.rule for finding in lint([document], region="eu-north-1")] == ["E3628"]
    assert [finding.rule for finding in lint([document], region="us-west-2")] == []


def test_two_findings_with_the_same_message_are_two() -> None:
    gateway = {"Type": "AWS::EC2::InternetGateway"}
    document = Document("/some/where/gateways.json", {"Resources": {"One": gateway, "Two": gateway}}, "tests")
    assert [finding.path for finding in lint([document], region="us-west-2")] == [
        ("Resources", "One", "Properties"),
        ("Resources", "Two", "Properties"),
    ]


def test_an_unknown_region_is_refused() -> None:
    with pytest.raises(CfngenError, match="does not know the region us-middle-1"):
        lint([vpc()], region="us-middle-1")


def test_messages_are_short() -> None:
    document = vpc()
    document.body["Resources"]["Vpc"]["Type"] = "AWS::EC2::Instance"
    document.body["Resources"]["Vpc"]["Properties"] = {"InstanceType": "t99.huge", "Tags": TAGS}
    findings = lint([document], region="us-west-2")
    assert "E3628" in {finding.rule for finding in findings}
    assert all(len(finding.message) <= MESSAGE_LENGTH for finding in findings)
    assert all("\n" not in finding.message for finding in findings)


def test_shortened_messages_keep_their_beginning_and_end() -> None:
    text = shorten("'t99.huge' is not one of [" + ", ".join(f"'{number}'" for number in range(1000)) + "] in us-west-2")
    assert len(text) <= MESSAGE_LENGTH
    assert text.startswith("'t99.huge' is not one of ['0', ")
    assert text.endswith("'999'] in us-west-2")
    assert shorten("short,\n  in two lines") == "short, in two lines"


def test_the_error_names_document_rule_place_module_and_where_to_read_on() -> None:
    finding = LintFinding(
        "E1", "error", "is wrong", ("Resources", "Vpc", 0), "vpc", "cfngen.templates.vpc", "Rule: https://x"
    )
    error = LintError([finding, LintFinding("W1", "warning", "is odd", (), "iam", "cfngen.templates.iam")])
    assert isinstance(error, CfngenError)
    assert str(error) == (
        "the templates do not pass lint (1 error, 1 warning):\n"
        "\n"
        "vpc: E1 (error) is wrong\n"
        "    at     Resources.Vpc.0\n"
        "    made by cfngen.templates.vpc\n"
        "    see    Rule: https://x\n"
        "\n"
        "iam: W1 (warning) is odd\n"
        "    made by cfngen.templates.iam"
    )
    assert error.findings[0] is finding


def test_the_error_of_a_file_names_line_and_column_and_counts_in_words() -> None:
    findings = [LintFinding("E1", "error", "is wrong", ("Resources",), "own.yaml", "", "", 22, 5)] * 2
    findings += [LintFinding("I1", "informational", "could be better", (), "own.yaml", "", "", 1, 1)]
    error = LintError(findings)
    assert str(error).startswith(
        "the templates do not pass lint (2 errors, 1 informational finding):\n"
        "\n"
        "own.yaml:22:5: E1 (error) is wrong\n"
        "    at     Resources\n"
    )
    assert error.hint == ""
    assert "2 informational findings" in str(LintError(findings[2:] * 2))


def test_findings_in_a_text_are_placed_by_its_lines(tmp_path: Path) -> None:
    text = "Resources:\n\n  Gateway:\n    Type: AWS::EC2::InternetGateway\n"
    document = Document("own.yaml", {"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}}, "")
    for body in (text, text, f"# moved by a line\n{text}"):
        (finding,) = lint([document], region="us-west-2", cache=tmp_path, texts={"own.yaml": body})
        assert (finding.line, finding.column) == (body.count("\n", 0, body.index("Gateway")) + 1, 3)
    (finding,) = lint([document], region="us-west-2", cache=tmp_path)
    assert (finding.line, finding.column) == (0, 0)


def test_the_error_does_not_fill_the_screen() -> None:
    error = LintError([LintFinding("E1", "error", f"is wrong {n}", (), "vpc", "m") for n in range(100)])
    assert "is wrong 19\n" in str(error)
    assert "is wrong 20\n" not in str(error)
    assert str(error).endswith("and 80 more")


PROGRAM = """
import json, sys
from cfngen.lint import lint
from cfngen.templates.document import Document
from pathlib import Path
properties = {"CidrBlock": "10.0.0.0/16", "EnableDnsSupport": "perhaps"}
body = {"Resources": {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": properties}}}
cache = Path(sys.argv[1]) if sys.argv[1:] else None
findings = lint([Document("vpc", body, "tests")], region="eu-north-1", cache=cache)
print(json.dumps([[f.rule, f.message] for f in findings] + ["cfnlint" in sys.modules]))
"""
REPOSITORY = Path(__file__).parents[2]


def lint_in_a_process(directory: Path, *arguments: str, program: str = PROGRAM, **environ: str) -> Any:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), "HOME": str(directory), **environ}
    command = [sys.executable, "-c", program, *arguments]
    run = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A directory with nothing but the cache of a process that judged there, and what the process said."""
    directory = tmp_path_factory.mktemp("clean")
    return directory, lint_in_a_process(directory, str(directory / "cache"))


def test_the_environment_does_not_change_the_verdict(clean: tuple[Path, Any], tmp_path: Path) -> None:
    hostile = tmp_path / "hostile"
    schemas = hostile / ".cache/aws/cfn-lint/schemas"
    (schemas / "providers").mkdir(parents=True)
    (schemas / "resources").mkdir()
    (schemas / "version.json").write_text('{"schema_date": "2999-01-01T00:00:00Z"}')
    for region in ("us-east-1", "eu-north-1"):
        (schemas / f"providers/{region}.json").write_text("{}")
    rc = "ignore_checks: [E, W]\nregions: [cn-north-1]\nappend_rules: [/nowhere]\n"
    (hostile / ".cfnlintrc").write_text(rc)
    (hostile / "project").mkdir()
    (hostile / "project/.cfnlintrc.yaml").write_text(rc + "unknown_key: true\n")
    environ = {
        "AWS_REGION": "cn-north-1",
        "AWS_DEFAULT_REGION": "nowhere",
        "HOME": str(hostile),
        "XDG_CACHE_HOME": str(hostile / ".cache"),
        "PYTHONHASHSEED": "7",
    }
    _, verdict = clean
    assert [rule for rule, _ in verdict[:-1]] == ["E3012", "W9011"]
    assert lint_in_a_process(hostile / "project", **environ) == verdict


def test_a_known_verdict_needs_no_cfn_lint(clean: tuple[Path, Any]) -> None:
    directory, (*first, imported) = clean
    *second, imported_again = lint_in_a_process(directory, str(directory / "cache"))
    assert second == first
    assert (imported, imported_again) == (True, False)


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="other systems lint in one process")


@linux_only
def test_a_process_that_loads_ahead_finds_the_same() -> None:
    documents = [vpc(), security_groups(), root(vpc_parameters={}, output="none")]
    with LintProcess() as process:
        findings = lint(documents, region="us-west-2", process=process)
    assert findings
    assert findings == lint(documents, region="us-west-2")


@linux_only
def test_an_error_of_the_process_is_raised_by_its_parent() -> None:
    with LintProcess() as process, pytest.raises(CfngenError, match="does not know the region"):
        lint([vpc()], region="eu-nowhere-1", process=process)


@linux_only
def test_a_killed_process_is_reported() -> None:
    others = multiprocessing.active_children()
    with LintProcess() as process:
        [child] = [child for child in multiprocessing.active_children() if child not in others]
        child.kill()
        child.join()
        with pytest.raises(CfngenError, match="a process of it was killed"):
            lint([vpc()], region="us-west-2", process=process)


@linux_only
def test_no_process_outlives_an_error_of_its_parent() -> None:
    others = multiprocessing.active_children()
    with pytest.raises(ZeroDivisionError), LintProcess():
        raise ZeroDivisionError
    assert multiprocessing.active_children() == others


LOADS_AHEAD = """
import sys
from pathlib import Path
from cfngen.lint import lint, lint_process
from cfngen.lint import process
from cfngen.templates.document import Document
process.cpu_count = lambda: 2
started = []
body = {"Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}}
for is_needed in (True, False):
    with lint_process(is_needed=is_needed) as ahead:
        lint([Document("a", body, "tests")], region="us-west-2", cache=Path(sys.argv[1]), process=ahead)
        started.append(ahead is not None)
print(str(started).lower())
"""


@linux_only
def test_nothing_is_loaded_ahead_that_is_not_needed(tmp_path: Path) -> None:
    assert lint_in_a_process(tmp_path, str(tmp_path / "cache"), program=LOADS_AHEAD) == [True, False]
