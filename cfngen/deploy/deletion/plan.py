"""What deleting a cluster would do: looked up before anything is asked or touched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import error_code
from cfngen.deploy.deletion import backups, blockers, orphan_removal, retained, volumes
from cfngen.deploy.deletion.blockers import Blocker
from cfngen.deploy.deletion.custody import Custody
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource
from cfngen.deploy.deletion.retained import Retained
from cfngen.deploy.deletion.scope import Scope, of_stack
from cfngen.deploy.messages import Message
from cfngen.deploy.name_conflicts import live_stacks
from cfngen.deploy.ownership import ForeignStackError, check
from cfngen.deploy.publishing import template_objects
from cfngen.deploy.publishing.template_objects import Objects
from cfngen.deploy.stacks import CLUSTER_TAG, GROUP, NESTED, StackView, find, stack_name
from cfngen.deploy.status import StackHealth
from cfngen.text import pluralize


@dataclass(frozen=True)
class DeletionRequest:
    """What is to be deleted, and how far.

    Attributes:
        stack_name: name of the root.
        cluster: name of the cluster.
        vpc_id: the existing VPC that the cluster file names; empty if the cluster makes its own.
        pod_cidr: address range of the pods.
        bucket: bucket of the templates.
        delete_volumes: whether the volumes of claims go too, with their data.
        delete_snapshots: whether the snapshots of claims go too.
        empty_bucket: whether the cluster's templates go too.
        delete_bucket: whether their bucket goes too, if nothing is left in it.
        even_if_occupied: whether to go on although others use the cluster's network.
        leave_behind: whether what cannot be deleted is left without asking.
        detach: whether not to wait for CloudFormation.
        authorities: what is to become of the certificate authorities; None asks.
    """

    stack_name: str
    cluster: str
    vpc_id: str = ""
    pod_cidr: str = ""
    bucket: str = ""
    delete_volumes: bool = False
    delete_snapshots: bool = False
    empty_bucket: bool = False
    delete_bucket: bool = False
    even_if_occupied: bool = False
    leave_behind: bool = False
    detach: bool = False
    authorities: Custody | None = None


@dataclass(frozen=True)
class Part:
    """Things of one kind that go with the stack.

    Attributes:
        kind: what they are, in the plural.
        ids: their ids.
    """

    kind: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class DeletionPlan(Message):
    """What deleting a cluster would do.

    Attributes:
        cluster: name of the cluster.
        stack: name of the root.
        stack_id: its ARN; empty if there is none.
        status: its status; empty if there is none.
        account: number of the account.
        region: the region.
        by_console: whether somebody made the stack in the console, from cfngen's templates.
        protected: whether its termination protection would be lifted.
        goes: what goes with the stack.
        removed: what Kubernetes made and goes with the cluster.
        volumes: volumes of claims.
        snapshots: snapshots of claims.
        delete_volumes: whether the volumes go too.
        delete_snapshots: whether the snapshots go too.
        stays: what is known to stay.
        obstacles: what others have in the way.
        unclear: volumes of which nobody knows the cluster.
        namesake: which other cluster of this name lives in the region, in a sentence; empty if there is none.
        theirs: what bears the name in tags or in the bucket and cannot be told from that cluster's; not touched.
        authorities: secrets that hold the certificate authorities, and go.
        objects: how many versions of templates lie in the bucket.
    """

    kind: ClassVar[str] = "survey"
    cluster: str
    stack: str
    stack_id: str
    status: str
    account: str
    region: str
    by_console: bool = False
    protected: bool = False
    goes: tuple[Part, ...] = ()
    removed: tuple[OrphanedResource, ...] = ()
    volumes: tuple[OrphanedResource, ...] = ()
    snapshots: tuple[OrphanedResource, ...] = ()
    delete_volumes: bool = False
    delete_snapshots: bool = False
    stays: tuple[Retained, ...] = ()
    obstacles: tuple[Blocker, ...] = ()
    unclear: tuple[OrphanedResource, ...] = ()
    namesake: str = ""
    theirs: tuple[Retained, ...] = ()
    authorities: tuple[str, ...] = ()
    objects: int = 0


@dataclass(frozen=True)
class PreparedDeletion:
    """A survey, and what it was made from.

    Attributes:
        stack: the root; None if there is none.
        scope: the cluster.
        survey: what deleting it would do.
        contested: what the request is to remove, if it were not another cluster's, as far as anybody can tell.
    """

    stack: StackView | None
    scope: Scope
    survey: DeletionPlan
    contested: tuple[OrphanedResource, ...] = ()


def plan_deletion(account: Account, request: DeletionRequest) -> PreparedDeletion:
    """Find out what deleting a cluster would do; nothing is changed.

    Raises:
        ForeignStackError: the stack is not this cluster's.
    """
    stack = find(account, request.stack_name)
    by_console = _claimed(account, stack, request.cluster) if stack else False
    existing = stack if stack and stack.status.exists else None
    last = stack or last_deleted(account, request)
    scope = of_stack(account, last, cluster=request.cluster, vpc_id=request.vpc_id, pod_cidr=request.pod_cidr)
    others = live_stacks(account, request.cluster, besides=stack.id if stack else "")
    scope = replace(scope, namesakes=others)
    namesake = orphan_removal.namesake(account, scope)
    told = _Told(
        orphan_removal.find(account, scope), volumes.find(account, scope), volumes.find_snapshots(account, scope)
    )
    mine, theirs = _parted(account, scope, told) if namesake else (told, _Told())
    removed, claimed, copies = mine.removed, mine.claimed, mine.copies
    logs = retained.log_groups(account, request.cluster)
    needed = request.empty_bucket or request.delete_bucket
    templates = (
        template_objects.find(account, request.bucket, request.cluster, needed=needed) if request.bucket else Objects()
    )
    survey = DeletionPlan(
        cluster=request.cluster,
        stack=request.stack_name,
        stack_id=existing.id if existing else "",
        status=existing.status.name if existing else "",
        account=account.id,
        region=account.region,
        by_console=by_console,
        protected=bool(existing and existing.protected),
        goes=tuple(_parts(scope)) if existing else (),
        removed=removed,
        volumes=claimed,
        snapshots=copies,
        delete_volumes=request.delete_volumes,
        delete_snapshots=request.delete_snapshots,
        stays=(
            *_stays(account, request, existing, scope, claimed, copies, Objects() if namesake else templates),
            *(() if namesake else logs),
        ),
        obstacles=blockers.find(account, scope, removed) if existing else (),
        unclear=volumes.unclear(account, scope),
        namesake=namesake,
        theirs=_not_ours(theirs, templates, logs) if namesake else (),
        authorities=tuple(
            resource.view.physical_id
            for resource in scope.resources
            if existing and resource.exists and resource.view.logical_id == "CaSecret"
        ),
        objects=templates.versions,
    )
    contested = (
        *theirs.removed,
        *(theirs.claimed if request.delete_volumes else ()),
        *(theirs.copies if request.delete_snapshots else ()),
    )
    return PreparedDeletion(existing, scope, survey, contested)


@dataclass(frozen=True)
class _Told:
    """What is known by its tags.

    Attributes:
        removed: what Kubernetes made and goes with the cluster.
        claimed: volumes of claims.
        copies: snapshots of claims.
    """

    removed: tuple[OrphanedResource, ...] = ()
    claimed: tuple[OrphanedResource, ...] = ()
    copies: tuple[OrphanedResource, ...] = ()


def _parted(account: Account, scope: Scope, told: _Told) -> tuple[_Told, _Told]:
    """Part what is this cluster's for another reason than its tags from what may be a living namesake's."""
    at_home = frozenset(
        each.id for each in told.removed if scope.standing and scope.vpc_id and each.vpc_id == scope.vpc_id
    )
    attached = volumes.attached(account, scope)
    return (
        _Told(
            tuple(each for each in told.removed if each.id in at_home),
            tuple(each for each in told.claimed if each.id in attached),
        ),
        _Told(
            tuple(each for each in told.removed if each.id not in at_home),
            tuple(each for each in told.claimed if each.id not in attached),
            told.copies,
        ),
    )


def _not_ours(theirs: _Told, templates: Objects, logs: Sequence[Retained]) -> tuple[Retained, ...]:
    """What is told without a command, since that would take it from a living cluster."""
    tagged = (*theirs.removed, *theirs.claimed, *theirs.copies)
    where, held = f"s3://{templates.bucket}/{templates.prefix}", pluralize(templates.versions, "object version")
    return (
        *(Retained(each.kind, each.id, each.purpose or "bears the cluster's name in its tags") for each in tagged),
        *([Retained("templates", where, f"{held} under the cluster's name")] if templates.versions else []),
        *(Retained(log.kind, log.id, log.why) for log in logs),
    )


def last_deleted(account: Account, request: DeletionRequest) -> StackView | None:
    """Return the cluster's root that was deleted last, as long as CloudFormation remembers it: 90 days."""
    pages = account.client("cloudformation").get_paginator("list_stacks")
    for page in pages.paginate(StackStatusFilter=["DELETE_COMPLETE"]):
        for stack_summary in page["StackSummaries"]:
            if stack_summary["StackName"] == request.stack_name and not stack_summary.get("ParentId"):
                # Of several CloudFormation names the latest first.
                stack = find(account, stack_summary["StackId"])
                if stack and stack.cluster in ("", request.cluster):
                    return stack
    return None


