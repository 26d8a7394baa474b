"""What CloudFormation says of change sets, and why they fail: every field as it is told, and as it is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recorded import CHANGE_SET, NESTED, NOW, STACK_ID, Recorded, RefusedError, change, description, nested, nested_arn

from cfngen.deploy.aws.change_sets import (
    UNKNOWN_VALUE,
    ChangeDetail,
    ChangeSet,
    ResourceChange,
    ValidationFailure,
    pauses,
    read_change_set,
    read_change_set_status,
    retry_transient_errors,
)
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.plan.change_sets import ChangeSetFailedError, EarlyValidationError, change_set_error

MARK = "failed: [AWS::EarlyValidation::PropertyValidation]"

FULL = {
    "Type": "Resource",
    "ResourceChange": {
        "Action": "Modify",
        "LogicalResourceId": "Vpc",
        "PhysicalResourceId": "vpc-1",
        "ResourceType": "AWS::EC2::VPC",
        "Replacement": "Conditional",
        "PolicyAction": "ReplaceAndRetain",
        "Scope": ["Properties", "Tags"],
        "BeforeContext": json.dumps({"Properties": {"A": 1}}),
        "AfterContext": json.dumps({"Properties": {"A": 2}}),
        "Details": [
            {
                "Target": {
                    "Attribute": "Tags",
                    "Name": "N",
                    "Path": "/Tags/0",
                    "RequiresRecreation": "Always",
                    "BeforeValue": "1",
                    "AfterValue": "2",
                },
                "Evaluation": "Dynamic",
                "ChangeSource": "ParameterReference",
                "CausingEntity": "P",
            },
            {},
        ],
    },
}
BARE = {"Type": "Resource", "ResourceChange": {"Action": "Add", "LogicalResourceId": "X", "ResourceType": "T"}}


def test_everything_that_is_told_is_read() -> None:
    api = Recorded()
    parameters = [{"ParameterKey": "A", "ParameterValue": "1"}, {"ParameterKey": "B"}]
    api.change_sets[CHANGE_SET] = description(
        CHANGE_SET, FULL, {"Type": "Hook"}, BARE, Parameters=parameters, StatusReason="why"
    )
    told = ChangeDetail("Tags", "N", "/Tags/0", "Always", "1", "2", "Dynamic", "ParameterReference", "P")
    untold = ChangeDetail("Properties", "", "", "Never", None, None, "Static", "DirectModification", "")
    modified = ResourceChange(
        "Modify", "Vpc", "vpc-1", "AWS::EC2::VPC", "Conditional", "ReplaceAndRetain", ("Properties", "Tags"),
        (told, untold), "", {"Properties": {"A": 1}}, {"Properties": {"A": 2}},
    )  # fmt: skip
    entries = {"Vpc": modified, "X": ResourceChange("Add", "X", "", "T")}
    expected = ChangeSet(
        CHANGE_SET, STACK_ID, "kubernetes", "CREATE_COMPLETE", "AVAILABLE", "why", NOW, {"A": "1", "B": ""}, entries, {}
    )
    assert read_change_set(api.account, CHANGE_SET) == expected
    assert api.named("DescribeChangeSet")[-1]["IncludePropertyValues"] == "true"


def test_a_glance_asks_for_no_values_and_leaves_changes_out() -> None:
    api = Recorded()
    bare = {key: description(CHANGE_SET)[key] for key in ("ChangeSetId", "StackId", "StackName", "Status")}
    api.change_sets[CHANGE_SET] = {**bare, "Changes": [BARE]}
    assert read_change_set_status(api.account, CHANGE_SET) == ChangeSet(
        CHANGE_SET, STACK_ID, "kubernetes", "CREATE_COMPLETE"
    )
    assert "IncludePropertyValues" not in api.named("DescribeChangeSet")[0]


@pytest.mark.parametrize("context", ["[1]", "{not json", '"text"', ""])
def test_a_definition_that_was_cut_off_counts_as_not_told(context: str) -> None:
    api = Recorded()
    cut = {**BARE, "ResourceChange": {**BARE["ResourceChange"], "BeforeContext": context, "AfterContext": context}}
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, cut)
    [entry] = read_change_set(api.account, CHANGE_SET).resource_changes.values()
    assert (entry.before, entry.after) == ({}, {})


LARGE, OTHER = (f"(Truncated-Signature):{digit * 64}" for digit in "01")


@pytest.mark.parametrize(
    ("before", "after", "read"),
    [
        (LARGE, LARGE, (LARGE, LARGE)),  # equal values have equal signatures
        (LARGE, OTHER, (None, UNKNOWN_VALUE)),
        ("1", LARGE, ("1", UNKNOWN_VALUE)),
        (LARGE, "1", (None, "1")),
        (None, LARGE, (None, UNKNOWN_VALUE)),
        (f'["{LARGE}"]', "[]", (None, "[]")),
    ],
)
def test_a_value_too_large_to_be_shown_is_never_taken_for_a_text(before: Any, after: Any, read: Any) -> None:
    definition = json.dumps({"Properties": {"A": LARGE, "B": [{"C": LARGE, "D": 1}]}})
    target = {name: value for name, value in (("BeforeValue", before), ("AfterValue", after)) if value}
    change = {**BARE["ResourceChange"], "BeforeContext": definition, "Details": [{"Target": target}]}
    api = Recorded()
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, {**BARE, "ResourceChange": change})
    [entry] = read_change_set(api.account, CHANGE_SET).resource_changes.values()
    [detail] = entry.details
    assert (detail.before, detail.after) == read
    assert entry.before == {"Properties": {"A": None, "B": [{"C": None, "D": 1}]}}


@pytest.mark.parametrize(
    ("detail", "place", "unknown", "told"),
    [
        (ChangeDetail("Properties", "A", "/Properties/A/0"), "/Properties/A/0", False, False),
        (ChangeDetail("Properties", "A"), "/Properties/A", False, False),
        (ChangeDetail("Tags"), "/Tags", False, False),
        (ChangeDetail("Tags", before="1"), "/Tags", False, True),
        (ChangeDetail("Tags", after="1"), "/Tags", False, True),
        (ChangeDetail("Tags", after=f"x{UNKNOWN_VALUE}"), "/Tags", True, True),
        (ChangeDetail("Tags", before=UNKNOWN_VALUE), "/Tags", False, True),
    ],
)
def test_what_a_detail_tells(detail: ChangeDetail, place: str, unknown: bool, told: bool) -> None:
    assert (detail.value_path, detail.unknown, detail.has_values) == (place, unknown, told)


@pytest.mark.parametrize(
    ("status", "reason", "pending", "failed", "nothing"),
    [
        ("CREATE_PENDING", "", True, False, False),
        ("CREATE_IN_PROGRESS", "", True, False, False),
        ("CREATE_COMPLETE", "No updates are to be performed.", False, False, False),
        ("FAILED", "", False, True, False),
        ("FAILED", "No updates are to be performed.", False, True, True),
        ("FAILED", "The submitted information didn't contain changes. Submit other.", False, True, True),
        ("DELETE_COMPLETE", "", False, False, False),
    ],
)
def test_how_far_a_change_set_is(status: str, reason: str, pending: bool, failed: bool, nothing: bool) -> None:
    made = ChangeSet("arn", "arn", "one", status, reason=reason)
    assert (made.pending, made.failed, made.nothing_to_do) == (pending, failed, nothing)


def test_looks_come_further_apart_up_to_five_seconds() -> None:
    following = pauses()
    assert [round(following(), 3) for _ in range(7)] == [1.0, 1.5, 2.25, 3.375, 5.0, 5.0, 5.0]


def test_where_values_are_incomplete_the_plain_answer_completes_them_and_gives_the_reason() -> None:
    def answer(sent: dict[str, Any]) -> dict[str, Any]:
        if "IncludePropertyValues" in sent:
            reason = "[WARN] --include-property-values option can return incomplete ChangeSet data because: X"
            return description(CHANGE_SET, change("A", "T"), Status="FAILED", StatusReason=reason)
        if "NextToken" in sent:
            return description(CHANGE_SET, change("B", "T"), Status="FAILED")
        return description(CHANGE_SET, change("A", "U"), Status="FAILED", StatusReason="the reason", NextToken="2")

    api = Recorded()
    api.answers["DescribeChangeSet"] = answer
    change_set = read_change_set(api.account, CHANGE_SET)
    assert (change_set.reason, list(change_set.resource_changes), change_set.resource_changes["A"].type) == (
        "the reason",
        ["A", "B"],
        "T",
    )


@pytest.mark.parametrize(("code", "status", "least"), [("ValidationError", 400, 0), ("Throttling", 400, 180)])
def test_only_passing_troubles_are_waited_out_and_not_for_ever(code: str, status: int, least: int) -> None:
    api = Recorded()

    def refused(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError(code, status=status)

    api.answers["DescribeStacks"] = refused
    client = api.account.client("cloudformation")
    with pytest.raises(AwsError):
        retry_transient_errors(api.account.clock, lambda: client.describe_stacks(StackName="kubernetes"))
    assert (sum(api.clock.slept) > least) is bool(least)
    assert sum(api.clock.slept) < 190


def failed(reason: str, arn: str = CHANGE_SET, name: str = "kubernetes", **children: ChangeSet) -> ChangeSet:
    return ChangeSet(arn, "arn", name, "FAILED", reason=reason, children=children)


def event(**told: Any) -> dict[str, Any]:
    return {"EventId": "1", **told}


def test_every_finding_that_fails_is_told() -> None:
    api = Recorded()
    pages = {
        None: {"OperationEvents": [
            event(ValidationFailureMode="WARN", ValidationStatusReason="only a warning"),
            event(HookFailureMode="WARN", HookStatusReason="only a warning"),
            event(ValidationFailureMode="FAIL"),
            event(ValidationStatusReason="bad", ValidationPath="/Resources/Vpc", LogicalResourceId="Vpc"),
        ], "NextToken": "2"},
        "2": {"OperationEvents": [event(HookFailureMode="FAIL", HookStatusReason="hooked", LogicalResourceId="X")],
              "NextToken": "3"},
        "3": {"OperationEvents": [event(ValidationStatusReason="whole")]},
    }  # fmt: skip
    api.answers["DescribeEvents"] = lambda sent: pages[sent.get("NextToken")]
    error = change_set_error(api.account, failed(MARK))
    assert isinstance(error, EarlyValidationError)
    assert error.problems == (
        ValidationFailure("kubernetes", "/Resources/Vpc", "bad", "Vpc"),
        ValidationFailure("kubernetes", "", "hooked", "X"),
        ValidationFailure("kubernetes", "", "whole", ""),
    )
    assert [str(problem) for problem in error.problems] == [
        "kubernetes: /Resources/Vpc: bad",
        "kubernetes: X: hooked",
        "kubernetes: whole",
    ]
    assert (error.stack, error.reason) == ("kubernetes", MARK)
    assert str(error) == f"CloudFormation could not create the change set of kubernetes: {MARK}"
    assert error.hint == "nothing has been changed; fix each problem, and try again."
    [*_, sent] = api.named("DescribeEvents")
    assert (sent["ChangeSetName"], sent["Filters.FailedEvents"]) == (CHANGE_SET, "true")


@pytest.mark.parametrize(
    ("reason", "told", "hint"),
    [
        ("X is wrong", "X is wrong", "fix the cause"),
        ("", "it gives no reason", "fix the cause"),
        (MARK, MARK, "allow cloudformation:DescribeEvents"),
    ],
)
def test_without_findings_the_reason_is_told(reason: str, told: str, hint: str) -> None:
    def denied(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError("AccessDenied")

    api = Recorded()
    api.answers["DescribeEvents"] = denied
    error = change_set_error(api.account, failed(reason))
    assert type(error) is ChangeSetFailedError
    assert str(error) == f"CloudFormation could not create the change set of kubernetes: {told}"
    assert (error.stack, error.reason) == ("kubernetes", reason)
    assert hint in error.hint
    assert bool(api.named("DescribeEvents")) is (reason == MARK)


def inner(name: str, reason: str, **children: ChangeSet) -> ChangeSet:
    return failed(reason, nested_arn(name), name, **children)


def repeated(*names: str) -> str:
    return " ".join(f"Nested change set {nested_arn(name)} was not successfully created." for name in names)


@pytest.mark.parametrize(
    ("root", "stack"),
    [
        # The deepest reason, not what repeats it.
        (failed(repeated("A"), A=inner("A", "wrong")), "A"),
        (failed(repeated("A"), A=inner("A", repeated("B"), B=inner("B", "wrong"))), "B"),
        # One in which nothing would change has not failed for that.
        (failed("wrong", A=inner("A", "No updates are to be performed.")), "kubernetes"),
        (failed("wrong", A=ChangeSet("a", "a", "A", "CREATE_COMPLETE")), "kubernetes"),
        # Of several, the one of which early validation tells more.
        (failed(repeated("A", "B"), A=inner("A", "wrong"), B=inner("B", MARK)), "B"),
        # The root itself may be refused, too.
        (failed(MARK, A=inner("A", "wrong")), "kubernetes"),
        (failed(f"{MARK} {repeated('A')}", A=inner("A", "wrong")), "A"),
    ],
)
def test_whose_fault_it_is(root: ChangeSet, stack: str) -> None:
    api = Recorded()
    api.answers["DescribeEvents"] = lambda _: {"OperationEvents": []}
    assert change_set_error(api.account, root).stack == stack


@pytest.mark.parametrize("end", [".", ",", ":", ";", ""])
def test_a_nested_change_set_that_is_only_named_is_read(end: str) -> None:
    api = Recorded()
    api.change_sets[nested_arn("A")] = description(
        nested_arn("A"), Status="FAILED", StatusReason="wrong", StackName="A"
    )
    found = change_set_error(
        api.account, failed(f"Nested change set {nested_arn('A')}{end} was not successfully created")
    )
    assert (found.stack, found.reason) == ("A", "wrong")


def test_change_sets_that_name_each_other_are_read_once() -> None:
    api = Recorded()
    for name, other in (("A", "B"), ("B", "A")):
        api.change_sets[nested_arn(name)] = description(
            nested_arn(name), Status="FAILED", StatusReason=repeated(other), StackName=name
        )
    assert change_set_error(api.account, failed(repeated("A"))).stack == "B"
    assert len(api.named("DescribeChangeSet")) == 2


def test_nested_change_sets_are_read_through() -> None:
    api = Recorded()
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, nested("VpcStack"), change("Other", NESTED))
    api.change_sets[nested_arn("VpcStack")] = description(nested_arn("VpcStack"), BARE)
    change_set = read_change_set(api.account, CHANGE_SET)
    assert list(change_set.children) == ["VpcStack"]
    assert list(change_set.children["VpcStack"].resource_changes) == ["X"]
    assert change_set.resource_changes["VpcStack"].change_set_id == nested_arn("VpcStack")
