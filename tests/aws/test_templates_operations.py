"""What an operator lives through with our templates: parameters, failures, deletion."""

from __future__ import annotations

import json

import pytest
from clusters import (
    ALLOWED,
    BOOT_SECONDS,
    describe,
    golden,
    inventory,
    leftovers,
    prepared,
    resources,
    running_instances,
)

from cfngen.sandbox.cloudformation import CloudFormation, ValidationError, client

FORMS = ("standalone", "cluster")
REGION = "us-west-2"


@pytest.mark.parametrize("form", FORMS)
def test_deletion_leaves_nothing_but_a_snapshot_of_the_masters_volume(form: str) -> None:
    where = prepared(golden("imported-key"))
    before = inventory(REGION)
    stack = where.create(form)
    volume = resources(stack)["MasterAVolume"].physical_id
    assert where.delete(stack).status == "DELETE_COMPLETE"
    gone = leftovers(where, before)
    assert set(gone) == {"snapshots"}
    assert describe(where, "snapshots", OwnerIds=["self"], SnapshotIds=[*gone["snapshots"]])["VolumeId"] == volume


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("group", "waiting"),
    [("MasterAAutoScalingGroup", "MasterAWaitCondition"), ("NodeGroupNodesAutoScalingGroup",) * 2],
)
def test_a_failed_boot_rolls_everything_back_at_once(form: str, group: str, waiting: str) -> None:
    where = prepared(golden("default"), **{group: "FAILURE"})
    before = inventory(REGION)
    stack = where.create(form)
    assert stack.status == "ROLLBACK_COMPLETE"
    begun = next(event.time for event in stack.events if event.status == "ROLLBACK_IN_PROGRESS")
    assert (begun - stack.events[0].time).total_seconds() == BOOT_SECONDS
    assert set(leftovers(where, before)) == {"snapshots"}
    events = [event for each in (stack, *stack.children.values()) for event in each.events]
    [failed] = [event for event in events if event.logical_id == waiting and event.status == "CREATE_FAILED"]
    assert failed.reason.startswith("Received FAILURE signal with UniqueId i-")


def test_a_silent_master_is_given_up_after_its_time() -> None:
    where = prepared(golden("default"), MasterAAutoScalingGroup=None)
    stack = where.create("standalone")
    assert stack.status == "ROLLBACK_COMPLETE"
    given_up = next(event for event in stack.events if event.status == "ROLLBACK_IN_PROGRESS")
    assert (given_up.time - stack.events[0].time).total_seconds() == 20 * 60
    assert "MasterAWaitCondition" in given_up.reason


def test_nodes_are_not_kept_waiting_for_the_master() -> None:
    where = prepared(golden("default"), MasterAAutoScalingGroup=None)
    stack = where.create("cluster")
    assert stack.children["NodeGroupNodesStack"].events[-1].status == "DELETE_COMPLETE"
    complete = [
        event
        for event in stack.events
        if event.logical_id == "NodeGroupNodesStack" and event.status == "CREATE_COMPLETE"
    ]
    assert (complete[0].time - stack.events[0].time).total_seconds() == BOOT_SECONDS


@pytest.mark.parametrize("form", FORMS)
def test_the_range_of_the_api_must_be_given(form: str) -> None:
    where = prepared(golden("default"))
    before = inventory(REGION)
    parameters = {"TemplateBucket": "some-bucket"} if form == "cluster" else {}
    with pytest.raises(ValidationError, match=r"Parameters: \[ApiAllowedCidr\] must have values"):
        where.cloud.create_stack("k8s", url=where.url(form), parameters=parameters, capabilities=["CAPABILITY_IAM"])
    assert leftovers(where, before) == {}


