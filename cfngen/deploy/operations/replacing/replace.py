"""Replaces one instance of a cluster by a new one of its group, and waits until that works.

Everything that can be refused is refused before anything changes. What is under way is never disturbed: a second run,
or one after Ctrl-C, only waits. Auto Scaling itself launches the new instance, and tries again and again while EC2
refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from cfngen.cluster.model import Cluster
from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.cluster_access import FindApiUrlOverride
from cfngen.deploy.aws import consoles
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import suppress_codes, translate_aws_errors
from cfngen.deploy.aws.groups import GroupView, InstanceView, describe_groups, find_groups, find_resized_groups
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.message import Consent, Question, Report, Step
from cfngen.deploy.operations.replacing.master_type import (
    SlotTemplate,
    UnsuitableTypeError,
    check_type,
    launch_type,
    read_slot_template,
)
from cfngen.deploy.operations.replacing.members import (
    Member,
    UnknownInstanceError,
    check_quorum,
    find_member,
)
from cfngen.deploy.operations.replacing.messages import (
    Replaced,
    ReplacementDetachedError,
    ReplacementInProgressError,
    ReplacementPlan,
    consequences_of,
)
from cfngen.deploy.operations.replacing.replacement_watch import ReplacementWatch
from cfngen.deploy.operations.runner import Operation
from cfngen.deploy.preflight.pausing import ensure_not_paused
from cfngen.deploy.preflight.stack_checks import require_idle_stack
from cfngen.deploy.status.cluster_problems import KubernetesReading, Problem, why_not_working
from cfngen.deploy.status.validation import try_read_kubernetes
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, Hint, SuggestedCommand, suggest

LAUNCH_ALLOWANCE = timedelta(minutes=15)
"""Added to the timeout of an instance's boot: the old instance has to be terminated first."""


class GroupStoppedError(CfngenError):
    """The group launches no instances at the moment, since somebody stopped it."""

    code = "group-stopped"


def replace(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    name: str,
    *,
    instance_type: str = "",
    consent: Consent,
    report: Report,
    find_url_override: FindApiUrlOverride = cluster_access.no_api_url_override,
    timeout: timedelta | None = None,
) -> Replaced:
    """Replace an instance, after consent, and wait until the new one works.

    Args:
        name: an instance id, or the letter of a master's slot.
        instance_type: the type of the new master; empty for the type that its group launches.
        timeout: how long to wait; None derives it from the cluster file.

    Raises:
        NoStackError: there is no stack of this name.
        ForeignStackError: the stack belongs to another cluster.
        BusyError: a CloudFormation operation is in progress.
        UnknownInstanceError: nothing of the cluster has this name.
        UnsuitableTypeError: the type cannot run this master, or the instance is not a master.
        QuorumError: etcd would lose its quorum.
        GroupStoppedError: the group launches no instances at the moment.
        PausedError: the cluster is paused, so that it has no instances.
        ReplacementInProgressError: the instance is being replaced by one of another type.
        DeclinedError: the user declined.
        ReplacementFailedError: the new instance does not work before the timeout; the same command continues.
        ReplacementDetachedError: the user interrupted the command; Auto Scaling continues.
        AwsError: a call failed; the same command continues.
    """
    with translate_aws_errors():
        stack = require_idle_stack(account, stack_name, cluster.name)
        ensure_not_paused(account, stack, cluster)
        replacement = _Replacement(account, stack, cluster, report, consent, find_url_override)
        return replacement.run(name, instance_type, timeout)


@dataclass(frozen=True)
class _Situation:
    """What is to be done about an instance.

    Attributes:
        template: the launch template of a master's slot; None for other groups.
        new_type: the type that a master's group has yet to be given; empty if it launches the right one.
        zone: the zone of the new instance; empty if its group has several.
        reading: what the Kubernetes API says, or why it could not be read.
        boot_failure: what has failed in the boot of the instance, which is therefore replaced; else empty.
    """

    member: Member
    template: SlotTemplate | None
    pending: bool
    new_type: str
    instance_type: str
    zone: str
    reading: KubernetesReading | Problem
    boot_failure: str


