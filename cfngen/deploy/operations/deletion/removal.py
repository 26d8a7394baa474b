"""Removes orphans: resources that Kubernetes created outside of the stacks and that block the network's deletion.

Orphans are found by their tags. Load balancers use network interfaces, network interfaces use security groups, and
rules refer to other security groups; AWS deletes each resource only some time after the last resource that used it. So
the removal runs in rounds: each round lists the resources that exist, and deletes those that are no longer in use. The
removal can therefore be interrupted and repeated at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from cfngen.cluster.iam.service_accounts import DISCOVERY_KEY, KEYS_KEY
from cfngen.deploy.aws import pod_routes
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, catch_missing_or_in_use, translate_aws_errors
from cfngen.deploy.aws.existing_resources import bucket_exists
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.kubernetes_made import find_orphans, find_references
from cfngen.deploy.aws.load_balancers import DELETION_PROTECTION_ATTRIBUTE
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.messages.message import Message, Notice, Report, Step
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag
from cfngen.deploy.preflight.stack_checks import check_name_conflict
from cfngen.text import pluralize

REMOVAL_TIMEOUT_SECONDS = 600.0
"""Interfaces of load balancers have been observed to exist for several minutes after their load balancer."""
_REMOVED_KINDS = "load balancers that Kubernetes created, and their security groups and network interfaces"
MIN_POLL_INTERVAL_SECONDS = 3.0
MAX_POLL_INTERVAL_SECONDS = 20.0

_Key: TypeAlias = tuple[str, str]
"""Kind and id, which identify a resource."""


@dataclass(frozen=True)
class RemovalResult:
    """The orphans that were removed, and those that could not be removed."""

    removed: tuple[OrphanedResource, ...] = ()
    remaining: tuple[OrphanedResource, ...] = ()


def remove_orphans(
    account: Account, inventory: Inventory, report: Report, *, timeout: float = REMOVAL_TIMEOUT_SECONDS
) -> RemovalResult:
    """Remove the cluster's resources that can keep its network from being deleted.

    Args:
        timeout: seconds to wait until AWS releases resources; 0 is one round without waiting.

    Raises:
        SameNameClusterError: the resources may belong to another cluster of this name.
    """
    deadline = account.clock.now().timestamp() + timeout
    poll_interval = MIN_POLL_INTERVAL_SECONDS
    removed: dict[_Key, OrphanedResource] = {}
    previously_waiting: frozenset[_Key] | None = None  # None in the first round
    while orphans := find_orphans(account, inventory):
        if previously_waiting is None:
            check_name_conflict(account, inventory, orphans)
            report(Step(f"deleting the {_REMOVED_KINDS}"))
        for orphan in _remove_once(account, inventory, orphans):
            if _key(orphan) not in removed:
                removed[_key(orphan)] = orphan
                report(OrphanRemoved(orphan))
        if account.clock.now().timestamp() >= deadline:
            orphans = find_orphans(account, inventory)
            break
        waiting = frozenset(map(_key, orphans)) - removed.keys()
        if waiting and waiting != previously_waiting:
            report(Step(f"waiting for AWS to release {_describe_waiting(orphans, waiting)}"))
        previously_waiting = waiting
        account.clock.sleep(poll_interval)
        poll_interval = min(poll_interval * 1.5, MAX_POLL_INTERVAL_SECONDS)
    # AWS may still list a resource after it has accepted the deletion: such a resource counts as remaining.
    remaining_keys = set(map(_key, orphans))
    return RemovalResult(
        removed=tuple(orphan for key, orphan in removed.items() if key not in remaining_keys), remaining=orphans
    )


def remove_pod_routes(account: Account, inventory: Inventory, report: Report) -> RemovalResult:
    """Remove the routes to pods from the existing route table that the cluster uses.

    Call it only after the cluster's instances are terminated.
    """
    removed_routes = delete_pod_routes(account, pod_routes.find_orphaned_routes(account, inventory))
    for route in removed_routes:
        report(OrphanRemoved(route))
    return RemovalResult(removed=removed_routes, remaining=pod_routes.find_orphaned_routes(account, inventory))


def _remove_once(
    account: Account, inventory: Inventory, orphans: Sequence[OrphanedResource]
) -> tuple[OrphanedResource, ...]:
    """Try once to remove each resource; return those whose deletion AWS has accepted, not those still in use."""
    return (
        *remove_load_balancers(
            account, [orphan for orphan in orphans if orphan.kind in ("load balancer", "target group")]
        ),
        *remove_interfaces(account, [orphan for orphan in orphans if orphan.kind == "network interface"]),
        *remove_security_groups(account, inventory, [orphan for orphan in orphans if orphan.kind == "security group"]),
    )


def _key(orphan: OrphanedResource) -> _Key:
    return orphan.kind, orphan.id


def _describe_waiting(orphans: Sequence[OrphanedResource], waiting_keys: frozenset[_Key]) -> str:
    names = [f"{orphan.kind} {orphan.name}" for orphan in orphans if _key(orphan) in waiting_keys]
    suffix = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + suffix


def remove_load_balancers(account: Account, orphans: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Ask AWS to delete load balancers and target groups; return those whose deletion it has accepted.

    A target group that a load balancer still uses is left for the next call.
    """
    return remove_each(orphans, lambda orphan: _delete_load_balancer(account, orphan))


