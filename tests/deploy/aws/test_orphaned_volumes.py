"""Volumes and snapshots that Kubernetes made for claims: whose they are, and that nothing else is deleted with them."""

from __future__ import annotations

from collections.abc import Iterator

import made_by_kubernetes as made
import pytest
from in_moto import in_moto

from cfngen.deploy.aws import volumes
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.stacks import ResourceView, StackResource
from cfngen.deploy.messages.message import Message
from cfngen.deploy.operations.deletion import removal
from cfngen.deploy.operations.deletion.removal import OrphanRemoved

SCOPE = Inventory("one")


@pytest.fixture
def account() -> Iterator[Account]:
    with in_moto() as (opened, _):
        yield opened


def there(account: Account) -> set[str]:
    return {volume["VolumeId"] for volume in account.client("ec2").describe_volumes()["Volumes"]}


@pytest.mark.parametrize(
    "tags",
    [
        made.claimed("one"),
        {"ebs.csi.aws.com/cluster": "true", "kubernetes.io/cluster/one": "owned"},
        {"ebs.csi.aws.com/cluster": "true", "ebs.csi.aws.com/cluster-name": "one"},
        {"KubernetesCluster": "one", "kubernetes.io/created-for/pvc/name": "old"},
    ],
)
def test_a_volume_that_names_the_cluster_is_the_clusters(account: Account, tags: dict[str, str]) -> None:
    mine = made.volume(account, tags, size=20)
    [found] = volumes.find_claim_volumes(account, SCOPE)
    assert (found.kind, found.id, found.gigabytes) == ("volume", mine, 20)
    assert removal.remove_volumes(account, [found], lambda message: None) == ()
    assert there(account) == set()


@pytest.mark.parametrize(
    "tags",
    [
        made.claimed("two"),
        made.claimed("one") | {"kubernetes.io/cluster/two": "owned"},
        made.claimed("one") | {"kubernetes.io/cluster/one": "shared"},
        {"ebs.csi.aws.com/cluster": "true"},
        {"kubernetes.io/cluster/one": "owned", "Name": "one-master-a-data", "k8s.io/role/master": "1"},
        {"kubernetes.io/cluster/one": "owned", "CSIVolumeName": "x", "cfngen:cluster": "one"},
        {},
    ],
)
def test_a_volume_of_others_of_a_stack_or_of_nobody_is_not(account: Account, tags: dict[str, str]) -> None:
    made.volume(account, tags)
    assert volumes.find_claim_volumes(account, SCOPE) == ()


def test_what_a_stack_made_is_no_leftover_even_if_it_looks_like_one(account: Account) -> None:
    mine = made.volume(account, made.claimed("one"))
    view = ResourceView("MasterAVolume", mine, "AWS::EC2::Volume", "DELETE_SKIPPED")
    assert volumes.find_claim_volumes(account, Inventory("one", (StackResource("arn", (), view),))) == ()


def test_a_volume_that_names_no_cluster_is_known_by_the_instance_that_has_it(account: Account) -> None:
    ec2 = account.client("ec2")
    image = ec2.register_image(Name="image")["ImageId"]
    launched = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, Placement={"AvailabilityZone": "us-west-2a"})
    instance = launched["Instances"][0]["InstanceId"]
    mine, other = (
        made.volume(account, {"ebs.csi.aws.com/cluster": "true", "CSIVolumeName": "x"}),
        made.volume(account, {}),
    )
    for device, each in (("/dev/sdf", mine), ("/dev/sdg", other)):
        ec2.attach_volume(VolumeId=each, InstanceId=instance, Device=device)
    scope = Inventory("one", instances={instance: "running"})
    assert [volume.id for volume in volumes.find_claim_volumes(account, scope)] == [mine]
    assert volumes.find_unattributed(account, scope) == ()


def test_a_volume_nobody_can_place_is_named_and_left(account: Account) -> None:
    lost = made.volume(account, {"ebs.csi.aws.com/cluster": "true", "CSIVolumeName": "pvc-1"})
    made.volume(account, made.claimed("two"))
    [found] = volumes.find_unattributed(account, SCOPE)
    assert (found.id, found.name) == (lost, "pvc-1")


def test_the_claim_is_named(account: Account) -> None:
    made.volume(account, made.claimed("one", "data-db-0"))
    [found] = volumes.find_claim_volumes(account, SCOPE)
    assert found.purpose == "claim shop/data-db-0"


def test_a_volume_that_is_leaving_its_instance_is_waited_for(account: Account) -> None:
    ec2 = account.client("ec2")
    mine = made.volume(account, made.claimed("one"))
    image = ec2.register_image(Name="image")["ImageId"]
    launched = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, Placement={"AvailabilityZone": "us-west-2a"})
    instance = launched["Instances"][0]["InstanceId"]
    ec2.attach_volume(VolumeId=mine, InstanceId=instance, Device="/dev/sdf")
    start = account.clock.now()
    told: list[Message] = []
    [left] = removal.remove_volumes(account, volumes.find_claim_volumes(account, SCOPE), told.append)
    assert (left.id, told) == (mine, [])
    assert (account.clock.now() - start).total_seconds() >= removal.VOLUME_TIMEOUT_SECONDS
    ec2.detach_volume(VolumeId=mine, InstanceId=instance)
    assert removal.remove_volumes(account, [left], told.append) == ()
    assert told == [OrphanRemoved(left)]


def test_snapshots_of_claims_are_told_from_those_of_stacks_and_others(account: Account) -> None:
    ec2 = account.client("ec2")
    volume = made.volume(account, {})
    taken = {}
    for name, tags in {
        "mine": {"CSIVolumeSnapshotName": "snapcontent-1", "kubernetes.io/cluster/one": "owned"},
        "theirs": {"CSIVolumeSnapshotName": "snapcontent-2", "kubernetes.io/cluster/two": "owned"},
        "backup": {"kubernetes.io/cluster/one": "owned"},
    }.items():
        taken[name] = ec2.create_snapshot(
            VolumeId=volume, TagSpecifications=[{"ResourceType": "snapshot", "Tags": made.pairs(tags)}]
        )["SnapshotId"]
    [found] = volumes.find_claim_snapshots(account, SCOPE)
    assert (found.kind, found.id) == ("snapshot", taken["mine"])
    assert removal.remove_volumes(account, [found], lambda message: None) == ()
    left = {snapshot["SnapshotId"] for snapshot in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]}
    assert left == {taken["theirs"], taken["backup"]}
