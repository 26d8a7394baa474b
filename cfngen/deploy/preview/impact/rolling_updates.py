"""What a plan says of a node group's rolling update: how many nodes at a time, in how many batches, and how long."""

from __future__ import annotations

from cfngen.cluster.instances.rolling_updates import batch_timeout, rolling_update
from cfngen.cluster.model import NodeGroup
from cfngen.cluster.naming.logical_ids import NodeGroupId, pascal
from cfngen.deploy.preview.impact.context import ChangeContext

# From this many batches on, a plan says how long a rolling update may take, also if the cluster file says nothing of
# how nodes are replaced.
_MANY_BATCHES = 10


def pace(context: ChangeContext) -> str:
    """Return at what pace the nodes of a group are replaced: `one at a time`, or how many, and in which time.

    Args:
        context: the change of the node group's Auto Scaling group.
    """
    group = _node_group(context)
    if group is None:
        return "one at a time"
    size = context.instance_count or group.initial_size
    update = rolling_update(context.cluster, group, size)
    text = "one at a time" if update.batch_size == 1 else f"{update.batch_size} at a time"
    if update.surge:
        text += f", after {update.surge} more {'has' if update.surge == 1 else 'have'} been launched"
    elif group.update.max_surge:
        text += f", without a surge: it has {size} nodes already, and its maximum is {group.max_size}"
    is_usual = group.update.batch_size == 1 and not group.update.max_surge and not group.update.pause
    if update.batch_count > 1 and (not is_usual or update.batch_count >= _MANY_BATCHES):
        text += (
            f", in {update.batch_count} batches of at most {batch_timeout(context.cluster, group)} minutes each "
            f"({_hours(update.max_minutes)} in all)"
        )
    return text


def _hours(minutes: int) -> str:
    """Return a number of minutes as text: in minutes up to two hours, else in hours, rounded up."""
    return f"{minutes} minutes" if minutes <= 120 else f"{-(-minutes // 60)} hours"


def _node_group(context: ChangeContext) -> NodeGroup | None:
    """Return the node group of the cluster file to which the Auto Scaling group belongs; None for that of a master."""
    logical_id = NodeGroupId.parse(context.change.logical_id)
    if logical_id is None:
        return None
    return next((group for group in context.cluster.node_groups if pascal(group.name) == logical_id.group), None)