def _delete_load_balancer(account: Account, orphan: OrphanedResource) -> None:
    """Delete a target group, a Classic Load Balancer, or an ELBv2 load balancer without its deletion protection."""
    elbv2 = account.client("elbv2")
    if orphan.kind == "target group":
        elbv2.delete_target_group(TargetGroupArn=orphan.id)
    elif orphan.generation == "classic":
        account.client("elb").delete_load_balancer(LoadBalancerName=orphan.id)
    else:
        if orphan.protected:
            attributes = [{"Key": DELETION_PROTECTION_ATTRIBUTE, "Value": "false"}]
            elbv2.modify_load_balancer_attributes(LoadBalancerArn=orphan.id, Attributes=attributes)
        elbv2.delete_load_balancer(LoadBalancerArn=orphan.id)


def remove_interfaces(account: Account, orphans: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Delete those interfaces that AWS does not delete by itself; return the deleted ones."""
    ec2 = account.client("ec2")
    to_delete = (orphan for orphan in orphans if not orphan.deleted_by_aws)
    return remove_each(to_delete, lambda orphan: ec2.delete_network_interface(NetworkInterfaceId=orphan.id))


def remove_security_groups(
    account: Account, inventory: Inventory, orphans: Sequence[OrphanedResource]
) -> tuple[OrphanedResource, ...]:
    """Delete orphaned security groups, after revoking the cluster's rules that refer to them; return the deleted ones.

    A group is not deleted while a network interface uses it, or while a rule of a foreign group refers to it.
    """
    orphan_ids = [orphan.id for orphan in orphans]
    references = find_references(account, inventory, orphan_ids)
    cluster_group_ids = [reference.group_id for reference in references if reference.owned]
    for group_id in (*orphan_ids, *cluster_group_ids):
        _revoke_references(account, group_id, frozenset(orphan_ids) - {group_id})
    return remove_each(orphans, lambda orphan: account.client("ec2").delete_security_group(GroupId=orphan.id))


def _revoke_references(account: Account, group_id: str, referenced_ids: frozenset[str]) -> None:
    """Revoke the rules of a group that refer to the given groups; rule ids make sure that no other rule is revoked."""
    ec2 = account.client("ec2")
    ingress_rule_ids: list[str] = []
    egress_rule_ids: list[str] = []
    filters = {"group-id": [group_id]}
    for rule in account.items("ec2.describe_security_group_rules", "SecurityGroupRules", filters=filters):
        if rule.get("ReferencedGroupInfo", {}).get("GroupId") in referenced_ids:
            rule_ids = egress_rule_ids if rule["IsEgress"] else ingress_rule_ids
            rule_ids.append(rule["SecurityGroupRuleId"])
    if egress_rule_ids:
        with catch_missing_or_in_use():
            ec2.revoke_security_group_egress(GroupId=group_id, SecurityGroupRuleIds=egress_rule_ids)
    if ingress_rule_ids:
        with catch_missing_or_in_use():
            ec2.revoke_security_group_ingress(GroupId=group_id, SecurityGroupRuleIds=ingress_rule_ids)


def delete_pod_routes(account: Account, routes: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Delete routes; return the deleted ones."""
    ec2 = account.client("ec2")
    return remove_each(routes, lambda route: ec2.delete_route(RouteTableId=route.where, DestinationCidrBlock=route.id))


VOLUME_TIMEOUT_SECONDS = 300.0  # a volume takes some time to be detached from its instance
VOLUME_POLL_INTERVAL_SECONDS = 5.0


def remove_volumes(
    account: Account, orphans: Sequence[OrphanedResource], report: Report
) -> tuple[OrphanedResource, ...]:
    """Delete volumes or snapshots, waiting for volumes to be detached; return those that could not be deleted."""
    ec2, clock = account.client("ec2"), account.clock
    remaining = list(orphans)
    deadline = clock.now().timestamp() + VOLUME_TIMEOUT_SECONDS
    while remaining:
        in_use = []
        for orphan in remaining:
            with catch_missing_or_in_use() as outcome:
                if orphan.kind == "volume":
                    ec2.delete_volume(VolumeId=orphan.id)
                else:
                    ec2.delete_snapshot(SnapshotId=orphan.id)
            if outcome.in_use:
                in_use.append(orphan)
            else:
                report(OrphanRemoved(orphan))
        remaining = in_use
        if remaining and clock.now().timestamp() >= deadline:
            break
        if remaining:
            clock.sleep(VOLUME_POLL_INTERVAL_SECONDS)
    return tuple(remaining)


@dataclass(frozen=True)
class OrphanRemoved(Message):
    """A resource that Kubernetes created has been deleted, or AWS has accepted its deletion.

    Attributes:
        orphan: the resource.
    """

    kind: ClassVar[str] = "removed"
    orphan: OrphanedResource


def remove_each(
    orphans: Iterable[OrphanedResource], remove: Callable[[OrphanedResource], object]
) -> tuple[OrphanedResource, ...]:
    """Call `remove` for each resource; return those whose deletion AWS has accepted.

    Resources that are still in use, or do not exist any more, are not returned.
    """
    accepted = []
    for orphan in orphans:
        with catch_missing_or_in_use() as outcome:
            remove(orphan)
        if outcome.succeeded:
            accepted.append(orphan)
    return tuple(accepted)


def remove_issuer_buckets(account: Account, buckets: tuple[str, ...], report: Report) -> None:
    """Delete the documents in these buckets, and the buckets; what AWS refuses is reported and remains.

    CloudFormation cannot delete them, since masters write the documents as long as the cluster exists.
    """
    for bucket in buckets:
        try:
            with translate_aws_errors():
                if not bucket_exists(account, bucket):
                    continue
                report(Step(f"deleting the issuer's documents and their bucket {bucket}"))
                _remove_issuer_bucket(account, bucket)
        except AwsError as error:
            text = f"the bucket {bucket} of the issuer's documents was not deleted: {error}"
            report(Notice(text, f"delete it with `aws s3 rb --force s3://{bucket} --region {account.region}`."))


def _remove_issuer_bucket(account: Account, bucket: str) -> None:
    s3 = account.client("s3")
    for key in (DISCOVERY_KEY, KEYS_KEY):
        s3.delete_object(Bucket=bucket, Key=key, ExpectedBucketOwner=account.id)
    s3.delete_bucket(Bucket=bucket, ExpectedBucketOwner=account.id)


# "Error codes for the Amazon EC2 API": a subnet, or any resource of a call that tags, does not exist.
_GONE_CODES = frozenset({"InvalidID", "InvalidSubnetID.NotFound"})


def remove_subnet_tags(
    account: Account, cluster: str, tags: Iterable[SubnetTag], report: Report
) -> tuple[SubnetTag, ...]:
    """Remove tags of subnets; return those that were removed. Tags that are gone already are no error.

    A tag is removed only with the value that it had when it was read. What AWS refuses is reported, and stays.

    Args:
        report: receives the step, and a notice about each subnet whose tags cannot be removed.
    """
    tags_by_subnet: dict[str, list[SubnetTag]] = {}
    for tag in tags:
        tags_by_subnet.setdefault(tag.subnet, []).append(tag)
    if tags_by_subnet:
        report(Step(f"removing the tags of {cluster} from {pluralize(len(tags_by_subnet), 'existing subnet')}"))
    removed: list[SubnetTag] = []
    for subnet, subnet_tags in tags_by_subnet.items():
        if _remove_from_subnet(account, cluster, subnet, subnet_tags, report):
            removed += subnet_tags
    return tuple(removed)


def _remove_from_subnet(account: Account, cluster: str, subnet: str, tags: Iterable[SubnetTag], report: Report) -> bool:
    """Remove tags of one subnet; return whether they were removed, and report why if they were not."""
    try:
        with translate_aws_errors():
            account.client("ec2").delete_tags(
                Resources=[subnet], Tags=[{"Key": tag.key, "Value": tag.value} for tag in tags]
            )
    except AwsError as error:
        if error.aws_code not in _GONE_CODES:
            report(Notice(f"the tags of {cluster} could not be removed from {subnet}: {error}", error.hint))
        return False
    return True
