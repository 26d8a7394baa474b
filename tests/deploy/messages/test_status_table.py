"""What each status of a stack means, as "Stack status codes" of CloudFormation's user guide has it."""

from __future__ import annotations

import pytest

from cfngen.deploy.messages.stack_status import StackHealth, StackStatus

# Standing, whether the last operation succeeded, whether a rollback did, whether one is going on, and what may be done.
ROWS = [
    ("", "absent", "", "CREATE"),
    ("REVIEW_IN_PROGRESS", "empty", "can be ended", "CREATE"),
    ("CREATE_IN_PROGRESS", "busy", "can be ended", ""),
    ("CREATE_COMPLETE", "healthy", "succeeded", "UPDATE"),
    ("CREATE_FAILED", "paused", "", "UPDATE"),
    ("ROLLBACK_IN_PROGRESS", "busy", "rolling back", ""),
    ("ROLLBACK_COMPLETE", "dead", "rolled back", ""),
    ("ROLLBACK_FAILED", "dead", "", ""),
    ("UPDATE_IN_PROGRESS", "busy", "can be ended, cancellable", ""),
    ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "busy", "cleaning up", ""),
    ("UPDATE_COMPLETE", "healthy", "succeeded", "UPDATE"),
    ("UPDATE_FAILED", "paused", "", "UPDATE"),
    ("UPDATE_ROLLBACK_IN_PROGRESS", "busy", "rolling back", ""),
    ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", "busy", "rolling back, cleaning up", ""),
    ("UPDATE_ROLLBACK_COMPLETE", "healthy", "rolled back", "UPDATE"),
    ("UPDATE_ROLLBACK_FAILED", "stuck", "", ""),
    ("IMPORT_IN_PROGRESS", "busy", "", ""),
    ("IMPORT_COMPLETE", "healthy", "succeeded", "UPDATE"),
    ("IMPORT_ROLLBACK_IN_PROGRESS", "busy", "rolling back", ""),
    ("IMPORT_ROLLBACK_COMPLETE", "healthy", "rolled back", "UPDATE"),
    ("IMPORT_ROLLBACK_FAILED", "lost", "", ""),
    ("DELETE_IN_PROGRESS", "busy", "", ""),
    ("DELETE_FAILED", "undeleted", "", ""),
    ("DELETE_COMPLETE", "absent", "succeeded, rolled back", "CREATE"),
    ("SOMETHING_NEW", "busy", "", ""),
]


@pytest.mark.parametrize(("name", "standing", "marks", "kind"), ROWS)
def test_what_a_status_means(name: str, standing: str, marks: str, kind: str) -> None:
    status = StackStatus(name)
    found = {
        "succeeded": status.succeeded,
        "rolled back": status.rolled_back,
        "rolling back": status.rolling_back,
        "cleaning up": status.cleaning_up,
        "cancellable": status.cancellable,
        "can be ended": status.can_be_ended,
    }
    assert status.health is StackHealth(standing)
    assert {mark for mark, holds in found.items() if holds} == set(filter(None, marks.split(", ")))
    assert set(found.values()) <= {True, False}
    assert status.in_progress is (standing == "busy")
    assert status.exists is (standing != "absent")
    assert status.change_set_type == kind
    assert str(status) == (name or "absent")
