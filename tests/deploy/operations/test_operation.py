"""Deploying a cluster and changing it: what an operator finds in the account afterwards."""

from __future__ import annotations

import pytest
from botocore.exceptions import ConnectTimeoutError
from cloud import Cloud
from clusters import inventory
from deployments import ALLOWED, Operator, groups

from cfngen.cli.exit_codes import error_exit_code
from cfngen.deploy.aws.account import WrongAccountError, connect
from cfngen.deploy.aws.errors import CredentialsError, ExpiredCredentialsError, UnreachableError
from cfngen.deploy.messages.message import Event, Notice
from cfngen.deploy.operations.deployment.deploy import ImpossiblePlanError, StartInterruptedError
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.preflight.parameters.parameter_values import MissingParameterError
from cfngen.deploy.preflight.stack_checks import BusyError, ForeignStackError
from cfngen.deploy.watching.diagnosis import Diagnosis
from cfngen.deploy.watching.watch import InterruptChoice, WatchEndedError
from cfngen.sandbox.cloudformation import client

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": groups("general")}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def stack(operator: Operator, name: str = "one"):
    [found] = operator.cloud.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    return found


def change_sets(operator: Operator, name: str = "one"):
    return operator.cloud.client("cloudformation").list_change_sets(StackName=name)["Summaries"]


def stacks(operator: Operator):
    return {stack.name: stack.status for stack in operator.cloud.engine.stacks() if stack.status != "DELETE_COMPLETE"}


def test_a_new_cluster_is_created_protected_and_tagged(operator: Operator):
    finished = operator.deploy(ONE)
    assert (finished.action, finished.status, finished.succeeded) == ("create", "CREATE_COMPLETE", True)
    assert finished.outputs["ApiEndpoint"].startswith("https://")
    made = stack(operator)
    assert made["EnableTerminationProtection"] is True
    assert {"Key": "cfngen:cluster", "Value": "one"} in made["Tags"]
    assert {stack.status for stack in operator.cloud.engine.stacks()} == {"CREATE_COMPLETE"}


def test_data_and_addresses_are_protected_by_stack_policies(operator: Operator):
    operator.deploy(ONE)
    master = next(stack for stack in operator.cloud.engine.stacks() if "MasterStack" in stack.name)
    assert "AWS::EC2::Volume" in operator.cloud.engine.stack(master.id).policy


def test_events_of_all_stacks_are_reported_once(operator: Operator):
    operator.deploy(ONE)
    seen = operator.reported(Event)
    assert len({each.id for each in seen}) == len(seen)
    assert {each.path for each in seen} >= {(), ("VpcStack",), ("MasterStack",), ("NodeGroupGeneralStack",)}


def test_repeating_it_changes_nothing_and_ends_well(operator: Operator):
    operator.deploy(ONE)
    before = inventory(operator.cloud.cluster.region)
    finished = operator.deploy(ONE)
    assert (finished.action, finished.succeeded, finished.status) == ("none", True, "CREATE_COMPLETE")
    assert operator.questions == []
    assert change_sets(operator) == []
    assert inventory(operator.cloud.cluster.region) == before


def test_a_plan_of_a_new_cluster_leaves_nothing_but_templates(operator: Operator):
    before = inventory(operator.cloud.cluster.region)
    plan = operator.plan(ONE)
    assert plan.operation == "create"
    assert not plan.is_empty
    assert stacks(operator) == {}
    assert inventory(operator.cloud.cluster.region) == before


def test_saying_no_leaves_nothing(operator: Operator):
    operator.answer = lambda question: False
    with pytest.raises(DeclinedError):
        operator.deploy(ONE)
    assert stacks(operator) == {}


def test_a_changed_instance_type_rolls_the_group(operator: Operator):
    operator.deploy(ONE)
    finished = operator.deploy({"name": "one", "nodeGroups": groups("general", instanceType="m5.large")})
    assert (finished.action, finished.status) == ("update", "UPDATE_COMPLETE")
    operator.cloud.engine.advance(3600)  # the last of the old nodes still moves its pods then
    instances = client("ec2", operator.cloud.cluster.region).describe_instances(
        Filters=[{"Name": "instance-state-name", "Values": ["running"]}]
    )
    types = sorted(instance["InstanceType"] for one in instances["Reservations"] for instance in one["Instances"])
    assert types == ["m5.large", "m5.large", "t3.medium"]


def test_a_group_is_added_and_removed(operator: Operator):
    operator.deploy(ONE)
    operator.deploy({"name": "one", "nodeGroups": groups("general", "extra")})
    assert any("NodeGroupExtraStack" in name for name in stacks(operator))
    finished = operator.deploy(ONE)
    assert finished.status == "UPDATE_COMPLETE"
    assert not any("NodeGroupExtraStack" in name for name in stacks(operator))


