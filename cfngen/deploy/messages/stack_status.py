"""Every status a stack can have, and which operations it allows.

Other modules do not parse status names: `UPDATE_ROLLBACK_COMPLETE` ends in COMPLETE, but means that the last operation
failed. Source: CloudFormation user guide, "Stack status codes", and the API reference of each call.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StackHealth(StrEnum):
    """Which operations a status allows. The values appear in JSON output."""

    ABSENT = "absent"  # there is no stack
    EMPTY = "empty"  # REVIEW_IN_PROGRESS: only a change set has been created, no resources
    HEALTHY = "healthy"  # may be updated
    PAUSED = "paused"  # failed with rollback disabled: may be updated again, rolled back, or deleted
    DELETE_ONLY = "dead"  # the creation failed and was rolled back: may only be deleted
    UPDATE_ROLLBACK_FAILED = "stuck"  # the rollback may be continued, or the stack deleted
    IMPORT_ROLLBACK_FAILED = "lost"  # may only be deleted: CloudFormation can continue only rollbacks of updates
    DELETE_FAILED = "undeleted"  # may be deleted again
    BUSY = "busy"  # an operation is in progress


_HEALTH_BY_STATUS = {
    "REVIEW_IN_PROGRESS": StackHealth.EMPTY,
    "CREATE_COMPLETE": StackHealth.HEALTHY,
    "UPDATE_COMPLETE": StackHealth.HEALTHY,
    "IMPORT_COMPLETE": StackHealth.HEALTHY,
    "UPDATE_ROLLBACK_COMPLETE": StackHealth.HEALTHY,
    "IMPORT_ROLLBACK_COMPLETE": StackHealth.HEALTHY,
    "CREATE_FAILED": StackHealth.PAUSED,
    "UPDATE_FAILED": StackHealth.PAUSED,
    "ROLLBACK_COMPLETE": StackHealth.DELETE_ONLY,
    "ROLLBACK_FAILED": StackHealth.DELETE_ONLY,
    "UPDATE_ROLLBACK_FAILED": StackHealth.UPDATE_ROLLBACK_FAILED,
    "IMPORT_ROLLBACK_FAILED": StackHealth.IMPORT_ROLLBACK_FAILED,
    "DELETE_FAILED": StackHealth.DELETE_FAILED,
    "DELETE_COMPLETE": StackHealth.ABSENT,
    "": StackHealth.ABSENT,
}
_SUCCEEDED_STATUSES = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE", "DELETE_COMPLETE"})

_ROLLED_BACK_STATUSES = frozenset(
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
    def health(self) -> StackHealth:
        """Which operations the status allows."""
        # A status that is not in the table is *_IN_PROGRESS, or unknown to cfngen, which then starts no operation.
        return _HEALTH_BY_STATUS.get(self.name, StackHealth.BUSY)

    @property
    def in_progress(self) -> bool:
        """Whether an operation is in progress."""
        return self.health is StackHealth.BUSY

    @property
    def exists(self) -> bool:
        """Whether the stack exists, even if it has no resources."""
        return self.health is not StackHealth.ABSENT

    @property
    def succeeded(self) -> bool:
        """Whether the last operation succeeded."""
        return self.name in _SUCCEEDED_STATUSES

    @property
    def rolled_back(self) -> bool:
        """Whether a rollback succeeded; the rollback of a creation that never succeeded deletes the stack."""
        return self.name in _ROLLED_BACK_STATUSES

    @property
    def is_back(self) -> bool:
        """Whether the last operation did not succeed, and the stack is as it was before it."""
        return self.rolled_back and self.health is StackHealth.HEALTHY

    @property
    def rolling_back(self) -> bool:
        """Whether a rollback is in progress, which means that the operation before it failed."""
        return self.in_progress and "ROLLBACK" in self.name

    @property
    def cleaning_up(self) -> bool:
        """Whether the operation has succeeded or been rolled back, and only old resources are still being deleted."""
        return self.name.endswith("_CLEANUP_IN_PROGRESS")

    @property
    def cancellable(self) -> bool:
        """Whether CloudFormation accepts CancelUpdateStack."""
        return self.name == "UPDATE_IN_PROGRESS"

    @property
    def can_be_ended(self) -> bool:
        """Whether the operation in progress can be cancelled: an update by CancelUpdateStack, a creation by deletion.

        CloudFormation cannot cancel a deletion or a rollback.
        """
        return self.cancellable or self.name in ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS")

    @property
    def change_set_type(self) -> str:
        """Type of change set that CloudFormation accepts: CREATE or UPDATE; empty if none."""
        if self.health in (StackHealth.ABSENT, StackHealth.EMPTY):
            return "CREATE"
        return "UPDATE" if self.health in (StackHealth.HEALTHY, StackHealth.PAUSED) else ""
