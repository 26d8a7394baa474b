"""Ends a pause: gives the Auto Scaling groups the sizes that their tags keep, and waits until the cluster works.

    check -> plan -> consent -> masters and bastion -> API and etcd healthy -> nodes -> Ready -> remove the tags

Only groups that may have no instance get sizes: others have theirs from an earlier run of this command, from an
interrupted pause, or from a person. So the same command continues what was interrupted at any point, and never takes
back what cluster-autoscaler or a person has changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.cluster_access import FindApiUrlOverride
from cfngen.deploy.aws import consoles
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ThrottledError, UnreachableError, translate_aws_errors
from cfngen.deploy.aws.groups import ONE_INSTANCE, GroupView, Sizes, find_groups
from cfngen.deploy.aws.pause import PauseState, find_pause
from cfngen.deploy.messages.message import Notice, Question, Report, Step
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.operations.pausing import group_changes
from cfngen.deploy.operations.pausing.reports import GroupPlan, Resumed, ResumePlan, ResumeProgress
from cfngen.deploy.operations.runner import Operation, rounds
from cfngen.deploy.preflight.pausing import check_groups_exist, check_resumable
from cfngen.deploy.preflight.stack_checks import require_idle_stack
from cfngen.deploy.status.cluster_problems import STATIC_PODS, ClusterState, Problem, find_working_problems
from cfngen.deploy.status.validation import read_cluster_state
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import minutes_text

LAUNCH_TIMEOUT = timedelta(minutes=15)
"""Added to the timeout of an instance's boot: EC2 may lack capacity for some minutes."""
POLL_INTERVAL_SECONDS = 10.0
_MASTER_ROLES = ("master", "bastion")


class ResumeTimeoutError(CfngenError):
    """Masters or nodes do not work before the timeout."""

    code = "resume-timeout"


class ResumeInterruptedError(CfngenError):
    """The user interrupted the command."""

    code = "resume-interrupted"


def resume(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    interaction: Interaction,
    *,
    find_url_override: FindApiUrlOverride = cluster_access.no_api_url_override,
    timeout: timedelta | None = None,
) -> Resumed:
    """End the pause of a cluster, after confirmation; continue an earlier run that was interrupted.

    Args:
        timeout: how long to wait for masters, and then for nodes; zero does not wait at all; None derives it from the
            cluster file.

    Raises:
        NoStackError: there is no stack of this name.
        ForeignStackError: the stack belongs to another cluster.
        BusyError: a CloudFormation operation is in progress.
        CannotResumeError: a group cannot launch instances, or its tag is damaged.
        DeclinedError: the user declined.
        ResumeTimeoutError: the cluster does not work before the timeout; the same command continues.
        ResumeInterruptedError: the user interrupted the command; the same command continues.
        AwsError: a call failed; the same command continues.
    """
    with translate_aws_errors():
        stack = require_idle_stack(account, stack_name, cluster.name)
        readiness = ReadinessWait(account, stack_name, cluster, find_url_override, interaction.report)
        return _Resuming(account, stack, cluster, interaction.report, interaction.consent, readiness, timeout).run()


@dataclass
class _Resuming(Operation):
    readiness: ReadinessWait
    timeout: timedelta | None

    def run(self) -> Resumed:
        groups = self._groups()
        check_groups_exist(groups, self.stack.name)
        current_pause = find_pause(groups)
        if current_pause is None and not any(_sizes_to_restore(group) for group in groups):
            return Resumed(cluster=self.cluster.name, changed=False, waited=False, seconds=0.0)
        check_resumable(self.account, groups)
        waits = self.timeout is None or self.timeout > timedelta(0)
        self.carry_out(
            self._plan(groups, current_pause),
            Question(f"Resume {self.cluster.name}?"),
            lambda: self._take_steps(waits=waits),
            ResumeInterruptedError(
                f"the end of the pause of {self.cluster.name} was interrupted; launched instances go on booting",
                hint=CommandText(suggest("resume"), " continues; ", suggest("pause"), " pauses the cluster again."),
            ),
        )
        return Resumed(cluster=self.cluster.name, changed=True, waited=waits, seconds=self.seconds)

    def _take_steps(self, *, waits: bool) -> None:
        self._start("master", "bastion")
        if waits:
            master_timeout = timedelta(minutes=self.cluster.control_plane.creation_timeout) + LAUNCH_TIMEOUT
            self.readiness.wait("master", self.timeout or master_timeout)
        self._start("node")
        if waits:
            minutes = max((group.creation_timeout for group in self.cluster.node_groups), default=0)
            self.readiness.wait("node", self.timeout or timedelta(minutes=minutes) + LAUNCH_TIMEOUT)
        for group in reversed(self._groups()):  # the masters last
            group_changes.forget_sizes(self.account, group)

    def _groups(self) -> tuple[GroupView, ...]:
        return find_groups(self.account, self.cluster, self.resources)

    def _plan(self, groups: Sequence[GroupView], current_pause: PauseState | None) -> ResumePlan:
        for group in groups:
            if group.maximum == 0 and not group.kept and group.role == "node":
                self.report(
                    Notice(
                        f"{group.title} has no instances, and no tag keeps its sizes: it stays as it is",
                        f"give it sizes: aws autoscaling update-auto-scaling-group --region {self.account.region} "
                        f"--auto-scaling-group-name {group.id} {_size_options(self.cluster.node_groups, group)}",
                    )
                )
        return ResumePlan(
            cluster=self.cluster.name,
            region=self.account.region,
            account=self.account.id,
            pause=current_pause,
            groups=tuple(_group_plan(group) for group in groups),
        )

    def _start(self, *roles: str) -> None:
        restored = [
            (group, sizes)
            for group in self._groups()
            if group.role in roles and (sizes := _sizes_to_restore(group)) is not None
        ]
        if instances := group_changes.describe_instances((group, sizes.desired) for group, sizes in restored):
            self.report(Step(f"launching {instances}"))
        for group, sizes in restored:
            group_changes.set_sizes(self.account, group, sizes)


