"""What a watch says of an operation that hangs: what it waits for, until when, and how to end it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from small_stacks import running
from watched import Operator, operating

from cfngen.deploy.messages.message import Notice

CONSOLE = """\
[   24.9] python3[702]: cfngen: [1/6] identity: i-1 in us-west-2a, node of kubernetes (0.1 s)
[  171.5] python3[702]: cfngen: [2/6] downloads: fetched 9 of 9 files (2.0 s)
[  231.5] python3[702]: cfngen: waiting for a master (60 s): no secret
"""


@pytest.fixture
def operator() -> Iterator[Operator]:
    with operating() as made:
        yield made


def said(operator: Operator) -> list[str]:
    return [f"{notice.text}. {notice.hint}" for notice in operator.messages if isinstance(notice, Notice)]


def test_a_creation_that_hangs_is_explained_once_in_ten_minutes(operator: Operator):
    operator.signals = ["SUCCESS", None]
    operator.create()
    operator.engine.advance(60)
    for instance in running():
        operator.served.moto_extensions.set_console_output(instance, CONSOLE)
    created = next(event for event in operator.root.children["NodesStack"].events if event.logical_id == "Group")
    operator.watch()
    [notice] = said(operator)
    assert notice.startswith("Group is overdue: 1 signal after 8 minutes, where 5 minutes are usual; i-")
    assert ", after step 2 of 6 (downloads): waiting for a master (60 s): no secret" in notice
    gives_up = created.time.replace(minute=created.time.minute + 10)
    assert f"CloudFormation gives up at about {gives_up:%H:%M} UTC. Ctrl-C here, or in `cfngen watch" in notice
    assert "cancel-update-stack" not in notice


def test_an_update_that_hangs_can_be_cancelled(operator: Operator):
    operator.created()
    operator.signals = [None]
    before = operator.update("t3.medium")
    operator.watch(since=before)
    [notice, *_] = said(operator)
    assert notice.startswith("Group is overdue: 0 of 2 signals after 9 minutes, where 6 minutes are usual; ")
    assert "`aws cloudformation cancel-update-stack --region us-west-2 --stack-name k8s`" in notice


def test_who_may_read_nothing_hears_that_it_is_overdue(operator: Operator):
    operator.signals = [None, None]
    operator.create()
    operator.faults.deny("cloudformation:GetTemplate", "ec2:DescribeInstances", "autoscaling:DescribeScalingActivities")
    operator.watch()
    [notice] = said(operator)
    assert notice.startswith("Group is overdue: 0 signals after 8 minutes, where 5 minutes are usual. Ctrl-C")
