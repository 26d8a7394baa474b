"""What a plan means for etcd's quorum if not every master works, and what is left of it after masters failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cfngen.cluster.instances.rolling_updates import QUORUM_WAIT_MINUTES
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.deploy.access.cluster_access import FindApiUrlOverride
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.groups import GroupView, find_groups
from cfngen.deploy.aws.stacks import StackView, find_stack, list_resource_tree
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.messages.next_steps import NextStep
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.status.cluster_problems import KubernetesReading, Problem, etcd_quorum, find_failing_masters
from cfngen.deploy.status.validation import try_read_kubernetes
from cfngen.deploy.watching.diagnosis import Diagnosis
from cfngen.hints import SuggestedCommand
from cfngen.text import join_and, pluralize, verb_form

_KEEP_IS_SAFER = (
    "If a master fails, the rollback replaces those before it again, while the failed one may be away; with "
    "--on-failure keep they stay as they are, and the API with them"
)


def judge_quorum(
    account: Account, stack: StackView, groups: Sequence[GroupView], plan: Plan, find_url_override: FindApiUrlOverride
) -> Plan:
    """Return the plan with what it means that masters do not work while others are replaced.

    Masters are replaced one after another, in the order of their slots, and so are they by a rollback: a plan that
    would cost the quorum is dangerous, even if it repairs the failing master later, and even though masters wait for
    each other and then leave the rest a quorum (`boot.master.termination`): that rest may be a single member.
    """
    masters = [group for group in groups if group.role == "master"]
    replaced = _replaced_slots(plan)
    if len(masters) < 2 or not replaced:
        return plan
    failing = find_failing_masters(masters, try_read_kubernetes(account, stack, find_url_override))
    if not failing and len(replaced) > 1 and plan.on_failure == "ROLLBACK" and not plan.replaces:
        return _with_impact(plan, Impact(_KEEP_IS_SAFER))
    working = [slot for slot in replaced if slot not in failing]
    needed = etcd_quorum(len(masters))
    working_count = len(masters) - len(failing)
    # Without a quorum there is none to lose, and new instances may bring it back.
    if not failing or not working or working_count < needed:
        return plan
    reasons = "; ".join(f"master {slot} does not work: {reason}" for slot, reason in failing.items())
    if working_count > needed:
        text = f"{reasons}. etcd keeps its quorum if no other master fails while one is replaced"
        return _with_impact(plan, Impact(text, Danger.DISRUPTIVE))
    text = (
        f"{reasons}. While {_titles(working)} {'is' if len(working) == 1 else 'are'} replaced, etcd has "
        f"{working_count - 1} of {pluralize(len(masters), 'member')} and needs {needed}, also during a rollback. A "
        f"master waits up to {QUORUM_WAIT_MINUTES} minutes for the others; then the members that do not work leave "
        f"etcd, and the API is served by {working_count - 1} alone until they are replaced. Masters of earlier "
        f"versions of cfngen do not wait: the API is away. Replace or repair {_titles(list(failing))} first"
    )
    return _with_impact(plan, Impact(text, Danger.DANGEROUS))


def add_control_plane(
    account: Account, cluster: Cluster, find_url_override: FindApiUrlOverride, diagnosis: Diagnosis
) -> Diagnosis:
    """Return the diagnosis of a failed update or rollback of masters, with what is left of the control plane.

    If nothing can be read of it, or no master is concerned, the diagnosis is returned as it is.
    """
    failures = filter(None, (diagnosis.cause, *diagnosis.others, *diagnosis.rollback_failures))
    if diagnosis.action == "create" or not any(MasterId.parse(failure.event.logical_id) for failure in failures):
        return diagnosis
    try:
        with translate_aws_errors():
            stack = find_stack(account, diagnosis.stack_id)
            if stack is None or not stack.status.exists:
                return diagnosis
            resources = [resource.view for resource in list_resource_tree(account, stack.id)]
            masters = [group for group in find_groups(account, cluster, resources) if group.role == "master"]
    except AwsError:
        return diagnosis
    reading = try_read_kubernetes(account, stack, find_url_override)
    steps = diagnosis.next_steps
    if len(masters) > 1 and diagnosis.action == "update" and stack.status.is_back:
        purpose = "does so, too, and a failure then leaves masters that work as they are: a rollback replaces them"
        command = SuggestedCommand("deploy", (("--on-failure", "keep"), ("--stack-name", stack.name)))
        steps = (*steps, NextStep(command, purpose))
    return replace(diagnosis, control_plane=describe_control_plane(masters, reading), next_steps=steps)


def describe_control_plane(masters: Sequence[GroupView], reading: KubernetesReading | Problem) -> str:
    """Return whether the API answers, how many masters work and how many members etcd needs.

    Args:
        reading: what the Kubernetes API says; if it could not be read, masters count that are in service.
    """
    failing = find_failing_masters(masters, reading)
    number, working = len(masters), len(masters) - len(failing)
    if isinstance(reading, Problem):
        api = f"The API {reading.text}"
        members = f"{working} of {pluralize(number, 'master')} {verb_form(working, 'are')} in service, and etcd needs"
    else:
        problems = f", but is not ready ({', '.join(reading.readiness.failing)})"
        api = "The API answers" + ("" if reading.readiness.ready else problems)
        members = f"etcd has {working} of {pluralize(number, 'member')} and needs"
    reasons = "".join(f"; master {slot}: {reason}" for slot, reason in failing.items())
    return f"{api}; {members} {etcd_quorum(number)}{reasons}."


def _replaced_slots(plan: Plan) -> list[str]:
    """Return the slots whose instances the plan replaces, also those in which a failed update is tried again."""
    updated = [
        change.logical_id
        for change in plan.changes
        if change.action == "update" and change.impact and change.impact.danger is not Danger.NONE
    ]
    tried_again = [path.rpartition("/")[2] for path in (*plan.unfinished, *plan.retries)]
    masters = (MasterId.parse(logical_id) for logical_id in (*updated, *tried_again))
    return sorted({master.letter for master in masters if master and master.part == "AutoScalingGroup"})


def _titles(slots: Sequence[str]) -> str:
    return join_and([f"master {slot}" for slot in slots])


def _with_impact(plan: Plan, impact: Impact) -> Plan:
    return replace(
        plan,
        predicted=(*plan.predicted, impact),
        danger=max(plan.danger, impact.danger, key=lambda danger: danger.rank),
    )
