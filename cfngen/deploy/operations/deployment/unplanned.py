"""Compares what an executed change set touches with what the plan named.

A plan is made from what CloudFormation tells beforehand, and that is not everything. So the events of the operation are
compared with it: a resource that the plan does not name is reported at once, since its consequences were not agreed to.
"""

from __future__ import annotations

from cfngen.cluster.naming.logical_ids import ClusterFileId, MasterId
from cfngen.deploy.aws.protection import PROTECTED_TYPES
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, NESTED_STACK
from cfngen.deploy.messages.message import Danger, Event, Impact, Message, Report, UnplannedChange
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.watching.progress import operation_of_status

# Reason of the first event of a replacement, as AWS's user guide has it ("Update behaviors of stack resources" names
# the behavior, events have this text). If it changes, a replacement is reported as an update.
_REPLACEMENT_REASON = "Requested update requires the creation of a new physical resource"
_REVERTING_STATUSES = ("ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS")


class PlanWitness:
    """Passes on the messages of an operation, and reports each resource that it touches unplanned, once."""

    def __init__(self, report: Report) -> None:
        self.unplanned: list[UnplannedChange] = []
        self._report = report

    def compare_with(self, *plans: Plan) -> Report:
        """Return a function that reports the messages of the next operation, which these plans describe."""
        stacks = [stack for plan in plans for stack in plan.stacks]
        named = {(stack.path, change.logical_id) for stack in stacks for change in stack.changes}
        # A plan need not list what is in a stack that is created or deleted as a whole.
        whole_stacks = {stack.path for stack in stacks if stack.action != "update"}
        # Stacks that go back to what they were; the root also once it has ended, as another operation may follow.
        ignored_stacks: set[tuple[str, ...]] = set()

        def report(message: Message) -> None:
            self._report(message)
            if not isinstance(message, Event):
                return
            has_ended = not message.path and not message.status.endswith("_IN_PROGRESS")
            if message.of_stack and (has_ended or message.status in _REVERTING_STATUSES):
                ignored_stacks.add(message.path)
            enclosing = {message.path[:length] for length in range(len(message.path) + 1)}
            is_expected = (message.path, message.logical_id) in named or enclosing & (whole_stacks | ignored_stacks)
            is_unlisted = message.of_stack or message.type == NESTED_STACK or ClusterFileId.parse(message.logical_id)
            if not is_expected and not is_unlisted:
                self._add(message)

        return report

    def _add(self, event: Event) -> None:
        if any((known.path, known.logical_id) == (event.path, event.logical_id) for known in self.unplanned):
            return
        is_replaced = event.reason.startswith(_REPLACEMENT_REASON)
        action = "replace" if is_replaced else operation_of_status(event.status)
        change = UnplannedChange(event.path, event.logical_id, event.type, action, _impact(event, action))
        self.unplanned.append(change)
        self._report(change)


def _impact(event: Event, action: str) -> Impact | None:
    """Return the worst that an unplanned change may mean: what changes in the resource is not known."""
    if action in ("replace", "delete") and event.type in PROTECTED_TYPES:
        return Impact("its data or its address may be lost", Danger.DANGEROUS)
    if event.type != AUTO_SCALING_GROUP or action == "create":
        return None
    whose = "the master's instance" if MasterId.parse(event.logical_id) else "the group's instances"
    return Impact(f"{whose} may be replaced", Danger.DISRUPTIVE)
