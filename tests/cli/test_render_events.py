"""Events as lines of text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from cfngen.cli.render.durations import duration_text
from cfngen.cli.render.events import event_lines, history_lines
from cfngen.cli.render.resource_names import resource_name, stack_title
from cfngen.deploy.messages.message import Event

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
ROOT = "arn:aws:cloudformation:us-west-2:123456789012:stack/k8s/1"
SUBNET = Event("1", NOON, "k8s-Vpc-1", ("VpcStack",), "SubnetA", "subnet-1", "AWS::EC2::Subnet", "CREATE_COMPLETE")
REASON = (
    "Resource handler returned message: The maximum number of VPCs has been reached. (Service: Ec2, Status Code: 400)"
)
FAILED = Event("2", NOON, "k8s-Vpc-1", ("VpcStack",), "Vpc", "", "AWS::EC2::VPC", "CREATE_FAILED", REASON)
END = Event("3", NOON, "k8s", (), "k8s", ROOT, "AWS::CloudFormation::Stack", "ROLLBACK_COMPLETE", "", ROOT)


def plain(lines: list[str]) -> list[str]:
    return [click.unstyle(line) for line in lines]


def test_an_event_is_one_line():
    [line] = plain(event_lines(SUBNET, NOON - timedelta(seconds=75), width=100))
    assert line == "12:00:00Z   1 min 15 s  CREATE_COMPLETE       VpcStack/SubnetA  EC2 Subnet"


def test_a_reason_is_indented_below_and_no_word_is_torn():
    first, *reason = plain(event_lines(FAILED, width=60))
    assert first == "12:00:00Z  CREATE_FAILED         VpcStack/Vpc  EC2 VPC"
    assert " ".join(line.strip() for line in reason) == REASON
    assert all(line.startswith(" " * 10) for line in reason)
    assert max(map(len, reason)) <= 60


def test_failures_are_red():
    first, *reason = event_lines(FAILED, width=200)
    assert click.style("CREATE_FAILED".ljust(20), fg="red") in first
    assert [click.style(line, fg="red") for line in plain(reason)] == reason


def test_a_history_says_the_day_once_and_aligns_its_columns():
    tomorrow = Event("4", NOON + timedelta(days=1), "k8s", (), "Other", "", "AWS::EC2::VPC", "DELETE_COMPLETE")
    text = plain(history_lines((SUBNET, FAILED, END, tomorrow), width=160))
    assert text == [
        "2026-09-01 (UTC)",
        "  12:00:00Z  CREATE_COMPLETE    VpcStack/SubnetA  EC2 Subnet",
        "  12:00:00Z  CREATE_FAILED      VpcStack/Vpc  EC2 VPC",
        f"            {REASON.removesuffix(' 400)')}",
        "            400)",
        "  12:00:00Z  ROLLBACK_COMPLETE  stack k8s",
        "2026-09-02 (UTC)",
        "  12:00:00Z  DELETE_COMPLETE    Other  EC2 VPC",
    ]


def test_no_history():
    assert history_lines(()) == ["Nothing has happened yet."]


def test_resources_have_names_in_the_words_of_a_cluster():
    assert resource_name("NodeGroupNodesAutoScalingGroup") == "node group nodes"
    assert resource_name("MasterAAutoScalingGroup") == "master a"
    assert resource_name("MasterAVolume") == "master a volume"
    assert resource_name("ApiElasticIpAssociation") == "API elastic IP association"
    assert resource_name("MasterDnsTcpFromNodes") == "master DNS TCP from nodes"
    assert resource_name("NodeGroupGpu2LaunchTemplate") == "node group gpu2 launch template"
    assert resource_name("AutoScalingGroup") == "auto scaling group"
    assert resource_name("MasterAWaitCondition") == "master a"
    assert stack_title(("NodeGroupNodesStack",), "k8s-x") == "node group nodes"
    assert stack_title((), "k8s") == "k8s"


def test_durations():
    assert [duration_text(seconds) for seconds in (0, -3, 59.4, 60, 185, 3600, 7325)] == [
        "0 s",
        "0 s",
        "59 s",
        "1 min",
        "3 min 05 s",
        "1 h 00 min",
        "2 h 02 min",
    ]
