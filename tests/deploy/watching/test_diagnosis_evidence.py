"""What other services are asked about a failure, and what is made of their answers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from answers import DENIED, Answer, Answers
from diagnosed import BACK, GROUP, UNDOING, UPDATING, answering, diagnosed, failed, names
from recorded import NOW, STACK_ID, RefusedError
from recorded_stack import NAME, RecordedStack, event, resource

from cfngen.deploy.aws.consoles import MAX_INSTANCES, read_group_consoles, read_instance_console, read_launch_failures
from cfngen.deploy.watching.diagnosis import Cause, diagnose
from cfngen.deploy.watching.evidence import sold_out_hint

NO_SIGNAL = "Failed to receive 2 resource signal(s) within the specified duration"


def said(console: str) -> Mapping[str, Any]:
    """A console as EC2 sends it."""
    return {"Output": base64.b64encode(console.encode()).decode()}


def instance(number: int, state: str = "running") -> dict[str, Any]:
    return {"InstanceId": f"i-{number}", "State": {"Name": state}, "LaunchTime": NOW + timedelta(minutes=number)}


def activity(status: str, message: str = "", description: str = "Launching a new EC2 instance: i-1") -> dict[str, Any]:
    return {
        "ActivityId": "1",
        "AutoScalingGroupName": "g",
        "Cause": "c",
        "StartTime": NOW,
        "StatusCode": status,
        "Description": description,
        **({"StatusMessage": message} if message else {}),
    }


def of_instances(*instances: dict[str, Any], activities: tuple[dict[str, Any], ...] = ()) -> dict[str, Answer]:
    return {
        "autoscaling:DescribeScalingActivities": {"Activities": activities},
        "ec2:DescribeInstances": {"Reservations": [{"Instances": [instance]} for instance in instances]},
        "ec2:GetConsoleOutput": lambda sent: said(f"console of {sent['InstanceId']}"),
    }


def group_failed(reason: str = NO_SIGNAL, kind: str = GROUP, **given: Answer) -> Cause:
    answers = {
        **of_instances(instance(1), instance(2)),
        **{key.replace("__", ":"): each for key, each in given.items()},
    }
    found = diagnosed(
        "ROLLBACK_COMPLETE", "CREATE_IN_PROGRESS", failed("G", reason, ResourceType=kind), *BACK, given=answers
    )
    assert found.cause is not None
    return found.cause


def test_instances_of_a_group_are_asked_for_their_words() -> None:
    cause = group_failed()
    assert [words.id for words in cause.instances] == ["i-2", "i-1"]
    assert cause.instances[0].lines == ("console of i-2",)
    assert (cause.launches, cause.notes) == ((), ())
    assert cause.explanation == "2 of the group's instances did not signal success in time"


@pytest.mark.parametrize(
    ("reason", "kind", "asked"),
    [
        (NO_SIGNAL, GROUP, True),
        ("Received 1 FAILURE signal(s) out of 2", GROUP, True),
        ("You must use a valid launch template", GROUP, True),
        ("not enough Capacity", GROUP, True),
        ("Internal Failure", GROUP, False),
        (NO_SIGNAL, "AWS::EC2::Instance", False),
    ],
)
def test_only_failures_that_are_about_instances_are_looked_into(reason: str, kind: str, asked: bool) -> None:
    assert bool(group_failed(reason, kind).instances) == asked


def test_the_instance_that_signalled_failure_is_the_only_one_that_is_asked() -> None:
    cause = group_failed("Received FAILURE signal with UniqueId i-1")
    assert [(words.id, words.state) for words in cause.instances] == [("i-1", "running")]
    # Why launches failed is another matter.
    assert cause.launches == ()


@pytest.mark.parametrize(
    ("earlier", "instances"),
    [
        # An update says only how many signals came; the signal is an event shortly before.
        ([event(UPDATING, "G"), event(UPDATING, "G", reason="Received FAILURE signal with UniqueId i-1")], ["i-1"]),
        (
            [event(UPDATING, "G", reason="Received FAILURE signal with UniqueId i-1"), event(UPDATING, "G")],
            ["i-2", "i-1"],
        ),
        ([event(UPDATING, "H", reason="Received FAILURE signal with UniqueId i-1")], ["i-2", "i-1"]),
        # An event of another time without a reason that is no beginning.
        (
            [event(UPDATING, "G", reason="Received FAILURE signal with UniqueId i-1"), event("UPDATE_COMPLETE", "G")],
            ["i-1"],
        ),
    ],
)
def test_the_signal_of_an_update_is_looked_for(earlier: list[dict[str, Any]], instances: list[str]) -> None:
    reason = "Received 1 FAILURE signal(s) out of 2. Unable to satisfy 100% MinSuccessfulInstancesPercent requirement"
    later = event("UPDATE_IN_PROGRESS", "G", reason="Received FAILURE signal with UniqueId i-99")
    wrong = failed("G", reason, "UPDATE_FAILED", ResourceType=GROUP)
    given = of_instances(instance(1), instance(2))
    found = diagnosed(
        "UPDATE_ROLLBACK_COMPLETE", UPDATING, *earlier, wrong, UNDOING, later, "UPDATE_ROLLBACK_COMPLETE", given=given
    )
    assert found.cause is not None
    assert [words.id for words in found.cause.instances] == instances


@pytest.mark.parametrize(("between", "instances"), [(400, ["i-1"]), (500, ["i-2", "i-1"])])
def test_a_signal_is_not_looked_for_in_the_whole_history(between: int, instances: list[str]) -> None:
    signal = event(UPDATING, "G", reason="Received FAILURE signal with UniqueId i-1")
    wrong = failed("G", "Received 1 FAILURE signal(s) out of 2", "UPDATE_FAILED", ResourceType=GROUP)
    others = [event(UPDATING, "Other")] * between
    given = of_instances(instance(1), instance(2))
    found = diagnosed("UPDATE_FAILED", UPDATING, signal, *others, wrong, "UPDATE_FAILED", given=given)
    assert found.cause is not None
    assert [words.id for words in found.cause.instances] == instances


def test_launches_that_failed_explain_it() -> None:
    message = "We currently do not have sufficient t3.small capacity (InsufficientInstanceCapacity)"
    cause = group_failed(autoscaling__DescribeScalingActivities={"Activities": [activity("Failed", message)]})
    assert cause.launches == (message,)
    assert cause.explanation == (
        "instances could not be launched: AWS has no capacity for this instance type in the zone at the moment"
    )
    assert "another instance type or zone" in cause.hint
    cause = group_failed(autoscaling__DescribeScalingActivities={"Activities": [activity("Failed", "strange")]})
    assert cause.explanation == "instances could not be launched"
    assert "console output of the instances" in cause.hint


def test_a_group_without_instances_says_so() -> None:
    cause = group_failed(ec2__DescribeInstances={"Reservations": []})
    assert cause.instances == ()
    assert cause.notes == ("EC2 lists no instance that the group has launched",)
    cause = group_failed(ec2__DescribeInstances=DENIED, autoscaling__DescribeScalingActivities=DENIED)
    assert ["DescribeScalingActivities" in cause.notes[0], "DescribeInstances" in cause.notes[1]] == [True, True]
    assert len(cause.notes) == 2


def test_the_instances_of_a_wait_condition_are_those_of_the_group_of_its_slot() -> None:
    api = RecordedStack("ROLLBACK_COMPLETE")
    child = api.nest(
        "MasterStack",
        "ROLLBACK_COMPLETE",
        resource("MasterAAutoScalingGroup", "CREATE_COMPLETE", type_=GROUP, physical_id="g-a"),
    )
    kind = "AWS::CloudFormation::WaitCondition"
    api.events[NAME] = [
        event("CREATE_IN_PROGRESS"),
        failed("MasterAWaitCondition", "FAILURE signal", ResourceType=kind),
        *map(event, BACK),
    ]
    answers = answering(api, of_instances(instance(1)))
    found = diagnose(answers.account, STACK_ID)
    assert found.cause is not None
    assert names(found.cause) == ["MasterAWaitCondition"]
    assert [words.id for words in found.cause.instances] == ["i-1"]
    [sent] = answers.named("ec2:DescribeInstances")
    assert sent["Filters"] == [{"Name": "tag:aws:autoscaling:groupName", "Values": ["g-a"]}]
    api.resources[child] = []
    found = diagnose(answering(api, of_instances(instance(1))).account, STACK_ID)
    assert found.cause is not None
    assert (found.cause.instances, found.cause.notes) == ((), ())


OCCUPIED = "has dependencies and cannot be deleted (DependencyViolation)"


@pytest.mark.parametrize(
    ("kind", "filtered"),
    [("AWS::EC2::SecurityGroup", "group-id"), ("AWS::EC2::Subnet", "subnet-id"), ("AWS::EC2::VPC", "vpc-id")],
)
def test_what_still_uses_a_thing_is_named(kind: str, filtered: str) -> None:
    def interface(number: int, **more: Any) -> dict[str, Any]:
        return {"NetworkInterfaceId": f"eni-{number}", "Status": "in-use", "SubnetId": "subnet-1", **more}

    uses: list[dict[str, Any]] = [{"Description": "ELB net/x"}, {"Attachment": {"InstanceId": "i-1"}}, {}]
    found = [interface(number, **more) for number, more in enumerate([*uses, *({} for _ in range(8))])]
    asked: list[dict[str, Any]] = []

    def interfaces(sent: dict[str, Any]) -> Mapping[str, Any]:
        asked.append(sent)
        return {"NetworkInterfaces": found}

    stuck = failed("Thing", OCCUPIED, "DELETE_FAILED", ResourceType=kind)
    found_ = diagnosed(
        "DELETE_FAILED",
        "DELETE_IN_PROGRESS",
        stuck,
        "DELETE_FAILED",
        given={"ec2:DescribeNetworkInterfaces": interfaces},
    )
    assert found_.cause is not None
    occupants = found_.cause.occupants
    assert occupants[:3] == (
        "eni-0 (ELB net/x), in-use in subnet-1",
        "eni-1 (i-1), in-use in subnet-1",
        "eni-2 (no description), in-use in subnet-1",
    )
    assert len(occupants) == 11
    assert occupants[-1] == "1 more network interfaces"
    assert asked == [{"Filters": [{"Name": filtered, "Values": ["physical-Thing"]}]}]
    del found[10:]
    found_ = diagnosed(
        "DELETE_FAILED",
        "DELETE_IN_PROGRESS",
        stuck,
        "DELETE_FAILED",
        given={"ec2:DescribeNetworkInterfaces": interfaces},
    )
    assert found_.cause is not None
    assert len(found_.cause.occupants) == 10


def test_what_uses_it_may_not_be_seen_or_is_not_asked() -> None:
    stuck = failed("Thing", OCCUPIED, "DELETE_FAILED", ResourceType="AWS::EC2::VPC")
    found = diagnosed("DELETE_FAILED", "DELETE_IN_PROGRESS", stuck, "DELETE_FAILED")
    assert found.cause is not None
    assert ["DescribeNetworkInterfaces" in note for note in found.cause.notes] == [True]
    for other in ({"ResourceType": "AWS::S3::Bucket"}, {"ResourceStatusReason": "something else"}):
        found = diagnosed("DELETE_FAILED", "DELETE_IN_PROGRESS", {**stuck, **other}, "DELETE_FAILED")
        assert found.cause is not None
        assert (found.cause.notes, found.cause.occupants) == ((), ())


def test_the_newest_instances_are_asked_and_those_first_that_say_why() -> None:
    words = {
        "i-9": "cfngen: [1/2] a\ncfngen: done in 3.0 s",
        "i-8": "",
        "i-7": "cfngen: [1/2] a\ncfngen: [2/2] b FAILED after 1.0 s: c",
        "i-6": "Linux",
    }
    given = of_instances(*(instance(number) for number in range(1, 10)))
    given["ec2:GetConsoleOutput"] = lambda sent: said(words.get(sent["InstanceId"], "x"))
    api = Answers(given)
    found = read_group_consoles(api.account, "g")
    assert [one.id for one in found] == ["i-7", "i-6", "i-5", "i-4", "i-8"]
    asked = {sent["InstanceId"] for sent in api.named("ec2:GetConsoleOutput")}
    assert len(asked) == MAX_INSTANCES == 6
    # Where all say that they have finished, that is told.
    api.given["ec2:GetConsoleOutput"] = said("cfngen: [1/2] a\ncfngen: done in 3.0 s")
    assert [words.finished for words in read_group_consoles(api.account, "g")] == [True] * 6
    assert [words.id for words in read_group_consoles(api.account, "g", "i-1")] == ["i-1"]


@pytest.mark.parametrize(
    ("answer", "words", "note", "fetched"),
    [
        (said(""), (), "its console output is empty; EC2 may need some more minutes", True),
        ({}, (), "its console output is empty; EC2 may need some more minutes", True),
        (
            said("\n".join("abcdefgh")),
            ("c", "d", "e", "f", "g", "h"),
            "the boot program has written nothing",
            False,
        ),
        (said("\x1b[0;1;31mred\x1b[0m\r\n \n"), ("red",), "the boot program has written nothing", False),
        (RefusedError("InvalidInstanceID.NotFound"), (), "EC2 no longer lists this instance", False),
        (DENIED, (), "no permission to read the console output (ec2:GetConsoleOutput)", True),
        (RefusedError("Boom", "oops"), (), "GetConsoleOutput: oops (Boom)", True),
    ],
)
def test_a_console_that_does_not_say(answer: Answer, words: tuple[str, ...], note: str, fetched: bool) -> None:
    found = read_instance_console(Answers({"ec2:GetConsoleOutput": answer}).account, "i-1", "running")
    assert (found.id, found.state, found.lines, found.failed, found.finished) == ("i-1", "running", words, False, False)
    assert found.note.startswith(note)
    command = "aws ec2 get-console-output --region us-west-2 --output text --latest --instance-id i-1"
    assert found.fetch == (command if fetched else "")


def test_a_console_is_asked_for_its_latest_words_first() -> None:
    api = Answers({"ec2:GetConsoleOutput": lambda sent: said("" if sent.get("Latest") else "early")})
    assert read_instance_console(api.account, "i-1").lines == ("early",)
    assert api.named("ec2:GetConsoleOutput") == [{"InstanceId": "i-1", "Latest": True}, {"InstanceId": "i-1"}]


def test_why_launches_failed_is_found_once_each() -> None:
    activities = [
        activity("Failed", "two"),
        activity("Cancelled", "one"),
        activity("Failed", "two"),
        activity("Failed"),
        activity("InProgress", "going on"),
        activity("Successful", description="Terminating i-0"),
        activity("Failed", "three"),
        activity("Successful"),
        activity("Failed", "before"),
    ]
    api = Answers({"autoscaling:DescribeScalingActivities": {"Activities": activities}})
    assert read_launch_failures(api.account, "g") == ("two", "one", "three")
    [sent] = api.named("autoscaling:DescribeScalingActivities")
    assert sent == {"AutoScalingGroupName": "g", "IncludeDeletedGroups": True, "MaxRecords": 100}


def of_types(*similar: str) -> dict[str, Answer]:
    """EC2's answers where a zone offers types that are like t3.large."""
    types = [
        {"InstanceType": name, "VCpuInfo": {"DefaultVCpus": 2}, "MemoryInfo": {"SizeInMiB": 8192 + number}}
        for number, name in enumerate(["t3.large", *similar])
    ]
    return {
        "ec2:DescribeInstanceTypes": lambda sent: {"InstanceTypes": types[:1] if "InstanceTypes" in sent else types},
        "ec2:DescribeInstanceTypeOfferings": {"InstanceTypeOfferings": [{"InstanceType": name} for name in similar]},
    }


@pytest.mark.parametrize(("similar", "wanted", "advice"), [
    ([], "t3.large", "`cfngen replace a --instance-type TYPE`."),
    (["m5.large"], "t3.large", "`cfngen replace a --instance-type m5.large`."),
    (
        ["m5.large", "m5a.large", "m5n.large", "r5.large"],
        "t3.large",
        "`cfngen replace a --instance-type m5.large` (or m5a.large, m5n.large, which us-west-2a offers, too).",
    ),
    (["m5.large"], "", "`cfngen replace a --instance-type TYPE`."),
])  # fmt: skip
def test_types_that_may_take_the_place_of_one_that_is_sold_out(similar: list[str], wanted: str, advice: str) -> None:
    hint = sold_out_hint(Answers(of_types(*similar)).account, "a", wanted, "us-west-2a")
    assert str(hint) == f"wait, since the group tries again and again, or launch another type: {advice}"
    assert "instance-type TYPE" in str(sold_out_hint(Answers(of_types(*similar)).account, "a", "t3.large", ""))
