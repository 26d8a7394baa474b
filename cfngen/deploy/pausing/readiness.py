"""Waits until the masters, or the nodes, of a cluster that is being resumed work.

What does not work is what `cfngen validate cluster` would say about these instances, their Nodes, the API server with
etcd, and the static pods of masters. Other pods are not awaited: those of a cluster without nodes cannot run yet.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Literal

from cfngen.cluster.model import Cluster
from cfngen.deploy.access.cluster_access import FindApiUrlOverride
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import ThrottledError, UnreachableError
from cfngen.deploy.inspection.cluster_problems import STATIC_PODS, ClusterState, Problem, find_working_problems
from cfngen.deploy.inspection.validation import read_cluster_state
from cfngen.deploy.messages.message import Report
from cfngen.deploy.pausing.reports import ResumeProgress
from cfngen.deploy.watching import console_output
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

POLL_INTERVAL_SECONDS = 10.0
_MASTER_ROLES = ("master", "bastion")


class ResumeTimeoutError(CfngenError):
    """Masters or nodes do not work before the timeout."""

    code = "resume-timeout"


class ReadinessWait:
    """Waits for the parts of one cluster.

    Args:
        account: the AWS account.
        stack_name: name of the root stack.
        cluster: the cluster file.
        find_url_override: returns the URL at which the API listens, if it is not the one in the stack's output.
        report: receives every change.
    """

    def __init__(
        self, account: Account, stack_name: str, cluster: Cluster, find_url_override: FindApiUrlOverride, report: Report
    ) -> None:
        self._account = account
        self._stack_name = stack_name
        self._cluster = cluster
        self._find_url_override = find_url_override
        self._report = report

    def wait(self, role: Literal["master", "node"], timeout: timedelta) -> None:
        """Return as soon as all masters with the API, or all nodes, are ready.

        Raises:
            ResumeTimeoutError: they are not before the timeout.
            AwsError: a call failed; transient errors are raised only after the timeout.
        """
        clock = self._account.clock
        started = clock.now()
        previous: tuple[Problem, ...] = ()
        while True:
            elapsed = clock.now() - started
            try:
                state = read_cluster_state(self._account, self._stack_name, self._cluster, self._find_url_override)
            except (ThrottledError, UnreachableError):
                if elapsed >= timeout:
                    raise
            else:
                problems = self._problems(state, role)
                if not problems:
                    return
                if problems != previous:
                    sentences = tuple(problem.sentence for problem in problems)
                    self._report(
                        ResumeProgress(phase=f"{role}s", waiting_for=sentences, seconds=elapsed.total_seconds())
                    )
                    previous = problems
                if elapsed >= timeout:
                    raise self._timeout_error(state, role, problems, elapsed)
            clock.sleep(POLL_INTERVAL_SECONDS)

    def _problems(self, state: ClusterState, role: str) -> tuple[Problem, ...]:
        """Return what does not work yet of the API and of the groups of a role; masters include the bastion."""
        groups = tuple(
            group for group in state.groups if group.role in (_MASTER_ROLES if role == "master" else (role,))
        )
        instances = {instance.id for group in groups for instance in group.instances}
        # A Node is named after its instance.
        subjects = {*instances, *(f"{pod}-{instance}" for pod in STATIC_PODS for instance in instances)}
        return tuple(
            problem
            for problem in find_working_problems(replace(state, groups=groups, routes=()), self._cluster)
            if problem.area in ("api", "group") or problem.subject in subjects
        )

    def _timeout_error(
        self, state: ClusterState, role: str, problems: tuple[Problem, ...], elapsed: timedelta
    ) -> ResumeTimeoutError:
        """Return the error for a timeout: what does not work, and why instances could not be launched."""
        texts = [problem.sentence for problem in problems]
        for group in state.groups:
            if group.role == role and group.in_service < group.desired:
                texts += console_output.read_launch_failures(self._account, group.id)[:1]
        return ResumeTimeoutError(
            f"not all {role}s are ready after {elapsed.total_seconds() / 60:.0f} minutes: {'; '.join(texts)}",
            hint=CommandText(
                suggest("resume"), " continues waiting; with --wait 0s it ends the pause without waiting for anything."
            ),
        )
