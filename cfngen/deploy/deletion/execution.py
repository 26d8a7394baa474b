"""Deleting a cluster, with everything that Kubernetes made and CloudFormation does not know of.

    look -> consent -> Kubernetes deletes its load balancers -> sweep -> delete the stack, sweeping again where it fails
         -> volumes and templates, if told -> account for everything

Every step looks for what is there, so a deletion that was interrupted anywhere goes on when it is asked for again, even
if the stack is gone by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.deletion import (
    backups,
    blockers,
    custody,
    deletion_report,
    orphan_removal,
    retained,
    stack_removal,
    volumes,
)
from cfngen.deploy.deletion.blockers import Blocker, OccupiedError
from cfngen.deploy.deletion.custody import Choose, Custody, Held
from cfngen.deploy.deletion.deletion_report import Counted
from cfngen.deploy.deletion.drain import Drain
from cfngen.deploy.deletion.draining import Draining
from cfngen.deploy.deletion.orphan_removal import LivingNamesakeError
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, Removed
from cfngen.deploy.deletion.plan import DeletionPlan, DeletionRequest, PreparedDeletion, plan_deletion
from cfngen.deploy.deletion.retained import Retained
from cfngen.deploy.deletion.scope import Scope, of_stack
from cfngen.deploy.messages import Event, Message, Notice, Question, Report, Step
from cfngen.deploy.publishing import template_objects
from cfngen.deploy.recovery import BusyError, DeclinedError, Interaction, busy
from cfngen.deploy.stacks import GROUP, StackResource, StackView, find, tree
from cfngen.deploy.status import StackHealth
from cfngen.errors import CfngenError
from cfngen.text import join_and, pluralize, verb_form

DELETABLE_AT_WORK = frozenset({"CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS"})


@dataclass(frozen=True)
class Deleted(Message):
    """A deletion has ended.

    Attributes:
        cluster: name of the cluster.
        region: the region.
        stack: name of the root.
        stack_id: its ARN; empty if there was none.
        status: its status; empty if there is none any more.
        succeeded: whether nothing is left but what was announced.
        goes_on: whether CloudFormation goes on without cfngen.
        seconds: how long CloudFormation took, from its first event to its last; without any, how long it took.
        counted: by kind, what is gone and what is left of the stacks' resources.
        removed: what Kubernetes had made, and is gone.
        retained: what stays, why, and how to get rid of it.
        leftovers: what Kubernetes had made, and could not be removed.
        obstacles: what others have in the way of the stack's deletion.
        objects: how many versions of templates were deleted.
        bucket_deleted: whether the bucket of the templates was deleted.
        namesake: which other cluster of this name lives in the region, in a sentence; empty if there is none.
    """

    kind: ClassVar[str] = "deleted"
    cluster: str
    region: str
    stack: str
    stack_id: str
    status: str
    succeeded: bool
    goes_on: bool
    seconds: float
    counted: tuple[Counted, ...] = ()
    removed: tuple[OrphanedResource, ...] = ()
    retained: tuple[Retained, ...] = ()
    leftovers: tuple[OrphanedResource, ...] = ()
    obstacles: tuple[Blocker, ...] = ()
    objects: int = 0
    bucket_deleted: bool = False
    namesake: str = ""


def survey(account: Account, request: DeletionRequest) -> DeletionPlan:
    """Find out what deleting a cluster would do; nothing is changed.

    Raises:
        ForeignStackError: the stack is not this cluster's.
        AwsError: a call failed.
    """
    with translate_aws_errors():
        return plan_deletion(account, request).survey


def rehearse(account: Account, request: DeletionRequest) -> tuple[DeletionPlan, CfngenError | None]:
    """Find out what deleting a cluster would do, and why `delete` would refuse to; nothing is changed.

    Raises:
        ForeignStackError: the stack is not this cluster's.
        AwsError: a call failed.
    """
    with translate_aws_errors():
        found = plan_deletion(account, request)
        try:
            _refuse(account, request, found)
        except (BusyError, OccupiedError, template_objects.TemplatesInUseError, LivingNamesakeError) as refusal:
            return found.survey, refusal
    return found.survey, None


def delete(
    account: Account,
    request: DeletionRequest,
    waiting: Interaction,
    *,
    drain: Drain | None = None,
    choose: Choose = Custody,
) -> Deleted:
    """Delete a cluster, after consent.

    Args:
        account: where it is.
        request: what is to be deleted, and how far.
        waiting: who is told and asked.
        drain: asks Kubernetes to delete its load balancers; None where it cannot be asked.
        choose: asks what is to become of the certificate authorities where the request does not say.

    Raises:
        ForeignStackError: the stack is not this cluster's.
        BusyError: another operation is under way.
        OccupiedError: others use the cluster's network.
        TemplatesInUseError: another stack lives on the templates that are to go.
        LivingNamesakeError: what is to be removed may be another cluster's.
        UnreadableAuthoritiesError: no copy of the certificate authorities can be kept.
        CopyError: the copy's file cannot be written.
        DeclinedError: the user said no.
        AwsError: a call failed; asked for again, the deletion goes on.
    """
    with translate_aws_errors():
        return _Deletion(account, request, waiting, drain, choose).run()


class _Deletion:
    def __init__(
        self, account: Account, request: DeletionRequest, waiting: Interaction, drain: Drain | None, choose: Choose
    ) -> None:
        self.account = account
        self.request = request
        self.waiting = waiting
        self.drain = drain
        self.choose = choose
        self.custody: Custody | None = None
        self.copies: tuple[Retained, ...] = ()
        self.report: Report = self._told
        self.began = account.clock.now()
        self.events: list[datetime] = []
        self.removed: dict[tuple[str, str], OrphanedResource] = {}
        self.remaining: tuple[OrphanedResource, ...] = ()
        self.obstacles: tuple[Blocker, ...] = ()

    def run(self) -> Deleted:
        """Delete the cluster."""
        found = plan_deletion(self.account, self.request)
        self.waiting.report(found.survey)
        _refuse(self.account, self.request, found)
        held = self._authorities(found)
        if not self._agreed(found):
            raise DeclinedError
        self.began = self.account.clock.now()  # what somebody takes to answer is no part of it
        if self.custody:
            self.copies = custody.keep(self.account, self.request.cluster, held, self.custody, self.report)
        stack = found.stack
        if stack is None:
            return self._finish(found, None)
        draining = Draining(self.account, found.scope.alive(GROUP), self.report)
        if stack.status.name != "DELETE_IN_PROGRESS":
            self._drain(found)
            self._sweep(found.scope, patiently=True)
            if self.request.detach:
                stack_removal.start(self.account, stack, self.report)
                draining.off()
                return self._result(found, find(self.account, stack.id), goes_on=True)
        after = stack_removal.remove(
            self.account,
            stack,
            replace(self.waiting, report=self.report),
            groups=found.scope.alive(GROUP),
            sweeping=lambda patiently: self._swept_meanwhile(found, patiently=patiently),
            searching=lambda: self._in_the_way(found),
            leave_behind=self.request.leave_behind,
            begun=draining.off,
        )
        if after and not after.status.in_progress:
            draining.on()
        if after and after.status.in_progress:
            return self._result(found, after, goes_on=True)
        return self._finish(found, after)

    def _seconds(self) -> float:
        """Return how long CloudFormation has taken; where it had nothing to do, how long everything else has."""
        if self.events:
            return (max(self.events) - min(self.events)).total_seconds()
        return (self.account.clock.now() - self.began).total_seconds()

    def _authorities(self, found: PreparedDeletion) -> tuple[Held, ...]:
        """Find out what of the certificate authorities is to be kept, and how; nothing is changed."""
        chosen = self.request.authorities
        if chosen is None and found.survey.status == "DELETE_IN_PROGRESS":
            # Somebody has decided, and their secret may go at any moment.
            return ()
        destroyed = chosen is not None and chosen.how == "destroy"
        held = custody.read(self.account, found.survey.authorities, needed=not destroyed)
        if held:
            self.custody = chosen or self.choose()
        return held

    def _told(self, message: Message) -> None:
        if isinstance(message, Removed):
            self.removed[message.leftover.kind, message.leftover.id] = message.leftover
        elif isinstance(message, Event):
            self.events.append(message.time)
        self.waiting.report(message)

    def _agreed(self, found: PreparedDeletion) -> bool:
        stack, name = found.stack, self.request.cluster
        going = self._going(found)
        if stack and stack.status.standing is StackHealth.EMPTY and not going:
            text = f"Delete the empty stack {stack.name} and the change sets in it? Nothing has been created from them."
            return self.waiting.consent(Question(text))
        if not going:
            # Nothing is there, or somebody has agreed already to the deletion that is under way.
            return True
        if stack is None or stack.status.standing is StackHealth.EMPTY:
            text = f"Delete what is left of the cluster {name}?"
        elif found.survey.by_console:
            text = f"Delete {stack.name}, which was made from cfngen's templates but not by `cfngen deploy`?"
        else:
            text = f"Delete the cluster {name} and everything in it?"
        return self.waiting.consent(Question(text, (*going, *self._remarks(found)), dangerous=True, name=name))

    def _going(self, found: PreparedDeletion) -> list[str]:
        """What is lost by going on."""
        stack, shown, told = found.stack, found.survey, []
        if stack and stack.status.standing is not StackHealth.EMPTY and stack.status.name != "DELETE_IN_PROGRESS":
            told.append(f"the stack {stack.name} ({stack.status}) goes, with every instance of the cluster")
            if shown.by_console:
                told.append("its maker works in the console, and may not know of this")
            if stack.protected:
                told.append("its termination protection is lifted")
            if self.custody:
                told.append(self.custody.consequence)
            if shown.obstacles:
                told.append("the network stays for what others have in it, and may lose its way to the internet")
        if shown.removed:
            told.append(f"{_counted(shown.removed)} that Kubernetes made {verb_form(len(shown.removed), 'go')} too")
        if data := _data(self.request, found):
            told.append(f"{_counted(data, ' of claims')} {verb_form(len(data), 'go')} too, with all data")
        if self.request.empty_bucket and shown.objects:
            where = f"s3://{self.request.bucket}/{self.request.cluster}/"
            told.append(f"{pluralize(shown.objects, 'object version')} in {where} {verb_form(shown.objects, 'go')}")
        if self.request.delete_bucket:
            told.append(f"the bucket {self.request.bucket} goes if nothing is left in it")
        return told

    def _remarks(self, found: PreparedDeletion) -> list[str]:
        number = len(found.survey.volumes)
        if number and not self.request.delete_volumes:
            return [f"{pluralize(number, 'volume of claims', 'stay')}, and {verb_form(number, 'go')} on being billed"]
        return []

    def _drain(self, found: PreparedDeletion) -> None:
        """Let Kubernetes delete its load balancers if it can; what it does not do is done by the sweep."""
        if self.drain is None or not found.scope.instances:
            return
        self.report(Step("asking Kubernetes to delete its load balancers"))
        try:
            left = self.drain(self.report)
        except CfngenError as error:
            self.report(Notice(f"Kubernetes could not be asked to delete its load balancers: {error}"))
            return
        if left:
            self.report(Notice(f"Kubernetes has not deleted the load balancers of {', '.join(left)} in time"))

    def _sweep(self, scope: Scope, *, patiently: bool) -> None:
        """Remove what Kubernetes made and holds the network."""
        patience = orphan_removal.PATIENCE if patiently else 0.0
        self.remaining = orphan_removal.sweep(self.account, scope, self.report, patience=patience).remaining

    def _swept_meanwhile(self, found: PreparedDeletion, *, patiently: bool) -> None:
        """Sweep once more; the stack's deletion does not depend on it."""
        try:
            with translate_aws_errors():
                # What was there at first is told from Kubernetes' things by the stack's resources of then; after a
                # failure there is time to look at all of them again.
                stack = find(self.account, found.survey.stack_id) if patiently else None
                now = replace(self._scope(stack), namesakes=found.scope.namesakes) if stack else found.scope
                self._sweep(now, patiently=patiently)
        except (AwsError, LivingNamesakeError) as error:
            self.report(Notice(f"leftovers could not be removed: {error}", error.hint))

    def _in_the_way(self, found: PreparedDeletion) -> tuple[Blocker, ...]:
        """Find what others have in the way by now; the stack's deletion does not depend on it."""
        self.obstacles = ()
        try:
            with translate_aws_errors():
                stack = find(self.account, found.survey.stack_id)
                if stack:
                    scope = replace(self._scope(stack), namesakes=found.scope.namesakes)
                    self.obstacles = blockers.find(self.account, scope, orphan_removal.find(self.account, scope))
        except AwsError as error:
            self.report(Notice(f"what is in the way could not be looked for: {error}", error.hint))
        return self.obstacles

    def _scope(self, stack: StackView) -> Scope:
        return of_stack(
            self.account,
            stack,
            cluster=self.request.cluster,
            vpc_id=self.request.vpc_id,
            pod_cidr=self.request.pod_cidr,
        )

    def _finish(self, found: PreparedDeletion, after: StackView | None) -> Deleted:
        """Do what can only be done once nothing runs any more."""
        objects, bucket_deleted = 0, False
        if after is None:
            try:
                self._sweep(found.scope, patiently=True)
                self.remaining += volumes.remove(self.account, _data(self.request, found), self.report)
            except LivingNamesakeError as error:
                self.report(Notice(str(error), error.hint))
            self.remaining += orphan_removal.sweep_routes(self.account, found.scope, self.report).remaining
            objects, bucket_deleted = self._templates()
        return self._result(found, after, objects=objects, bucket_deleted=bucket_deleted)

    def _templates(self) -> tuple[int, bool]:
        objects, bucket_deleted, bucket = 0, False, self.request.bucket
        if bucket and (self.request.empty_bucket or self.request.delete_bucket):
            there = template_objects.find(self.account, bucket, self.request.cluster)
            if there.versions and self.request.empty_bucket:
                self.report(
                    Step(f"deleting {pluralize(there.versions, 'object version')} in s3://{bucket}/{there.prefix}")
                )
                objects = template_objects.empty(self.account, bucket, self.request.cluster)
            if there.bucket and self.request.delete_bucket:
                bucket_deleted = template_objects.delete_bucket(self.account, bucket)
                if not bucket_deleted:
                    self.report(Notice(f"the bucket {bucket} stays: something else is in it"))
        return objects, bucket_deleted

    def _result(
        self,
        found: PreparedDeletion,
        after: StackView | None,
        *,
        goes_on: bool = False,
        objects: int = 0,
        bucket_deleted: bool = False,
    ) -> Deleted:
        members = _refreshed(self.account, found)
        return Deleted(
            cluster=self.request.cluster,
            region=self.account.region,
            stack=self.request.stack_name,
            stack_id=found.survey.stack_id,
            status=after.status.name if after and after.status.exists else "",
            succeeded=after is None and not self.remaining and not goes_on,
            goes_on=goes_on,
            seconds=self._seconds(),
            counted=() if goes_on else deletion_report.count(self.account, found.scope),
            removed=tuple(self.removed.values()),
            retained=self.copies if goes_on else self._retained(found, members),
            leftovers=self.remaining,
            obstacles=self.obstacles if after and after.status.exists else (),
            objects=objects,
            bucket_deleted=bucket_deleted,
            namesake=found.survey.namesake,
        )

    def _retained(self, found: PreparedDeletion, members: Sequence[StackResource]) -> tuple[Retained, ...]:
        account, request, scope = self.account, self.request, found.scope
        told = self.removed.keys() | {(each.kind, each.id) for each in self.remaining}
        claimed = [volume for volume in found.survey.volumes if (volume.kind, volume.id) not in told]
        copies = [snapshot for snapshot in found.survey.snapshots if (snapshot.kind, snapshot.id) not in told]
        # What only the cluster's name says is not listed with a command while another cluster of that name lives.
        named = not found.survey.namesake
        bucket = template_objects.find(account, request.bucket, request.cluster) if request.bucket and named else None
        return (
            *retained.left_by_stacks(account, [member for member in members if member.view.type not in backups.KEPT]),
            *self.copies,
            *retained.snapshots(account, scope, copy=next((copy.id for copy in self.copies), "")),
            *retained.keys(account, scope),
            *retained.secrets(account, scope),
            *backups.snapshots(account, scope, found.stack.outputs if found.stack else {}),
            *retained.of_leftovers(account, claimed, "data of a claim, kept unless --delete-volumes is given"),
            *retained.of_leftovers(account, copies, "snapshot of a claim, kept unless --delete-snapshots is given"),
            *(retained.templates(bucket) if bucket else ()),
            *(retained.log_groups(account, request.cluster) if named else ()),
            *(retained.given(scope, tuple(found.stack.parameters.items())) if found.stack else ()),
        )


