"""What a plan means for etcd's quorum if not every master works when it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cfngen.cluster.instances.rolling_updates import QUORUM_WAIT_MINUTES
from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.deploy.access.cluster_access import FindApiUrlOverride
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.groups import GroupView
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.status.cluster_problems import Problem, etcd_quorum, find_failing_masters
from cfngen.deploy.status.validation import read_kubernetes
from cfngen.errors import CfngenError
from cfngen.text import join_and, pluralize


def judge_quorum(
    account: Account, stack: StackView, groups: Sequence[GroupView], plan: Plan, find_url_override: FindApiUrlOverride
) -> Plan:
    """Return the plan with what it means that masters do not work while others are replaced.

    Masters are replaced one after another, in the order of their slots, and so are they by a rollback: a plan that
    would cost the quorum is dangerous, even if it repairs the failing master later, and even though masters wait for
    each other and then leave the rest a quorum (`boot.master.termination`): that rest may be a single member.

    Args:
        groups: the Auto Scaling groups of the cluster.
    """
    masters = [group for group in groups if group.role == "master"]
    replaced = _replaced_slots(plan)
    if len(masters) < 2 or not replaced:
        return plan
    try:
        with translate_aws_errors():
            reading = read_kubernetes(account, stack, find_url_override)
    except CfngenError as error:
        reading = Problem("api", "API server", f"cannot be queried: {error}")
    failing = find_failing_masters(masters, reading)
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


def _replaced_slots(plan: Plan) -> list[str]:
    """Return the slots whose instances the plan replaces."""
    slots = {
        master.letter
        for change in plan.changes
        if (master := MasterId.parse(change.logical_id)) and master.part == "AutoScalingGroup"
        if change.action == "update" and change.impact and change.impact.danger is not Danger.NONE
    }
    return sorted(slots)


def _titles(slots: Sequence[str]) -> str:
    return join_and([f"master {slot}" for slot in slots])


def _with_impact(plan: Plan, impact: Impact) -> Plan:
    return replace(
        plan,
        predicted=(*plan.predicted, impact),
        danger=max(plan.danger, impact.danger, key=lambda danger: danger.rank),
    )
