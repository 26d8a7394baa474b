"""Lifecycle hooks of node groups while a cluster is deleted: off, and on again where the cluster stays."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers
from recorded import RefusedError

from cfngen.deploy.messages.message import Message, Notice
from cfngen.deploy.operations.deletion.kubernetes import TerminationHooks

HOOK = {
    "LifecycleHookName": "cfngen-drain",
    "AutoScalingGroupName": "nodes",
    "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
    "HeartbeatTimeout": 120,
    "GlobalTimeout": 12000,
    "DefaultResult": "CONTINUE",
}
KEPT = {key: value for key, value in HOOK.items() if key != "GlobalTimeout"}


@pytest.fixture
def said() -> list[Message]:
    return []


@pytest.fixture
def draining(aws: Answers, said: list[Message]) -> TerminationHooks:
    """Two groups, of which one has a hook; masters have none."""
    aws.given["autoscaling:DescribeLifecycleHooks"] = lambda sent: {
        "LifecycleHooks": [HOOK] if sent["AutoScalingGroupName"] == "nodes" else []
    }
    return TerminationHooks(aws.account, ["masters", "nodes"], said.append)


def test_the_hook_goes_and_comes_back_as_it_was(aws: Answers, draining: TerminationHooks, said: list[Message]) -> None:
    draining.remove()
    assert aws.named("autoscaling:DescribeLifecycleHooks") == [
        {"AutoScalingGroupName": each, "LifecycleHookNames": ["cfngen-drain", "cfngen-quorum"]}
        for each in ("masters", "nodes")
    ]
    named = {"AutoScalingGroupName": "nodes", "LifecycleHookName": "cfngen-drain"}
    assert aws.written() == [("autoscaling:DeleteLifecycleHook", named)]
    aws.calls.clear()
    draining.restore()
    assert aws.written() == [("autoscaling:PutLifecycleHook", KEPT)]
    aws.calls.clear()
    draining.restore()
    assert (aws.calls, said) == ([], [])


def test_nothing_is_put_back_that_was_not_taken(aws: Answers, draining: TerminationHooks) -> None:
    draining.restore()
    assert aws.calls == []


@pytest.mark.parametrize("call", ["DescribeLifecycleHooks", "DeleteLifecycleHook"])
def test_a_group_that_has_gone_is_no_error(
    aws: Answers, draining: TerminationHooks, said: list[Message], call: str
) -> None:
    aws.given[f"autoscaling:{call}"] = RefusedError("ValidationError")
    draining.remove()
    assert said == []


def test_one_that_went_meanwhile_is_not_put_back(aws: Answers, draining: TerminationHooks, said: list[Message]) -> None:
    draining.remove()
    aws.given["autoscaling:PutLifecycleHook"] = RefusedError("ValidationError")
    draining.restore()
    assert said == []


def test_a_refusal_is_told_and_the_deletion_goes_on(
    aws: Answers, draining: TerminationHooks, said: list[Message]
) -> None:
    aws.given["autoscaling:DeleteLifecycleHook"] = RefusedError("AccessDenied", "not you")
    draining.remove()
    [notice] = said
    assert isinstance(notice, Notice)
    assert "which may take up to their drainTimeout" in notice.text
    assert "not you" in notice.text


@pytest.mark.parametrize(
    ("code", "hint"), [("AccessDenied", "docs/deploy/deploy.md"), ("LimitExceeded", "`cfngen delete`")]
)
def test_what_cannot_be_put_back_is_told_and_tried_again(
    aws: Answers, draining: TerminationHooks, said: list[Message], code: str, hint: str
) -> None:
    draining.remove()
    refused = [code]

    def put(sent: dict[str, Any]) -> dict[str, Any]:
        if refused:
            raise RefusedError(refused.pop())
        return {}

    aws.given["autoscaling:PutLifecycleHook"] = put
    draining.restore()
    [notice] = said
    assert isinstance(notice, Notice)
    assert "no longer drained" in notice.text
    assert hint in str(notice.hint)
    draining.restore()
    assert len(aws.named("autoscaling:PutLifecycleHook")) == 2
    draining.restore()
    assert len(aws.named("autoscaling:PutLifecycleHook")) == 2