@dataclass
class _Replacement(Operation):
    find_url_override: FindApiUrlOverride

    def run(self, name: str, instance_type: str, timeout: timedelta | None) -> Replaced:
        groups = self._find_groups()
        member = find_member(groups, name)
        situation = self._look(member, groups, instance_type)
        question = None if situation.pending else Question(f"Replace {member.title} of {self.cluster.name}?")
        retry_command = SuggestedCommand(f"replace {name}")
        new_instance = self.carry_out(
            self._plan(situation, groups),
            question,
            lambda: self._take_steps(situation, retry_command, timeout),
            ReplacementDetachedError(
                f"Auto Scaling replaces {member.title} without cfngen",
                hint=CommandText(retry_command, " waits for it again; ", suggest("status"), " shows the instances."),
            ),
        )
        template = situation.template
        is_retyped = template is not None and new_instance.type != template.stack_type
        return Replaced(
            cluster=self.cluster.name,
            role=member.group.role,
            group=member.group.name,
            old_instance=member.instance.id if member.instance else "",
            instance=new_instance.id,
            instance_type=new_instance.type,
            zone=new_instance.zone,
            stack_type=template.stack_type if template and is_retyped else "",
            seconds=self.seconds,
        )

    def _take_steps(
        self, situation: _Situation, retry_command: SuggestedCommand, timeout: timedelta | None
    ) -> InstanceView:
        self._change_type(situation)
        self._terminate(situation)
        return self._wait(situation, retry_command, timeout)

    def _find_groups(self) -> tuple[GroupView, ...]:
        groups = tuple(group for group in find_groups(self.account, self.cluster, self.resources) if not group.missing)
        if not groups:
            raise UnknownInstanceError(
                f"the stack {self.stack.name} ({self.stack.status}) has no instances",
                hint=CommandText(suggest("status"), " shows which resources exist."),
            )
        return groups

    def _look(self, member: Member, groups: tuple[GroupView, ...], wanted_type: str) -> _Situation:
        if wanted_type and not member.is_master:
            key = "bastion.instanceType" if member.group.role == "bastion" else "instanceTypes of its node group"
            raise UnsuitableTypeError(
                f"{member.title} is no master, and only a master gets another type by this command",
                hint=CommandText(f"set {key} in the cluster file, then ", suggest("deploy"), "."),
            )
        description = next(describe_groups(self.account, [member.group.id]), {})
        self._check_group_launches(member, description)
        reading = self._read_kubernetes()
        template = read_slot_template(self.account, description) if member.is_master else None
        launched_type = template.type if template else (member.instance.type if member.instance else "")
        new_type = wanted_type if template and wanted_type and wanted_type != template.type else ""
        pending = self._is_pending(member, reading)
        masters = [group for group in groups if group.role == "master"]
        boot_failure = ""
        # Without the API, nobody knows whether the other masters could do without this one.
        if pending and (len(masters) == 1 or isinstance(reading, KubernetesReading)):
            boot_failure = self._read_boot_failure(member)
            pending = not boot_failure
        if pending and new_type and member.instance and not member.instance.leaving:
            raise ReplacementInProgressError(
                f"{member.title} is being replaced already, by {member.instance.id} of type {member.instance.type}",
                hint=CommandText(
                    SuggestedCommand(f"replace {member.group.name}"), " waits for it; choose another type afterwards."
                ),
            )
        zones = list(description.get("AvailabilityZones", ()))
        zone = str(zones[0]) if len(zones) == 1 else ""
        if template and new_type:
            check_type(self.account, new_type, template, zone, member)
        if member.is_master and not pending:
            check_quorum(member, masters, reading)
        return _Situation(
            member=member,
            template=template,
            pending=pending and not new_type,
            new_type=new_type,
            instance_type=new_type or launched_type,
            zone=zone,
            reading=reading,
            boot_failure=boot_failure,
        )

    def _is_pending(self, member: Member, reading: KubernetesReading | Problem) -> bool:
        """Return whether the instance is leaving, is missing in its slot, or is a new one that does not work yet."""
        instance = member.instance
        if instance is None or instance.leaving:
            return True
        if not member.is_master or instance.launched is None:
            return False
        is_ready = isinstance(reading, KubernetesReading) and not why_not_working(instance, reading)
        boot_limit = timedelta(minutes=self.cluster.control_plane.creation_timeout)
        is_young = self.account.clock.now() - instance.launched < boot_limit
        return is_young and not is_ready

    def _read_boot_failure(self, member: Member) -> str:
        if member.instance is None or member.instance.leaving:
            return ""
        return consoles.read_instance_console(self.account, member.instance.id).failure

    def _check_group_launches(self, member: Member, description: AwsObject) -> None:
        suspended = {process["ProcessName"] for process in description.get("SuspendedProcesses", ())}
        stopped = sorted(suspended & {"Launch", "Terminate"})
        if stopped:
            raise GroupStoppedError(
                f"the group of {member.title} ({member.group.id}) does not replace instances: its processes "
                f"{', '.join(stopped)} are suspended",
                hint=f"aws autoscaling resume-processes --region {self.account.region} --auto-scaling-group-name "
                f"{member.group.id} resumes them.",
            )
        if member.group.desired == 0:
            raise GroupStoppedError(
                f"nothing would take the place of {member.title}: the desired capacity of its group "
                f"({member.group.id}) is 0, and its sizes are {member.group.minimum} to {member.group.maximum}",
                hint=self._raising_hint(member.group),
            )

    def _raising_hint(self, group: GroupView) -> Hint:
        """Return how a group that has been reduced to nothing launches instances again."""
        for resized in find_resized_groups(self.account.region, [group], self.stack.values):
            return f"`{resized.command}` puts back the sizes that the stack has."
        if group.maximum == 0:
            return CommandText("set a maxSize in the cluster file, then ", suggest("deploy"), ".")
        return (
            f"`aws autoscaling set-desired-capacity --desired-capacity 1 --region {self.account.region} "
            f"--auto-scaling-group-name {group.id}` raises it."
        )

    def _read_kubernetes(self) -> KubernetesReading | Problem:
        return try_read_kubernetes(self.account, self.stack, self.find_url_override)

    def _plan(self, situation: _Situation, groups: tuple[GroupView, ...]) -> ReplacementPlan:
        member = situation.member
        return ReplacementPlan(
            cluster=self.cluster.name,
            region=self.account.region,
            account=self.account.id,
            role=member.group.role,
            group=member.group.name,
            instance=member.instance.id if member.instance else "",
            zone=situation.zone,
            instance_type=situation.instance_type,
            pending=situation.pending,
            consequences=consequences_of(
                self.cluster,
                self.stack,
                member,
                master_count=sum(group.role == "master" for group in groups),
                template=situation.template,
                new_type=situation.new_type,
                pending=situation.pending,
                boot_failure=situation.boot_failure,
            ),
        )

    def _change_type(self, situation: _Situation) -> None:
        if situation.template and situation.new_type:
            self.report(Step(f"letting {situation.member.title} launch {situation.new_type}"))
            launch_type(self.account, situation.member.group.id, situation.template, situation.new_type)

    def _terminate(self, situation: _Situation) -> None:
        instance = situation.member.instance
        if not situation.pending and instance is not None and not instance.leaving:
            self.report(Step(f"terminating {instance.id} of {situation.member.group.title}"))
            # Auto Scaling has no error code of its own for an instance that was terminated meanwhile.
            with suppress_codes(("ValidationError",)):
                self.account.client("autoscaling").terminate_instance_in_auto_scaling_group(
                    InstanceId=instance.id, ShouldDecrementDesiredCapacity=False
                )

    def _wait(self, situation: _Situation, command: SuggestedCommand, timeout: timedelta | None) -> InstanceView:
        member = situation.member
        is_new_instance = situation.pending and member.instance is not None and not member.instance.leaving
        old_ids = {instance.id for instance in member.group.instances if instance.leaving}
        if member.instance and not is_new_instance:
            old_ids.add(member.instance.id)
        staying = [instance for instance in member.group.instances if instance.id not in old_ids]
        watch = ReplacementWatch(
            self.account,
            member.title,
            instance_type=situation.instance_type,
            zone=situation.zone,
            old_ids=old_ids,
            find_group=self._group_finder(member.group),
            read_kubernetes=None if member.group.role == "bastion" else self._read_kubernetes,
            needed_count=min(member.group.desired, self._working_count(staying, situation.reading) + 1),
            report=self.report,
            command=command,
        )
        return watch.wait(timeout or self._default_timeout(member))

    def _working_count(self, instances: list[InstanceView], reading: KubernetesReading | Problem) -> int:
        """Return how many of some instances work now: are Ready Nodes, or in service if that is not known."""
        in_service = [instance for instance in instances if instance.in_service]
        if isinstance(reading, Problem):
            return len(in_service)
        nodes = reading.nodes_by_instance_id
        return sum(1 for instance in in_service if instance.id in nodes and nodes[instance.id].ready)

    def _group_finder(self, group: GroupView) -> Callable[[], GroupView]:
        resources = [resource for resource in self.resources if resource.physical_id == group.id]

        def find() -> GroupView:
            [current] = find_groups(self.account, self.cluster, resources)
            return current

        return find

    def _default_timeout(self, member: Member) -> timedelta:
        boot_minutes, drain_minutes = self.cluster.control_plane.creation_timeout, 0
        if not member.is_master:
            node_groups = self.cluster.node_groups
            # The bastion is in no node group, nor are nodes of one that the cluster file no longer has.
            named = [group for group in node_groups if group.name == member.group.name] or node_groups
            boot_minutes = max((group.creation_timeout for group in named), default=boot_minutes)
            drain_minutes = max((group.drain_timeout for group in named), default=0)
        return timedelta(minutes=boot_minutes + drain_minutes) + LAUNCH_ALLOWANCE