def _claimed(account: Account, stack: StackView, cluster: str) -> bool:
    """Make sure that the stack is this cluster's; return whether that is known from its template only.

    Raises:
        ForeignStackError: it is not.
    """
    if stack.parent_id:
        raise ForeignStackError(
            f"the stack {stack.name} is a part of another one",
            hint=f"name the root with --stack-name: {stack_name(stack.root_id or stack.parent_id)}.",
        )
    if stack.status.standing is StackHealth.EMPTY:
        if not stack.cluster and cluster not in _in_review(account, stack):
            raise ForeignStackError(
                f"the stack {stack.name} is in {stack.status}: it is empty, and no change set in it says that it is "
                f"for the cluster {cluster}",
                hint=f"`cfngen deploy --stack-name {stack.name}` creates the cluster in it; if nobody needs it, `aws "
                f"cloudformation delete-stack --region {account.region} --stack-name {stack.name}` removes it.",
            )
        return False
    if not stack.cluster and _template_cluster(account, stack) == cluster:
        return True
    check(stack, cluster)
    return False


def _in_review(account: Account, stack: StackView) -> Iterator[str]:
    """Clusters that the change sets of an empty stack are for; the stack itself may bear no tags yet."""
    cloudformation = account.client("cloudformation")
    for page in cloudformation.get_paginator("list_change_sets").paginate(StackName=stack.id):
        for summary in page["Summaries"]:
            found = cloudformation.describe_change_set(ChangeSetName=summary["ChangeSetId"])
            yield from (tag["Value"] for tag in found.get("Tags", ()) if tag["Key"] == CLUSTER_TAG)


