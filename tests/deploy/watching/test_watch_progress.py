"""How far an operation has come, as the tree that a watch reports."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from clusters import golden
from watched import Operator, operating

from cfngen.deploy.aws.consoles import BOOT_SECONDS
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.aws.templates import nested_template_names
from cfngen.deploy.messages.message import Event
from cfngen.deploy.watching.expectations import (
    Expectation,
    ExpectedResource,
    expect_operation,
    usual_seconds,
)
from cfngen.deploy.watching.progress import ProgressTracker, ResourceProgress, StackProgress
from cfngen.templates import generate

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
ROOT = "arn:aws:cloudformation:us-west-2:123456789012:stack/k8s/1"
NODES = ("NodesStack",)
CHILD = "arn:aws:cloudformation:us-west-2:123456789012:stack/k8s-NodesStack-ABC/2"
STACK = "AWS::CloudFormation::Stack"
NUMBERS = itertools.count()


def own(status: str, second: int, *, child: bool = False) -> Event:
    identity, path, name = (CHILD, NODES, "k8s-NodesStack-ABC") if child else (ROOT, (), "k8s")
    time = NOON + timedelta(seconds=second)
    return Event(str(next(NUMBERS)), time, name, path, name, identity, STACK, status, "", identity)


def of(
    name: str, status: str, second: int, reason: str = "", kind: str = AUTO_SCALING_GROUP, physical_id: str = "x"
) -> Event:
    time = NOON + timedelta(seconds=second)
    return Event(str(next(NUMBERS)), time, "k8s-NodesStack-ABC", NODES, name, physical_id, kind, status, reason, CHILD)


def tree(*events: Event, expected: Expectation | None = None) -> ProgressTracker:
    made = ProgressTracker("k8s", expected or Expectation())
    for event in events:
        made.add_event(event)
    return made


def nodes(made: ProgressTracker, second: int) -> StackProgress:
    return next(stack for stack in made.stacks(NOON + timedelta(seconds=second)) if stack.path == NODES)


def resource(made: ProgressTracker, second: int, name: str = "Group") -> ResourceProgress:
    return next(resource for resource in nodes(made, second).resources if resource.logical_id == name)


BEGUN = (own("CREATE_IN_PROGRESS", 0), own("CREATE_IN_PROGRESS", 1, child=True))


def test_time_and_counts():
    template = "AWS::EC2::LaunchTemplate"
    made = tree(
        *BEGUN,
        of("Template", "CREATE_IN_PROGRESS", 1, kind=template),
        of("Template", "CREATE_COMPLETE", 4, kind=template),
        of("Group", "CREATE_IN_PROGRESS", 5),
    )
    found = nodes(made, 65)
    assert (found.done, found.total, found.status, found.seconds) == (1, 0, "CREATE_IN_PROGRESS", 64)
    assert found.running
    assert [(resource.logical_id, resource.seconds, resource.running) for resource in found.resources] == [
        ("Template", 3, False),
        ("Group", 60, True),
    ]
    assert made.seconds(NOON + timedelta(seconds=65)) == 65
    assert made.action == "create"


def test_a_clock_that_is_late_shows_no_negative_time():
    made = tree(*BEGUN, of("Group", "CREATE_IN_PROGRESS", 5), of("Other", "CREATE_COMPLETE", 9))
    assert resource(made, -3600).seconds == 4


def test_what_is_expected_is_there_before_it_begins():
    expected = Expectation(
        (
            ExpectedResource((), "NodesStack", STACK, "create"),
            ExpectedResource(NODES, "Template", "AWS::EC2::LaunchTemplate", "create", seconds=10),
            ExpectedResource(NODES, "Group", AUTO_SCALING_GROUP, "create", signals=4, seconds=300),
        ),
        310,
    )
    made = tree(own("CREATE_IN_PROGRESS", 0), expected=expected)
    found = nodes(made, 1)
    assert (found.status, found.done, found.total, found.resources) == ("", 0, 2, ())
    made.add_event(of("Group", "CREATE_IN_PROGRESS", 5))
    assert (resource(made, 6).signals_expected, resource(made, 6).expected) == (4, 300)


@pytest.mark.parametrize(("status", "signals"), [("CREATE", 4), ("UPDATE", 0), ("DELETE", 0)])
def test_only_a_creation_waits_for_the_signals_of_the_creation_policy(status: str, signals: int):
    expected = Expectation((ExpectedResource(NODES, "Group", AUTO_SCALING_GROUP, status.lower(), signals=4),))
    made = tree(own(f"{status}_IN_PROGRESS", 0), of("Group", f"{status}_IN_PROGRESS", 5), expected=expected)
    assert resource(made, 6).signals_expected == signals
    made.add_event(of("Other", "CREATE_IN_PROGRESS", 5))
    assert resource(made, 6, "Other").signals_expected == 0


def test_signals_count_once_for_each_instance():
    made = tree(
        *BEGUN,
        of("Group", "CREATE_IN_PROGRESS", 5),
        of("Group", "CREATE_IN_PROGRESS", 95, "Received SUCCESS signal with UniqueId i-1"),
        of("Group", "CREATE_IN_PROGRESS", 96, "Received SUCCESS signal with UniqueId i-1"),
        of("Group", "CREATE_IN_PROGRESS", 97, "Received SUCCESS signal with UniqueId i-2"),
        of("Group", "CREATE_IN_PROGRESS", 98, "Received FAILURE signal with UniqueId i-3"),
    )
    assert resource(made, 100).signals == 2


def test_a_rolling_update_says_how_many_instances_it_replaces():
    made = tree(
        own("UPDATE_IN_PROGRESS", 0),
        of("Group", "UPDATE_IN_PROGRESS", 5),
        of(
            "Group",
            "UPDATE_IN_PROGRESS",
            6,
            "Rolling update initiated. Terminating 4 obsolete instance(s) in batches of 1, while keeping at least 0 "
            "instance(s) in service.",
        ),
        of("Group", "UPDATE_IN_PROGRESS", 90, "Received SUCCESS signal with UniqueId i-1"),
    )
    found = resource(made, 100)
    assert (found.signals, found.signals_expected, found.expected) == (1, 4, 4 * BOOT_SECONDS)


def test_going_back_is_counted_anew_and_the_failure_stays():
    made = tree(
        *BEGUN,
        of("Template", "CREATE_COMPLETE", 4, kind="AWS::EC2::LaunchTemplate"),
        of("Never", "CREATE_FAILED", 5, "Resource creation cancelled", physical_id=""),
        of("Group", "CREATE_FAILED", 1200, "Failed to receive 4 resource signal(s)"),
        own("ROLLBACK_IN_PROGRESS", 1201),
        own("DELETE_IN_PROGRESS", 1202, child=True),
        of("Group", "DELETE_IN_PROGRESS", 1203),
    )
    found = nodes(made, 1210)
    assert (found.done, found.total) == (0, 2)
    assert resource(made, 1210).reason == "Failed to receive 4 resource signal(s)"
    assert resource(made, 1210).seconds == 7
    assert resource(made, 1210, "Never").reason == ""
    made.add_event(of("Group", "DELETE_COMPLETE", 1260))
    assert nodes(made, 1270).done == 1


def test_the_default_cluster_takes_about_ten_minutes():
    documents = {each.name: each for each in generate(golden("default"))}
    root = documents["cluster"]
    bodies = {(): root.body}
    for logical_id, child in nested_template_names(root.body).items():
        bodies[logical_id,] = documents[child].body
    expected = expect_operation(bodies, "create", {"NodeGroupNodesMinSize": "7"})
    assert 5 * 60 < expected.seconds < 15 * 60
    [group] = [resource for resource in expected.resources if resource.logical_id == "NodeGroupNodesAutoScalingGroup"]
    assert group.signals == 7
    one = expect_operation(bodies, {(("VpcStack",), "Vpc"): "update"})
    assert [resource.logical_id for resource in one.resources] == ["Vpc"]
    assert one.seconds == usual_seconds("AWS::EC2::VPC", "update")


@pytest.fixture
def operator() -> Iterator[Operator]:
    with operating() as made:
        yield made


def test_a_watched_creation_shows_every_stack_as_done(operator: Operator):
    operator.watch(operator.create(), expected=Expectation(seconds=120))
    last = operator.progress[-1]
    assert (last.action, last.stack, last.status, last.seconds) == (
        "create",
        "k8s",
        "CREATE_COMPLETE",
        operator.seconds,
    )
    assert last.expected == 120
    assert {(stack.path, stack.done, stack.running) for stack in last.stacks} == {
        ((), 0, False),
        (("VpcStack",), 2, False),
        (("DiskStack",), 1, False),
        (("NodesStack",), 2, False),
    }