def _sizes_to_restore(group: GroupView) -> Sizes | None:
    """Return the sizes that a group gets; None if it keeps those that it has."""
    if group.maximum > 0:
        return None
    if group.kept:
        return group.kept.sizes
    # No cluster file asks for a master, or a bastion, without instances: the tag must have been removed.
    return None if group.role == "node" else ONE_INSTANCE


def _group_plan(group: GroupView) -> GroupPlan:
    sizes = _sizes_to_restore(group) or group.sizes
    note = ""
    kept_sizes = group.kept.sizes if group.kept else None
    # The desired capacity may have been changed by cluster-autoscaler, the limits only by a person.
    if kept_sizes and (sizes.minimum, sizes.maximum) != (kept_sizes.minimum, kept_sizes.maximum):
        note = f"set since the pause began, and left as they are; before it: {kept_sizes}"
    return GroupPlan.of(group, sizes, note)


def _size_options(node_groups: Sequence[NodeGroup], group: GroupView) -> str:
    for node_group in node_groups:
        if node_group.name == group.name:
            return f"--min-size {node_group.min_size} --max-size {node_group.max_size}"
    return "--min-size MIN --max-size MAX"


@dataclass(frozen=True)
class ReadinessWait:
    """Waits for the masters or the nodes of one cluster, and reports every change."""

    account: Account
    stack_name: str
    cluster: Cluster
    find_url_override: FindApiUrlOverride
    report: Report

    def wait(self, role: Literal["master", "node"], timeout: timedelta) -> None:
        """Return as soon as all masters with the API, or all nodes, are ready.

        Raises:
            AwsError: a call failed; transient errors are raised only after the timeout.
        """
        previous: tuple[Problem, ...] = ()
        for elapsed in rounds(self.account.clock, timeout, POLL_INTERVAL_SECONDS):
            try:
                state = read_cluster_state(self.account, self.stack_name, self.cluster, self.find_url_override)
            except (ThrottledError, UnreachableError):
                if elapsed >= timeout:
                    raise
            else:
                problems = self._problems(state, role)
                if not problems:
                    return
                if problems != previous:
                    sentences = tuple(problem.sentence for problem in problems)
                    self.report(
                        ResumeProgress(phase=f"{role}s", waiting_for=sentences, seconds=elapsed.total_seconds())
                    )
                    previous = problems
                if elapsed >= timeout:
                    raise self._timeout_error(state, role, problems, elapsed)

    def _problems(self, state: ClusterState, role: str) -> tuple[Problem, ...]:
        """Return what does not work yet of the API and of the groups of a role, with nodes also what is left to remove.

        Masters include the bastion.
        """
        groups = tuple(
            group for group in state.groups if group.role in (_MASTER_ROLES if role == "master" else (role,))
        )
        instances = {instance.id for group in groups for instance in group.instances}
        # A Node is named after its instance.
        subjects = {*instances, *(f"{pod}-{instance}" for pod in STATIC_PODS for instance in instances)}
        if role == "node":
            # By now the masters' controllers work, which remove what is left of the time before the pause.
            subjects |= state.leftovers
        return tuple(
            problem
            for problem in find_working_problems(replace(state, groups=groups), self.cluster)
            if problem.area in ("api", "group") or problem.subject in subjects
        )

    def _timeout_error(
        self, state: ClusterState, role: str, problems: tuple[Problem, ...], elapsed: timedelta
    ) -> ResumeTimeoutError:
        texts = [problem.sentence for problem in problems]
        for group in state.groups:
            if group.role == role and group.in_service < group.desired:
                texts += consoles.read_launch_failures(self.account, group.id)[:1]
        return ResumeTimeoutError(
            f"not all {role}s are ready after {minutes_text(elapsed.total_seconds())}: {'; '.join(texts)}",
            hint=CommandText(
                suggest("resume"), " continues waiting; with --wait 0s it ends the pause without waiting for anything."
            ),
        )
