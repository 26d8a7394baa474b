"""Volumes and snapshots that Kubernetes made for claims. They hold data, so nothing removes them unasked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.deletion.kubernetes_tags import (
    NAMED_BY_CLUSTER,
    claim,
    cluster_tag,
    of_a_claim,
    of_a_stack,
    owned,
    tag_map,
)
from cfngen.deploy.deletion.orphaned_resource import Kind, OrphanedResource, Removed, attempt
from cfngen.deploy.deletion.scope import Scope
from cfngen.deploy.messages import Report

AT_ONCE = 100  # values in one filter; EC2 takes 200
PATIENCE = 300.0  # seconds that a volume may take to leave its instance
PAUSE = 5.0
VOLUME_KEYS = ("KubernetesCluster", "ebs.csi.aws.com/cluster-name")  # of `NAMED_BY_CLUSTER`, those volumes may bear
ANY_CLUSTER = "ebs.csi.aws.com/cluster"
"""Tag of every volume and snapshot of the EBS CSI driver. Its value is `true`, not the cluster's name."""


def attached(account: Account, scope: Scope) -> frozenset[str]:
    """Return the volumes that the cluster's instances have attached."""
    return frozenset(_attached(account, scope))


def find(account: Account, scope: Scope) -> tuple[OrphanedResource, ...]:
    """Return the volumes of the cluster's claims: those that bear its tags, and those its instances have attached."""
    volumes = {
        volume["VolumeId"]: volume for filters in _marked(scope.cluster) for volume in _volumes(account, filters)
    }
    mine = [volume for volume in volumes.values() if owned(_tags(volume), scope.cluster)]
    mine += [
        each
        for key, each in _attached(account, scope).items()
        if key not in volumes and not _another(_tags(each), scope.cluster)
    ]
    found = (
        _leftover("volume", each["VolumeId"], each["Size"], each) for each in mine if _made_for_a_claim(each, scope)
    )
    return tuple(sorted(found, key=lambda each: (each.purpose, each.id)))


def find_snapshots(account: Account, scope: Scope) -> tuple[OrphanedResource, ...]:
    """Return the snapshots of the cluster's claims."""
    snapshots = {
        page["SnapshotId"]: page
        for filters in _marked(scope.cluster)
        for page in _pages(account, "describe_snapshots", "Snapshots", Filters=filters, OwnerIds=["self"])
    }
    mine = (snapshot for snapshot in snapshots.values() if owned(_tags(snapshot), scope.cluster))
    return tuple(
        _leftover("snapshot", each["SnapshotId"], each["VolumeSize"], each)
        for each in mine
        if "CSIVolumeSnapshotName" in _tags(each) and not of_a_stack(_tags(each))
    )


def unclear(account: Account, scope: Scope) -> tuple[OrphanedResource, ...]:
    """Return unattached volumes of the EBS CSI driver that do not say which cluster they were made for.

    The driver tags volumes with a cluster only if `--k8s-tag-cluster-id` or `--extra-tags` told it the name.
    """
    filters = [{"Name": f"tag:{ANY_CLUSTER}", "Values": ["true"]}, {"Name": "status", "Values": ["available"]}]
    return tuple(
        _leftover("volume", volume["VolumeId"], volume["Size"], volume)
        for volume in _volumes(account, filters)
        if not _of_any_cluster(_tags(volume)) and volume["VolumeId"] not in scope.ids()
    )


def remove(account: Account, found: Sequence[OrphanedResource], report: Report) -> tuple[OrphanedResource, ...]:
    """Delete volumes or snapshots, waiting for those that are leaving an instance; return what remains."""
    ec2, clock = account.client("ec2"), account.clock
    remaining, until = list(found), clock.now().timestamp() + PATIENCE
    while remaining:
        held = []
        for each in remaining:
            with attempt() as tried:
                if each.kind == "volume":
                    ec2.delete_volume(VolumeId=each.id)
                else:
                    ec2.delete_snapshot(SnapshotId=each.id)
            if tried.held:
                held.append(each)
            else:
                report(Removed(each))
        remaining = held
        if remaining and clock.now().timestamp() >= until:
            break
        if remaining:
            clock.sleep(PAUSE)
    return tuple(remaining)


def _attached(account: Account, scope: Scope) -> dict[str, Mapping[str, Any]]:
    return {
        volume["VolumeId"]: volume
        for some in _batches(sorted(scope.instances))
        for volume in _volumes(account, [{"Name": "attachment.instance-id", "Values": some}])
    }


def _marked(cluster: str) -> Iterator[list[dict[str, Any]]]:
    """Filters, of which each finds some of what names the cluster."""
    yield [{"Name": f"tag:{cluster_tag(cluster)}", "Values": ["owned"]}]
    yield from ([{"Name": f"tag:{key}", "Values": [cluster]}] for key in VOLUME_KEYS)


def _volumes(account: Account, filters: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return _pages(account, "describe_volumes", "Volumes", Filters=filters)


def _pages(account: Account, operation: str, key: str, **arguments: Any) -> Iterator[Mapping[str, Any]]:
    for page in account.client("ec2").get_paginator(operation).paginate(**arguments):
        yield from page[key]


def _batches(values: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(values), AT_ONCE):
        yield list(values[start : start + AT_ONCE])


def _tags(each: Mapping[str, Any]) -> dict[str, str]:
    return tag_map(each.get("Tags"))


def _made_for_a_claim(each: Mapping[str, Any], scope: Scope) -> bool:
    tags = _tags(each)
    return of_a_claim(tags) and not of_a_stack(tags) and each["VolumeId"] not in scope.ids()


def _of_any_cluster(tags: Mapping[str, str]) -> bool:
    return any(key.startswith(cluster_tag("")) or key in NAMED_BY_CLUSTER for key in tags)


def _another(tags: Mapping[str, str], cluster: str) -> bool:
    """Whether the tags name a cluster, and not this one alone."""
    return _of_any_cluster(tags) and not owned(tags, cluster)


def _leftover(kind: Kind, identity: str, size: int, each: Mapping[str, Any]) -> OrphanedResource:
    tags = _tags(each)
    made_for = claim(tags)
    purpose = f"claim {made_for}" if made_for else ""
    name = tags.get("Name") or tags.get("CSIVolumeName") or tags.get("CSIVolumeSnapshotName") or identity
    return OrphanedResource(kind, identity, name, purpose, gigabytes=size)