@pytest.mark.parametrize("form", FORMS)
def test_another_region_is_refused(form: str) -> None:
    where = prepared(golden("default"))
    parameters = {"ApiAllowedCidr": ALLOWED, "ZoneA": "eu-west-1a"}
    if form == "cluster":
        parameters["TemplateBucket"] = "some-bucket"
    ireland = CloudFormation("eu-west-1", parameter_store=where.images)
    s3 = client("s3", "eu-west-1")
    s3.create_bucket(Bucket="in-ireland", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.put_object(Bucket="in-ireland", Key="x.json", Body=json.dumps(where.templates[form]).encode())
    url = "https://in-ireland.s3.eu-west-1.amazonaws.com/x.json"
    with pytest.raises(ValidationError, match="generated for us-west-2; switch the console to that region"):
        ireland.create_stack("k8s", url=url, parameters=parameters, capabilities=["CAPABILITY_IAM"])


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ApiAllowedCidr", "anywhere", "must be an IPv4 CIDR"),
        ("MasterInstanceType", "t3.nano", "at least 2 vCPU"),
        ("MasterInstanceType", "m7g.large", "amd64"),
        ("MasterVolumeSize", "0", "not less than 1"),
        ("MasterVolumeType", "st1", "AllowedValues"),
        ("ApiAllowedCidr", "999.0.0.0/99", "must be an IPv4 CIDR"),
        ("VpcCidr", "10.0.0.0/8", "must be an IPv4 CIDR from /16 to /28"),
        ("MasterAAddress", "172.20.0.256", "must be an IPv4 address"),
        (
            "NodeGroupNodesMinSize",
            "5",
            "must be from 0 to 4, the maxSize of the cluster file; pass NodeGroupNodesMinSize=4,",
        ),
        (
            "NodeGroupNodesMaxSize",
            "3",
            "must be from 4, the maxSize of the cluster file, to 5000; pass NodeGroupNodesMaxSize=4,",
        ),
        ("NodeGroupNodesMaxSize", "many", "must be"),
        ("MasterImageUbuntu2404Amd64", "/no/such/image", "parameter store"),
    ],
)
def test_a_value_that_cannot_work_is_refused_before_anything_is_created(name: str, value: str, says: str) -> None:
    where = prepared(golden("default"))
    with pytest.raises(ValidationError, match=says):
        where.create("standalone", **{name: value})


def test_what_is_changed_in_the_console_is_honoured() -> None:
    where = prepared(golden("default"))
    stack = where.create(
        "cluster",
        MasterInstanceType="m7i.large",
        NodeGroupNodesInstanceType="c7i.xlarge",
        NodeGroupNodesMinSize="2",
        NodeGroupNodesMaxSize="9",
        MasterVolumeSize="50",
        MasterAAddress="172.20.0.77",
        NodeGroupNodesRootVolumeSize="100",
    )
    assert stack.status == "CREATE_COMPLETE", stack.reason
    found = resources(stack)
    types = [running_instance["InstanceType"] for running_instance in running_instances(REGION).values()]
    assert sorted(types) == ["c7i.xlarge", "c7i.xlarge", "m7i.large"]
    autoscaling = client("autoscaling", REGION)
    name = found["NodeGroupNodesAutoScalingGroup"].physical_id
    [group] = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    assert (group["MinSize"], group["MaxSize"]) == (2, 9)
    assert describe(where, "volumes", VolumeIds=[found["MasterAVolume"].physical_id])["Size"] == 50
    told = {reference["resource"]: reference for reference in where.machines.references}
    assert told["MasterAAutoScalingGroup"]["privateAddress"] == "172.20.0.77"
    data = found["NodeGroupNodesLaunchTemplate"].properties["LaunchTemplateData"]
    assert data["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 100


def test_another_network_in_the_console() -> None:
    where = prepared(golden("default"))
    stack = where.create(
        "standalone", VpcCidr="10.0.0.0/16", SubnetACidr="10.0.1.0/24", ZoneA="us-west-2b", MasterAAddress="10.0.1.10"
    )
    assert stack.status == "CREATE_COMPLETE", stack.reason
    found = resources(stack)
    assert describe(where, "subnets", SubnetIds=[found["SubnetA"].physical_id])["CidrBlock"] == "10.0.1.0/24"
    assert (
        describe(where, "volumes", VolumeIds=[found["MasterAVolume"].physical_id])["AvailabilityZone"] == "us-west-2b"
    )


@pytest.mark.parametrize("address", ["172.21.0.9", "172.20.0.3", "172.20.0.255"])
def test_an_address_the_subnet_cannot_give_rolls_everything_back(address: str) -> None:
    where = prepared(golden("default"))
    before = inventory(REGION)
    stack = where.create("standalone", MasterAAddress=address)
    assert stack.status == "ROLLBACK_COMPLETE"
    [failed] = [event for event in stack.events if event.status == "CREATE_FAILED" and "address range" in event.reason]
    assert failed.logical_id == "MasterANetworkInterface"
    assert set(leftovers(where, before)) <= {"snapshots"}


def test_no_nodes_at_first() -> None:
    where = prepared(golden("default"))
    stack = where.create("standalone", NodeGroupNodesMinSize="0")
    assert stack.status == "CREATE_COMPLETE"
    assert len(where.machines.references) == 1


def test_two_clusters_side_by_side() -> None:
    where = prepared(golden("default"))
    assert where.create("standalone", name="one").status == "CREATE_COMPLETE"
    assert where.create("cluster", name="two").status == "CREATE_COMPLETE"


def test_the_longest_stack_name_still_fits_user_data() -> None:
    where = prepared(golden("default"))
    stack = where.create("cluster", name="k" * 128)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    assert {len(reference["stack"]) for reference in where.machines.references} == {128}