def _template_cluster(account: Account, stack: StackView) -> str:
    """The cluster that a stack's template was generated for, by its metadata; empty if it is not cfngen's."""
    from botocore.exceptions import ClientError

    try:
        summary = account.client("cloudformation").get_template_summary(StackName=stack.id)
    except ClientError as error:
        if error_code(error) != "ValidationError":
            raise
        return ""
    about: Any = json.loads(summary.get("Metadata") or "{}").get("cfngen")
    whole = isinstance(about, dict) and about.get("stack") in ("cluster", "standalone")
    return str(about.get("cluster", "")) if whole else ""


def _parts(scope: Scope) -> Iterator[Part]:
    """What goes, in the words of a cluster."""
    if inside := sorted(scope.instances.keys() - scope.outsiders):
        yield Part("instances", tuple(inside))
    for kind, type_name in KINDS:
        if ids := scope.alive(type_name):
            yield Part(kind, ids)
    named = {*backups.KEPT, *(type_name for _, type_name in KINDS)}
    if others := [resource.name for resource in scope.resources if resource.exists and resource.view.type not in named]:
        yield Part("other resources", tuple(others))


def _stays(
    account: Account,
    request: DeletionRequest,
    stack: StackView | None,
    scope: Scope,
    claimed: tuple[OrphanedResource, ...],
    copies: tuple[OrphanedResource, ...],
    templates: Objects,
) -> tuple[Retained, ...]:
    found: list[Retained] = []
    if stack:
        found += [
            Retained(
                "snapshot",
                f"one of {each}",
                "CloudFormation makes it before it deletes a master's volume, so that etcd's data is not lost",
                "EBS snapshot, billed per GiB of stored data and month",
            )
            for each in scope.alive("AWS::EC2::Volume")
        ]
        found += [
            Retained(
                "KMS key",
                each,
                "KMS deletes it after a waiting period, until which it can be kept",
                "not billed while it waits",
            )
            for each in scope.alive("AWS::KMS::Key")
        ]
        found += retained.given(scope, tuple(stack.parameters.items()))
    found += backups.snapshots(account, scope, stack.outputs if stack else {})
    if not request.delete_volumes:
        found += retained.of_leftovers(account, claimed, "data of a claim; --delete-volumes deletes it")
    if not request.delete_snapshots:
        found += retained.of_leftovers(account, copies, "snapshot of a claim; --delete-snapshots deletes it")
    if not request.empty_bucket:
        found += retained.templates(templates)
    return tuple(found)


KINDS = (
    ("nested stacks", NESTED),
    ("master volumes", "AWS::EC2::Volume"),
    ("Elastic IPs", "AWS::EC2::EIP"),
    ("load balancers", "AWS::ElasticLoadBalancingV2::LoadBalancer"),
    ("Auto Scaling groups", GROUP),
    ("VPCs", "AWS::EC2::VPC"),
    ("subnets", "AWS::EC2::Subnet"),
    ("NAT gateways", "AWS::EC2::NatGateway"),
    ("security groups", "AWS::EC2::SecurityGroup"),
    ("secrets", "AWS::SecretsManager::Secret"),
    ("KMS keys", "AWS::KMS::Key"),
    ("roles", "AWS::IAM::Role"),
    ("key pairs", "AWS::EC2::KeyPair"),
)
