"""etcd's quorum in the sandbox, looked at every few seconds: no update, rollback or replacement costs it."""

from __future__ import annotations

import pytest
from sandboxed import Place
from several_masters import group, variant

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.durations import DURATIONS
from cfngen.sandbox.emulated_account import open_emulated_account

LOOK_SECONDS = 5.0


def go_on(where: Place, seconds: float, status: str = "") -> None:
    """Pass time until the stack has a status, or for some seconds; etcd has a quorum at each look."""
    cluster = where.account.cluster("kubernetes")
    machines = where.account.machines
    for _ in range(int(seconds / LOOK_SECONDS)):
        where.account.advance(LOOK_SECONDS)
        assert machines.has_quorum(cluster), (cluster.members, machines.running_members(cluster))
        if where.account.cloud.stack("k8s").status == status:
            return
    assert not status, where.account.cloud.stack("k8s").status


def fail(where: Place, slot: str) -> None:
    """Let a master vanish, whose successors do not boot."""
    where.account.machines.inject_failure(f"master-{slot}", "downloads", "no mirror")
    [instance] = where.instances(group(slot.upper()))
    client("ec2", where.account.region).terminate_instances(InstanceIds=[instance.id])
    go_on(where, 120)


@pytest.mark.parametrize(
    ("count", "failed", "operation"),
    [
        (3, "b", "update"),
        (3, "b", "rollback"),
        pytest.param(3, "c", "update", marks=pytest.mark.drill),
        pytest.param(3, "b", "by hand", marks=pytest.mark.drill),
        pytest.param(5, "b", "update", marks=pytest.mark.drill),
        pytest.param(5, "bd", "update", marks=pytest.mark.drill),
        pytest.param(5, "e", "rollback", marks=pytest.mark.drill),
        pytest.param(5, "be", "by hand", marks=pytest.mark.drill),
    ],
)
def test_etcd_has_a_quorum_all_the_time_and_all_its_members_in_the_end(count: int, failed: str, operation: str) -> None:
    with open_emulated_account("us-west-2", durations=DURATIONS) as account:
        where = Place(account, variant(f"controlPlane.count={count}"))
        assert where.create().status == "CREATE_COMPLETE"
        larger = variant(f"controlPlane.count={count}", "controlPlane.instanceType=m6i.2xlarge")
        if operation == "rollback":
            for slot in failed:
                account.machines.inject_failure(f"master-{slot}", "downloads", "no mirror", times=1)
            where.begin_update(larger)
            go_on(where, 5 * 3600, "UPDATE_ROLLBACK_COMPLETE")
        else:
            for slot in failed:
                fail(where, slot)
            account.machines.remove_faults()  # what is launched from now on boots
            account.machines._failed_boots.clear()
        if operation == "update":
            where.begin_update(larger)
            go_on(where, 5 * 3600, "UPDATE_COMPLETE")
        if operation == "by hand":
            for slot in "a" + failed:
                [*_, instance] = where.instances(group(slot.upper()))
                client("autoscaling", account.region).terminate_instance_in_auto_scaling_group(
                    InstanceId=instance.id, ShouldDecrementDesiredCapacity=False
                )
                go_on(where, 900)
        cluster = account.cluster("kubernetes")
        assert len(cluster.members) == len(account.machines.running_members(cluster)) == count
