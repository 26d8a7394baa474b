"""Deleting a cluster: nothing stays but what was announced, and nobody else's things are touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import made_by_kubernetes as made
import pytest
from botocore.exceptions import ClientError
from cloud import Cloud, cloud_of
from clusters import golden, inventory, landlord, resources
from deleting import NAME, OURS, REGION, Operator, created, place_of
from deployments import Operator as Deployer
from made_by_kubernetes import Place

from cfngen.deploy.aws.account import connect
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Event, Notice, Report
from cfngen.deploy.operations.deletion.execution import preview_with_refusal
from cfngen.deploy.operations.deletion.removal import OrphanRemoved
from cfngen.deploy.operations.deletion.stack_removal import DeletionFailed
from cfngen.deploy.operations.deletion.template_bucket import TemplatesInUseError
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.plan.deletion.plan import DeletionRequest
from cfngen.deploy.preflight.blockers import OccupiedError
from cfngen.deploy.preflight.stack_checks import BusyError, ForeignStackError, SameNameClusterError
from cfngen.deploy.watching.diagnosis import diagnose
from cfngen.errors import CfngenError
from cfngen.sandbox.moto_patches.dependencies import refuse_dependency_violations as dependencies

pytestmark = pytest.mark.drill


@pytest.fixture(autouse=True)
def _ec2() -> Iterator[None]:
    with dependencies():
        yield


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(connect(cloud.session, REGION, clock=cloud.clock))


def left(before: dict[str, set[str]]) -> dict[str, set[str]]:
    after = inventory(REGION)
    return {kind: after[kind] - before[kind] for kind in after if after[kind] - before[kind]}


def test_snapshots_of_masters_whose_addition_was_rolled_back_are_named(cloud: Cloud, operator: Operator) -> None:
    """Their volumes are in the stack's events alone by then."""
    before = inventory(REGION)
    created(cloud)
    cloud.engine.fail("MasterBAutoScalingGroup", "no capacity", during="CREATE")
    deployer = Deployer(cloud)
    assert deployer.deploy({"controlPlane": {"count": 3}}).status == "UPDATE_ROLLBACK_COMPLETE"
    assert len(left(before)["snapshots"]) == 2
    deleted = operator.deletes()
    named = {each.id for each in deleted.retained if each.kind == "snapshot"}
    assert len(named) == 3
    assert named == left(before)["snapshots"]


@pytest.mark.parametrize("form", ["standalone", "cluster"])
def test_nothing_stays_but_what_was_announced(cloud: Cloud, operator: Operator, form: str) -> None:
    before = inventory(REGION)
    stack = created(cloud, form)
    volume, key, bucket = (
        resources(stack)[each].physical_id for each in ("MasterAVolume", "SecretsKey", "BackupBucket")
    )
    announced = preview_with_refusal(operator.account, DeletionRequest(NAME, NAME))[0]
    deleted = operator.deletes()
    assert (deleted.succeeded, deleted.status, deleted.orphans) == (True, "", ())
    rest = left(before)
    assert set(rest) == {"snapshots"}
    assert [each.id for each in deleted.retained] == [*rest["snapshots"], key, bucket]
    stays = [("snapshot", f"one of {volume}"), ("KMS key", key), ("bucket of etcd's snapshots", bucket)]
    assert [(each.kind, each.id) for each in announced.retained] == stays
    assert {each.kind for each in deleted.counted} >= {"roles", "instance profiles", "DHCP options", "Elastic IPs"}
    assert all(not each.left for each in deleted.counted)
    [question] = operator.questions
    assert (question.dangerous, question.name) == (True, NAME)
    assert all(each.command for each in deleted.retained if each.kind == "snapshot")


