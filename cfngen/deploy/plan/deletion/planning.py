"""Plans the deletion of a cluster: finds out which resources it would delete and which would remain.

This happens before the user is asked for confirmation and before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cfngen.deploy.aws import kubernetes_made, volumes
from cfngen.deploy.aws import templates as template_objects
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.inventory import Inventory, read_inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.stacks import (
    AUTO_SCALING_GROUP,
    NESTED_STACK,
    StackView,
    find_last_deleted,
    find_live_stacks,
    find_stack,
)
from cfngen.deploy.aws.templates import TemplateObjects
from cfngen.deploy.plan.deletion import remaining_by_kind, remaining_resources, retained_resources
from cfngen.deploy.plan.deletion.plan import DeletedResources, DeletionPlan, DeletionRequest, PreparedDeletion
from cfngen.deploy.plan.deletion.retained_resources import RetainedResource
from cfngen.deploy.preflight import blockers, stack_checks
from cfngen.deploy.preflight.stack_checks import check_ownership
from cfngen.text import pluralize


def plan_deletion(account: Account, request: DeletionRequest) -> PreparedDeletion:
    """Return what deleting a cluster would do, with its stack and its resources; nothing is changed.

    Raises:
        ForeignStackError: the stack belongs to another cluster, or was not created by cfngen.
    """
    stack = find_stack(account, request.stack_name)
    by_console = check_ownership(account, stack, request.cluster) if stack else False
    existing_stack = stack if stack and stack.status.exists else None
    # The resources of a deleted stack are still listed, and tell which resources belonged to the cluster.
    last_stack = stack or find_last_deleted(account, request.stack_name, request.cluster)
    inventory = read_inventory(
        account, last_stack, cluster=request.cluster, vpc_id=request.vpc_id, pod_cidr=request.pod_cidr
    )
    other_stacks = find_live_stacks(account, request.cluster, besides=stack.id if stack else "")
    inventory = replace(inventory, same_name_stacks=other_stacks)
    name_conflict = stack_checks.describe_name_conflict(account, inventory)
    tagged = _TaggedResources(
        orphans=kubernetes_made.find_orphans(account, inventory),
        volumes=volumes.find_claim_volumes(account, inventory),
        snapshots=volumes.find_claim_snapshots(account, inventory),
    )
    if name_conflict:
        cluster_resources, foreign_resources = _split_by_ownership(account, inventory, tagged)
    else:
        # Without another cluster of the same name, every resource tagged with the name belongs to this cluster.
        cluster_resources, foreign_resources = tagged, _TaggedResources()
    workload_log_groups = remaining_by_kind.find_workload_log_groups(account, request.cluster)
    added_tags = remaining_resources.find_added(account, request.cluster)
    remaining_tags = remaining_resources.describe_remaining(account, added_tags)
    must_bucket_exist = request.empty_bucket or request.delete_bucket
    stored_templates = (
        template_objects.find(account, request.bucket, request.cluster, must_be_allowed=must_bucket_exist)
        if request.bucket
        else TemplateObjects()
    )
    plan = DeletionPlan(
        cluster=request.cluster,
        stack=request.stack_name,
        stack_id=existing_stack.id if existing_stack else "",
        status=existing_stack.status.name if existing_stack else "",
        account=account.id,
        region=account.region,
        by_console=by_console,
        protected=bool(existing_stack and existing_stack.protected),
        deleted_parts=tuple(_resources_deleted_with_stack(inventory)) if existing_stack else (),
        removed=cluster_resources.orphans,
        volumes=cluster_resources.volumes,
        snapshots=cluster_resources.snapshots,
        delete_volumes=request.delete_volumes,
        delete_snapshots=request.delete_snapshots,
        retained=(
            # What an earlier deletion has left; of a stack that exists, its deletion is yet to come.
            *(
                ()
                if existing_stack
                else remaining_resources.find_undeleted(
                    account, request, inventory.resources, is_name_unique=not name_conflict
                )
            ),
            *_find_remaining_resources(
                account,
                request,
                existing_stack,
                inventory,
                pvc_volumes=cluster_resources.volumes,
                pvc_snapshots=cluster_resources.snapshots,
                # Both clusters use the folder in the bucket, so the plan offers no command that deletes it.
                templates=TemplateObjects() if name_conflict else stored_templates,
            ),
            *(() if name_conflict else (*workload_log_groups, *remaining_tags)),
        ),
        # The other cluster of this name may use the subnets, too.
        subnet_tags=() if name_conflict else remaining_resources.select_removable(added_tags, request.cluster),
        blockers=blockers.find_blockers(account, inventory, cluster_resources.orphans) if existing_stack else (),
        unattributed_volumes=volumes.find_unattributed(account, inventory),
        name_conflict=name_conflict,
        foreign_resources=(
            _list_without_commands(foreign_resources, stored_templates, workload_log_groups) if name_conflict else ()
        ),
        authorities=tuple(
            resource.view.physical_id
            for resource in inventory.resources
            if existing_stack and resource.exists and resource.view.logical_id == "CaSecret"
        ),
        objects=stored_templates.versions,
    )
    contested = (
        *foreign_resources.orphans,
        *(foreign_resources.volumes if request.delete_volumes else ()),
        *(foreign_resources.snapshots if request.delete_snapshots else ()),
    )
    return PreparedDeletion(
        stack=existing_stack,
        inventory=inventory,
        plan=plan,
        remaining_tags=() if name_conflict else remaining_tags,
        contested=contested,
    )


@dataclass(frozen=True)
class _TaggedResources:
    """Resources with the cluster's name in their tags.

    Attributes:
        orphans: resources that Kubernetes created and that are deleted with the cluster.
        volumes: volumes of PersistentVolumeClaims.
        snapshots: snapshots of the volumes of PersistentVolumeClaims.
    """

    orphans: tuple[OrphanedResource, ...] = ()
    volumes: tuple[OrphanedResource, ...] = ()
    snapshots: tuple[OrphanedResource, ...] = ()


def _split_by_ownership(
    account: Account, inventory: Inventory, tagged: _TaggedResources
) -> tuple[_TaggedResources, _TaggedResources]:
    """Return two groups: the resources of this cluster, and those that may belong to another cluster of the same name.

    Resources in the cluster's own VPC and volumes that are attached to its instances belong to this cluster. Nothing
    shows which cluster a snapshot belongs to.
    """
    in_own_vpc = frozenset(
        resource.id
        for resource in tagged.orphans
        if inventory.has_infrastructure and inventory.vpc_id and resource.vpc_id == inventory.vpc_id
    )
    attached_volumes = volumes.find_attached(account, inventory)
    own_resources = _TaggedResources(
        orphans=tuple(resource for resource in tagged.orphans if resource.id in in_own_vpc),
        volumes=tuple(resource for resource in tagged.volumes if resource.id in attached_volumes),
    )
    contested_resources = _TaggedResources(
        orphans=tuple(resource for resource in tagged.orphans if resource.id not in in_own_vpc),
        volumes=tuple(resource for resource in tagged.volumes if resource.id not in attached_volumes),
        snapshots=tagged.snapshots,
    )
    return own_resources, contested_resources


def _list_without_commands(
    foreign: _TaggedResources, templates: TemplateObjects, workload_log_groups: Sequence[RetainedResource]
) -> tuple[RetainedResource, ...]:
    """Return the resources that may belong to the other cluster, without commands that would delete them."""
    tagged = (*foreign.orphans, *foreign.volumes, *foreign.snapshots)
    uri = f"s3://{templates.bucket}/{templates.prefix}"
    object_count = pluralize(templates.versions, "object version")
    return (
        *(
            RetainedResource(
                kind=resource.kind, id=resource.id, why=resource.purpose or "is tagged with the cluster's name"
            )
            for resource in tagged
        ),
        *(
            [RetainedResource(kind="templates", id=uri, why=f"{object_count} under the cluster's name")]
            if templates.versions
            else []
        ),
        *(RetainedResource(kind=log.kind, id=log.id, why=log.why) for log in workload_log_groups),
    )


def _resources_deleted_with_stack(inventory: Inventory) -> Iterator[DeletedResources]:
    """Yield the resources that are deleted with the stack, grouped by kind."""
    if instance_ids := sorted(inventory.instances.keys() - inventory.unmanaged_instances):
        yield DeletedResources(kind="instances", ids=tuple(instance_ids))
    for kind, type_name in DELETED_RESOURCE_TYPES:
        if ids := inventory.existing_ids(type_name):
            yield DeletedResources(kind=kind, ids=ids)
    listed_types = {*remaining_by_kind.RETAINED_TYPES, *(type_name for _, type_name in DELETED_RESOURCE_TYPES)}
    if buckets := remaining_by_kind.issuer_buckets(inventory):
        yield DeletedResources(kind="buckets of the issuer's documents", ids=buckets)
    if other_resources := [
        resource.name for resource in inventory.resources if resource.exists and resource.view.type not in listed_types
    ]:
        yield DeletedResources(kind="other resources", ids=tuple(other_resources))


def _find_remaining_resources(
    account: Account,
    request: DeletionRequest,
    stack: StackView | None,
    inventory: Inventory,
    *,
    pvc_volumes: tuple[OrphanedResource, ...],
    pvc_snapshots: tuple[OrphanedResource, ...],
    templates: TemplateObjects,
) -> tuple[RetainedResource, ...]:
    """Return the resources that will remain in the account after the deletion, each with the reason."""
    remaining: list[RetainedResource] = []
    if stack:
        remaining += [
            RetainedResource(
                kind="snapshot",
                id=f"one of {resource_id}",
                why="CloudFormation takes it before it deletes a master's volume, so that etcd's data is not lost",
                cost="EBS snapshot, billed per GiB of stored data and month",
            )
            for resource_id in inventory.existing_ids("AWS::EC2::Volume")
        ]
        remaining += [
            RetainedResource(
                kind="KMS key",
                id=resource_id,
                why="KMS deletes it after a waiting period; until then the deletion can be cancelled",
                cost="not billed while its deletion is pending",
            )
            for resource_id in inventory.existing_ids("AWS::KMS::Key")
        ]
        remaining += retained_resources.list_existing_resources(inventory, tuple(stack.values.items()))
    remaining += remaining_by_kind.find_snapshot_buckets(account, inventory, stack.outputs if stack else {})
    remaining += remaining_by_kind.find_flow_log_groups(account, request.stack_name)
    if not request.delete_volumes:
        remaining += retained_resources.describe_remaining_orphans(
            account, pvc_volumes, "data of a PersistentVolumeClaim; --delete-volumes deletes it"
        )
    if not request.delete_snapshots:
        remaining += retained_resources.describe_remaining_orphans(
            account, pvc_snapshots, "snapshot of a PersistentVolumeClaim's volume; --delete-snapshots deletes it"
        )
    if not request.empty_bucket:
        remaining += retained_resources.describe_remaining_templates(templates)
    return tuple(remaining)


DELETED_RESOURCE_TYPES = (
    ("nested stacks", NESTED_STACK),
    ("master volumes", "AWS::EC2::Volume"),
    ("Elastic IPs", "AWS::EC2::EIP"),
    ("load balancers", "AWS::ElasticLoadBalancingV2::LoadBalancer"),
    ("Auto Scaling groups", AUTO_SCALING_GROUP),
    ("capacity reservations", "AWS::EC2::CapacityReservation"),
    ("VPCs", "AWS::EC2::VPC"),
    ("subnets", "AWS::EC2::Subnet"),
    ("NAT gateways", "AWS::EC2::NatGateway"),
    ("VPC endpoints", "AWS::EC2::VPCEndpoint"),
    ("flow logs", "AWS::EC2::FlowLog"),
    ("security groups", "AWS::EC2::SecurityGroup"),
    ("hosted zones", "AWS::Route53::HostedZone"),
    ("DNS records", "AWS::Route53::RecordSet"),
    ("secrets", "AWS::SecretsManager::Secret"),
    ("KMS keys", "AWS::KMS::Key"),
    ("roles", "AWS::IAM::Role"),
    ("OIDC providers", "AWS::IAM::OIDCProvider"),
    ("CloudFront distributions", "AWS::CloudFront::Distribution"),
    ("key pairs", "AWS::EC2::KeyPair"),
)
"""The kinds of resources that the plan lists separately: (plural noun for the kind, its CloudFormation type)."""
