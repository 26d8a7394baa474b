"""Wait conditions with a creation policy, and in which order an update comes to resources that depend on each other."""

from __future__ import annotations

from typing import Any

import pytest
from small_stacks import GATEWAY, REGION, created, group, reasons, statuses, tagged, text, types, updated

from cfngen.sandbox.cloudformation import CloudFormation, LaunchedInstance, NotModelledError, Stack, ValidationError

CONDITION = "AWS::CloudFormation::WaitCondition"


@pytest.fixture
def cloud() -> CloudFormation:
    return CloudFormation(REGION)


def condition(count: int = 1, timeout: str = "PT10M", **more: Any) -> dict[str, Any]:
    return {"Type": CONDITION, "CreationPolicy": {"ResourceSignal": {"Count": count, "Timeout": timeout}}, **more}


def begun(cloud: CloudFormation, **resources: Any) -> Stack:
    stack = cloud.create_stack("s", body=text(resources))
    assert stack.status == "CREATE_IN_PROGRESS"
    return stack


def test_it_is_complete_when_all_have_signalled(cloud: CloudFormation) -> None:
    stack = begun(cloud, Wait=condition(2))
    for number in (1, 2):
        cloud.clock.schedule(
            30 * number, lambda each=number: cloud.signal_resource("s", "Wait", f"i-{each}", "SUCCESS")
        )
    cloud.wait(stack)
    assert (stack.status, cloud.clock.now) == ("CREATE_COMPLETE", 60)


def test_a_failure_fails_it_at_once(cloud: CloudFormation) -> None:
    stack = begun(cloud, Wait=condition())
    cloud.clock.schedule(20, lambda: cloud.signal_resource("s", "Wait", "i-1", "FAILURE"))
    assert cloud.wait(stack).status == "ROLLBACK_COMPLETE"
    assert cloud.clock.now == 20
    assert reasons(stack, "Wait", "CREATE_FAILED") == ["Received FAILURE signal with UniqueId i-1"]


def test_its_time_begins_when_it_does(cloud: CloudFormation) -> None:
    cloud.durations["AWS::EC2::InternetGateway"] = 100
    stack = begun(cloud, Gateway=GATEWAY, Wait=condition(DependsOn="Gateway"))
    assert cloud.wait(stack).status == "ROLLBACK_COMPLETE"
    times = {(event.logical_id, event.status): event.time for event in stack.events}
    assert (times["Wait", "CREATE_FAILED"] - times["Gateway", "CREATE_COMPLETE"]).total_seconds() == 600
    words = "Failed to receive 1 resource signal(s) within the specified duration"
    assert reasons(stack, "Wait", "CREATE_FAILED") == [words]


def test_what_depends_on_it_waits_and_what_does_not_goes_on(cloud: CloudFormation) -> None:
    stack = begun(cloud, Wait=condition(), After={**GATEWAY, "DependsOn": "Wait"}, Beside=GATEWAY)
    cloud.simulation.run(lambda: cloud.clock.now >= 0)
    assert "After" not in stack.resources
    assert stack.resources["Beside"].status == "CREATE_COMPLETE"
    cloud.signal_resource("s", "Wait", "i-1", "SUCCESS")
    assert cloud.wait(stack).status == "CREATE_COMPLETE"


def test_without_a_policy_it_is_of_a_kind_that_is_not_modelled(cloud: CloudFormation) -> None:
    with pytest.raises(NotModelledError):
        cloud.wait(cloud.create_stack("s", body=text({"Wait": {"Type": CONDITION}})))


def test_it_is_not_waited_for_again_in_an_update(cloud: CloudFormation) -> None:
    stack = begun(cloud, Wait=condition(), Gateway=tagged(a="1"))
    cloud.signal_resource("s", "Wait", "i-1", "SUCCESS")
    cloud.wait(stack)
    now = cloud.clock.now
    updated(cloud, {"Wait": condition(timeout="PT20M"), "Gateway": tagged(a="2")})
    assert (stack.status, cloud.clock.now) == ("UPDATE_COMPLETE", now)


