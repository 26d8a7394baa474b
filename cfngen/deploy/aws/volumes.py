"""EBS volumes and their snapshots: of PersistentVolumeClaims, which are only deleted on request, and of the stacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from cfngen.deploy.aws.account import Account, Filters
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, suppress_codes, translate_aws_errors
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource, OrphanKind
from cfngen.deploy.aws.stacks import StackTree
from cfngen.deploy.aws.tags import (
    CLUSTER_NAME_TAGS,
    claim_name,
    cluster_tag,
    is_created_by_stack,
    is_created_for_claim,
    is_owned_by,
    tag_map,
)
from cfngen.deploy.aws.types import AwsObject

_VOLUME_TYPE = "AWS::EC2::Volume"
VOLUME_CLUSTER_TAGS = ("KubernetesCluster", "ebs.csi.aws.com/cluster-name")
"""The tags of `CLUSTER_NAME_TAGS` that EBS volumes and snapshots have."""
EBS_DRIVER_TAG = "ebs.csi.aws.com/cluster"
"""Tag of every volume and snapshot of the EBS CSI driver. Its value is `true`, not the cluster's name."""


def find_attached(account: Account, inventory: Inventory) -> frozenset[str]:
    """Return the ids of the volumes that are attached to the cluster's instances."""
    return frozenset(_describe_attached_volumes(account, inventory))


def find_claim_volumes(account: Account, inventory: Inventory) -> tuple[OrphanedResource, ...]:
    """Return the volumes of PersistentVolumeClaims that have the cluster's tags or are attached to its instances."""
    tagged_volumes = {
        volume["VolumeId"]: volume
        for filters in _tag_filters(inventory.cluster)
        for volume in account.items("ec2.describe_volumes", "Volumes", filters=filters)
    }
    owned_volumes = [volume for volume in tagged_volumes.values() if is_owned_by(_tags(volume), inventory.cluster)]
    owned_volumes += [
        volume
        for volume_id, volume in _describe_attached_volumes(account, inventory).items()
        if volume_id not in tagged_volumes and not _names_another_cluster(_tags(volume), inventory.cluster)
    ]
    orphans = (
        _make_orphan("volume", resource_id=volume["VolumeId"], gigabytes=volume["Size"], description=volume)
        for volume in owned_volumes
        if _is_for_claim(volume, inventory)
    )
    return tuple(sorted(orphans, key=lambda orphan: (orphan.purpose, orphan.id)))


def find_claim_snapshots(account: Account, inventory: Inventory) -> tuple[OrphanedResource, ...]:
    """Return the snapshots of the cluster's PersistentVolumeClaims."""
    snapshots_by_id = {
        snapshot["SnapshotId"]: snapshot
        for filters in _tag_filters(inventory.cluster)
        for snapshot in account.items("ec2.describe_snapshots", "Snapshots", filters=filters, OwnerIds=["self"])
    }
    owned_snapshots = (
        snapshot for snapshot in snapshots_by_id.values() if is_owned_by(_tags(snapshot), inventory.cluster)
    )
    # A stack takes snapshots of its own volumes, e.g. before it deletes a master's volume; these are no claim's.
    return tuple(
        _make_orphan(
            "snapshot", resource_id=snapshot["SnapshotId"], gigabytes=snapshot["VolumeSize"], description=snapshot
        )
        for snapshot in owned_snapshots
        if "CSIVolumeSnapshotName" in _tags(snapshot) and not is_created_by_stack(_tags(snapshot))
    )


def find_unattributed(account: Account, inventory: Inventory) -> tuple[OrphanedResource, ...]:
    """Return unattached volumes of the EBS CSI driver whose tags do not name their cluster.

    The driver tags volumes with the cluster's name only if `--k8s-tag-cluster-id` or `--extra-tags` configures it.
    """
    filters = {f"tag:{EBS_DRIVER_TAG}": ["true"], "status": ["available"]}
    return tuple(
        _make_orphan("volume", resource_id=volume["VolumeId"], gigabytes=volume["Size"], description=volume)
        for volume in account.items("ec2.describe_volumes", "Volumes", filters=filters)
        if not _names_a_cluster(_tags(volume)) and volume["VolumeId"] not in inventory.ids()
    )


def _describe_attached_volumes(account: Account, inventory: Inventory) -> dict[str, AwsObject]:
    return {
        volume["VolumeId"]: volume
        for volume in account.items(
            "ec2.describe_volumes", "Volumes", filters={"attachment.instance-id": sorted(inventory.instances)}
        )
    }


