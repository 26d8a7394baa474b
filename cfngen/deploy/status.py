"""Every status a stack can have, and what may be done in it.

The one place where the names are taken apart: `UPDATE_ROLLBACK_COMPLETE` ends in COMPLETE and yet means that the last
operation failed. Source: CloudFormation user guide, "Stack status codes", and the API reference of each call.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class StackHealth(str, Enum):
    """What a status means to somebody who wants to change the stack."""

    ABSENT = "absent"  # there is no stack
    EMPTY = "empty"  # a change set is or was in review; nothing has been created
    HEALTHY = "healthy"  # may be updated
    PAUSED = "paused"  # failed with rollback off, half done: update again, roll back, or delete
    DEAD = "dead"  # a failed creation: may only be deleted
    STUCK = "stuck"  # the rollback of an update failed: continue it, or delete
    LOST = "lost"  # the rollback of an import failed: CloudFormation continues only those of updates
    UNDELETED = "undeleted"  # a deletion failed: delete again
    BUSY = "busy"  # an operation is under way


_STANDINGS = {
    "REVIEW_IN_PROGRESS": StackHealth.EMPTY,
    "CREATE_COMPLETE": StackHealth.HEALTHY,
    "UPDATE_COMPLETE": StackHealth.HEALTHY,
    "IMPORT_COMPLETE": StackHealth.HEALTHY,
    "UPDATE_ROLLBACK_COMPLETE": StackHealth.HEALTHY,
    "IMPORT_ROLLBACK_COMPLETE": StackHealth.HEALTHY,
    "CREATE_FAILED": StackHealth.PAUSED,
    "UPDATE_FAILED": StackHealth.PAUSED,
    "ROLLBACK_COMPLETE": StackHealth.DEAD,
    "ROLLBACK_FAILED": StackHealth.DEAD,
    "UPDATE_ROLLBACK_FAILED": StackHealth.STUCK,
    "IMPORT_ROLLBACK_FAILED": StackHealth.LOST,
    "DELETE_FAILED": StackHealth.UNDELETED,
    "DELETE_COMPLETE": StackHealth.ABSENT,
    "": StackHealth.ABSENT,
}
_SUCCESSES = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE", "DELETE_COMPLETE"})

_TAKEN_BACK = frozenset(
    {"ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE", "DELETE_COMPLETE"}
)


@dataclass(frozen=True)
class StackStatus:
    """The status of a stack; the empty name stands for a stack that does not exist.

    Attributes:
        name: as CloudFormation spells it, e.g. `UPDATE_ROLLBACK_COMPLETE`.
    """

    name: str

    def __str__(self) -> str:
        return self.name or "absent"

    @property
    def standing(self) -> StackHealth:
        """What the status means to somebody who wants to change the stack."""
        # Whatever CloudFormation adds to its statuses is either under way or not yet understood: nothing is done in it.
        return _STANDINGS.get(self.name, StackHealth.BUSY)

    @property
    def in_progress(self) -> bool:
        """Whether an operation is under way."""
        return self.standing is StackHealth.BUSY

    @property
    def exists(self) -> bool:
        """Whether there is a stack, be it an empty one."""
        return self.standing is not StackHealth.ABSENT

    @property
    def succeeded(self) -> bool:
        """Whether the last operation ended as it was meant to."""
        return self.name in _SUCCESSES

    @property
    def taken_back(self) -> bool:
        """Whether a rollback ended as it was meant to; one of a creation that never succeeded deletes the stack."""
        return self.name in _TAKEN_BACK

    @property
    def rolling_back(self) -> bool:
        """Whether what was done is being undone, so that the failure lies in the operation before."""
        return self.in_progress and "ROLLBACK" in self.name

    @property
    def cleaning_up(self) -> bool:
        """Whether the outcome is decided and only replaced resources are still being removed."""
        return self.name.endswith("_CLEANUP_IN_PROGRESS")

    @property
    def cancellable(self) -> bool:
        """Whether CancelUpdateStack is accepted."""
        return self.name == "UPDATE_IN_PROGRESS"

    @property
    def can_be_ended(self) -> bool:
        """Whether the operation under way can be ended early: an update is cancelled, a creation deleted.

        CloudFormation has no call that ends a deletion or a rollback.
        """
        return self.cancellable or self.name in ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS")

    @property
    def change_set_kind(self) -> str:
        """Type of the change set to make: CREATE or UPDATE; empty where none is accepted."""
        if self.standing in (StackHealth.ABSENT, StackHealth.EMPTY):
            return "CREATE"
        return "UPDATE" if self.standing in (StackHealth.HEALTHY, StackHealth.PAUSED) else ""
