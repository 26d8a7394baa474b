"""A master's group is rolled: the new instance wants the network interface that the old one still has.

On AWS the first launches fail, "Interface: [eni-…] in use. Launching EC2 instance failed.", until the old instance is
terminated (terraform-aws-modules/terraform-aws-autoscaling#226); Auto Scaling tries again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from sandboxed import MASTERS, NODES, Place, golden
from simulated_account import open_account

from cfngen.deploy.aws.account import connect
from cfngen.deploy.aws.consoles import read_launch_failures
from cfngen.sandbox.durations import DURATIONS
from cfngen.sandbox.services.scaling_activities import SHUTTING_DOWN

pytestmark = pytest.mark.drill

REGION = "us-west-2"


@contextlib.contextmanager
def rolled(**troubles: str) -> Iterator[tuple[Place, Any, Any]]:
    """A cluster whose masters and nodes have another version since; on its new master something may go wrong."""
    with open_account(REGION, durations=DURATIONS) as where:
        place = Place(where.account, golden("default"))
        stack = place.create()
        assert stack.status == "CREATE_COMPLETE"
        for step, message in troubles.items():
            where.account.machines.inject_failure(
                MASTERS, step, message
            ) if message else where.account.machines.inject_hang(MASTERS, step, times=1)
        place.update(place.with_kubernetes("1.35"))
        yield place, stack, connect(where.session(), REGION, clock=where.clock)


def tried(operator: Any, group: str) -> list[str]:
    """How launches of a group ended, the first one first."""
    answer = operator.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group)
    return [activity["StatusCode"] for activity in reversed(answer["Activities"])]


def test_the_group_tries_again_until_the_interface_is_free() -> None:
    with rolled() as (place, stack, operator):
        assert stack.status == "UPDATE_COMPLETE", stack.reason
        group = stack.resources[MASTERS].physical_id
        first, *failed, last = tried(operator, group)
        assert (first, set(failed), last) == ("Successful", {"Failed"}, "Successful")
        old, new = place.instances(MASTERS)
        assert new.launched - old.launched > DURATIONS[SHUTTING_DOWN]
        assert old.address == new.address
        answer = operator.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group)
        interface = stack.resources["MasterANetworkInterface"].physical_id
        messages = {
            activity["StatusMessage"] for activity in answer["Activities"] if activity["StatusCode"] == "Failed"
        }
        assert messages == {f"Interface: [{interface}] in use. Launching EC2 instance failed."}
        assert read_launch_failures(operator, group) == ()
        # Each node is drained before it goes, which nothing waits for; and none meets an interface.
        assert set(tried(operator, stack.resources[NODES].physical_id)) == {"Successful"}


def test_a_master_that_hangs_is_not_put_down_to_launches_that_were_tried_again() -> None:
    with rolled(services="") as (_, stack, operator):
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE", stack.reason
        group = stack.resources[MASTERS].physical_id
        assert "Failed" in tried(operator, group)
        assert read_launch_failures(operator, group) == ()