def _tag_filters(cluster: str) -> Iterator[Filters]:
    """Yield filters for each tag that can name the cluster, each for a separate call.

    In one call, EC2 would return only the resources that match all of the filters.
    """
    yield {f"tag:{cluster_tag(cluster)}": ["owned"]}
    yield from ({f"tag:{key}": [cluster]} for key in VOLUME_CLUSTER_TAGS)


@dataclass(frozen=True)
class VolumeView:
    """An EBS volume.

    Attributes:
        size: in GiB.
        instance: id of the instance it is attached to; empty if none.
    """

    id: str
    state: str
    size: int
    type: str
    zone: str
    instance: str = ""


def read_volumes(account: Account, ids: Collection[str]) -> dict[str, VolumeView]:
    """Return volumes by id; those that do not exist are left out."""
    return {
        volume["VolumeId"]: _view_of(volume)
        for volume in account.items("ec2.describe_volumes", "Volumes", filters={"volume-id": sorted(ids)})
    }


def _view_of(volume: AwsObject) -> VolumeView:
    attachment: AwsObject = next(iter(volume.get("Attachments") or ()), {})
    return VolumeView(
        id=volume["VolumeId"],
        state=volume.get("State", ""),
        size=volume.get("Size", 0),
        type=volume.get("VolumeType", ""),
        zone=volume.get("AvailabilityZone", ""),
        instance=attachment.get("InstanceId", ""),
    )


@dataclass(frozen=True)
class VolumeSnapshot:
    """A snapshot of an EBS volume.

    Attributes:
        volume: id of the volume, which may no longer exist.
        volume_size: size of the volume in GiB.
    """

    id: str
    volume: str
    volume_size: int


def read_snapshots(account: Account, volume_ids: Collection[str]) -> tuple[VolumeSnapshot, ...]:
    """Return the account's snapshots of volumes."""
    return tuple(
        VolumeSnapshot(snapshot["SnapshotId"], snapshot["VolumeId"], snapshot["VolumeSize"])
        for snapshot in account.items(
            "ec2.describe_snapshots", "Snapshots", filters={"volume-id": sorted(volume_ids)}, OwnerIds=["self"]
        )
    )


def find_stack_volumes(account: Account, inventory: Inventory) -> frozenset[str]:
    """Return the ids of the volumes that the stacks have or had, e.g. of masters whose creation was rolled back.

    The stacks' resources no longer list the latter, but the events do, which CloudFormation keeps for 90 days; a caller
    who may not see events gets the listed ones.
    """
    listed = inventory.ids(_VOLUME_TYPE)
    stack_ids = sorted({resource.stack_id for resource in inventory.resources if resource.view.type == _VOLUME_TYPE})
    with suppress_codes(ACCESS_DENIED_CODES):
        in_events = {
            str(event.get("PhysicalResourceId", ""))
            for stack_id in stack_ids
            for event in account.items("cloudformation.describe_stack_events", "StackEvents", StackName=stack_id)
            if event.get("ResourceType") == _VOLUME_TYPE
        }
        return listed | (in_events - {""})
    return listed


def _tags(resource: AwsObject) -> dict[str, str]:
    return tag_map(resource.get("Tags"))


def _is_for_claim(volume: AwsObject, inventory: Inventory) -> bool:
    tags = _tags(volume)
    return is_created_for_claim(tags) and not is_created_by_stack(tags) and volume["VolumeId"] not in inventory.ids()


def _names_a_cluster(tags: Mapping[str, str]) -> bool:
    return any(key.startswith(cluster_tag("")) or key in CLUSTER_NAME_TAGS for key in tags)


def _names_another_cluster(tags: Mapping[str, str], cluster: str) -> bool:
    """Return whether the tags name a cluster, but not this one as the only owner."""
    return _names_a_cluster(tags) and not is_owned_by(tags, cluster)


def _make_orphan(kind: OrphanKind, *, resource_id: str, gigabytes: int, description: AwsObject) -> OrphanedResource:
    tags = _tags(description)
    claim = claim_name(tags)
    name = tags.get("Name") or tags.get("CSIVolumeName") or tags.get("CSIVolumeSnapshotName") or resource_id
    return OrphanedResource(
        kind=kind, id=resource_id, name=name, purpose=f"claim {claim}" if claim else "", gigabytes=gigabytes
    )


def read_volume_sizes(deployed: StackTree) -> Mapping[str, int]:
    """Return the size of each volume of a cluster's stacks in GiB, by volume id."""
    with translate_aws_errors():
        volume_ids = [
            resource.view.physical_id
            for resource in deployed.resources
            if resource.view.type == _VOLUME_TYPE and resource.exists
        ]
        volumes = deployed.account.items("ec2.describe_volumes", "Volumes", filters={"volume-id": volume_ids})
        return {volume["VolumeId"]: volume["Size"] for volume in volumes}
