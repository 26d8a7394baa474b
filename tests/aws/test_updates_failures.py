"""The emulator itself: what becomes of an update that fails, is undone, or is left as it is."""

from __future__ import annotations

from typing import Any

import pytest
from refusals_scaling import idle
from small_stacks import (
    BAD,
    GATEWAY,
    REGION,
    created,
    family,
    gateways,
    nested,
    reasons,
    since,
    tagged,
    tags_of,
    text,
    updated,
    vpc,
    vpcs,
)

from cfngen.sandbox.cloudformation import CloudFormation, ValidationError, client


def test_a_failure_puts_everything_back(cloud: CloudFormation) -> None:
    stack = created(
        cloud,
        {"G": tagged(a="1"), "Vpc": {**vpc(), "DependsOn": "G"}, "Old": GATEWAY},
        Outputs={"It": {"Value": {"Ref": "Vpc"}}},
    )
    before = {key: each.physical_id for key, each in stack.resources.items()}
    outputs = dict(stack.outputs)
    updated(
        cloud,
        {
            "G": tagged(a="2"),
            "Vpc": {**vpc("10.1.0.0/16"), "DependsOn": "G"},
            "New": {**GATEWAY, "DependsOn": "Vpc"},
            "Bad": {**BAD, "DependsOn": "New"},
        },
    )
    assert since(stack, "ROLLBACK") == [
        ("s", "UPDATE_ROLLBACK_IN_PROGRESS"),
        ("G", "UPDATE_IN_PROGRESS"),
        ("G", "UPDATE_COMPLETE"),
        ("Vpc", "UPDATE_IN_PROGRESS"),
        ("Vpc", "UPDATE_COMPLETE"),
        ("s", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"),
        ("New", "DELETE_IN_PROGRESS"),
        ("New", "DELETE_COMPLETE"),
        ("Vpc", "DELETE_IN_PROGRESS"),
        ("Vpc", "DELETE_COMPLETE"),
        ("s", "UPDATE_ROLLBACK_COMPLETE"),
    ]
    assert reasons(stack, "s", "UPDATE_ROLLBACK_IN_PROGRESS") == ["The following resource(s) failed to create: [Bad]. "]
    assert {key: each.physical_id for key, each in stack.resources.items()} == before
    assert (vpcs(), sorted(gateways())) == ([before["Vpc"]], sorted([before["G"], before["Old"]]))
    assert (tags_of(stack, "G"), stack.outputs) == ({"a": "1"}, outputs)
    assert updated(cloud, {"G": tagged(a="2"), "Vpc": vpc(), "Old": GATEWAY}).status == "UPDATE_COMPLETE"


def test_a_failed_rollback_can_be_continued(cloud: CloudFormation) -> None:
    stack = created(cloud, {"G": tagged(a="1"), "Vpc": vpc()})
    cloud.durations["AWS::EC2::VPC"] = 5
    bad = {**BAD, "DependsOn": "G"}
    cloud.update_stack("s", body=text({"G": tagged(a="2"), "Vpc": vpc(), "Bad": bad}))
    cloud.advance(1)
    assert tags_of(stack, "G") == {"a": "2"}
    cloud.fail("G", "not now", during="UPDATE")
    cloud.wait(stack)
    assert (stack.status, stack.reason) == (
        "UPDATE_ROLLBACK_FAILED", "The following resource(s) failed to update: [G]. "
    )  # fmt: skip
    with pytest.raises(ValidationError, match=r"is in UPDATE_ROLLBACK_FAILED state and can not be updated\."):
        updated(cloud, {"G": GATEWAY})
    assert cloud.continue_rollback("s").status == "UPDATE_ROLLBACK_COMPLETE"
    assert tags_of(stack, "G") == {"a": "1"}
    with pytest.raises(ValidationError, match="UPDATE_ROLLBACK_COMPLETE state"):
        cloud.continue_rollback("s")


@pytest.mark.parametrize("how", [{"skip": ["G"]}, {"force": True}])
def test_what_cannot_be_rolled_back_is_skipped(cloud: CloudFormation, how: dict[str, Any]) -> None:
    stack = created(cloud, {"G": tagged(a="1"), "H": tagged(a="1"), "Bad": GATEWAY})
    cloud.fail("G", "not now", during="UPDATE", times=9)
    updated(cloud, {"G": tagged(a="2"), "H": tagged(a="2"), "Bad": GATEWAY})
    assert stack.status == "UPDATE_ROLLBACK_FAILED"
    with pytest.raises(ValidationError, match=r"\[Bad\].*only .* UPDATE_FAILED state because a rollback failed"):
        cloud.continue_rollback("s", ["Bad"])
    assert cloud.continue_rollback("s", **how).status == "UPDATE_ROLLBACK_COMPLETE"
    assert tags_of(stack, "H") == {"a": "1"}
    assert ("G", "UPDATE_COMPLETE") in since(stack, "CONTINUE_ROLLBACK" if "force" in how else "ROLLBACK")


def test_what_was_only_cancelled_is_not_skipped(cloud: CloudFormation) -> None:
    def wanted(word: str) -> dict[str, Any]:
        return {"G": tagged(a=word), **{key: {**tagged(a=word), "DependsOn": "G"} for key in ("H", "Bad")}}

    stack = created(cloud, wanted("1"))
    cloud.durations["AWS::EC2::InternetGateway"] = 5
    cloud.fail("Bad", "not now", during="UPDATE")
    cloud.update_stack("s", body=text(wanted("2")))
    cloud.advance(1)
    cloud.fail("G", "not back", during="UPDATE")
    cloud.wait(stack)
    assert stack.status == "UPDATE_ROLLBACK_FAILED"
    assert {key: each.status for key, each in stack.resources.items()} == {
        "G": "UPDATE_FAILED", "H": "UPDATE_FAILED", "Bad": "UPDATE_FAILED"
    }  # fmt: skip
    for key in ("H", "Bad"):
        with pytest.raises(ValidationError, match=rf"\[{key}\] cannot be skipped.*because an update was canceled"):
            cloud.continue_rollback("s", ["G", key])
    assert stack.status == "UPDATE_ROLLBACK_FAILED"
    cloud.wait(cloud.continue_rollback("s", ["G"]))
    assert (stack.status, tags_of(stack, "H")) == ("UPDATE_ROLLBACK_COMPLETE", {"a": "1"})


def test_a_nested_stack_is_not_skipped_as_a_whole(cloud: CloudFormation) -> None:
    stack = created(cloud, family("hello"))
    cloud.fail("G", "too loud", during="UPDATE", times=2, stack=stack.children["Second"].name)
    updated(cloud, family("bye"))
    with pytest.raises(ValidationError, match="DELETE_COMPLETE, DELETE_FAILED, DELETE_IN_PROGRESS"):
        cloud.continue_rollback("s", ["Second"])


def test_a_failure_in_one_nested_stack_puts_all_of_them_back(cloud: CloudFormation) -> None:
    stack = created(cloud, family("hello"))
    first, second = stack.children["First"], stack.children["Second"]
    cloud.fail("G", "too loud", during="UPDATE", stack=second.name)
    updated(cloud, family("bye", More=GATEWAY))
    assert {each.status for each in (stack, first, second)} == {"UPDATE_ROLLBACK_COMPLETE"}
    assert tags_of(first, "G")["word"] == "hello"
    assert tags_of(second, "G")["word"].startswith("hello")
    assert len(gateways()) == 3
    [reason] = reasons(stack, "Second", "UPDATE_FAILED")
    assert reason == (
        f"Embedded stack {second.id} was not successfully updated. Currently in UPDATE_ROLLBACK_IN_PROGRESS with "
        "reason: The following resource(s) failed to update: [G]. "
    )
    assert reasons(stack, "s", "UPDATE_ROLLBACK_IN_PROGRESS") == [
        "The following resource(s) failed to update: [Second]. "
    ]
    assert updated(cloud, family("bye")).status == "UPDATE_COMPLETE"


def test_a_nested_rollback_that_fails_is_skipped_by_the_nested_stacks_name(cloud: CloudFormation) -> None:
    stack = created(cloud, family("hello"))
    second = stack.children["Second"]
    cloud.fail("G", "too loud", during="UPDATE", times=2, stack=second.name)
    updated(cloud, family("bye"))
    assert (stack.status, second.status) == ("UPDATE_ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED")
    assert stack.children["First"].status == "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    with pytest.raises(ValidationError, match="nested"):
        cloud.continue_rollback(second.name)
    with pytest.raises(ValidationError, match="does not exist"):
        cloud.continue_rollback("s", ["G"])
    cloud.wait(cloud.continue_rollback("s", [f"{second.name}.G"]))
    assert {each.status for each in (stack, second)} == {"UPDATE_ROLLBACK_COMPLETE"}


def test_rollback_turned_off_leaves_what_was_done(cloud: CloudFormation) -> None:
    stack = created(cloud, {"G": tagged(a="1"), "H": tagged(a="1")})
    cloud.fail("H", "not now", during="UPDATE")
    wanted = {"G": tagged(a="2"), "H": {**tagged(a="2"), "DependsOn": "G"}}
    updated(cloud, wanted, disable_rollback=True)
    assert (stack.status, tags_of(stack, "G")) == ("UPDATE_FAILED", {"a": "2"})
    assert stack.resources["H"].status == "UPDATE_FAILED"
    retried = updated(cloud, wanted, disable_rollback=True)
    assert (retried.status, tags_of(stack, "H")) == ("UPDATE_COMPLETE", {"a": "2"})


def test_rollback_turned_off_can_be_rolled_back_later(cloud: CloudFormation) -> None:
    stack = created(cloud, family("hello"))
    second = stack.children["Second"]
    cloud.fail("G", "not now", during="UPDATE", stack=second.name)
    updated(cloud, family("bye", More=GATEWAY), disable_rollback=True)
    assert [each.status for each in (stack, stack.children["First"], second)] == [
        "UPDATE_FAILED", "UPDATE_COMPLETE", "UPDATE_FAILED"
    ]  # fmt: skip
    cloud.wait(cloud.rollback_stack("s"))
    assert {each.status for each in (stack, stack.children["First"], second)} == {"UPDATE_ROLLBACK_COMPLETE"}
    assert tags_of(stack.children["First"], "G")["word"] == "hello"
    assert len(gateways()) == 3
    with pytest.raises(ValidationError, match="UPDATE_ROLLBACK_COMPLETE"):
        cloud.rollback_stack("s")


def test_nothing_is_replaced_while_rollback_is_off(cloud: CloudFormation) -> None:
    created(cloud, {"Vpc": vpc()})
    stack = updated(cloud, {"Vpc": vpc("10.1.0.0/16")}, disable_rollback=True)
    assert stack.status == "UPDATE_FAILED"
    assert reasons(stack, "Vpc", "UPDATE_FAILED") == [
        "Replacement type updates not supported on stack with disable-rollback."
    ]


def test_a_failed_creation_can_be_tried_again_as_an_update(cloud: CloudFormation) -> None:
    cloud.fail("H", "not now")
    stack = cloud.create_stack("s", body=text({"G": GATEWAY, "H": GATEWAY}), on_failure="DO_NOTHING")
    assert stack.status == "CREATE_FAILED"
    with pytest.raises(ValidationError, match="non-terminal"):
        cloud.update_stack("s", previous_template=True)
    cloud.update_stack("s", previous_template=True, disable_rollback=True)
    assert stack.status == "UPDATE_COMPLETE"
    assert sorted(resource.physical_id for resource in stack.resources.values()) == sorted(gateways())
    assert len(gateways()) == 2


def test_a_failed_creation_of_nested_stacks_is_continued_where_it_failed(cloud: CloudFormation) -> None:
    cloud.fail("More", "not now")
    body = text(family("hello", More={**GATEWAY, "DependsOn": "G"}))
    stack = cloud.wait(cloud.create_stack("s", body=body, on_failure="DO_NOTHING"))
    first = stack.children["First"]
    physical_id = first.resources["G"].physical_id
    assert (stack.status, first.status) == ("CREATE_FAILED", "CREATE_FAILED")
    cloud.wait(cloud.update_stack("s", previous_template=True, disable_rollback=True))
    assert (stack.status, first.status, stack.children["First"]) == ("UPDATE_COMPLETE", "UPDATE_COMPLETE", first)
    assert first.resources["G"].physical_id == physical_id
    assert len(gateways()) == 5


def test_a_failed_creation_is_deleted_by_a_rollback(cloud: CloudFormation) -> None:
    cloud.fail("H", "not now")
    stack = cloud.create_stack("s", body=text({"G": GATEWAY, "H": GATEWAY}), on_failure="DO_NOTHING")
    assert cloud.rollback_stack("s") is stack
    assert (stack.status, gateways()) == ("DELETE_COMPLETE", [])


def test_a_failed_creation_can_delete_itself(cloud: CloudFormation) -> None:
    cloud.fail("H", "not now")
    stack = cloud.create_stack("s", body=text({"G": GATEWAY, "H": GATEWAY}), on_failure="DELETE")
    assert (stack.status, gateways()) == ("DELETE_COMPLETE", [])


def test_what_one_attempt_has_made_and_the_next_gives_up_goes_too(cloud: CloudFormation) -> None:
    def child(*names: str) -> dict[str, Any]:
        resources = dict.fromkeys(("G", *names), GATEWAY)
        return {"Child": nested("-".join(("child", *names)), text(resources))}

    stack = created(cloud, {**child(), "G": tagged(a="1")})
    wanted = {"G": {**tagged(a="2"), "DependsOn": "Child"}}
    cloud.fail("G", "not now", during="UPDATE", times=2, stack="s")
    assert updated(cloud, {**child("New"), **wanted}, disable_rollback=True).status == "UPDATE_FAILED"
    assert len(gateways()) == 3
    assert updated(cloud, {**child("Other"), **wanted}, disable_rollback=True).status == "UPDATE_FAILED"
    cloud.wait(cloud.rollback_stack("s"))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert len(gateways()) == 2


def test_an_update_of_a_group_that_somebody_has_deleted_fails(cloud: CloudFormation) -> None:
    stack = created(cloud, idle(MinSize=0, MaxSize="1"))
    client("autoscaling", REGION).delete_auto_scaling_group(
        AutoScalingGroupName=stack.resources["Group"].physical_id, ForceDelete=True
    )
    assert updated(cloud, idle(MinSize=0, MaxSize="2")).status == "UPDATE_ROLLBACK_FAILED"
    assert "AutoScalingGroup name not found" in reasons(stack, "Group", "UPDATE_FAILED")[0]