def test_a_failed_creation_names_the_cause(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "The volume type is not supported in this zone", times=9)
    finished = operator.deploy(ONE)
    assert (finished.succeeded, finished.status) == (False, "ROLLBACK_COMPLETE")
    [failed] = operator.reported(Diagnosis)
    assert failed.cause.event.logical_id == "MasterAVolume"


def test_a_failed_update_is_rolled_back_and_can_be_repeated(operator: Operator):
    operator.deploy(ONE)
    bigger = {"name": "one", "nodeGroups": groups("general", instanceType="m5.large")}
    operator.cloud.engine.fail("NodeGroupGeneralAutoScalingGroup", "no capacity", during="UPDATE")
    finished = operator.deploy(bigger)
    assert (finished.succeeded, finished.status) == (False, "UPDATE_ROLLBACK_COMPLETE")
    [failed] = operator.reported(Diagnosis)
    assert "no capacity" in failed.cause.event.reason
    assert operator.deploy(bigger).status == "UPDATE_COMPLETE"


def test_what_a_creation_left_is_deleted_with_consent_and_made_anew(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "broken")
    assert operator.deploy(ONE).status == "ROLLBACK_COMPLETE"
    finished = operator.deploy(ONE)
    assert finished.status == "CREATE_COMPLETE"
    assert "remains" in operator.questions[0].text


def test_a_kept_failure_is_continued(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "broken")
    assert operator.deploy(ONE, on_failure="keep").status == "CREATE_FAILED"
    assert operator.deploy(ONE).status == "UPDATE_COMPLETE"
    assert "with rollback disabled" in operator.reported(Notice)[0].text
    assert operator.reported(Plan)[0].on_failure == "DO_NOTHING"


def test_a_deletion_on_failure_leaves_no_stack(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "broken")
    finished = operator.deploy(ONE, on_failure="delete")
    assert not finished.succeeded
    assert stacks(operator) == {}


def test_a_stack_of_another_cluster_is_left_alone(operator: Operator):
    operator.deploy(ONE)
    wanted = operator.wanted({"name": "two"})
    with pytest.raises(ForeignStackError, match="belongs to the cluster one"):
        operator.deploy({"name": "two"}, documents=wanted.documents, stack_name="one")


def test_a_second_deployer_at_the_same_time_is_refused(operator: Operator):
    second = Operator(operator.cloud)
    refused = []

    def meanwhile() -> None:
        with pytest.raises(BusyError) as raised:
            second.deploy(ONE)
        refused.append(raised.value)

    operator.cloud.faults.after("DescribeStackEvents", meanwhile, nth=3)
    assert operator.deploy(ONE).succeeded
    assert [error_exit_code(each.code) for each in refused] == [6]


def test_leaving_lets_cloudformation_go_on(operator: Operator):
    operator.cloud.faults.after("DescribeStackEvents", interrupt, nth=3)
    finished = operator.deploy(ONE)
    assert finished.in_progress
    assert not finished.succeeded
    operator.cloud.clock.sleep(3600)
    assert stack(operator)["StackStatus"] == "CREATE_COMPLETE"


def test_cancelling_a_creation_deletes_what_there_is(operator: Operator):
    operator.choice = lambda: InterruptChoice.CANCEL
    operator.cloud.faults.after("DescribeStackEvents", interrupt, nth=3)
    finished = operator.deploy(ONE)
    assert (finished.succeeded, finished.in_progress) == (False, False)
    assert stacks(operator) == {}


def test_cancelling_an_update_rolls_it_back(operator: Operator):
    operator.deploy(ONE)
    operator.choice = lambda: InterruptChoice.CANCEL
    operator.cloud.faults.after("DescribeStackEvents", interrupt, nth=40)
    finished = operator.deploy({"name": "one", "nodeGroups": groups("general", instanceType="m5.large")})
    assert finished.status == "UPDATE_ROLLBACK_COMPLETE"


@pytest.mark.parametrize("nth", [1, 2])
def test_ctrl_c_before_the_execution_leaves_nothing(operator: Operator, nth: int):
    operator.cloud.faults.after("DescribeChangeSet", interrupt, nth=nth)
    with pytest.raises(KeyboardInterrupt):
        operator.deploy(ONE)
    assert stacks(operator) == {}


def test_ctrl_c_at_the_moment_of_beginning_does_not_say_that_nothing_happens(operator: Operator):
    operator.cloud.faults.after("ExecuteChangeSet", interrupt)
    with pytest.raises(StartInterruptedError, match="may be running on the stack one") as raised:
        operator.deploy(ONE)
    assert error_exit_code(raised.value.code) == 6
    operator.cloud.clock.sleep(3600)
    assert stack(operator)["StackStatus"] == "CREATE_COMPLETE"


