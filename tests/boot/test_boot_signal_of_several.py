"""The signals of a master: to its group, and to the condition that the creation of the cluster waits for."""

from __future__ import annotations

from typing import Any

import pytest
from boots import boot_of
from scripted_machine import ScriptedMachine, refusal

from cfngen.boot.machine import BootError
from cfngen.boot.runner import signal

FACTS = {"stack": "k8s-MasterStack", "resource": "MasterBAutoScalingGroup"}
FACTS |= {"condition": "MasterBWaitCondition", "conditionStack": "k8s"}
CONFIG = {"facts": {**FACTS, "instanceId": "i-0123456789abcdef0"}}
GROUP, CONDITION = FACTS["resource"], FACTS["condition"]


class Stack:
    """What CloudFormation answers for each resource: nothing, or a refusal; the first so often as told."""

    def __init__(self, machine: ScriptedMachine, **refusals: str) -> None:
        self.refusals = refusals
        self.unborn = 0
        self.unborn_because = f"Resource {CONDITION} does not exist for stack k8s"
        self.accepted: list[tuple[str, str]] = []
        machine.cloud["cloudformation.signal_resource"] = self.answer

    def answer(self, LogicalResourceId: str, Status: str, StackName: str, **others: Any) -> dict[str, Any]:  # noqa: N803
        if (LogicalResourceId == CONDITION) != (StackName == "k8s"):
            return refusal("ValidationError", f"Resource {LogicalResourceId} does not exist for stack {StackName}")
        if LogicalResourceId == CONDITION and self.unborn:
            self.unborn -= 1
            return refusal("ValidationError", self.unborn_because)
        if message := self.refusals.get(LogicalResourceId):
            return refusal("ValidationError", message)
        self.accepted.append((LogicalResourceId, Status))
        return {}


@pytest.fixture
def machine() -> ScriptedMachine:
    return ScriptedMachine()


@pytest.mark.parametrize("status", ["SUCCESS", "FAILURE"])
def test_on_creation_the_condition_is_told(machine: ScriptedMachine, status: str) -> None:
    complete = f"Resource {GROUP} is in CREATE_COMPLETE state and cannot be signaled"
    stack = Stack(machine, **{GROUP: complete})
    assert signal(machine, boot_of(CONFIG), status) == f"signalled {status}"
    assert stack.accepted == [(CONDITION, status)]
    assert machine.clock() == 0


def test_in_an_update_the_group_is_told_and_the_condition_is_over(machine: ScriptedMachine) -> None:
    complete = f"Resource {CONDITION} is in CREATE_COMPLETE state and cannot be signaled"
    stack = Stack(machine, **{CONDITION: complete})
    assert signal(machine, boot_of(CONFIG), "SUCCESS") == "signalled SUCCESS"
    assert stack.accepted == [(GROUP, "SUCCESS")]
    assert machine.clock() == 0


@pytest.mark.parametrize(
    "because",
    [
        f"Resource {CONDITION} does not exist for stack k8s",
        f"Resource {CONDITION} is in CREATE_FAILED state and cannot be signaled",
        f"Resource {CONDITION} is in DELETE_IN_PROGRESS state and cannot be signaled",
        # A creation or an update that failed in another resource, and was kept to be continued.
        "Stack arn:aws:cloudformation:us-west-2:1:stack/k8s/1 is in CREATE_FAILED state and cannot be signaled",
        "Stack arn:aws:cloudformation:us-west-2:1:stack/k8s/1 is in UPDATE_FAILED state and can not be signaled",
    ],
)
def test_a_condition_that_comes_after_all_groups_is_waited_for(machine: ScriptedMachine, because: str) -> None:
    """An update makes it only after the last master; one that failed is made again when the operation is repeated."""
    stack = Stack(machine)
    stack.unborn, stack.unborn_because = 900, because
    signal(machine, boot_of(CONFIG), "SUCCESS")
    assert machine.clock() > 7200
    assert len(machine.said) == 1
    assert stack.accepted == [(GROUP, "SUCCESS"), (CONDITION, "SUCCESS")]


