"""Every status that a stack can be stuck in, and the way out of it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from cloud import Cloud
from deployments import Operator, groups

from cfngen.cli.exit_codes import error_exit_code
from cfngen.deploy.aws.rollback_blockers import find_rollback_blockers
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Notice, Step
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.operations.recovery import (
    BlockedError,
    ImportRollbackFailedError,
    NothingToRollBackError,
    ensure_deployable,
    rollback,
)
from cfngen.deploy.preflight.stack_checks import BusyError, NameConflictError

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": groups("general")}
LARGER = {"name": "one", "nodeGroups": groups("general", instanceType="m5.large")}
GROUP = "NodeGroupGeneralAutoScalingGroup"


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def status(operator: Operator) -> str:
    stack = find_stack(operator.account, "one")
    return stack.status.name if stack else ""


def back(operator: Operator, **options):
    operator.questions.clear()
    return rollback(operator.account, "one", "one", operator.waiting, **options)


def stuck(operator: Operator) -> None:
    """An update whose rollback fails too."""
    operator.deploy(ONE)
    operator.cloud.engine.fail(GROUP, "no capacity", during="UPDATE", times=2)
    assert operator.deploy(LARGER).status == "UPDATE_ROLLBACK_FAILED"


def test_what_was_only_reviewed_is_created(operator: Operator):
    operator.cloud.client("cloudformation").create_change_set(
        StackName="one",
        ChangeSetName="somebody-looked",
        ChangeSetType="CREATE",
        TemplateBody='{"Resources": {"Topic": {"Type": "AWS::EC2::InternetGateway"}}}',
    )
    operator.cloud.clock.sleep(60)
    assert status(operator) == "REVIEW_IN_PROGRESS"
    assert operator.deploy(ONE).status == "CREATE_COMPLETE"


def test_a_kept_creation_is_rolled_back_by_deleting_it(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "broken")
    assert operator.deploy(ONE, on_failure="keep").status == "CREATE_FAILED"
    outcome = back(operator)
    assert operator.questions[0].dangerous
    assert not outcome.status.exists
    assert status(operator) == ""


def test_a_kept_update_is_rolled_back(operator: Operator):
    operator.deploy(ONE)
    operator.cloud.engine.fail(GROUP, "no capacity", during="UPDATE")
    assert operator.deploy(LARGER, on_failure="keep").status == "UPDATE_FAILED"
    assert back(operator).status.name == "UPDATE_ROLLBACK_COMPLETE"
    assert not operator.questions[0].dangerous


def test_a_kept_update_is_gone_on_with(operator: Operator):
    operator.deploy(ONE)
    operator.cloud.engine.fail(GROUP, "no capacity", during="UPDATE")
    assert operator.deploy(LARGER, on_failure="keep").status == "UPDATE_FAILED"
    assert operator.deploy(LARGER).status == "UPDATE_COMPLETE"
    assert any("continues where" in each.text for each in operator.reported(Notice))


def test_a_failed_rollback_is_continued_once_the_cause_is_gone(operator: Operator):
    stuck(operator)
    with pytest.raises(BlockedError, match="UPDATE_ROLLBACK_FAILED") as raised:
        operator.deploy(LARGER)
    assert "cfngen rollback --stack-name one" in str(raised.value.hint)
    assert back(operator).status.name == "UPDATE_ROLLBACK_COMPLETE"
    assert operator.deploy(LARGER).status == "UPDATE_COMPLETE"


def test_what_cannot_be_rolled_back_is_named_and_skipped_with_consent(operator: Operator):
    stuck(operator)
    operator.cloud.engine.fail(GROUP, "still none", during="UPDATE", times=1)
    stack = find_stack(operator.account, "one")
    [(name, reason)] = find_rollback_blockers(operator.account, stack).items()
    assert name.endswith(f".{GROUP}")
    assert name.startswith("one-NodeGroupGeneralStack-")
    assert "no capacity" in reason
    outcome = back(operator, force=True)
    assert outcome.status.name == "UPDATE_ROLLBACK_COMPLETE"
    assert operator.questions[0].dangerous
    assert name in operator.questions[0].consequences[0]


def test_only_what_failed_to_be_rolled_back_is_skipped(operator: Operator):
    """The group fails in the update, and the rollback comes no farther than its launch template."""
    operator.deploy(ONE)
    engine = operator.cloud.engine
    engine.fail(GROUP, "no capacity", during="UPDATE")
    template = GROUP.replace("AutoScalingGroup", "LaunchTemplate")
    engine.durations["AWS::EC2::LaunchTemplate"] = 30
    operator.cloud.faults.after("ExecuteChangeSet", lambda: engine.fail(template, "not back", during="UPDATE", times=1))
    assert operator.deploy(LARGER).status == "UPDATE_ROLLBACK_FAILED"
    nested = next(stack for stack in engine.stacks() if "NodeGroupGeneralStack" in stack.name)
    assert {nested.resources[key].status for key in (GROUP, template)} == {"UPDATE_FAILED"}
    assert set(find_rollback_blockers(operator.account, find_stack(operator.account, "one"))) == {
        f"{nested.name}.{template}"
    }
    assert back(operator, force=True).status.name == "UPDATE_ROLLBACK_COMPLETE"
    assert all(GROUP not in consequence for question in operator.questions for consequence in question.consequences)


def test_named_resources_are_skipped(operator: Operator):
    stuck(operator)
    [name] = find_rollback_blockers(operator.account, find_stack(operator.account, "one"))
    operator.cloud.engine.fail(GROUP, "still none", during="UPDATE", times=1)
    assert back(operator, skip=(name,)).status.name == "UPDATE_ROLLBACK_COMPLETE"


def test_a_rollback_that_is_declined_changes_nothing(operator: Operator):
    stuck(operator)
    operator.answer = lambda question: False
    with pytest.raises(DeclinedError):
        back(operator, force=True)
    assert status(operator) == "UPDATE_ROLLBACK_FAILED"


def test_remains_that_could_not_be_removed_are_removed_before_the_next_creation(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "broken")
    operator.cloud.engine.fail("Vpc", "has dependencies", during="DELETE")
    assert operator.deploy(ONE).status == "ROLLBACK_FAILED"
    assert operator.deploy(ONE).status == "CREATE_COMPLETE"
    [question, *_] = operator.questions
    assert question.dangerous


def test_declining_leaves_the_remains(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "broken")
    operator.deploy(ONE)
    operator.answer = lambda question: False
    with pytest.raises(DeclinedError):
        operator.deploy(ONE)
    assert status(operator) == "ROLLBACK_COMPLETE"


def test_a_half_deleted_stack_is_for_delete(operator: Operator):
    operator.deploy(ONE, protect=False)
    operator.cloud.engine.fail("Vpc", "has dependencies", during="DELETE")
    operator.cloud.client("cloudformation").delete_stack(StackName="one")
    operator.cloud.clock.sleep(3600)
    assert status(operator) == "DELETE_FAILED"
    with pytest.raises(BlockedError, match="DELETE_FAILED") as raised:
        operator.deploy(ONE)
    assert "cfngen delete --stack-name one" in str(raised.value.hint)


def test_the_end_of_a_cleanup_is_waited_for(operator: Operator):
    operator.deploy({"name": "one", "nodeGroups": groups("general", "extra")})
    second = Operator(operator.cloud, made=100)
    outcomes = []
    seen = []

    def meanwhile() -> None:
        [root] = [stack.status for stack in operator.cloud.engine.stacks() if stack.name == "one"]
        if root == "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS" and not seen:
            seen.append(root)
            outcomes.append(second.deploy({"name": "one", "nodeGroups": groups("general", "other")}))

    for nth in range(1, 200):
        operator.cloud.faults.after("DescribeStackEvents", meanwhile, nth=nth)
    operator.deploy(ONE)
    assert [outcome.status for outcome in outcomes] == ["UPDATE_COMPLETE"]
    assert any("waiting for one to finish" in each.text for each in second.reported(Step))


def test_a_rollback_of_a_healthy_stack_is_refused(operator: Operator):
    operator.deploy(ONE)
    with pytest.raises(NothingToRollBackError, match="CREATE_COMPLETE"):
        back(operator)


def test_a_rollback_of_a_busy_stack_is_refused(operator: Operator):
    operator.cloud.faults.after("DescribeStackEvents", interrupt, nth=2)
    assert operator.deploy(ONE).in_progress
    with pytest.raises(BusyError) as raised:
        back(operator)
    assert error_exit_code(raised.value.code) == 6


def test_the_rollback_of_an_import_is_not_tried(operator: Operator):
    operator.deploy(ONE)
    [root] = [stack for stack in operator.cloud.engine.stacks() if stack.name == "one"]
    root.status = "IMPORT_ROLLBACK_FAILED"
    before = len(operator.cloud.faults.calls)
    for attempt in (back, lambda them: them.deploy(LARGER)):
        with pytest.raises(
            ImportRollbackFailedError, match="CloudFormation can continue only the rollback of an update"
        ):
            attempt(operator)
    assert "ContinueUpdateRollback" not in {call.operation for call in operator.cloud.faults.calls[before:]}


def test_a_cancelled_update_is_not_called_a_failure(operator: Operator):
    operator.deploy(ONE)
    [root] = [stack for stack in operator.cloud.engine.stacks() if stack.name == "one"]
    root.status = "UPDATE_ROLLBACK_COMPLETE"
    operator.deploy(ONE)
    notice = operator.reported(Notice)[0]
    assert notice.text == "the last update of one was rolled back; this is a new update"


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "DELETE_FAILED", "CREATE_FAILED"])
def test_no_second_cluster_of_a_name_is_created(operator: Operator, status: str):
    operator.deploy(ONE)
    [root] = [stack for stack in operator.cloud.engine.stacks() if stack.name == "one"]
    root.status = status
    before = len(operator.cloud.faults.calls)
    for attempt in (operator.plan, operator.deploy):
        with pytest.raises(
            NameConflictError, match="the cluster one already exists in the stack one: a second cluster"
        ) as raised:
            attempt(ONE, stack_name="two")
    assert "choose another `name`" in raised.value.hint
    assert {call.operation for call in operator.cloud.faults.calls[before:]} <= {"DescribeStacks", "GetCallerIdentity"}


def test_a_creation_that_was_taken_back_whole_is_in_nobodys_way(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "broken")
    assert operator.deploy(ONE).status == "ROLLBACK_COMPLETE"
    assert operator.deploy(ONE, stack_name="two").status == "CREATE_COMPLETE"
    with pytest.raises(NameConflictError, match="in the stack two"):
        operator.deploy(ONE)


def test_who_may_not_describe_other_stacks_creates_all_the_same(operator: Operator):
    operator.deploy(ONE)
    account = operator.account

    def only_by_name(params: dict[str, Any], **_: Any) -> None:
        if "StackName" not in params["body"]:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not on all"}}, "DescribeStacks")

    events = account.client("cloudformation").meta.events
    events.register("before-call.cloudformation.DescribeStacks", only_by_name)
    assert ensure_deployable(account, "two", "one", operator.waiting) is None


def interrupt() -> None:
    raise KeyboardInterrupt