def test_the_duration_is_that_of_the_deletion_and_not_of_the_question(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    cloud.engine.durations["*"] = 10

    def slowly(question: object) -> bool:
        cloud.clock.sleep(3600)
        return True

    operator.answers = slowly
    deleted = operator.deletes()
    events = operator.heard(Event)
    assert deleted.seconds == (events[-1].time - events[0].time).total_seconds()
    assert 0 < deleted.seconds < 1800


def test_the_survey_changes_nothing(cloud: Cloud, operator: Operator) -> None:
    made.classic(place_of(created(cloud), operator.account), NAME)
    before = inventory(REGION), made.balancer_names(operator.account)
    cloud.faults.calls.clear()
    found = preview_with_refusal(operator.account, DeletionRequest(NAME, NAME))[0]
    reads = ("Describe", "List", "Get")
    assert [each.operation for each in cloud.faults.calls if not each.operation.startswith(reads)] == []
    assert (inventory(REGION), made.balancer_names(operator.account)) == before
    assert {each.kind for each in found.removed} == {"load balancer", "security group"}
    parts = {each.kind: len(each.ids) for each in found.deleted_parts}
    assert (parts["instances"], parts["secrets"], parts["nested stacks"]) == (5, 2, 6)
    assert len(found.authorities) == 1


def test_a_declined_deletion_changes_nothing(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    before = inventory(REGION)
    operator.answers = lambda question: False
    with pytest.raises(DeclinedError):
        operator.deletes()
    assert inventory(REGION) == before
    assert find_stack(operator.account, NAME) is not None


@pytest.mark.parametrize("form", ["standalone", "cluster"])
def test_what_kubernetes_made_goes_before_the_network(cloud: Cloud, operator: Operator, form: str) -> None:
    before = inventory(REGION)
    place = place_of(created(cloud, form), operator.account)
    balancers = (made.classic(place, NAME), made.network(place, NAME, protected=True), made.by_controller(place, NAME))
    made.interface(place, "aws-K8S-i-0123456789abcdef0")
    deleted = operator.deletes()
    assert deleted.succeeded
    assert {each.id for each in balancers} <= {each.id for each in deleted.removed}
    assert made.balancer_names(operator.account) == set()
    assert set(left(before)) == {"snapshots"}
    assert len(operator.heard(DeletionFailed)) == 0
    assert "3 load balancers" in " ".join(operator.questions[0].consequences)


def test_a_second_cluster_in_another_vpc_is_untouched(cloud: Cloud, operator: Operator) -> None:
    mine = place_of(created(cloud), operator.account)
    other = made.new_place(operator.account, "two", "10.9.0.0/16")
    theirs, volume = made.classic(other, "two"), made.volume(operator.account, made.claimed("two"))
    made.classic(mine, NAME, "default/own")
    before = inventory(REGION)
    deleted = operator.deletes(delete_volumes=True)
    assert deleted.succeeded
    assert made.balancer_names(operator.account) == {theirs.name}
    assert {theirs.group, other.node_group} <= made.group_ids(operator.account)
    after = inventory(REGION)
    assert volume in after["volumes"]
    assert other.vpc_id in after["VPCs"]
    assert mine.vpc_id in before["VPCs"] - after["VPCs"]


def test_volumes_of_claims_stay_unless_told(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    volume = made.volume(operator.account, made.claimed(NAME), size=100)
    deleted = operator.deletes()
    assert deleted.succeeded
    [stays] = [each for each in deleted.retained if each.id == volume]
    assert "100 GiB" in stays.cost
    assert stays.command == f"aws ec2 delete-volume --volume-id {volume} --region {REGION}"
    consequences = operator.questions[0].consequences
    assert any("1 volume of claims remains, and continues to be billed" in sentence for sentence in consequences)
    again = operator.deletes(delete_volumes=True)
    assert again.succeeded
    assert volume not in inventory(REGION)["volumes"]
    assert [each.id for each in again.removed] == [volume]


def test_a_volume_that_cannot_be_deleted_is_no_success(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    volume = made.volume(operator.account, made.claimed(NAME))
    cloud.faults.refuse("ec2:DeleteVolume", "VolumeInUse", "it is attached", times=float("inf"))
    deleted = operator.deletes(delete_volumes=True)
    assert (deleted.succeeded, [each.id for each in deleted.orphans]) == (False, [volume])
    assert volume not in {each.id for each in deleted.retained}


def test_kubernetes_is_asked_first(cloud: Cloud, operator: Operator) -> None:
    place = place_of(created(cloud), operator.account)
    balancer = made.classic(place, NAME)

    def drain(report: Report) -> tuple[str, ...]:
        operator.account.client("elb").delete_load_balancer(LoadBalancerName=balancer.name)
        return ()

    deleted = operator.deletes(drain=drain)
    assert deleted.succeeded
    assert [each.id for each in deleted.removed] == [balancer.group]


def test_an_api_that_does_not_answer_is_no_obstacle(cloud: Cloud, operator: Operator) -> None:
    made.classic(place_of(created(cloud), operator.account), NAME)

    def drain(report: Report) -> tuple[str, ...]:
        raise CfngenError("nobody answers")

    assert operator.deletes(drain=drain).succeeded
    assert any("nobody answers" in each.text for each in operator.heard(Notice))


def test_what_kubernetes_makes_while_the_stack_goes_is_found(cloud: Cloud, operator: Operator) -> None:
    place = place_of(created(cloud), operator.account)
    cloud.engine.durations |= {"AWS::AutoScaling::AutoScalingGroup": 120, "AWS::EC2::SecurityGroup": 60}
    cloud.faults.before("cloudformation:DeleteStack", lambda: made.classic(place, NAME))
    deleted = operator.deletes()
    assert deleted.succeeded
    assert len(operator.heard(DeletionFailed)) == 0
    assert made.balancer_names(operator.account) == set()


def test_interfaces_that_aws_keeps_too_long_only_cost_a_round(cloud: Cloud, operator: Operator) -> None:
    place = place_of(created(cloud), operator.account)
    created_late: list[str] = []

    def appear() -> None:
        balancer = made.classic(place, NAME)
        created_late.append(made.interface(place, f"ELB {balancer.name}", balancer.group))

    cloud.faults.before("cloudformation:DeleteStack", appear)
    deleted = operator.deletes()
    assert deleted.succeeded
    [failed] = operator.heard(DeletionFailed)
    assert failed.round == 1
    assert any(each.type in ("AWS::EC2::Subnet", "AWS::EC2::SecurityGroup") for each in failed.undeleted)
    assert created_late


def test_a_stack_from_which_others_import_stays_as_it_was(cloud: Cloud, operator: Operator) -> None:
    stack = created(cloud)
    stack.exports = {"network": "10.0.0.0/16"}
    importing = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": {"Fn::ImportValue": "network"}}}
    cloud.engine.wait(cloud.engine.create_stack("shop", body=json.dumps({"Resources": {"Vpc": importing}})))
    deleted = operator.deletes(leave_behind=True)
    assert (deleted.succeeded, deleted.status) == (False, "CREATE_COMPLETE")
    assert len(operator.questions) == 1  # whether to delete the cluster at all
    assert [each.status for each in operator.heard(Event)] == ["DELETE_IN_PROGRESS", "CREATE_COMPLETE"]
    cause = diagnose(operator.account, NAME).cause
    assert cause is not None
    assert cause.event.reason == "Export network cannot be deleted as it is in use by shop"
    assert cause.explanation == "other stacks import network from this one"
    assert cause.hint == "remove the import from shop, or delete them first; then repeat."


def test_termination_protection_is_lifted_only_with_consent(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    cloud.engine.set_termination_protection(NAME, True)
    operator.answers = lambda question: False
    with pytest.raises(DeclinedError):
        operator.deletes()
    assert find_stack(operator.account, NAME).protected
    assert "its termination protection is disabled" in operator.questions[0].consequences
    operator.answers = lambda question: True
    assert operator.deletes().succeeded


def test_a_stack_of_others_is_refused(cloud: Cloud, operator: Operator) -> None:
    body = '{"Resources": {"Table": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}}}'
    cloud.engine.wait(cloud.engine.create_stack("shop", body=body))
    with pytest.raises(ForeignStackError, match="shop"):
        operator.deletes("shop")
    assert find_stack(operator.account, "shop") is not None


def test_another_clusters_stack_is_refused(cloud: Cloud, operator: Operator) -> None:
    created(cloud, tags={"cfngen:cluster": "prod"})
    with pytest.raises(ForeignStackError, match="prod"):
        operator.deletes()


@pytest.mark.parametrize("remains", ["nothing", "an empty stack", "what failed to be created"])
def test_a_mistyped_stack_name_costs_a_living_cluster_nothing(cloud: Cloud, operator: Operator, remains: str) -> None:
    balancer = made.classic(place_of(created(cloud), operator.account), NAME)
    if remains == "an empty stack":
        client = operator.account.client("cloudformation")
        body = '{"Resources": {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}}}'
        client.create_change_set(
            StackName="kubernets",
            ChangeSetName="one",
            ChangeSetType="CREATE",
            TemplateBody=body,
            Tags=made.pairs(OURS),
        )
    elif remains == "what failed to be created":
        cloud.engine.fail("Vpc", "no")
        cloud.account.create("cluster", name="kubernets").tags.update(OURS)
    with pytest.raises(SameNameClusterError, match="the cluster kubernetes already exists in the stack kubernetes"):
        operator.deletes("kubernets")
    assert made.balancer_names(operator.account) == {balancer.name}


@pytest.mark.parametrize("machines", [True, False], ids=["", "without machines"])
def test_no_advice_is_given_that_would_take_things_from_a_living_cluster(
    cloud: Cloud, operator: Operator, machines: bool
) -> None:
    made.classic(place_of(created(cloud), operator.account), NAME)
    volume = made.volume(operator.account, made.claimed(NAME))
    s3 = operator.account.client("s3")
    s3.create_bucket(Bucket="mine", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket="mine", Key=f"{NAME}/a/vpc.json", Body=b"{}")
    logs = f"/aws/containerinsights/{NAME}/application"
    operator.account.client("logs").create_log_group(logGroupName=logs)
    if not machines:
        ec2 = operator.account.client("ec2")
        running = [each for page in ec2.describe_instances()["Reservations"] for each in page["Instances"]]
        ec2.terminate_instances(InstanceIds=[each["InstanceId"] for each in running])
    before = inventory(REGION)
    found, refusal = preview_with_refusal(
        operator.account, DeletionRequest("fresh", NAME, bucket="mine", pod_cidr="10.244.0.0/16")
    )
    assert isinstance(refusal, SameNameClusterError)
    assert (found.removed, found.volumes, found.retained) == ((), (), ())
    assert {volume, f"s3://mine/{NAME}/", logs} <= {each.id for each in found.foreign_resources}
    assert not any(each.command for each in found.foreign_resources)
    assert found.name_conflict == f"the cluster {NAME} already exists in the stack {NAME}"
    for wish in ({"delete_volumes": True}, {"empty_bucket": True, "bucket": "mine"}):
        with pytest.raises((SameNameClusterError, TemplatesInUseError), match=f"stack {NAME}"):
            operator.deletes("fresh", **wish)
    assert inventory(REGION) == before


def living(cloud: Cloud, operator: Operator) -> None:
    """A cluster whose tag has reached its security groups, as CloudFormation passes on those of stacks."""
    stack = created(cloud)
    names = ("MasterSecurityGroup", "NodeSecurityGroup", "NodeGroupNodesSecurityGroup")
    groups = [resources(stack)[each].physical_id for each in names]
    operator.account.client("ec2").create_tags(Resources=groups, Tags=made.pairs(OURS))


def test_nothing_of_a_misnamed_stack_is_to_be_deleted(cloud: Cloud, operator: Operator) -> None:
    living(cloud, operator)
    made.volume(operator.account, made.claimed(NAME))
    deleted = operator.deletes("fresh")
    assert (deleted.succeeded, deleted.retained, operator.questions) == (True, (), [])
    assert deleted.name_conflict == f"the cluster {NAME} already exists in the stack {NAME}"


def test_who_may_not_see_other_stacks_still_learns_of_running_namesakes(cloud: Cloud, operator: Operator) -> None:
    living(cloud, operator)
    volume = made.volume(operator.account, made.claimed(NAME))
    listing = operator.account.client("cloudformation")
    listing.meta.events.register("before-call.cloudformation.DescribeStacks", _only_by_name)
    found, _ = preview_with_refusal(operator.account, DeletionRequest("fresh", NAME))
    assert "instances of a cluster named kubernetes run outside of this stack" in found.name_conflict
    assert ([each.id for each in found.foreign_resources], found.retained) == ([volume], ())


def _only_by_name(params: dict[str, Any], **_: Any) -> None:
    if "StackName" not in params["body"]:
        answer = {"Error": {"Code": "AccessDenied", "Message": "not on all stacks"}}
        raise ClientError(answer, "DescribeStacks")


@pytest.mark.parametrize("wish", ["", "empty_bucket"])
def test_a_rehearsal_refuses_what_the_deletion_would(cloud: Cloud, operator: Operator, wish: str) -> None:
    stack = created(cloud)
    if wish:
        body = '{"Resources": {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.7.0.0/16"}}}}'
        other = cloud.engine.wait(cloud.engine.create_stack("staging", body=body))
        other.tags.update(OURS)
    else:
        stack.status = "UPDATE_IN_PROGRESS"
    wishes = {wish: True} if wish else {}
    _, refusal = preview_with_refusal(
        operator.account, DeletionRequest(NAME, NAME, bucket="mine" if wish else "", **wishes)
    )
    assert type(refusal) is (TemplatesInUseError if wish else BusyError)
    assert ("also used by the stack staging" if wish else "another operation is in progress") in str(refusal)


def test_a_part_of_a_cluster_is_refused(cloud: Cloud, operator: Operator) -> None:
    stack = created(cloud)
    with pytest.raises(ForeignStackError, match="is a nested stack"):
        operator.deletes(stack.children["VpcStack"].name)


def test_a_stack_made_in_the_console_is_known_by_its_template(cloud: Cloud, operator: Operator) -> None:
    created(cloud, "standalone", tags={})
    assert operator.deletes().succeeded
    assert "not by `cfngen deploy`" in operator.questions[0].text


def test_others_in_the_network_are_named_before_anything_is_lost(cloud: Cloud, operator: Operator) -> None:
    stack = created(cloud)
    place = place_of(stack, operator.account)
    image = next(iter(cloud.account.images.values()))
    tags = [{"ResourceType": "instance", "Tags": made.pairs({"kubernetes.io/cluster/two": "owned", "Name": "guest"})}]
    guest = place.ec2.run_instances(
        ImageId=image, MinCount=1, MaxCount=1, SubnetId=place.subnet_id, TagSpecifications=tags
    )["Instances"][0]["InstanceId"]
    before = inventory(REGION)
    with pytest.raises(OccupiedError) as refused:
        operator.deletes()
    assert [(each.id, each.what) for each in refused.value.blockers] == [(guest, "instance guest of the cluster two")]
    assert inventory(REGION) == before
    assert operator.questions == []


def test_a_rule_of_others_that_names_the_nodes_is_named_before(cloud: Cloud, operator: Operator) -> None:
    place = place_of(created(cloud), operator.account)
    database = made.security_group(place, "database", {})
    made.admit(operator.account, database, place.node_group)
    with pytest.raises(OccupiedError, match=f"{database}: security group database has rules that refer to"):
        operator.deletes()


def test_an_existing_network_is_left_as_it_was() -> None:
    with cloud_of(golden("existing-vpc")) as cloud:
        account = connect(cloud.session, REGION, clock=cloud.clock)
        guest = Operator(account)
        lent = landlord(cloud.account)
        names = cloud.account.templates["standalone"]["Parameters"]
        stack = created(
            cloud,
            "standalone",
            "shared",
            {"cfngen:cluster": "shared"},
            **{key: value for key, value in lent.items() if key in names},
        )
        found = resources(stack)
        place = Place(account, lent["VpcId"], lent["SubnetAId"], found["NodeSecurityGroup"].physical_id)
        theirs = made.classic(place, "other", "default/other")
        made.classic(place, "shared")
        group = found["NodeGroupNodesAutoScalingGroup"].physical_id
        scaling = account.client("autoscaling")
        [described] = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
        node = described["Instances"][0]["InstanceId"]
        place.ec2.create_route(RouteTableId=lent["RouteTableId"], DestinationCidrBlock="10.244.3.0/24", InstanceId=node)
        deleted = guest.deletes("shared", cluster="shared", vpc_id=lent["VpcId"])
        assert deleted.succeeded, deleted
        assert made.balancer_names(account) == {theirs.name}
        [table] = place.ec2.describe_route_tables(RouteTableIds=[lent["RouteTableId"]])["RouteTables"]
        assert "10.244.3.0/24" not in [each["DestinationCidrBlock"] for each in table["Routes"]]
        kept = {each.id for each in deleted.retained if each.why.startswith("yours")}
        assert {lent["VpcId"], lent["SubnetAId"], lent["SubnetBId"], lent["RouteTableId"]} <= kept
        assert lent["VpcId"] in inventory(REGION)["VPCs"]


def test_another_operation_is_not_disturbed(cloud: Cloud, operator: Operator) -> None:
    stack = created(cloud)
    stack.status = "UPDATE_IN_PROGRESS"
    with pytest.raises(BusyError):
        operator.deletes()


def test_a_cluster_that_never_was_leaves_nothing_to_do(operator: Operator) -> None:
    deleted = operator.deletes()
    assert (deleted.succeeded, deleted.stack_id, operator.questions) == (True, "", [])


def test_leftovers_of_a_stack_that_is_gone_are_found(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    assert operator.deletes().succeeded
    elsewhere = made.new_place(operator.account, NAME, "10.9.0.0/16")
    operator.account.client("ec2").create_tags(
        Resources=[elsewhere.node_group], Tags=made.pairs({f"kubernetes.io/cluster/{NAME}": "owned"} | OURS)
    )
    balancer = made.classic(elsewhere, NAME)
    again = operator.deletes()
    assert again.succeeded
    assert {removed.orphan.id for removed in operator.heard(OrphanRemoved)} == {balancer.id, balancer.group}
    assert operator.questions[-1].text == f"Delete what is left of the cluster {NAME}?"
    assert [each.kind for each in again.retained] == ["snapshot", "KMS key", "bucket of etcd's snapshots"]


def test_the_clusters_templates_go_if_told(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    s3 = operator.account.client("s3")
    s3.create_bucket(Bucket="mine", CreateBucketConfiguration={"LocationConstraint": REGION})
    for key in (f"{NAME}/a/vpc.json", "other/a/vpc.json"):
        s3.put_object(Bucket="mine", Key=key, Body=b"{}")
    deleted = operator.deletes(bucket="mine", empty_bucket=True, delete_bucket=True)
    assert (deleted.succeeded, deleted.objects, deleted.bucket_deleted) == (True, 1, False)
    assert [each["Key"] for each in s3.list_objects_v2(Bucket="mine")["Contents"]] == ["other/a/vpc.json"]
