"""The life of a plan's change set, against recorded answers of CloudFormation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recorded import (
    CHANGE_SET,
    NOW,
    STACK_ID,
    Recorded,
    RefusedError,
    change,
    description,
    detail,
    documents,
    nested,
    nested_arn,
    request,
)

from cfngen.deploy.aws.errors import DeniedError, ThrottledError
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.operations.deployment.execution import execute
from cfngen.deploy.plan.change_sets import (
    ChangeSetFailedError,
    ChangeSetTimeoutError,
    EarlyValidationError,
    discard,
    make_plan,
)
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.plan.publishing.publish import with_template_urls

ENI = "AWS::EC2::NetworkInterface"
NO_CHANGES = (
    "The submitted information didn't contain changes. Submit different information to create a change set.",
    "No updates are to be performed.",
)


def plan_of(api: Recorded, **more: Any) -> Plan:
    return make_plan(api.account, request(**more), report=lambda _: None)


def resized() -> dict[str, Any]:
    return change("MasterAVolume", "AWS::EC2::Volume", detail("Size", "20", "40"))


def added() -> dict[str, Any]:
    return change("Vpc", "AWS::EC2::VPC", action="Add", after={"CidrBlock": "172.20.0.0/16"})


def replaced() -> dict[str, Any]:
    details = detail("PrivateIpAddress", "172.20.0.9", "172.20.0.10", recreation="Always")
    return change("MasterANetworkInterface", ENI, details, replacement="True", policy="ReplaceAndDelete")


class TestCreation:
    @pytest.mark.parametrize("status", ["CREATE_FAILED", "UPDATE_FAILED"])
    def test_from_a_kept_failure_it_goes_on_with_rollback_off(self, status):
        api = Recorded()
        assert api.stack
        api.stack["StackStatus"] = status
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, resized())
        plan = plan_of(api, on_failure="ROLLBACK")
        execute(api.account, plan)
        assert api.named("ExecuteChangeSet")[0]["DisableRollback"] == "true"
        assert plan.on_failure == "DO_NOTHING"

    def test_old_change_sets_on_further_pages_make_room_too(self):
        arn = CHANGE_SET.replace("cfngen-plan-one", "cfngen-plan-{}")
        pages = {
            token: {
                "Summaries": [
                    {
                        "ChangeSetName": f"cfngen-plan-{name}",
                        "ChangeSetId": arn.format(name),
                        "Status": "FAILED",
                        "CreationTime": NOW,
                    }
                ],
                **({"NextToken": following} if following else {}),
            }
            for token, name, following in ((None, "first", "2"), ("2", "second", "3"), ("3", "third", ""))
        }
        api = Recorded()
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, resized())
        api.answers["ListChangeSets"] = lambda sent: pages[sent.get("NextToken")]
        plan_of(api)
        deleted = [each["ChangeSetName"].split("/")[1] for each in api.named("DeleteChangeSet")]
        assert deleted == ["cfngen-plan-first", "cfngen-plan-second", "cfngen-plan-third"]

    def test_who_may_not_list_change_sets_plans_all_the_same(self):
        api = Recorded()
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, resized())
        api.answers["ListChangeSets"] = _refusing("AccessDenied")
        assert plan_of(api).counts.update == 1


class TestWaiting:
    def test_looks_often_at_first_and_then_every_five_seconds(self):
        api = Recorded()
        _pending(api, 8)
        plan_of(api)
        assert api.clock.slept[:2] == [1.0, 1.5]
        assert api.clock.slept == sorted(api.clock.slept)
        assert api.clock.slept[-1] == 5.0

    def test_goes_on_through_throttling_and_an_unreachable_service(self):
        api = Recorded()
        looks = _pending(api, 3)
        answer = api.answers["DescribeChangeSet"]
        troubles = iter([RefusedError("Throttling", "Rate exceeded"), RefusedError("InternalFailure", status=500)] * 2)

        def troubled(arguments: dict[str, Any]) -> dict[str, Any]:
            trouble = next(troubles, None)
            if trouble:
                raise trouble
            return answer(arguments)

        api.answers["DescribeChangeSet"] = troubled
        assert plan_of(api).counts.update == 1
        assert looks == [2, 1, 0]

    def test_gives_up_when_throttling_never_ends(self):
        api = Recorded()
        api.answers["DescribeChangeSet"] = _refusing("Throttling")
        with pytest.raises(ThrottledError):
            plan_of(api)
        assert sum(api.clock.slept) > 120

    def test_a_change_set_that_is_never_done_ends_in_an_error_and_is_removed(self):
        api = Recorded()
        _pending(api, 10_000)
        with pytest.raises(ChangeSetTimeoutError, match="30 minutes"):
            plan_of(api)
        assert [each["ChangeSetName"] for each in api.named("DeleteChangeSet")] == [CHANGE_SET]


class TestReading:
    def test_reads_every_page_of_the_root_and_of_nested_stacks(self):
        api = Recorded()
        pages = {
            (CHANGE_SET, None): description(CHANGE_SET, nested("MasterStack"), NextToken="2"),
            (CHANGE_SET, "2"): description(CHANGE_SET, nested("VpcStack")),
            (nested_arn("MasterStack"), None): description(nested_arn("MasterStack"), resized(), NextToken="b"),
            (nested_arn("MasterStack"), "b"): description(nested_arn("MasterStack"), replaced()),
            (nested_arn("VpcStack"), None): description(
                nested_arn("VpcStack"), change("Vpc", "AWS::EC2::VPC", detail("EnableDnsSupport", "true", "false"))
            ),
        }
        api.answers["DescribeChangeSet"] = lambda sent: pages[sent["ChangeSetName"], sent.get("NextToken")]
        plan = plan_of(api)
        found = {"/".join(stack.path): {change.logical_id for change in stack.changes} for stack in plan.stacks}
        assert found == {"MasterStack": {"MasterAVolume", "MasterANetworkInterface"}, "VpcStack": {"Vpc"}}

    def test_what_an_answer_with_values_leaves_out_is_restored_from_one_without(self):
        api = Recorded()
        told = detail("Size", "20", "40")
        lost = detail("VolumeType")
        del lost["Target"]["Path"]
        plain_told = {**detail("Size"), "Target": {k: v for k, v in detail("Size")["Target"].items() if k != "Path"}}

        def answer(arguments: dict[str, Any]) -> dict[str, Any]:
            if arguments.get("IncludePropertyValues") == "true":
                reason = (
                    "[WARN] --include-property-values option can return incomplete ChangeSet data because: MasterRole"
                )
                return description(CHANGE_SET, change("MasterAVolume", "AWS::EC2::Volume", told), StatusReason=reason)
            role = change("MasterRole", "AWS::IAM::Role", detail("Policies"))
            return description(CHANGE_SET, change("MasterAVolume", "AWS::EC2::Volume", plain_told, lost), role)

        api.answers["DescribeChangeSet"] = answer
        [root] = plan_of(api).stacks
        volume = next(change for change in root.changes if change.logical_id == "MasterAVolume")
        assert {change.logical_id for change in root.changes} == {"MasterAVolume", "MasterRole"}
        assert [(each.path, each.known) for each in volume.properties] == [
            ("/Properties/Size", True),
            ("/Properties/VolumeType", False),
        ]


class TestNothingToDo:
    @pytest.mark.parametrize("reason", NO_CHANGES)
    def test_is_a_result_and_leaves_nothing_behind(self, reason):
        api = Recorded()
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, Status="FAILED", StatusReason=reason)
        plan = plan_of(api)
        assert plan.is_empty
        assert not plan.is_dangerous
        assert plan.change_set_id == ""
        assert CHANGE_SET not in api.change_sets

    def test_nested_stacks_that_cloudformation_lists_for_no_reason_are_nothing_to_do(self):
        api = Recorded()
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, nested("VpcStack"))
        api.change_sets[nested_arn("VpcStack")] = description(
            nested_arn("VpcStack"), Status="FAILED", StatusReason=NO_CHANGES[0]
        )
        api.answers["GetTemplate"] = lambda _: {"TemplateBody": _root_as_text()}
        assert plan_of(api).is_empty

    def test_outputs_of_the_root_alone_are_something_to_do(self):
        api = Recorded()
        api.change_sets[CHANGE_SET] = description(CHANGE_SET)
        plan = plan_of(api)
        assert plan.templates_only
        assert not plan.is_empty
        assert plan.counts.total == 0


class TestFailure:
    def test_names_what_early_validation_found_in_nested_stacks(self):
        api = Recorded()
        _nested_failure(api, "The following hook(s)/validation failed: [AWS::EarlyValidation::PropertyValidation].")
        pages = {
            None: {
                "OperationEvents": [_finding("Vpc", "CidrBlock", "must be a CIDR"), _stack_event()],
                "NextToken": "2",
            },
            "2": {
                "OperationEvents": [_finding("SubnetA", "CidrBlock", "too small"), _finding("X", "Y", "odd", "WARN")]
            },
        }
        api.answers["DescribeEvents"] = lambda sent: pages[sent.get("NextToken")]
        with pytest.raises(EarlyValidationError) as caught:
            plan_of(api)
        assert [(problem.stack, problem.path, problem.reason) for problem in caught.value.problems] == [
            ("kubernetes-VpcStack-XYZ", "/Resources/Vpc/Properties/CidrBlock", "must be a CIDR"),
            ("kubernetes-VpcStack-XYZ", "/Resources/SubnetA/Properties/CidrBlock", "too small"),
        ]
        assert {each["ChangeSetName"] for each in api.named("DescribeEvents")} == {nested_arn("VpcStack")}
        assert str(caught.value.problems[0]).endswith("/Resources/Vpc/Properties/CidrBlock: must be a CIDR")

    def test_without_the_right_to_read_events_the_reason_remains(self):
        api = Recorded()
        _nested_failure(api, "The following hook(s)/validation failed: [AWS::EarlyValidation::PropertyValidation].")
        api.answers["DescribeEvents"] = _refusing("AccessDenied")
        with pytest.raises(ChangeSetFailedError, match="EarlyValidation") as caught:
            plan_of(api)
        assert "cloudformation:DescribeEvents" in caught.value.hint

    def test_any_other_failure_has_the_reason_of_the_deepest_stack(self):
        api = Recorded()
        _nested_failure(api, "Template error: instance of Fn::GetAtt references undefined resource Vpcc")
        with pytest.raises(ChangeSetFailedError, match="undefined resource Vpcc") as caught:
            plan_of(api)
        assert caught.value.stack == "kubernetes-VpcStack-XYZ"
        assert not isinstance(caught.value, EarlyValidationError)

    def test_leaves_neither_change_set_nor_empty_stack(self):
        api = Recorded(exists=False)
        api.change_sets[CHANGE_SET] = description(
            CHANGE_SET, Status="FAILED", StatusReason="Parameters: [X] must have values"
        )
        with pytest.raises(ChangeSetFailedError, match="must have values"):
            plan_of(api)
        assert CHANGE_SET not in api.change_sets
        assert [each["StackName"] for each in api.named("DeleteStack")] == [STACK_ID]

    def test_an_interrupt_while_waiting_cleans_up(self):
        api = Recorded(exists=False)

        def interrupted(_: dict[str, Any]) -> dict[str, Any]:
            api.answers.pop("DescribeChangeSet")
            raise KeyboardInterrupt

        api.answers["DescribeChangeSet"] = interrupted
        with pytest.raises(KeyboardInterrupt):
            plan_of(api)
        assert api.named("DeleteChangeSet")
        assert api.named("DeleteStack")


class TestDiscarding:
    def test_removes_the_change_set_and_the_stack_that_was_made_for_it(self):
        api = Recorded(exists=False)
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, added())
        plan = plan_of(api)
        assert plan.shell
        discard(api.account, plan)
        assert CHANGE_SET not in api.change_sets
        assert [each["StackName"] for each in api.named("DeleteStack")] == [STACK_ID]

    def test_a_change_set_that_is_still_being_made_is_deleted_as_soon_as_it_can_be(self):
        api = Recorded()
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, resized())
        plan = plan_of(api)
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, Status="CREATE_IN_PROGRESS")
        refused = iter(range(3))

        def delete(arguments: dict[str, Any]) -> dict[str, Any]:
            if next(refused, None) is not None:
                raise RefusedError("InvalidChangeSetStatus")
            del api.change_sets[arguments["ChangeSetName"]]
            return {}

        api.answers["DeleteChangeSet"] = delete
        discard(api.account, plan)
        assert not api.change_sets

    def test_keeps_a_stack_that_was_there_before(self):
        api = Recorded()
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, resized())
        discard(api.account, plan_of(api))
        assert CHANGE_SET not in api.change_sets
        assert not api.named("DeleteStack")

    def test_touches_nothing_once_the_plan_is_being_carried_out(self):
        # Reads right after the execution still show the stack in review: it must not be taken for an empty one.
        api = Recorded(exists=False)
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, added())
        plan = plan_of(api)
        assert execute(api.account, plan) == STACK_ID
        discard(api.account, plan)
        assert not api.named("DeleteChangeSet")
        assert not api.named("DeleteStack")

    def test_says_what_it_cannot_remove(self):
        api = Recorded()
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, resized())
        plan = plan_of(api)
        api.answers["DeleteChangeSet"] = _refusing("AccessDenied")
        said: list[Any] = []
        discard(api.account, plan, said.append)
        [notice] = said
        assert isinstance(notice, Notice)
        assert "change set" in notice.text


class TestExecution:
    def test_bears_a_token_that_leads_back_to_the_plan(self):
        api = Recorded()
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, resized())
        execute(api.account, plan_of(api))
        [sent] = api.named("ExecuteChangeSet")
        assert sent == {
            "Action": "ExecuteChangeSet",
            "Version": "2010-05-15",
            "ChangeSetName": CHANGE_SET,
            "ClientRequestToken": "cfngen-plan-one",
            "DisableRollback": "false",
        }

    def test_what_was_refused_is_still_cleaned_up(self):
        api = Recorded()
        api.change_sets[CHANGE_SET] = description(CHANGE_SET, resized())
        plan = plan_of(api)
        api.answers["ExecuteChangeSet"] = _refusing("AccessDenied")
        with pytest.raises(DeniedError):
            execute(api.account, plan)
        discard(api.account, plan)
        assert CHANGE_SET not in api.change_sets


def _refusing(code: str) -> Any:
    def answer(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError(code)

    return answer


def _pending(api: Recorded, looks: int) -> list[int]:
    """Let CloudFormation take some looks to make the change set; return the countdown of the looks taken."""
    left: list[int] = []

    def answer(_: dict[str, Any]) -> dict[str, Any]:
        remaining = (left[-1] if left else looks) - 1
        if remaining < 0:
            return description(CHANGE_SET, resized())
        left.append(remaining)
        return description(CHANGE_SET, Status="CREATE_PENDING" if remaining else "CREATE_IN_PROGRESS")

    api.answers["DescribeChangeSet"] = answer
    return left


def _nested_failure(api: Recorded, reason: str) -> None:
    arn = nested_arn("VpcStack")
    repeated = f"Nested change set {arn} was not successfully created: Currently in FAILED."
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, Status="FAILED", StatusReason=repeated)
    api.change_sets[arn] = description(arn, Status="FAILED", StatusReason=reason)


def _finding(resource: str, name: str, reason: str, mode: str = "FAIL") -> dict[str, Any]:
    return {
        "EventId": f"event-{resource}",
        "EventType": "VALIDATION_ERROR",
        "LogicalResourceId": resource,
        "ValidationFailureMode": mode,
        "ValidationName": "PROPERTY_VALIDATION",
        "ValidationStatus": "FAILED",
        "ValidationStatusReason": reason,
        "ValidationPath": f"/Resources/{resource}/Properties/{name}",
    }


def _stack_event() -> dict[str, Any]:
    return {"EventId": "event", "EventType": "STACK_EVENT", "OperationStatus": "FAILED"}


def _root_as_text() -> str:
    root = next(document for document in documents() if document.children)
    return json.dumps(with_template_urls(root, dict.fromkeys(root.children, "https://elsewhere")))
