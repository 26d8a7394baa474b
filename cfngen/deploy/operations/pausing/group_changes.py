"""The calls that pause and resume one Auto Scaling group; each may be repeated; and what would undo a pause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from cfngen.cluster.naming.names import DRAIN_HOOK, QUORUM_HOOK
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import suppress_codes
from cfngen.deploy.aws.groups import ONE_INSTANCE, GroupView, Sizes, tag_value
from cfngen.deploy.messages.message import Notice
from cfngen.text import join_and, pluralize

HOOK_BY_ROLE = {"node": DRAIN_HOOK, "master": QUORUM_HOOK}
RETRY_INTERVAL_SECONDS = 10.0
MAX_ATTEMPTS = 12
# "You already have a pending update to an Amazon EC2 Auto Scaling resource", "there are scaling activities in progress"
# (errors of UpdateAutoScalingGroup and of CreateOrUpdateTags, Amazon EC2 Auto Scaling API Reference).
_TRANSIENT_CODES = frozenset({"ResourceContention", "ScalingActivityInProgress", "ResourceInUse"})


def keep_sizes(account: Account, group: GroupView, since: datetime) -> None:
    """Write the current sizes of a group into its tag, unless it keeps sizes already."""
    if group.kept:
        return
    # A master, or the bastion, that has no instance has lost its tag: its size is always one.
    sizes = group.sizes if group.role == "node" or group.maximum else ONE_INSTANCE
    tag = {**_tag_identity(group), "Value": tag_value(sizes, since), "PropagateAtLaunch": False}
    _call(account, "create_or_update_tags", Tags=[tag])


def forget_sizes(account: Account, group: GroupView) -> None:
    """Remove the tag of a group, if it has one."""
    if group.kept:
        _call(account, "delete_tags", Tags=[_tag_identity(group)])


def set_sizes(account: Account, group: GroupView, sizes: Sizes) -> None:
    """Set the sizes of a group, unless it has them already; with too many instances they are set again."""
    # A group that could not terminate its instances, e.g. because they were protected, tries again.
    instance_count = sum(not instance.leaving for instance in group.instances)
    if group.sizes != sizes or instance_count > sizes.maximum:
        _call(
            account,
            "update_auto_scaling_group",
            AutoScalingGroupName=group.id,
            MinSize=sizes.minimum,
            MaxSize=sizes.maximum,
            DesiredCapacity=sizes.desired,
        )


def describe_instances(counts: Iterable[tuple[GroupView, int]]) -> str:
    """Return numbers of instances of groups in words, e.g. `3 masters and the bastion`; empty if there are none."""
    count_by_role = Counter[str]()
    for group, count in counts:
        count_by_role[group.role] += count
    texts = [pluralize(count_by_role[role], role) for role in ("node", "master") if count_by_role[role]]
    if count_by_role["bastion"]:
        texts.append("the bastion")
    return join_and(texts) if texts else ""


def end_delays(account: Account, groups: Iterable[GroupView]) -> int:
    """Let the instances terminate that are being drained, or that wait for etcd; return how many there were."""
    count = 0
    for group in groups:
        for instance in group.instances:
            if not instance.held or group.role not in HOOK_BY_ROLE:
                continue
            # The delay may have ended meanwhile, or a hook of the user's keeps it.
            with suppress_codes(("ValidationError",)):
                account.client("autoscaling").complete_lifecycle_action(
                    AutoScalingGroupName=group.id,
                    LifecycleHookName=HOOK_BY_ROLE[group.role],
                    InstanceId=instance.id,
                    LifecycleActionResult="CONTINUE",
                )
                count += 1
    return count


def _tag_identity(group: GroupView) -> dict[str, object]:
    return {"ResourceId": group.id, "ResourceType": "auto-scaling-group", "Key": PAUSED}


def _call(account: Account, operation: str, **arguments: object) -> None:
    """Call an operation of Auto Scaling; repeat it while another change of the group is in progress."""
    for _ in range(MAX_ATTEMPTS - 1):
        with suppress_codes(_TRANSIENT_CODES):
            getattr(account.client("autoscaling"), operation)(**arguments)
            return
        account.clock.sleep(RETRY_INTERVAL_SECONDS)
    getattr(account.client("autoscaling"), operation)(**arguments)


def find_scheduled_actions(account: Account, groups: Iterable[GroupView]) -> Iterator[Notice]:
    """Yield a notice for each group with scheduled actions, which would give a paused group sizes again."""
    groups_by_id = {group.id: group for group in groups}
    names_by_group: dict[str, list[str]] = {}
    for action in account.items("autoscaling.describe_scheduled_actions", "ScheduledUpdateGroupActions"):
        if action["AutoScalingGroupName"] in groups_by_id:
            names_by_group.setdefault(action["AutoScalingGroupName"], []).append(action["ScheduledActionName"])
    for group_id, names in sorted(names_by_group.items()):
        text = f"{groups_by_id[group_id].title} has scheduled actions, which change its sizes also during the pause"
        yield Notice(f"{text}: {join_and(sorted(names))}", "delete them, or let them do nothing while it is paused.")