def test_a_condition_that_never_comes_is_given_up_without_a_failure(machine: ScriptedMachine) -> None:
    stack = Stack(machine)
    stack.unborn = 10_000
    other = boot_of({"facts": {**CONFIG["facts"], "instanceId": "i-0123456789abcdef1"}})
    assert signal(machine, other, "SUCCESS")
    assert machine.clock() == 5 * 3600
    machine.passed = 0
    assert signal(machine, boot_of(CONFIG), "FAILURE") == "signalled FAILURE"
    assert machine.clock() == 300
    assert signal(machine, boot_of(CONFIG), "FAILURE") == "signalled FAILURE before"


def test_a_master_of_a_stack_that_stays_failed_signals_again_when_it_boots_again(machine: ScriptedMachine) -> None:
    stack = Stack(machine)
    stack.unborn = 10_000
    stack.unborn_because = "Stack arn:aws:cloudformation:us-west-2:1:stack/k8s/1 is in CREATE_FAILED state and …"
    stack.refusals[GROUP] = f"Resource {GROUP} is in CREATE_COMPLETE state and cannot be signaled"
    assert "is in CREATE_FAILED state" in signal(machine, boot_of(CONFIG), "SUCCESS")
    assert machine.clock() == 5 * 3600
    stack.unborn = 0
    assert signal(machine, boot_of(CONFIG), "SUCCESS") == "signalled SUCCESS"
    assert stack.accepted == [(CONDITION, "SUCCESS")]


@pytest.mark.parametrize(
    "message",
    [
        "Stack arn:aws:cloudformation:us-west-2:1:stack/k8s/1 is in UPDATE_COMPLETE state and cannot be signaled",
        "Stack with id k8s-MasterStack does not exist",
    ],
)
def test_a_stack_that_waits_for_nobody_is_no_failure(machine: ScriptedMachine, message: str) -> None:
    """An instance that replaces a lost one long after the stack was made."""
    Stack(machine, **{GROUP: message, CONDITION: message})
    assert signal(machine, boot_of(CONFIG), "SUCCESS") == message
    assert machine.clock() == 0


def test_a_crash_between_the_two_signals_repeats_both(machine: ScriptedMachine) -> None:
    stack = Stack(machine)
    answer = machine.cloud["cloudformation.signal_resource"]

    def once(LogicalResourceId: str, **others: Any) -> dict[str, Any]:  # noqa: N803
        if LogicalResourceId == CONDITION:
            return refusal("AccessDenied")
        return answer(LogicalResourceId=LogicalResourceId, **others)

    machine.cloud["cloudformation.signal_resource"] = once
    with pytest.raises(BootError):
        signal(machine, boot_of(CONFIG), "SUCCESS")
    machine.cloud["cloudformation.signal_resource"] = answer
    stack.refusals[GROUP] = exists(GROUP)
    assert signal(machine, boot_of(CONFIG), "SUCCESS") == "signalled SUCCESS"
    assert stack.accepted == [(GROUP, "SUCCESS"), (CONDITION, "SUCCESS")]


def exists(resource: str) -> str:
    return (
        f"Signal with ID i-0123456789abcdef0 for resource {resource} already exists. Signals may only be updated with "
        "a FAILURE status."
    )


def test_a_signal_whose_answer_was_lost_has_arrived(machine: ScriptedMachine) -> None:
    Stack(machine, **{GROUP: exists(GROUP), CONDITION: f"Resource {CONDITION} is in CREATE_COMPLETE state and cannot"})
    assert signal(machine, boot_of(CONFIG), "SUCCESS") == "signalled SUCCESS"


def test_cloudformation_keeps_to_a_failure_while_the_same_operation_waits(machine: ScriptedMachine) -> None:
    """The instance works after a reboot, and says that CloudFormation does not hear of it."""
    stack = Stack(machine)
    signal(machine, boot_of(CONFIG), "FAILURE")
    stack.refusals = {GROUP: exists(GROUP), CONDITION: exists(CONDITION)}
    assert signal(machine, boot_of(CONFIG), "SUCCESS") == exists(CONDITION)
    assert signal(machine, boot_of(CONFIG), "SUCCESS") == "signalled SUCCESS before"