@pytest.mark.parametrize(
    ("resource", "when", "says"),
    [
        ("Wait", "before", "Resource Wait does not exist for stack s"),
        ("Wait", "after", r"Stack arn:.* is in CREATE_COMPLETE state and cannot be signaled"),
        ("Gateway", "meanwhile", "Resource Gateway is in CREATE_COMPLETE state and cannot be signaled"),
        ("Nothing", "meanwhile", "Resource Nothing does not exist for stack s"),
    ],
)
def test_who_signals_too_early_or_too_late_is_told_so(
    cloud: CloudFormation, resource: str, when: str, says: str
) -> None:
    cloud.durations["AWS::EC2::InternetGateway"] = 10
    stack = begun(cloud, Gateway=GATEWAY, Wait=condition(DependsOn="Gateway"))
    if when != "before":
        cloud.simulation.run(lambda: "Wait" in stack.resources)
    if when == "after":
        cloud.signal_resource("s", "Wait", "i-1", "SUCCESS")
        cloud.wait(stack)
    with pytest.raises(ValidationError, match=says):
        cloud.signal_resource("s", resource, "i-9", "SUCCESS")


def slots(size: str) -> dict[str, Any]:
    """Three groups of one in a chain, none with a creation policy, as masters' groups are."""
    found: dict[str, Any] = {}
    for number, letter in enumerate("ABC"):
        made = group(1, size=size)
        template, own = made["Template"], made["Group"]
        del own["CreationPolicy"]
        own["Properties"]["LaunchTemplate"] = {
            "LaunchTemplateId": {"Ref": f"T{letter}"},
            "Version": {"Fn::GetAtt": f"T{letter}.LatestVersionNumber"},
        }
        if number:
            own["DependsOn"] = "ABC"[number - 1]
        found |= {f"T{letter}": template, letter: own}
    return found


def test_a_chain_of_groups_starts_at_once_and_rolls_one_by_one() -> None:
    launched: list[str] = []

    def boot(each: LaunchedInstance) -> None:
        launched.append(each.group)
        if len(launched) > 3:
            letter = each.group.split("-")[1]
            cloud.clock.schedule(100, lambda: cloud.signal_resource("s", letter, each.instance_id, "SUCCESS"))

    cloud = CloudFormation(REGION, on_launch=boot)
    stack = created(cloud, slots("t3.small"))
    assert cloud.clock.now == 0
    assert len(launched) == 3
    updated(cloud, slots("t3.large"))
    assert (stack.status, cloud.clock.now) == ("UPDATE_COMPLETE", 300)
    assert types() == ["t3.large"] * 3
    order = [key for key, status in statuses(stack, "A", "B", "C") if status == "UPDATE_COMPLETE"]
    assert order == ["A", "B", "C"]


def test_the_first_of_a_chain_that_fails_spares_the_rest() -> None:
    launched: list[str] = []

    def boot(each: LaunchedInstance) -> None:
        launched.append(each.instance_id)
        letter = each.group.split("-")[1]
        if len(launched) > 3:
            status = "FAILURE" if len(launched) == 4 else "SUCCESS"
            cloud.clock.schedule(10, lambda: cloud.signal_resource("s", letter, each.instance_id, status))

    cloud = CloudFormation(REGION, on_launch=boot)
    stack = created(cloud, slots("t3.small"))
    updated(cloud, slots("t3.large"))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert len(launched) == 5
    assert types() == ["t3.small"] * 3


def test_a_chain_is_deleted_from_its_end() -> None:
    cloud = CloudFormation(REGION)
    stack = created(cloud, slots("t3.small"))
    cloud.wait(cloud.delete_stack("s"))
    order = [key for key, status in statuses(stack, "A", "B", "C") if status == "DELETE_COMPLETE"]
    assert order == ["C", "B", "A"]
