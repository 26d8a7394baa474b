"""What CloudFormation says of change sets, and why they fail: every field as it is told, and as it is left out."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import (
    CHANGE_SET,
    NESTED,
    NOW,
    STACK_ID,
    UNKNOWN_VALUE,
    Recorded,
    RefusedError,
    change,
    description,
    nested,
    nested_arn,
)

from cfngen.deploy.aws.change_sets import (
    ChangeDetail,
    ChangeSet,
    ResourceChange,
    ShownValue,
    Unshown,
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
            {"Target": {"Path": "Tags"}},
        ],
    },
}
BARE = {"Type": "Resource", "ResourceChange": {"Action": "Add", "LogicalResourceId": "X", "ResourceType": "T"}}


def test_everything_that_is_told_is_read() -> None:
    api = Recorded()
    parameters = [{"ParameterKey": "A", "ParameterValue": "/1", "ResolvedValue": "1"}, {"ParameterKey": "B"}]
    api.change_sets[CHANGE_SET] = description(
        CHANGE_SET, FULL, {"Type": "Hook"}, BARE, Parameters=parameters, StatusReason="why"
    )
    told = ChangeDetail("Tags", "N", "/Tags/0", "Always", "1", "2", "Dynamic", "ParameterReference", "P")
    untold = ChangeDetail("Properties", "", "", "Never", None, None, "Static", "DirectModification", "")
    modified = ResourceChange(
        "Modify", "Vpc", "vpc-1", "AWS::EC2::VPC", "Conditional", "ReplaceAndRetain", ("Properties", "Tags"),
        (told, untold),
    )  # fmt: skip
    entries = {"Vpc": modified, "X": ResourceChange("Add", "X", "", "T")}
    expected = ChangeSet(
        CHANGE_SET, STACK_ID, "kubernetes", "CREATE_COMPLETE", "AVAILABLE", "why", NOW,
        {"A": "/1", "B": ""}, {"A": "1"}, entries, {},
    )  # fmt: skip
    assert read_change_set(api.account, CHANGE_SET) == expected
    assert [call.get("IncludePropertyValues") for call in api.named("DescribeChangeSet")] == ["true", None]


def test_a_glance_asks_for_no_values_and_leaves_changes_out() -> None:
    api = Recorded()
    bare = {key: description(CHANGE_SET)[key] for key in ("ChangeSetId", "StackId", "StackName", "Status")}
    api.change_sets[CHANGE_SET] = {**bare, "Changes": [BARE]}
    assert read_change_set_status(api.account, CHANGE_SET) == ChangeSet(
        CHANGE_SET, STACK_ID, "kubernetes", "CREATE_COMPLETE"
    )
    assert "IncludePropertyValues" not in api.named("DescribeChangeSet")[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (None, None),
        ("", ""),
        ("1", "1"),
        ("***", "***"),
        ("a****", Unshown.MASKED),
        ("****", Unshown.MASKED),
        (f"(Truncated-Signature):{'0' * 64}", Unshown.TRUNCATED),
        (f'["(Truncated-Signature):{"0" * 64}"]', Unshown.TRUNCATED),
        (UNKNOWN_VALUE, Unshown.KNOWN_LATER),
        (f'{{"A": "arn:{UNKNOWN_VALUE}"}}', Unshown.KNOWN_LATER),
    ],
)
def test_a_value_that_is_not_shown_is_never_taken_for_a_text(text: str | None, value: ShownValue) -> None:
    api = Recorded()
    for name in ("BeforeValue", "AfterValue"):
        details = [{"Target": {} if text is None else {name: text}}]
        api.change_sets[CHANGE_SET] = description(
            CHANGE_SET, {**BARE, "ResourceChange": {**BARE["ResourceChange"], "Details": details}}
        )
        [entry] = read_change_set(api.account, CHANGE_SET).resource_changes.values()
        [detail] = entry.details
        assert {"BeforeValue": detail.before, "AfterValue": detail.after}[name] == value
        assert detail.shows_values is isinstance(value, str)


@pytest.mark.parametrize(
    ("detail", "place", "shown", "known"),
    [
        (ChangeDetail("Properties", "A", "/Properties/A/0"), "/Properties/A/0", False, False),
        (ChangeDetail("Properties", "A"), "/Properties/A", False, False),
        (ChangeDetail("Tags"), "/Tags", False, False),
        (ChangeDetail("Tags", before="1"), "/Tags", True, True),
        (ChangeDetail("Tags", after="1"), "/Tags", True, True),
        (ChangeDetail("Tags", after=Unshown.KNOWN_LATER), "/Tags", False, False),
        (ChangeDetail("Tags", before="1", after=Unshown.TRUNCATED), "/Tags", False, False),
        (ChangeDetail("Tags", before="1", after=Unshown.MASKED), "/Tags", False, True),
        (ChangeDetail("Tags", before=Unshown.TRUNCATED), "/Tags", False, True),
    ],
)
def test_what_a_detail_tells(detail: ChangeDetail, place: str, shown: bool, known: bool) -> None:
    assert (detail.value_path, detail.shows_values, detail.is_after_known) == (place, shown, known)


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


def answers(with_values: list[dict[str, Any]], without: list[dict[str, Any]], **more: Any) -> Recorded:
    """A CloudFormation that describes a change set in two ways; without values, on two pages."""

    def answer(sent: dict[str, Any]) -> dict[str, Any]:
        if "IncludePropertyValues" in sent:
            reason = "[WARN] --include-property-values option can return incomplete ChangeSet data because: X"
            return description(CHANGE_SET, *with_values, StatusReason=reason)
        if "NextToken" in sent:
            return description(CHANGE_SET, *without[1:])
        return description(CHANGE_SET, *without[:1], StatusReason="the reason", NextToken="2")

    api = Recorded()
    api.answers["DescribeChangeSet"] = answer
    return api


def test_what_one_description_leaves_out_the_other_adds() -> None:
    version = {
        "Target": {"Attribute": "Properties", "Name": "Version", "RequiresRecreation": "Conditionally"},
        "ChangeSource": "ResourceAttribute",
    }
    plain = {"Target": {"Attribute": "Properties", "Name": "A"}}
    with_values = [change("A", "T", {"Target": {**plain["Target"], "BeforeValue": "1", "AfterValue": "2"}})]
    without = [change("A", "T", plain, version, replacement="Conditional"), change("B", "T")]
    change_set = read_change_set(answers(with_values, without).account, CHANGE_SET)
    # With values, a warning takes the place of the reason.
    assert (change_set.reason, list(change_set.resource_changes)) == ("the reason", ["A", "B"])
    merged = change_set.resource_changes["A"]
    assert [(detail.name, detail.after, detail.source) for detail in merged.details] == [
        ("A", "2", "DirectModification"),
        ("Version", None, "ResourceAttribute"),
    ]
    assert merged.replacement == "Conditional"


@pytest.mark.parametrize(
    ("one", "other", "worse"),
    [("False", "True", "True"), ("Conditional", "False", "Conditional"), ("True", "Perhaps", "Perhaps")],
)
def test_of_two_descriptions_the_worse_replacement_counts(one: str, other: str, worse: str) -> None:
    for first, second in ((one, other), (other, one)):
        api = answers([change("A", "T", replacement=first)], [change("A", "T", replacement=second)])
        [merged] = read_change_set(api.account, CHANGE_SET).resource_changes.values()
        assert merged.replacement in (worse, "True")


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
    assert len(api.named("DescribeChangeSet")) == 4  # each with and without values


def test_nested_change_sets_are_read_through() -> None:
    api = Recorded()
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, nested("VpcStack"), change("Other", NESTED))
    api.change_sets[nested_arn("VpcStack")] = description(nested_arn("VpcStack"), BARE)
    change_set = read_change_set(api.account, CHANGE_SET)
    assert list(change_set.children) == ["VpcStack"]
    assert list(change_set.children["VpcStack"].resource_changes) == ["X"]
    assert change_set.resource_changes["VpcStack"].change_set_id == nested_arn("VpcStack")
