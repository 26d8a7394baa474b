"""Volumes of claims: which calls find them, what each is told by, how long one may take to leave its instance."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers, pairs
from aws_descriptions import OWNED, resource
from recorded import RefusedError

from cfngen.deploy.aws import tags as kubernetes_tags
from cfngen.deploy.aws import volumes
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.messages.message import Message
from cfngen.deploy.operations.deletion import removal
from cfngen.deploy.operations.deletion.removal import OrphanRemoved

CSI = {"ebs.csi.aws.com/cluster": "true", "CSIVolumeName": "pvc-1"}
CLAIM = {"kubernetes.io/created-for/pvc/name": "data", "kubernetes.io/created-for/pvc/namespace": "shop"}


def volume(identity: str = "vol-1", **tags: str) -> dict[str, Any]:
    return {"VolumeId": identity, "Size": 8, "Tags": pairs(tags)}


def answer_by_filter(aws: Answers, **volumes_of: list[dict[str, Any]]) -> None:
    """Volumes by the filter that finds them: `tagged`, `legacy`, `driver`, `attached`, `unattached`."""
    names = {
        "tag:kubernetes.io/cluster/one": "tagged",
        "tag:KubernetesCluster": "legacy",
        "tag:ebs.csi.aws.com/cluster-name": "driver",
        "attachment.instance-id": "attached",
        "tag:ebs.csi.aws.com/cluster": "unattached",
    }

    def describe(sent: dict[str, Any]) -> dict[str, Any]:
        return {"Volumes": volumes_of.get(names[sent["Filters"][0]["Name"]], [])}

    aws.given["ec2:DescribeVolumes"] = describe


@pytest.mark.parametrize("place", ["tagged", "legacy", "driver"])
def test_a_volume_is_found_by_whatever_names_the_cluster(aws: Answers, place: str) -> None:
    named = {"tagged": OWNED, "legacy": {"KubernetesCluster": "one"}, "driver": {"ebs.csi.aws.com/cluster-name": "one"}}
    answer_by_filter(aws, **{place: [volume(**CSI, **named[place])]})
    assert volumes.find_claim_volumes(aws.account, Inventory("one")) == (
        OrphanedResource("volume", "vol-1", "pvc-1", gigabytes=8),
    )
    assert [each["Filters"] for each in aws.named("ec2:DescribeVolumes")] == [
        [{"Name": "tag:kubernetes.io/cluster/one", "Values": ["owned"]}],
        [{"Name": "tag:KubernetesCluster", "Values": ["one"]}],
        [{"Name": "tag:ebs.csi.aws.com/cluster-name", "Values": ["one"]}],
    ]


def test_a_volume_that_is_found_twice_is_one_and_claims_are_in_order(aws: Answers) -> None:
    both = volume("vol-2", **CSI, **CLAIM, **OWNED, KubernetesCluster="one", Name="named")
    answer_by_filter(aws, tagged=[both, volume("vol-1", **CSI, **OWNED)], legacy=[both], attached=[both])
    found = volumes.find_claim_volumes(aws.account, Inventory("one", instances={"i-1": "running"}))
    assert [(each.id, each.name, each.purpose) for each in found] == [
        ("vol-1", "pvc-1", ""),
        ("vol-2", "named", "claim shop/data"),
    ]


@pytest.mark.parametrize(
    ("tags", "taken"),
    [
        (CSI, True),
        ({"ebs.csi.aws.com/cluster": "true"}, True),
        (CLAIM, True),
        ({"kubernetes.io/created-for/pv/name": "pv-1"}, True),
        ({"CSIVolumeName": "pvc-1"}, True),
        ({"Name": "root disk"}, False),
        ({**CSI, "kubernetes.io/cluster/two": "owned"}, False),
        ({**CSI, "KubernetesCluster": "two"}, False),
        ({**CSI, "elbv2.k8s.aws/cluster": "two"}, False),
        ({**CSI, "cfngen:cluster": "one"}, False),
        ({**CSI, **OWNED}, True),
        ({**CSI, "kubernetes.io/cluster/one": "shared"}, False),
    ],
)
def test_what_an_instance_has_attached_is_a_claims_or_not(aws: Answers, tags: dict[str, str], taken: bool) -> None:
    answer_by_filter(aws, attached=[volume(**tags)])
    scope = Inventory("one", instances={"i-2": "running", "i-1": "running"})
    assert [volume.id for volume in volumes.find_claim_volumes(aws.account, scope)] == (["vol-1"] if taken else [])
    assert aws.named("ec2:DescribeVolumes")[-1]["Filters"][0]["Values"] == ["i-1", "i-2"]
    assert volumes.find_attached(aws.account, scope) == {"vol-1"}


@pytest.mark.parametrize(("number", "calls"), [(0, []), (200, [200]), (201, [200, 1])])
def test_attached_volumes_are_asked_for_two_hundred_at_a_time(aws: Answers, number: int, calls: list[int]) -> None:
    volumes.find_attached(aws.account, Inventory("one", instances={f"i-{each}": "running" for each in range(number)}))
    assert [len(each["Filters"][0]["Values"]) for each in aws.named("ec2:DescribeVolumes")] == calls


@pytest.mark.parametrize(
    ("tags", "named"),
    [
        (CSI, True),
        ({**CSI, "kubernetes.io/cluster/two": "owned"}, False),
        ({**CSI, "KubernetesCluster": "two"}, False),
        ({**CSI, "ebs.csi.aws.com/cluster-name": "two"}, False),
    ],
)
def test_only_what_names_no_cluster_at_all_is_unclear(aws: Answers, tags: dict[str, str], named: bool) -> None:
    answer_by_filter(aws, unattached=[volume(**tags)])
    expected = (OrphanedResource("volume", "vol-1", "pvc-1", gigabytes=8),) if named else ()
    assert volumes.find_unattributed(aws.account, Inventory("one")) == expected
    assert volumes.find_unattributed(aws.account, Inventory("one", (resource("vol-1"),))) == ()
    assert aws.named("ec2:DescribeVolumes")[0]["Filters"] == [
        {"Name": "tag:ebs.csi.aws.com/cluster", "Values": ["true"]},
        {"Name": "status", "Values": ["available"]},
    ]


@pytest.mark.parametrize(
    ("tags", "taken"),
    [
        ({"CSIVolumeSnapshotName": "snapcontent-1", **OWNED}, True),
        ({"CSIVolumeSnapshotName": "snapcontent-1", "ebs.csi.aws.com/cluster-name": "one"}, True),
        ({"CSIVolumeSnapshotName": "snapcontent-1", **OWNED, "cfngen:cluster": "one"}, False),
        ({"CSIVolumeSnapshotName": "snapcontent-1", "kubernetes.io/cluster/two": "owned"}, False),
        (OWNED, False),
    ],
)
def test_snapshots_of_claims_are_those_of_the_driver(aws: Answers, tags: dict[str, str], taken: bool) -> None:
    snapshot = {"SnapshotId": "snap-1", "VolumeSize": 20, "Tags": pairs(tags)}
    aws.given["ec2:DescribeSnapshots"] = {"Snapshots": [snapshot]}
    expected = (OrphanedResource("snapshot", "snap-1", "snapcontent-1", gigabytes=20),) if taken else ()
    assert volumes.find_claim_snapshots(aws.account, Inventory("one")) == expected
    assert {tuple(each["OwnerIds"]) for each in aws.named("ec2:DescribeSnapshots")} == {("self",)}


@pytest.mark.parametrize(("free_after", "remains"), [(0, False), (12, False), (300, False), (301, True)])
def test_a_volume_has_five_minutes_to_leave_its_instance(aws: Answers, free_after: float, remains: bool) -> None:
    began = aws.clock.now()

    def delete(sent: dict[str, Any]) -> dict[str, Any]:
        if (aws.clock.now() - began).total_seconds() < free_after:
            raise RefusedError("VolumeInUse")
        return {}

    aws.given["ec2:DeleteVolume"] = delete
    both = (OrphanedResource("volume", "vol-1", "data"), OrphanedResource("snapshot", "snap-1", "copy"))
    said: list[Message] = []
    assert removal.remove_volumes(aws.account, both, said.append) == (both[:1] if remains else ())
    assert sorted(str(message.orphan.id) for message in said if isinstance(message, OrphanRemoved)) == (
        ["snap-1"] if remains else ["snap-1", "vol-1"]
    )
    assert aws.named("ec2:DeleteSnapshot") == [{"SnapshotId": "snap-1"}]
    assert aws.named("ec2:DeleteVolume")[0] == {"VolumeId": "vol-1"}
    passed = (aws.clock.now() - began).total_seconds()
    assert min(free_after, 300) <= passed < min(free_after, 300) + 10
    # It is looked at every few seconds, not only at the end.
    assert len(aws.named("ec2:DeleteVolume")) >= passed / 10


@pytest.mark.parametrize(
    ("tags", "mine"),
    [
        (OWNED, True),
        ({"kubernetes.io/cluster/one": "shared"}, False),
        ({**OWNED, "kubernetes.io/cluster/two": "owned"}, False),
        ({**OWNED, "kubernetes.io/cluster/two": "shared"}, False),
        ({"KubernetesCluster": "one"}, True),
        ({"elbv2.k8s.aws/cluster": "one"}, True),
        ({"cluster.k8s.amazonaws.com/name": "one"}, True),
        ({"ebs.csi.aws.com/cluster-name": "one"}, True),
        ({**OWNED, "KubernetesCluster": "two"}, False),
        ({"KubernetesCluster": "one", "elbv2.k8s.aws/cluster": "two"}, False),
        ({}, False),
        ({"Name": "one"}, False),
    ],
)
def test_what_bears_the_tag_of_any_other_cluster_is_not_ours(tags: dict[str, str], mine: bool) -> None:
    assert kubernetes_tags.is_owned_by(tags, "one") is mine


@pytest.mark.parametrize(
    ("tags", "service"),
    [
        ({"kubernetes.io/service-name": "a/b", "ingress.k8s.aws/stack": "c"}, "a/b"),
        ({"service.k8s.aws/stack": "a/b"}, "a/b"),
        ({"ingress.k8s.aws/stack": "a/b"}, "a/b"),
        ({"gateway.k8s.aws/stack": "a/b"}, "a/b"),
        ({"kubernetes.io/service-name": "", "gateway.k8s.aws/stack": "a/b"}, "a/b"),
        ({}, ""),
    ],
)
def test_what_a_load_balancer_was_made_for_is_in_its_tags(tags: dict[str, str], service: str) -> None:
    assert kubernetes_tags.service_name(tags) == service


@pytest.mark.parametrize(
    ("tags", "claim"),
    [(CLAIM, "shop/data"), ({"kubernetes.io/created-for/pvc/name": "data"}, "data"), ({}, "")],
)
def test_the_claim_of_a_volume_is_in_its_tags(tags: dict[str, str], claim: str) -> None:
    assert kubernetes_tags.claim_name(tags) == claim


def test_a_tag_without_a_value_has_an_empty_one() -> None:
    assert kubernetes_tags.tag_map([{"Key": "a"}, {"Key": "b", "Value": "c"}]) == {"a": "", "b": "c"}
    assert kubernetes_tags.tag_map(None) == {}