def _refuse(account: Account, request: DeletionRequest, found: PreparedDeletion) -> None:
    stack = found.stack
    if stack and stack.status.in_progress and stack.status.name not in DELETABLE_AT_WORK:
        raise busy(account, stack)
    if found.survey.obstacles and not request.even_if_occupied:
        raise OccupiedError(request.cluster, found.survey.obstacles)
    if found.contested:
        raise LivingNamesakeError(request.cluster, found.survey.namesake)
    if request.empty_bucket:
        template_objects.check_unused(account, request.cluster, found.survey.stack_id)
    orphan_removal.check_namesake(account, found.scope, (*found.survey.removed, *_data(request, found)))


def _data(request: DeletionRequest, found: PreparedDeletion) -> tuple[OrphanedResource, ...]:
    """What holds data and goes all the same."""
    return (
        *(found.survey.volumes if request.delete_volumes else ()),
        *(found.survey.snapshots if request.delete_snapshots else ()),
    )


def _refreshed(account: Account, found: PreparedDeletion) -> tuple[StackResource, ...]:
    """Return the stacks' resources as they are now; those of deleted stacks are listed by ARN."""
    root = found.stack.id if found.stack else ""
    return tree(account, root) if root else found.scope.resources


def _counted(found: Sequence[OrphanedResource], whose: str = "") -> str:
    """`2 load balancers and 1 volume`."""
    kinds = Counter(each.kind for each in found)
    return join_and([pluralize(number, f"{kind}{whose}") for kind, number in kinds.items()])
