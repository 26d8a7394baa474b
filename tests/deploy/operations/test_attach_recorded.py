"""Coming back to an operation: what is done once it has ended, and what where somebody wants to end it."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import STACK_ID, RefusedError
from recorded_stack import NAME, End, RecordedStack, Told, event

from cfngen.deploy.aws.operation_origin import followed_by
from cfngen.deploy.aws.stacks import NoStackError
from cfngen.deploy.messages.message import Event, Finished, Notice
from cfngen.deploy.operations.deployment.attaching import EmptyStackError, attach, cancel_creation
from cfngen.deploy.preflight.stack_checks import ForeignStackError
from cfngen.deploy.watching.watch import InterruptChoice, watch

UPDATING = "UPDATE_IN_PROGRESS"
SET = {"SetStackPolicy", "UpdateTerminationProtection"}


def stack(
    *events: str, cluster: str = NAME, token: str = "", note: str = "", ends: tuple[End, ...] = ()
) -> RecordedStack:
    api = RecordedStack(events[-1], *ends, cluster=cluster)
    api.events[NAME] = [event(status, token=token) for status in events]
    api.change_sets = {token: {"Description": note}}

    def unknown(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError("InvalidAction")

    api.answers["DescribeEvents"] = unknown
    return api


def come_back(api: RecordedStack, told: Told | None = None) -> Finished:
    return attach(api.account, NAME, NAME, (told or Told()).waiting)


def kinds(told: Told) -> list[str]:
    return [message.kind for message in told.messages if message.kind not in ("event", "progress")]


def set_calls(api: RecordedStack) -> list[str]:
    return [name for name, _ in api.calls if name in SET]


CREATED = ("CREATE_IN_PROGRESS", "CREATE_COMPLETE")
BOTH = ["UpdateTerminationProtection", "SetStackPolicy"]
OURS = f"cfngen: the cluster {NAME}, by arn:aws:iam::123456789012:user/me"


@pytest.mark.parametrize(
    ("events", "token", "note", "expected"),
    [
        (CREATED, "cfngen-plan-1", OURS, BOTH),
        (CREATED, "cfngen-plan-1", f"{OURS}, not protected", ["SetStackPolicy"]),
        (CREATED, "console", OURS, ["SetStackPolicy"]),
        ((UPDATING, "UPDATE_COMPLETE"), "cfngen-plan-1", OURS, BOTH),
        # An update that was rolled back needs its policies no less.
        ((UPDATING, "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"), "console", "", ["SetStackPolicy"]),
        # What failed to be created, is rolled back or deleted needs none.
        (("CREATE_IN_PROGRESS", "CREATE_FAILED"), "cfngen-plan-1", OURS, []),
        (("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"), "cfngen-plan-1", OURS, []),
        (("DELETE_IN_PROGRESS", "DELETE_FAILED"), "cfngen-plan-1", OURS, []),
    ],
)
def test_who_comes_back_protects_what_the_deployment_was_asked_to(
    events: tuple[str, ...], token: str, note: str, expected: list[str]
) -> None:
    api, told = stack(*events, token=token, note=note), Told()
    finished = come_back(api, told)
    assert (finished.status, finished.stack_id, finished.in_progress) == (events[-1], STACK_ID, False)
    assert set_calls(api) == expected
    succeeded = events[-1] in ("CREATE_COMPLETE", "UPDATE_COMPLETE") or events[0].startswith("UPDATE_ROLLBACK")
    assert finished.succeeded == succeeded
    # Why it failed is told where it did.
    assert ("diagnosis" in kinds(told)) == (not succeeded)


def test_after_one_phase_the_others_are_named() -> None:
    note = followed_by(followed_by(f"{OURS}, not protected", ["another issuer"]), ["node group a", "node group b"])
    api, told = stack(UPDATING, "UPDATE_COMPLETE", token="cfngen-plan-1", note=note), Told()
    assert come_back(api, told).succeeded
    assert told.notices == [
        "this was one phase of a deployment; after it come: node group a, node group b, another issuer"
    ]
    assert set_calls(api) == ["SetStackPolicy"]


def test_the_stack_of_another_cluster_is_only_watched() -> None:
    api = stack("CREATE_IN_PROGRESS", "CREATE_COMPLETE", cluster="other", token="cfngen-plan-1", note=OURS)
    assert come_back(api).succeeded
    assert set_calls(api) == []


def test_an_operation_that_is_left_again_is_neither_explained_nor_protected() -> None:
    api, told = stack(UPDATING, token="cfngen-plan-1", note=OURS), Told()
    api.interrupt_waiting()
    finished = come_back(api, told)
    assert (finished.in_progress, finished.succeeded) == (True, False)
    assert (set_calls(api), kinds(told)) == ([], [])


def test_what_a_failed_creation_has_left_is_looked_for() -> None:
    api, told = stack("CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"), Told()
    assert api.stack is not None
    api.stack["EnableTerminationProtection"] = True
    assert not come_back(api, told).succeeded
    assert api.named("UpdateTerminationProtection")[0]["EnableTerminationProtection"] == "false"
    assert api.named("ListStackResources")


@pytest.mark.parametrize(
    ("code", "says", "hint"),
    [
        ("AccessDenied", "not allowed to call SetStackPolicy", "docs/deploy/deploy.md lists what an operator"),
        ("InternalFailure", "SetStackPolicy: no (InternalFailure)", "the next deployment tries again."),
    ],
)
def test_protection_that_is_refused_is_told_with_what_to_do_and_no_failure(code: str, says: str, hint: str) -> None:
    api, told = stack("CREATE_IN_PROGRESS", "CREATE_COMPLETE"), Told()

    def refused(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError(code, "no", 403)

    api.answers["SetStackPolicy"] = refused
    assert come_back(api, told).succeeded
    [notice] = [message for message in told.messages if isinstance(message, Notice)]
    assert notice.text.startswith(f"{NAME} is up to date, but not protected: {says}")
    assert str(notice.hint).startswith(hint)


@pytest.mark.parametrize(
    ("status", "error"), [("REVIEW_IN_PROGRESS", EmptyStackError), ("DELETE_COMPLETE", NoStackError)]
)
def test_where_nothing_is_under_way_there_is_nothing_to_watch(status: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        come_back(RecordedStack(status))


def creating(*ends: End, cluster: str = NAME) -> RecordedStack:
    """A creation during whose watch Ctrl-C comes once; it goes on unless it is deleted."""
    api = stack("CREATE_IN_PROGRESS", cluster=cluster, ends=ends)
    sleep = api.clock.sleep

    def interrupt(seconds: float) -> None:
        sleep(seconds)
        if len(api.clock.slept) == 1:
            raise KeyboardInterrupt
        assert api.stack is not None
        api.stack["StackStatus"] = "CREATE_COMPLETE"
        api.events[NAME].append(event("CREATE_COMPLETE"))

    api.clock.sleep = interrupt  # type: ignore[method-assign]
    return api


def test_a_creation_is_ended_by_deleting_the_stack() -> None:
    api, told = creating(End("DELETE_COMPLETE")), Told(choice=InterruptChoice.CANCEL)
    assert api.stack is not None
    api.stack["EnableTerminationProtection"] = True
    finished = come_back(api, told)
    # What was asked for did not come about, however well the way back went.
    assert (finished.status, finished.succeeded, finished.action) == ("DELETE_COMPLETE", False, "delete")
    [question] = told.questions
    assert question.text == f"Delete {NAME}, which is being created?"
    assert question.consequences == ("everything it has created so far is deleted, and the cluster with it",)
    assert api.named("DeleteStack")[0]["StackName"] == STACK_ID
    assert api.named("UpdateTerminationProtection")[0]["EnableTerminationProtection"] == "false"
    shown = [message.status for message in told.messages if isinstance(message, Event)]
    assert shown == ["CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"]


def test_who_thinks_better_of_it_watches_on() -> None:
    api, told = creating(), Told(choice=InterruptChoice.CANCEL, answer=False)
    finished = come_back(api, told)
    assert (finished.status, finished.succeeded) == ("CREATE_COMPLETE", True)
    assert not api.named("DeleteStack")


def test_the_creation_of_another_cluster_is_not_ended() -> None:
    api = creating(cluster="other")
    with pytest.raises(ForeignStackError):
        come_back(api, Told(choice=InterruptChoice.CANCEL))
    assert not api.named("DeleteStack")


def test_a_deletion_that_is_left_goes_on() -> None:
    api, told = creating(End("DELETE_IN_PROGRESS")), Told(choice=InterruptChoice.CANCEL)
    wish = watch(api.account, STACK_ID, report=told.messages.append, on_interrupt=lambda: told.choice)
    assert wish.cancelled
    told.choice = InterruptChoice.DETACH
    api.interrupt_waiting()
    outcome = cancel_creation(api.account, told.waiting, wish)
    assert (outcome.detached, outcome.succeeded, outcome.status.name) == (True, False, "DELETE_IN_PROGRESS")
