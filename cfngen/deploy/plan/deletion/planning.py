"""Plans the deletion of a cluster: finds out which resources it would delete and which would remain.

This happens before the user is asked for confirmation and before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cfngen.deploy.aws import kubernetes_made, templates, volumes
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.inventory import Inventory, read_inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, NESTED_STACK, find_last_deleted, find_stack
from cfngen.deploy.aws.templates import TemplateObjects, find_live_stacks
from cfngen.deploy.plan.deletion import (
    remaining_buckets_keys_and_logs,
    remaining_resources,
    remaining_volumes_and_orphans,
)
from cfngen.deploy.plan.deletion.plan import DeletedResources, DeletionPlan, DeletionRequest, PreparedDeletion
from cfngen.deploy.plan.deletion.remaining_resources import DeletedCluster, find_remaining_resources
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource
from cfngen.deploy.preflight import blockers, stack_checks
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag
from cfngen.deploy.preflight.stack_checks import check_ownership
from cfngen.text import pluralize


def plan_deletion(account: Account, request: DeletionRequest) -> PreparedDeletion:
    """Return what deleting a cluster would do, with its stack and its resources; nothing is changed.

    Raises:
        ForeignStackError: the stack belongs to another cluster, or was not created by cfngen.
    """
    found_stack = find_stack(account, request.stack_name)
    by_console = check_ownership(account, found_stack, request.cluster) if found_stack else False
    stack = found_stack if found_stack and found_stack.status.exists else None
    # The resources of a deleted stack are still listed, and tell which resources belonged to the cluster.
    last_stack = found_stack or find_last_deleted(account, request.stack_name, request.cluster)
    inventory = read_inventory(
        account, last_stack, cluster=request.cluster, vpc_id=request.vpc_id, pod_cidr=request.pod_cidr
    )
    other_stacks = find_live_stacks(account, request.cluster, besides=found_stack.id if found_stack else "")
    inventory = replace(inventory, same_name_stacks=other_stacks)
    named = _find_named(account, request, inventory)
    plan = DeletionPlan(
        cluster=request.cluster,
        stack=request.stack_name,
        stack_id=stack.id if stack else "",
        status=stack.status.name if stack else "",
        account=account.id,
        region=account.region,
        by_console=by_console,
        protected=bool(stack and stack.protected),
        deleted_parts=tuple(_resources_deleted_with_stack(account, inventory)) if stack else (),
        delete_volumes=request.delete_volumes,
        delete_snapshots=request.delete_snapshots,
        authorities=tuple(
            resource.view.physical_id
            for resource in inventory.resources
            if stack and resource.exists and resource.view.logical_id == "CaSecret"
        ),
    )
    return _with_named(account, request, PreparedDeletion(stack, inventory, plan), named)


@dataclass(frozen=True)
class _Named:
    """What is found by the cluster's name, outside its stacks.

    Attributes:
        conflict: a sentence about another cluster of this name in the region; empty if there is none.
        foreign: resources that may belong to the other cluster.
        subnet_tags: tags that cfngen has added to existing subnets.
    """

    conflict: str
    own: _TaggedResources
    foreign: _TaggedResources
    subnet_tags: tuple[SubnetTag, ...]
    templates: TemplateObjects


def _find_named(account: Account, request: DeletionRequest, inventory: Inventory) -> _Named:
    conflict = stack_checks.describe_name_conflict(account, inventory)
    own = _TaggedResources(
        orphans=kubernetes_made.find_orphans(account, inventory),
        volumes=volumes.find_claim_volumes(account, inventory),
        snapshots=volumes.find_claim_snapshots(account, inventory),
    )
    # Without another cluster of the same name, every resource tagged with the name belongs to this cluster.
    foreign = _TaggedResources()
    if conflict:
        own, foreign = _split_by_ownership(account, inventory, own)
    must_bucket_exist = request.empty_bucket or request.delete_bucket
    return _Named(
        conflict=conflict,
        own=own,
        foreign=foreign,
        subnet_tags=remaining_resources.find_added_subnet_tags(account, request.cluster),
        templates=templates.find(account, request.bucket, request.cluster, must_be_allowed=must_bucket_exist)
        if request.bucket
        else TemplateObjects(),
    )


def _with_named(
    account: Account, request: DeletionRequest, prepared: PreparedDeletion, named: _Named
) -> PreparedDeletion:
    """Return the plan of a stack's deletion with what is found by the cluster's name, and what remains."""
    stack, inventory, own = prepared.stack, prepared.inventory, named.own
    # The other cluster of this name may use the subnets, too.
    tags = () if named.conflict else named.subnet_tags
    remaining_tags = remaining_resources.describe_remaining_subnet_tags(account, tags)
    remaining = DeletedCluster(
        "before",
        account,
        request.stack_name,
        inventory,
        inventory.resources,
        stack=stack,
        role_names=request.role_names,
        is_name_unique=not named.conflict,
        volumes=() if request.delete_volumes else own.volumes,
        snapshots=() if request.delete_snapshots else own.snapshots,
        # Both clusters use the folder in the bucket, so the plan offers no command that deletes it.
        templates=TemplateObjects() if request.empty_bucket or named.conflict else named.templates,
        subnet_tags=remaining_tags,
    )
    plan = replace(
        prepared.plan,
        removed=own.orphans,
        volumes=own.volumes,
        snapshots=own.snapshots,
        retained=find_remaining_resources(remaining),
        subnet_tags=remaining_resources.select_removable_subnet_tags(tags, request.cluster),
        blockers=blockers.find_blockers(account, inventory, own.orphans) if stack else (),
        unattributed_volumes=volumes.find_unattributed(account, inventory),
        name_conflict=named.conflict,
        foreign_resources=tuple(_list_without_commands(account, request, named)) if named.conflict else (),
        objects=named.templates.versions,
    )
    return replace(
        prepared, plan=plan, remaining_tags=remaining_tags, contested=_find_contested(request, named.foreign)
    )


def _find_contested(request: DeletionRequest, foreign: _TaggedResources) -> tuple[OrphanedResource, ...]:
    """Return what the request asks to remove, but may belong to the other cluster."""
    return (
        *foreign.orphans,
        *(foreign.volumes if request.delete_volumes else ()),
        *(foreign.snapshots if request.delete_snapshots else ()),
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


def _list_without_commands(account: Account, request: DeletionRequest, named: _Named) -> Iterator[RetainedResource]:
    """Yield the resources that may belong to the other cluster, without commands that would delete them."""
    for resource in (*named.foreign.orphans, *named.foreign.volumes, *named.foreign.snapshots):
        why = resource.purpose or "is tagged with the cluster's name"
        yield RetainedResource(kind=resource.kind, id=resource.id, why=why)
    if versions := named.templates.versions:
        uri = f"s3://{named.templates.bucket}/{named.templates.prefix}"
        why = f"{pluralize(versions, 'object version')} under the cluster's name"
        yield RetainedResource(kind="templates", id=uri, why=why)
    for log in remaining_buckets_keys_and_logs.find_workload_log_groups(account, request.cluster):
        yield RetainedResource(kind=log.kind, id=log.id, why=log.why)


def _resources_deleted_with_stack(account: Account, inventory: Inventory) -> Iterator[DeletedResources]:
    kept = {resource.id for resource in remaining_volumes_and_orphans.find_kept_registry(account, inventory.resources)}
    if instance_ids := sorted(inventory.instances.keys() - inventory.unmanaged_instances):
        yield DeletedResources(kind="instances", ids=tuple(instance_ids))
    for kind, type_name in DELETED_RESOURCE_TYPES:
        if ids := tuple(id_ for id_ in inventory.existing_ids(type_name) if id_ not in kept):
            yield DeletedResources(kind=kind, ids=ids)
    listed_types = {
        *remaining_buckets_keys_and_logs.RETAINED_TYPES,
        *(type_name for _, type_name in DELETED_RESOURCE_TYPES),
    }
    if buckets := remaining_buckets_keys_and_logs.issuer_buckets(inventory):
        yield DeletedResources(kind="buckets of the issuer's documents", ids=buckets)
    if other_resources := [
        resource.name for resource in inventory.resources if resource.exists and resource.view.type not in listed_types
    ]:
        yield DeletedResources(kind="other resources", ids=tuple(other_resources))


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
    ("repositories, with all images", remaining_volumes_and_orphans.REPOSITORY_TYPE),
    ("CloudFront distributions", "AWS::CloudFront::Distribution"),
    ("key pairs", "AWS::EC2::KeyPair"),
)
"""The kinds of resources that the plan lists separately: (plural noun for the kind, its CloudFormation type)."""
