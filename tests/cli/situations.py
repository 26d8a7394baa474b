"""The situations that a cluster's stacks may be found in, and how each comes about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from status_walk import STACK, Walk

ALWAYS = 1_000
"""How often something fails whose cause nobody removes."""
EXTRA = {"name": "extra", "minSize": 1, "maxSize": 1}
LARGER = {"instanceType": "m5.large"}
VOLUME, MASTER = "MasterAVolume", "MasterAAutoScalingGroup"
GROUP, EXTRA_GROUP = "NodeGroupGeneralAutoScalingGroup", "NodeGroupExtraAutoScalingGroup"
SECONDS = {"*": 5.0}
"""What each resource takes while an operation is to be met under way."""

Bring = Callable[[Walk], None]


@dataclass(frozen=True)
class Situation:
    """A situation.

    Attributes:
        status: of the root; empty where there is none.
        what: how it came about, for a reader of the table.
        bring: brings it about.
        created: whether the cluster has been created before; else the account is empty.
    """

    status: str
    what: str
    bring: Bring
    created: bool = True


def nothing(walk: Walk) -> None:
    """Leave the cluster as it was created, and change the cluster file."""
    walk.write(**LARGER)


def ending_early(*groups: Mapping[str, Any]) -> Bring:
    """`plan`, ended before it can remove its change set, as a process is that the machine ends."""

    def bring(walk: Walk) -> None:
        walk.write(*groups)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("cfngen.deploy.plan.change_sets.discard", lambda *arguments: None)
            walk.run("plan")

    return bring


def emptied(walk: Walk) -> None:
    """Somebody deletes the change set of an empty stack."""
    ending_early()(walk)
    for change_set in walk.engine.change_sets(STACK):
        walk.engine.delete_change_set(change_set.id)


def deployed(
    *groups: Mapping[str, Any],
    fails: Mapping[tuple[str, str], int] | None = None,
    options: tuple[str, ...] = (),
    leaving: str = "",
    then: tuple[str, ...] = (),
    **general: Any,
) -> Bring:
    """`deploy` of a changed cluster file.

    Args:
        groups: further node groups.
        fails: how often resources fail, by logical id and what is done to them.
        options: of `deploy`.
        leaving: the status in which it is left by Ctrl-C.
        then: further commands.
        general: what is new of the first node group.
    """

    def bring(walk: Walk) -> None:
        walk.write(*groups, **general)
        for (logical_id, during), times in (fails or {}).items():
            walk.engine.fail(logical_id, "no capacity" if during != "DELETE" else "in use", during=during, times=times)
        if leaving:
            walk.engine.durations.update(SECONDS)
        walk.run("deploy", *options, leaving=leaving)
        for command in then:
            walk.run(command)

    return bring


def updated(walk: Walk) -> None:
    deployed(**LARGER)(walk)
    walk.write()


def removing(walk: Walk) -> None:
    """A deployment without the node group `extra`, left while the group is being removed."""
    deployed(EXTRA)(walk)
    deployed(leaving="UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")(walk)


def cancelled(walk: Walk) -> None:
    deployed(leaving="UPDATE_IN_PROGRESS", **LARGER)(walk)
    walk.cancel()
    walk.engine.durations.clear()


def deleted(times: int = 0, leaving: str = "") -> Bring:
    """`delete`, during which the VPC cannot be deleted so many times."""

    def bring(walk: Walk) -> None:
        if times:
            walk.engine.fail("Vpc", "in use", during="DELETE", times=times)
        if leaving:
            walk.engine.durations.update(SECONDS)
        walk.run("delete", leaving=leaving)

    return bring


def imported(*statuses: str) -> Bring:
    """An import, which is the console's: the emulator does none, and only the statuses of the root are set.

    Args:
        statuses: those that the root has in turn, the last one now; what follows an operation under way comes later.
    """

    def bring(walk: Walk) -> None:
        walk.write(**LARGER)
        engine, root = walk.engine, walk.root
        assert root is not None
        engine.start_operation(root, "IMPORT")
        for status in statuses:
            engine.advance(60)
            engine.record_event(root, None, status)
        engine.advance(60)
        if statuses[-1].endswith("_IN_PROGRESS"):
            end = statuses[-1].replace("_IN_PROGRESS", "_COMPLETE")
            engine.clock.schedule(600, lambda: engine.record_event(root, None, end))

    return bring


KEEP = ("--on-failure", "keep")
IMPORTING, UNDOING = "IMPORT_IN_PROGRESS", "IMPORT_ROLLBACK_IN_PROGRESS"
ONCE_AND_BACK = {(GROUP, "UPDATE"): 2}  # in the update and in its rollback

SITUATIONS = (
    Situation("", "never deployed", lambda walk: None, created=False),
    Situation("", "deleted", deleted()),
    Situation(
        "",
        "a creation failed, `--on-failure delete`",
        deployed(fails={(VOLUME, "CREATE"): 1}, options=("--on-failure", "delete")),
        created=False,
    ),
    Situation("REVIEW_IN_PROGRESS", "a plan was left open", ending_early(), created=False),
    Situation("REVIEW_IN_PROGRESS", "the plan was deleted by hand", emptied, created=False),
    Situation("CREATE_COMPLETE", "created", nothing),
    Situation("CREATE_COMPLETE", "a plan with a new node group was left open", ending_early(EXTRA)),
    Situation("UPDATE_COMPLETE", "updated", updated),
    Situation("UPDATE_ROLLBACK_COMPLETE", "an update failed", deployed(fails={(GROUP, "UPDATE"): 1}, **LARGER)),
    Situation("UPDATE_ROLLBACK_COMPLETE", "an update was cancelled", cancelled),
    Situation(
        "UPDATE_ROLLBACK_COMPLETE",
        "a node group was left out of the rollback",
        deployed(fails=ONCE_AND_BACK, then=("rollback --force",), **LARGER),
    ),
    Situation("IMPORT_COMPLETE", "resources were imported", imported(IMPORTING, "IMPORT_COMPLETE")),
    Situation("IMPORT_ROLLBACK_COMPLETE", "an import failed", imported(IMPORTING, UNDOING, "IMPORT_ROLLBACK_COMPLETE")),
    Situation(
        "CREATE_FAILED",
        "a node group failed, `--on-failure keep`",
        deployed(fails={(GROUP, "CREATE"): 1}, options=KEEP),
        created=False,
    ),
    Situation(
        "CREATE_FAILED",
        "a master failed, `--on-failure keep`",
        deployed(fails={(VOLUME, "CREATE"): 1}, options=KEEP),
        created=False,
    ),
    Situation(
        "CREATE_FAILED",
        "a node group fails again and again, `--on-failure keep`",
        deployed(fails={(GROUP, "CREATE"): ALWAYS, (GROUP, "UPDATE"): ALWAYS}, options=KEEP),
        created=False,
    ),
    Situation(
        "UPDATE_FAILED",
        "a node group failed, `--on-failure keep`",
        deployed(fails={(GROUP, "UPDATE"): 1}, options=KEEP, **LARGER),
    ),
    Situation(
        "UPDATE_FAILED",
        "a new node group failed, `--on-failure keep`",
        deployed(EXTRA, fails={(EXTRA_GROUP, "CREATE"): 1}, options=KEEP),
    ),
    Situation(
        "UPDATE_FAILED",
        "a node group fails again and again, `--on-failure keep`",
        deployed(fails={(GROUP, "UPDATE"): ALWAYS}, options=KEEP, **LARGER),
    ),
    Situation("ROLLBACK_COMPLETE", "a creation failed", deployed(fails={(VOLUME, "CREATE"): 1}), created=False),
    Situation(
        "ROLLBACK_FAILED",
        "a creation failed, and so did removing it",
        deployed(fails={(VOLUME, "CREATE"): 1, ("Vpc", "DELETE"): 1}),
        created=False,
    ),
    Situation(
        "ROLLBACK_FAILED",
        "the same, and what blocks it stays",
        deployed(fails={(VOLUME, "CREATE"): 1, ("Vpc", "DELETE"): ALWAYS}),
        created=False,
    ),
    Situation(
        "UPDATE_ROLLBACK_FAILED", "an update failed, and so did its rollback", deployed(fails=ONCE_AND_BACK, **LARGER)
    ),
    Situation(
        "UPDATE_ROLLBACK_FAILED",
        "the same, and it fails again and again",
        deployed(fails={(GROUP, "UPDATE"): ALWAYS}, **LARGER),
    ),
    Situation(
        "IMPORT_ROLLBACK_FAILED",
        "an import failed, and so did its rollback",
        imported(IMPORTING, UNDOING, "IMPORT_ROLLBACK_FAILED"),
    ),
    Situation("DELETE_FAILED", "a deletion failed", deleted(3)),
    Situation("DELETE_FAILED", "the same, and what blocks it stays", deleted(ALWAYS)),
    Situation(
        "DELETE_FAILED",
        "a creation failed, `--on-failure delete`, and so did removing it",
        deployed(fails={(VOLUME, "CREATE"): 1, ("Vpc", "DELETE"): 1}, options=("--on-failure", "delete")),
        created=False,
    ),
    Situation("CREATE_IN_PROGRESS", "", deployed(leaving="CREATE_IN_PROGRESS"), created=False),
    Situation(
        "ROLLBACK_IN_PROGRESS",
        "",
        deployed(fails={(VOLUME, "CREATE"): 1}, leaving="ROLLBACK_IN_PROGRESS"),
        created=False,
    ),
    Situation("UPDATE_IN_PROGRESS", "", deployed(leaving="UPDATE_IN_PROGRESS", **LARGER)),
    Situation("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "", removing),
    Situation(
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "",
        deployed(fails={(GROUP, "UPDATE"): 1}, leaving="UPDATE_ROLLBACK_IN_PROGRESS", **LARGER),
    ),
    Situation(
        "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
        "",
        deployed(EXTRA, fails={(EXTRA_GROUP, "CREATE"): 1}, leaving="UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"),
    ),
    Situation("DELETE_IN_PROGRESS", "", deleted(leaving="DELETE_IN_PROGRESS")),
    Situation("IMPORT_IN_PROGRESS", "", imported(IMPORTING)),
    Situation("IMPORT_ROLLBACK_IN_PROGRESS", "", imported(IMPORTING, UNDOING)),
)