def test_credentials_that_end_during_the_watch_say_how_to_come_back(operator: Operator):
    operator.cloud.faults.after("ExecuteChangeSet", lambda: operator.cloud.faults.expire_credentials(after=10))
    with pytest.raises(WatchEndedError, match="expired") as raised:
        operator.deploy(ONE)
    assert error_exit_code(raised.value.code) == 6
    assert "cfngen watch" in str(raised.value.hint)


def test_expired_credentials_change_nothing(operator: Operator):
    operator.cloud.faults.expire_credentials()
    with pytest.raises(ExpiredCredentialsError, match="expired"):
        operator.deploy(ONE)
    assert stacks(operator) == {}


def test_refused_credentials_are_named(operator: Operator):
    operator.cloud.faults.invalidate_credentials()
    with pytest.raises(CredentialsError, match="does not accept"):
        operator.deploy(ONE)


def test_no_network_is_named(operator: Operator):
    operator.cloud.faults.disconnect(times=1000, kind="endpoint")
    with pytest.raises(UnreachableError):
        operator.deploy(ONE)


def test_a_network_lost_at_the_very_end_is_named(operator: Operator, monkeypatch: pytest.MonkeyPatch):
    def lost(*_: object) -> None:
        raise ConnectTimeoutError(endpoint_url="https://cloudformation.us-west-2.amazonaws.com/")

    monkeypatch.setattr("cfngen.deploy.operations.deployment.deploy.find_stack", lost)
    with pytest.raises(UnreachableError):
        operator.deploy(ONE)
    assert stack(operator)["StackStatus"] == "CREATE_COMPLETE"


def test_another_account_is_refused(operator: Operator):
    with pytest.raises(WrongAccountError, match="123456789012"):
        connect(operator.cloud.session, "us-west-2", clock=operator.cloud.clock, expected_account="999999999999")


def test_throttling_slows_the_deployment_and_does_not_end_it(operator: Operator):
    operator.cloud.faults.throttle("cloudformation:*", every=2)
    assert operator.deploy(ONE).succeeded


def test_a_missing_parameter_is_named_before_anything_is_planned(operator: Operator):
    with pytest.raises(MissingParameterError, match="ApiAllowedCidr"):
        operator.deploy(ONE, flags={})
    assert stacks(operator) == {}


def test_a_value_without_default_is_kept_on_update(operator: Operator):
    operator.deploy(ONE)
    finished = operator.deploy({"name": "one", "nodeGroups": groups("general", "extra")}, flags={})
    assert finished.status == "UPDATE_COMPLETE"
    parameters = {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in stack(operator)["Parameters"]}
    assert parameters["ApiAllowedCidr"] == ALLOWED["ApiAllowedCidr"]


def test_what_aws_is_known_to_refuse_is_not_begun(operator: Operator):
    operator.deploy(ONE)
    with pytest.raises(ImpossiblePlanError, match="would shrink from 20 to 10 GiB"):
        operator.deploy({**ONE, "controlPlane": {"volume": {"size": 10}}})
    assert stack(operator)["StackStatus"] == "CREATE_COMPLETE"
    assert operator.questions == []


def test_templates_that_only_move_to_another_bucket_endanger_nothing(operator: Operator):
    operator.deploy(ONE)
    where = {"LocationConstraint": operator.cloud.cluster.region}
    operator.cloud.client("s3").create_bucket(Bucket="elsewhere", CreateBucketConfiguration=where)
    plan = operator.plan(ONE, bucket="elsewhere")
    assert not plan.is_dangerous
    assert plan.replaces == ()
    assert operator.deploy(ONE, bucket="elsewhere").status == "UPDATE_COMPLETE"


def test_tags_of_an_earlier_deployment_stay(operator: Operator):
    operator.deploy(ONE, tags={"team": "blue", "stage": "test"})
    operator.deploy({"name": "one", "nodeGroups": groups("general", "extra")}, tags={"stage": "production"})
    tags = {tag["Key"]: tag["Value"] for tag in stack(operator)["Tags"]}
    assert tags == {"team": "blue", "stage": "production", "cfngen:cluster": "one"}


def test_a_dangerous_change_is_asked_for_by_name_and_the_protection_put_back(operator: Operator):
    operator.deploy(ONE)
    moved = {**ONE, "controlPlane": {"addresses": ["172.20.0.50"]}}
    finished = operator.deploy(moved)
    [question] = operator.questions
    assert (question.dangerous, question.name) == (True, "one")
    [found] = operator.reported(Plan)
    assert found.is_dangerous
    assert finished.status == "UPDATE_COMPLETE"
    master = next(stack for stack in operator.cloud.engine.stacks() if "MasterStack" in stack.name)
    assert "AWS::EC2::NetworkInterface" in operator.cloud.engine.stack(master.id).policy


def interrupt() -> None:
    raise KeyboardInterrupt
