"""Deletes a cluster, including the AWS resources that Kubernetes created outside of the CloudFormation stacks.

The steps:

1. Plan the deletion, and ask the user to confirm it.
2. Let Kubernetes delete its load balancers.
3. Remove orphans: resources that Kubernetes created and did not delete.
4. Delete the stack; whenever that fails, remove orphans and try again.
5. Remove the cluster's tag from existing subnets that `cfngen deploy` has tagged; on request, delete volumes and
   templates.
6. Report what was deleted and what remains.

Every step looks up what exists, so a deletion that was interrupted at any point continues when it is started again,
even if the stack no longer exists by then.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from cfngen.deploy.aws import kubernetes_made, templates
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.inventory import Inventory, read_inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, StackView, find_stack, list_resource_tree
from cfngen.deploy.aws.templates import TemplateObjects
from cfngen.deploy.messages.message import Event, Message, Notice, Step
from cfngen.deploy.operations.deletion import authority_copies, removal, report, stack_removal, template_bucket
from cfngen.deploy.operations.deletion.authority_copies import AuthoritySecret, ChooseAuthorityCopy
from cfngen.deploy.operations.deletion.kubernetes import DeleteServices, TerminationHooks
from cfngen.deploy.operations.deletion.removal import OrphanRemoved
from cfngen.deploy.operations.deletion.report import Deleted
from cfngen.deploy.operations.interaction import DeclinedError, Interaction
from cfngen.deploy.plan.deletion import remaining_buckets_keys_and_logs
from cfngen.deploy.plan.deletion.plan import AuthorityCopy, DeletionPlan, DeletionRequest, PreparedDeletion
from cfngen.deploy.plan.deletion.planning import plan_deletion
from cfngen.deploy.plan.deletion.remaining_resources import DeletedCluster, find_remaining_resources
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource
from cfngen.deploy.preflight import blockers, stack_checks
from cfngen.deploy.preflight.blockers import Blocker, OccupiedError
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag
from cfngen.deploy.preflight.stack_checks import BusyError, SameNameClusterError, busy_error
from cfngen.errors import CfngenError
from cfngen.text import pluralize

DELETABLE_IN_PROGRESS = frozenset({"CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS"})


def preview_with_refusal(account: Account, request: DeletionRequest) -> tuple[DeletionPlan, CfngenError | None]:
    """Return what deleting a cluster would do, and the error with which `delete` would refuse it; nothing is changed.

    Raises:
        ForeignStackError: the stack is not this cluster's.
    """
    with translate_aws_errors():
        prepared = plan_deletion(account, request)
        try:
            _check_deletable(account, request, prepared)
        except (BusyError, OccupiedError, template_bucket.TemplatesInUseError, SameNameClusterError) as refusal:
            return prepared.plan, refusal
    return prepared.plan, None


def delete(
    account: Account,
    request: DeletionRequest,
    interaction: Interaction,
    *,
    delete_services: DeleteServices | None = None,
    choose_authority_copy: ChooseAuthorityCopy = AuthorityCopy,
) -> Deleted:
    """Delete a cluster, after confirmation.

    Args:
        delete_services: lets Kubernetes delete its load balancers; if None, the Kubernetes API is not called.
        choose_authority_copy: asks whether and where to keep a copy of the certificate authorities; called only if
            `request` does not say whether to keep a copy.

    Raises:
        ForeignStackError: the stack is not this cluster's.
        BusyError: another operation is in progress.
        OccupiedError: foreign resources use the cluster's network.
        TemplatesInUseError: another stack uses the templates to delete.
        SameNameClusterError: resources to remove may be another cluster's.
        UnreadableAuthoritiesError: no copy of the certificate authorities can be kept.
        CopyError: the copy's file cannot be written.
        DeclinedError: the user declined.
        AwsError: a call failed; when started again, the deletion continues.
    """
    with translate_aws_errors():
        return _Deletion(account, request, interaction, delete_services, choose_authority_copy).run()


@dataclass
class _Deletion:
    """One deletion of a cluster; records what it has removed so far."""

    account: Account
    request: DeletionRequest
    interaction: Interaction
    delete_services: DeleteServices | None
    choose_authority_copy: ChooseAuthorityCopy
    copy_choice: AuthorityCopy | None = None
    created_copies: tuple[RetainedResource, ...] = ()
    event_times: list[datetime] = field(default_factory=list)
    removed_by_id: dict[tuple[str, str], OrphanedResource] = field(default_factory=dict)
    remaining_orphans: tuple[OrphanedResource, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    removed_tags: tuple[SubnetTag, ...] = ()

    def __post_init__(self) -> None:
        self.started_at = self.account.clock.now()

    def run(self) -> Deleted:
        prepared = plan_deletion(self.account, self.request)
        self.interaction.report(prepared.plan)
        _check_deletable(self.account, self.request, prepared)
        secrets = self._read_authorities(prepared)
        if not report.confirm_deletion(self.request, prepared, self.copy_choice, self.interaction.consent):
            raise DeclinedError
        self.started_at = self.account.clock.now()  # without the time the user took to answer
        if self.copy_choice:
            self.created_copies = authority_copies.copy_authorities(
                self.account, self.request.cluster, secrets, self.copy_choice, self.report
            )
        stack = prepared.stack
        if stack is None:
            return self._clean_up(prepared, remaining_stack=None)
        termination_hooks = TerminationHooks(
            self.account, prepared.inventory.existing_ids(AUTO_SCALING_GROUP), self.report
        )
        if stack.status.name != "DELETE_IN_PROGRESS":
            self._drain_load_balancers(prepared)
            self._remove_orphans(prepared.inventory, wait=True)
            if self.request.detach:
                stack_removal.start_deletion(self.account, stack, self.report)
                termination_hooks.remove()
                return self._summarize(prepared, find_stack(self.account, stack.id), in_progress=True)
        remaining_stack = stack_removal.delete_stack(
            self.account,
            stack,
            replace(self.interaction, report=self.report),
            groups=prepared.inventory.existing_ids(AUTO_SCALING_GROUP),
            remove_orphans=lambda after_failure: self._try_remove_orphans(prepared, after_failure=after_failure),
            find_blockers=lambda: self._find_blockers(prepared),
            leave_behind=self.request.leave_behind,
            on_started=termination_hooks.remove,
        )
        if remaining_stack and remaining_stack.status.in_progress:
            return self._summarize(prepared, remaining_stack, in_progress=True)
        if remaining_stack:
            termination_hooks.restore()
        return self._clean_up(prepared, remaining_stack)

    def _seconds(self) -> float:
        """Return the seconds from the first to the last stack event; without events, the seconds since the start."""
        if self.event_times:
            return (max(self.event_times) - min(self.event_times)).total_seconds()
        return (self.account.clock.now() - self.started_at).total_seconds()

    def _read_authorities(self, prepared: PreparedDeletion) -> tuple[AuthoritySecret, ...]:
        """Return the certificate authorities to copy, and ask the user how to copy them; nothing is changed."""
        choice = self.request.authorities
        if choice is None and prepared.plan.status == "DELETE_IN_PROGRESS":
            # The user chose when the deletion was started, and CloudFormation may delete the secret at any moment.
            return ()
        is_destroyed = choice is not None and choice.how == "destroy"
        secrets = authority_copies.read_authorities(
            self.account, prepared.plan.authorities, must_be_readable=not is_destroyed
        )
        if secrets:
            self.copy_choice = choice or self.choose_authority_copy()
        return secrets

    def report(self, message: Message) -> None:
        """Report a message; record removed resources and event times for the result."""
        if isinstance(message, OrphanRemoved):
            self.removed_by_id[message.orphan.kind, message.orphan.id] = message.orphan
        elif isinstance(message, Event):
            self.event_times.append(message.time)
        self.interaction.report(message)

    def _drain_load_balancers(self, prepared: PreparedDeletion) -> None:
        """Let Kubernetes delete its load balancers if possible; the removal of orphans deletes the remaining ones."""
        if self.delete_services is None:
            return
        if not prepared.inventory.instances:
            if prepared.inventory.existing_ids(AUTO_SCALING_GROUP):
                # E.g. of a paused cluster.
                text = (
                    "no instance is running, so Kubernetes cannot delete its load balancers; cfngen does, by their tags"
                )
                self.report(Step(text))
            return
        self.report(Step("asking Kubernetes to delete its load balancers"))
        try:
            remaining_services = self.delete_services(self.report)
        except CfngenError as error:
            self.report(Notice(f"Kubernetes could not be requested to delete its load balancers: {error}"))
            return
        if remaining_services:
            names = ", ".join(remaining_services)
            self.report(Notice(f"Kubernetes has not deleted the load balancers of {names} in time"))

    def _remove_orphans(self, inventory: Inventory, *, wait: bool) -> None:
        timeout = removal.REMOVAL_TIMEOUT_SECONDS if wait else 0.0
        self.remaining_orphans = removal.remove_orphans(self.account, inventory, self.report, timeout=timeout).remaining

    def _try_remove_orphans(self, prepared: PreparedDeletion, *, after_failure: bool) -> None:
        """Remove orphans after a failed attempt to delete the stack, or during one; report errors."""
        try:
            with translate_aws_errors():
                # During the deletion, the resources that were listed before it are enough to recognise orphans. After
                # a failure there is time to list the remaining resources again.
                stack = find_stack(self.account, prepared.plan.stack_id) if after_failure else None
                inventory = self._read_current_inventory(prepared, stack) if stack else prepared.inventory
                self._remove_orphans(inventory, wait=after_failure)
        except (AwsError, SameNameClusterError) as error:
            self.report(Notice(f"resources that Kubernetes created could not be deleted: {error}", error.hint))

    def _find_blockers(self, prepared: PreparedDeletion) -> tuple[Blocker, ...]:
        """Return the foreign resources that now block the deletion; report errors instead of raising them."""
        self.blockers = ()
        try:
            with translate_aws_errors():
                stack = find_stack(self.account, prepared.plan.stack_id)
                if stack:
                    inventory = self._read_current_inventory(prepared, stack)
                    self.blockers = blockers.find_blockers(
                        self.account, inventory, kubernetes_made.find_orphans(self.account, inventory)
                    )
        except AwsError as error:
            self.report(Notice(f"what blocks the deletion could not be determined: {error}", error.hint))
        return self.blockers

    def _read_current_inventory(self, prepared: PreparedDeletion, stack: StackView) -> Inventory:
        inventory = read_inventory(
            self.account,
            stack,
            cluster=self.request.cluster,
            vpc_id=self.request.vpc_id,
            pod_cidr=self.request.pod_cidr,
        )
        return replace(inventory, same_name_stacks=prepared.inventory.same_name_stacks)

    def _clean_up(self, prepared: PreparedDeletion, remaining_stack: StackView | None) -> Deleted:
        """Once the stack is deleted, remove orphans, volumes, routes to pods and templates; then return the result.

        If the stack still exists, only return the result.
        """
        deleted_objects = 0
        bucket_deleted = False
        if remaining_stack is None:
            try:
                self._remove_orphans(prepared.inventory, wait=True)
                self.remaining_orphans += removal.remove_volumes(
                    self.account, prepared.plan.data_to_delete, self.report
                )
            except SameNameClusterError as error:
                self.report(Notice(str(error), error.hint))
            self.remaining_orphans += removal.remove_pod_routes(self.account, prepared.inventory, self.report).remaining
            # Load balancers of services are gone by now, so no controller looks for subnets any more.
            self.removed_tags = removal.remove_subnet_tags(
                self.account, self.request.cluster, prepared.plan.subnet_tags, self.report
            )
            removal.remove_issuer_buckets(
                self.account,
                remaining_buckets_keys_and_logs.issuer_buckets(prepared.inventory),
                self.interaction.report,
            )
            deleted_objects, bucket_deleted = self._delete_templates()
        return self._summarize(
            prepared, remaining_stack, deleted_objects=deleted_objects, bucket_deleted=bucket_deleted
        )

    def _delete_templates(self) -> tuple[int, bool]:
        """Delete the templates and their bucket, if requested; return how many objects, and whether the bucket."""
        deleted_objects = 0
        bucket_deleted = False
        bucket = self.request.bucket
        if bucket and (self.request.empty_bucket or self.request.delete_bucket):
            objects = templates.find(self.account, bucket, self.request.cluster)
            if objects.versions and self.request.empty_bucket:
                count = pluralize(objects.versions, "object version")
                self.report(Step(f"deleting {count} in s3://{bucket}/{objects.prefix}"))
                deleted_objects = template_bucket.empty(self.account, bucket, self.request.cluster)
            if objects.bucket and self.request.delete_bucket:
                bucket_deleted = template_bucket.delete_bucket(self.account, bucket)
                if not bucket_deleted:
                    self.report(Notice(f"the bucket {bucket} was not deleted: it contains other objects"))
        return deleted_objects, bucket_deleted

    def _summarize(
        self,
        prepared: PreparedDeletion,
        remaining_stack: StackView | None,
        *,
        in_progress: bool = False,
        deleted_objects: int = 0,
        bucket_deleted: bool = False,
    ) -> Deleted:
        """Return the result, with what was removed and what remains; the remaining stack is None if it is deleted."""
        return Deleted(
            cluster=self.request.cluster,
            region=self.account.region,
            stack=self.request.stack_name,
            stack_id=prepared.plan.stack_id,
            status=remaining_stack.status.name if remaining_stack and remaining_stack.status.exists else "",
            succeeded=remaining_stack is None and not self.remaining_orphans and not in_progress,
            in_progress=in_progress,
            seconds=self._seconds(),
            counted=() if in_progress else report.count_deleted_resources(self.account, prepared.inventory),
            removed=tuple(self.removed_by_id.values()),
            retained=self.created_copies if in_progress else self._find_remaining_resources(prepared),
            orphans=self.remaining_orphans,
            subnet_tags=self.removed_tags,
            blockers=self.blockers if remaining_stack and remaining_stack.status.exists else (),
            objects=deleted_objects,
            bucket_deleted=bucket_deleted,
            name_conflict=prepared.plan.name_conflict,
        )

    def _find_remaining_resources(self, prepared: PreparedDeletion) -> tuple[RetainedResource, ...]:
        """Return the resources that remain in the account, except those in the result's `removed` and `orphans`."""
        account, request, stack, plan = self.account, self.request, prepared.stack, prepared.plan
        reported_keys = self.removed_by_id.keys() | {(orphan.kind, orphan.id) for orphan in self.remaining_orphans}
        # The templates of another cluster of this name would be in the same folder.
        finds_templates = request.bucket and not plan.name_conflict
        return find_remaining_resources(
            DeletedCluster(
                "after",
                account,
                request.stack_name,
                prepared.inventory,
                list_resource_tree(account, stack.id) if stack else prepared.inventory.resources,
                stack=stack,
                role_names=request.role_names,
                is_name_unique=not plan.name_conflict,
                volumes=[volume for volume in plan.volumes if (volume.kind, volume.id) not in reported_keys],
                snapshots=[copy for copy in plan.snapshots if (copy.kind, copy.id) not in reported_keys],
                templates=templates.find(account, request.bucket, request.cluster)
                if finds_templates
                else TemplateObjects(),
                subnet_tags=prepared.remaining_tags,
                authority_copies=self.created_copies,
            )
        )


def _check_deletable(account: Account, request: DeletionRequest, prepared: PreparedDeletion) -> None:
    stack = prepared.stack
    if stack and stack.status.in_progress and stack.status.name not in DELETABLE_IN_PROGRESS:
        raise busy_error(account, stack)
    if prepared.plan.blockers and not request.even_if_occupied:
        raise OccupiedError(request.cluster, prepared.plan.blockers)
    if prepared.contested:
        raise SameNameClusterError(request.cluster, prepared.plan.name_conflict)
    if request.empty_bucket:
        template_bucket.check_unused(account, request.cluster, prepared.plan.stack_id)
    stack_checks.check_name_conflict(
        account, prepared.inventory, (*prepared.plan.removed, *prepared.plan.data_to_delete)
    )
