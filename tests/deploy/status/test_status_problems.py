"""What `cfngen status` says first: what is wrong, the worst before all else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest
from recorded_stack import NAME, RecordedStack, event

from cfngen.cli.render.status import status_lines
from cfngen.deploy.aws.pause import PauseState
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.status.cluster_reading import read_cancelled
from cfngen.deploy.status.cluster_status import (
    AddonState,
    ApiState,
    BackupState,
    BastionState,
    ClusterStatus,
    Expiry,
    GroupState,
    MasterState,
    StackState,
    Unknown,
    stack_state,
)
from cfngen.deploy.status.status_problems import find_status_problems

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MASTERS = tuple(MasterState(slot, f"i-{slot}", lifecycle="InService", ready=True) for slot in ("a", "b", "c"))
LOST = MasterState("b", "i-b", lifecycle="InService", ready=False)
NODES = GroupState("general", 2, 2, 2, 1, 3, ("m5.large",), 0)
STACK = StackState("k8s", "arn", "UPDATE_COMPLETE", "healthy", operation="update", succeeded=True)
UNDONE = StackState("k8s", "arn", "UPDATE_ROLLBACK_COMPLETE", "healthy", operation="update", succeeded=False)
CREATING = StackState("k8s", "arn", "CREATE_IN_PROGRESS", "busy", operation="create")
SILENT = Unknown(
    "the Kubernetes API at https://10.0.0.9 does not answer: no connection within 5 seconds",
    code="kubernetes-unreachable",
)


def status(**parts: Any) -> ClusterStatus:
    usual = {"stack": STACK, "api": ApiState("1.36.3", True), "masters": MASTERS, "node_groups": (NODES,)}
    return ClusterStatus("k8s", "us-west-2", "1", NOW, **{"next_command": "", "target_version": "1", **usual, **parts})


@pytest.mark.parametrize(
    ("parts", "problems"),
    [
        ({}, []),
        ({"masters": (*MASTERS, LOST)}, []),  # beside the instance that replaces it
        (
            {"masters": (MASTERS[0], LOST, MASTERS[2])},
            ["master b (i-b) is not Ready; 2 of 3 masters work, and etcd needs 2"],
        ),
        ({"masters": (LOST,)}, ["master b (i-b) is not Ready"]),
        (
            {
                "api": SILENT,
                "masters": (MasterState("a"), MasterState("b", "i-b", lifecycle="InService")),
                "node_groups": (GroupState("general", 2, 1, None, 1, 3, (), 0),),
            },
            [
                SILENT.unknown,
                "master a has no instance; 1 of 2 masters work, and etcd needs 2",
                "node group general has 1 of 2 nodes in service",
            ],
        ),
        ({"api": Unknown("not allowed")}, ["the Kubernetes API could not be asked: not allowed"]),
        ({"api": ApiState("1.36.3", False, ("etcd",))}, ["the API is not ready: etcd"]),
        ({"api": SILENT, "stack": CREATING, "masters": (MasterState("a"),)}, []),
        ({"api": Unknown("paused"), "pause": PauseState(None, complete=True, groups=())}, []),
        ({"stack": UNDONE}, ["the last update of the stack failed, and was rolled back"]),
        ({"stack": replace(UNDONE, cancelled=True)}, []),
        (
            {
                "stack": StackState("k8s", "arn", "UPDATE_FAILED", "paused", "no capacity", operation="update"),
                "node_groups": (GroupState("general", 2, 2, 1, 1, 3, (), 0),),
                "bastion": BastionState(),
                "addons": (AddonState("headlamp", "1", "failed"),),
                "backups": BackupState("bucket", NOW, 15, late=True),
                "certificates": (Expiry("join token", NOW - timedelta(1)), Expiry("other", NOW + timedelta(1))),
            },
            [
                "the stack k8s is in UPDATE_FAILED: no capacity",
                "node group general has 1 of 2 nodes Ready",
                "the bastion is missing",
                "add-on headlamp is failed",
                "snapshots of etcd are late",
                "expired: join token",
            ],
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_the_worst_first(parts: dict[str, Any], problems: list[str]) -> None:
    assert list(find_status_problems(status(**parts))) == problems


def test_the_first_line_is_the_worst() -> None:
    ill = status(problems=("the API is not ready", "the bastion is missing"))
    assert [click.unstyle(str(line)) for line in status_lines(ill)[:4]] == [
        "the API is not ready",
        "the bastion is missing",
        "",
        "k8s  us-west-2, account 1",
    ]


@pytest.mark.parametrize(
    ("reason", "text"),
    [("User Initiated", "the last update was cancelled"), ("The following failed", "the last update failed")],
)
def test_a_cancelled_update_is_told_from_one_that_failed(reason: str, text: str) -> None:
    api = RecordedStack("UPDATE_ROLLBACK_COMPLETE")
    undoing = event("UPDATE_ROLLBACK_IN_PROGRESS", reason=reason)
    api.events[NAME] = [event("UPDATE_IN_PROGRESS"), undoing, event("UPDATE_ROLLBACK_COMPLETE")]
    stack = find_stack(api.account, NAME)
    assert stack
    state = stack_state(stack, NOW, cancelled=read_cancelled(api.account, stack))
    assert any(text in str(line) for line in status_lines(status(stack=state)))
