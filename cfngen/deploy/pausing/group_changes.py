"""The calls that pause and resume one Auto Scaling group; each may be repeated."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from cfngen.cluster.names import DRAIN_HOOK
from cfngen.cluster.tag_keys import PAUSED
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import error_code
from cfngen.deploy.inspection.machines import GroupView
from cfngen.deploy.pausing.kept_sizes import Sizes, tag_value

HELD = "Terminating:Wait"
"""Lifecycle state of an instance that a lifecycle hook keeps until it is drained."""
RETRY_INTERVAL_SECONDS = 10.0
MAX_ATTEMPTS = 12
# "You already have a pending update to an Amazon EC2 Auto Scaling resource", "there are scaling activities in progress"
# (errors of UpdateAutoScalingGroup and of CreateOrUpdateTags, Amazon EC2 Auto Scaling API Reference).
_TRANSIENT_CODES = frozenset({"ResourceContention", "ScalingActivityInProgress", "ResourceInUse"})


def keep_sizes(account: Account, group: GroupView, since: datetime) -> None:
    """Write the current sizes of a group into its tag, unless it keeps sizes already."""
    if group.kept:
        return
    tag = {**_tag_identity(group), "Value": tag_value(group.sizes, since), "PropagateAtLaunch": False}
    _call(account, "create_or_update_tags", Tags=[tag])


def forget_sizes(account: Account, group: GroupView) -> None:
    """Remove the tag of a group, if it has one."""
    if group.kept:
        _call(account, "delete_tags", Tags=[_tag_identity(group)])


def set_sizes(account: Account, group: GroupView, sizes: Sizes) -> None:
    """Set the sizes of a group, unless it has them already."""
    if group.sizes != sizes:
        _call(
            account,
            "update_auto_scaling_group",
            AutoScalingGroupName=group.id,
            MinSize=sizes.minimum,
            MaxSize=sizes.maximum,
            DesiredCapacity=sizes.desired,
        )


def end_drains(account: Account, groups: Iterable[GroupView]) -> int:
    """Let the instances terminate that a lifecycle hook keeps until they are drained; return how many there were."""
    from botocore.exceptions import ClientError

    count = 0
    for group in groups:
        for instance in group.instances:
            if instance.lifecycle != HELD:
                continue
            try:
                account.client("autoscaling").complete_lifecycle_action(
                    AutoScalingGroupName=group.id,
                    LifecycleHookName=DRAIN_HOOK,
                    InstanceId=instance.id,
                    LifecycleActionResult="CONTINUE",
                )
                count += 1
            except ClientError as error:
                # The instance has been drained meanwhile, or a hook of the user's keeps it.
                if error_code(error) != "ValidationError":
                    raise
    return count


def _tag_identity(group: GroupView) -> dict[str, object]:
    """Return what identifies the tag of a group in a call."""
    return {"ResourceId": group.id, "ResourceType": "auto-scaling-group", "Key": PAUSED}


def _call(account: Account, operation: str, **arguments: object) -> None:
    """Call an operation of Auto Scaling; repeat it while another change of the group is in progress."""
    from botocore.exceptions import ClientError

    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            getattr(account.client("autoscaling"), operation)(**arguments)
        except ClientError as error:
            if error_code(error) not in _TRANSIENT_CODES or attempt == MAX_ATTEMPTS:
                raise
            account.clock.sleep(RETRY_INTERVAL_SECONDS)
        else:
            return
