"""A plan changes nothing but what it has made itself, whatever status the stack is in."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from cloud import Cloud
from clusters import inventory
from deployments import Operator, groups

from cfngen.deploy.aws.planning_account import PlanChangesError, PlanningAccount
from cfngen.deploy.messages.stack_status import _HEALTH_BY_STATUS
from cfngen.deploy.operations.recovery import BlockedError, FailedCreationError, ImportRollbackFailedError
from cfngen.deploy.preflight.stack_checks import BusyError

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": groups("general")}
LARGER = {"name": "one", "nodeGroups": groups("general", instanceType="m5.large")}
UNKNOWN_ONES = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "STATUS_OF_TOMORROW")
HARMLESS = ("Describe", "Get", "Head", "List", "CreateChangeSet", "DeleteChangeSet", "PutObject", "PutBucketTagging")


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def changed(operator: Operator, before: int) -> list[str]:
    """Calls after the first so many that are no questions and no part of making a plan."""
    return [call.action for call in operator.cloud.faults.calls[before:] if not call.operation.startswith(HARMLESS)]


@pytest.fixture
def existing(operator: Operator) -> Any:
    operator.deploy(ONE)
    return operator.cloud.engine.stack("one")


def test_a_plan_changes_nothing_in_any_status(operator: Operator, existing: Any):
    engine, region = operator.cloud.engine, operator.cloud.cluster.region
    operator.questions.clear()
    # The emulator imports nothing, and refuses change sets of what was imported.
    statuses_of_aws = [
        each for each in _HEALTH_BY_STATUS if each and each not in ("IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE")
    ]
    for status in (*statuses_of_aws, *UNKNOWN_ONES):
        existing.status = status
        here, before = inventory(region), len(operator.cloud.faults.calls)
        statuses = {stack.id: stack.status for stack in engine.stacks()}
        with suppress(BlockedError, BusyError, ImportRollbackFailedError, FailedCreationError):
            operator.plan(LARGER)
        assert (status, inventory(region)) == (status, here)
        assert (status, {key: engine.stack(key).status for key in statuses}) == (status, statuses)
        # The empty stack of a new cluster's change set is the plan's own.
        own = {"cloudformation:DeleteStack"} if status == "DELETE_COMPLETE" else set()
        assert (status, set(changed(operator, before)) - own) == (status, set())
    assert operator.questions == []


def test_a_plan_reads_the_resources_and_the_template_of_each_stack_once(operator: Operator, existing: Any):
    before = len(operator.cloud.faults.calls)
    operator.plan(LARGER)
    reads = Counter(
        (call.operation, str(sorted(call.parameters.items())))
        for call in operator.cloud.faults.calls[before:]
        if call.operation in ("GetTemplate", "ListStackResources")
    )
    assert len(reads) == 2 * len(operator.cloud.engine.stacks())
    assert set(reads.values()) == {1}, reads


def test_where_deploying_would_delete_first_a_plan_says_so(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "broken")
    operator.cloud.engine.fail("Vpc", "has dependencies", during="DELETE")
    operator.deploy(ONE)
    with pytest.raises(FailedCreationError, match="its creation failed") as raised:
        operator.plan(ONE)
    assert "VpcStack" in raised.value.plan.remains
    assert operator.cloud.engine.stack("one").status == "ROLLBACK_FAILED"


def test_an_empty_stack_that_somebody_has_protected_stays(operator: Operator):
    """A deployment that ended between protecting its stack and executing its change set."""
    client = operator.cloud.client("cloudformation")
    body = '{"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}}'
    client.create_change_set(StackName="one", ChangeSetName="c", ChangeSetType="CREATE", TemplateBody=body)
    operator.cloud.clock.sleep(60)
    client.delete_change_set(StackName="one", ChangeSetName="c")
    client.update_termination_protection(StackName="one", EnableTerminationProtection=True)
    assert operator.plan(ONE).operation == "create"
    assert operator.cloud.engine.stack("one").status == "REVIEW_IN_PROGRESS"
    assert operator.deploy(ONE).status == "CREATE_COMPLETE"


def test_change_sets_of_others_stay(operator: Operator, existing: Any):
    client = operator.cloud.client("cloudformation")
    client.create_change_set(
        StackName="one", ChangeSetName="cfngen-plan-others", UsePreviousTemplate=True,
        Capabilities=["CAPABILITY_IAM"], Tags=[{"Key": "team", "Value": "blue"}],
        Parameters=[{"ParameterKey": parameter, "UsePreviousValue": True} for parameter in existing.parameters],
    )  # fmt: skip
    operator.cloud.clock.sleep(7200)
    operator.plan(LARGER)
    assert [summary["ChangeSetName"] for summary in client.list_change_sets(StackName="one")["Summaries"]] == [
        "cfngen-plan-others"
    ]
    operator.deploy(LARGER)
    assert "cfngen-plan-others" not in [
        summary["ChangeSetName"] for summary in client.list_change_sets(StackName="one")["Summaries"]
    ]


@pytest.mark.parametrize(
    ("service", "method", "arguments"),
    [
        ("cloudformation", "delete_stack", {"StackName": "one"}),
        ("cloudformation", "delete_change_set", {"ChangeSetName": "somebodys", "StackName": "one"}),
        ("cloudformation", "execute_change_set", {"ChangeSetName": "somebodys"}),
        ("cloudformation", "update_termination_protection", {"StackName": "one", "EnableTerminationProtection": False}),
        ("s3", "delete_object", {"Bucket": "b", "Key": "k"}),
        ("ec2", "terminate_instances", {"InstanceIds": ["i-0"]}),
    ],
)
def test_what_is_no_part_of_planning_is_not_sent(
    operator: Operator, service: str, method: str, arguments: dict[str, Any]
):
    account = PlanningAccount.of(operator.account)
    before = len(operator.cloud.faults.calls)
    with pytest.raises(PlanChangesError, match="was not sent"):
        getattr(account.client(service), method)(**arguments)
    assert len(operator.cloud.faults.calls) == before
