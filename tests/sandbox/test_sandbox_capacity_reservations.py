"""A master whose capacity is reserved: it comes back when its type is sold out, and changes its type only if it can."""

from __future__ import annotations

from typing import Any

from sandboxed import CASES, MASTERS, Place, place

from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.services import capacity, checking_rules


def reserved(*overrides: str) -> Cluster:
    changes = ("controlPlane.capacityReservation=true", *overrides)
    return load(CASES / "default" / "cluster.yaml", environ={}, overrides=changes).cluster


def reservations(where: Place) -> list[dict[str, Any]]:
    """The active reservations of the account."""
    filters = [{"Name": "state", "Values": ["active"]}]
    return list(
        client("ec2", where.account.region).describe_capacity_reservations(Filters=filters)["CapacityReservations"]
    )


def running_master(where: Place) -> dict[str, Any]:
    filters = [
        {"Name": "instance-state-name", "Values": ["running"]},
        {"Name": "tag:Name", "Values": ["kubernetes-master-a"]},
    ]
    pages = client("ec2", where.account.region).describe_instances(Filters=filters)["Reservations"]
    [instance] = [instance for page in pages for instance in page["Instances"]]
    return dict(instance)


def sell_out(where: Place, instance_type: str) -> None:
    capacity.remove_capacity(where.account.region, instance_type)


def test_a_master_whose_type_is_sold_out_comes_back_into_its_reservation() -> None:
    with place() as where, checking_rules():
        where = Place(where.account, reserved())
        assert where.create().status == "CREATE_COMPLETE"
        [reservation] = reservations(where)
        assert (reservation["InstanceType"], reservation["AvailableInstanceCount"]) == ("t3.medium", 0)
        sell_out(where, "t3.medium")
        first = running_master(where)
        client("autoscaling", where.account.region).terminate_instance_in_auto_scaling_group(
            InstanceId=first["InstanceId"], ShouldDecrementDesiredCapacity=False
        )
        where.account.cloud.advance(900)
        where.account.machines.refresh()
        assert running_master(where)["InstanceId"] != first["InstanceId"]
        assert len(where.instances(MASTERS)) == 2


def test_without_a_reservation_it_does_not_come_back() -> None:
    with place() as where, checking_rules():
        where.create()
        sell_out(where, "t3.medium")
        first = running_master(where)
        client("autoscaling", where.account.region).terminate_instance_in_auto_scaling_group(
            InstanceId=first["InstanceId"], ShouldDecrementDesiredCapacity=False
        )
        where.account.cloud.advance(900)
        assert len(where.instances(MASTERS)) == 1


def test_a_type_that_is_sold_out_fails_the_update_before_the_master_is_lost() -> None:
    with place() as where, checking_rules():
        where = Place(where.account, reserved())
        stack = where.create()
        before, [reservation] = running_master(where), reservations(where)
        sell_out(where, "t3.large")
        where.update(reserved("controlPlane.instanceType=t3.large"))
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        failed = {event.logical_id: event.reason for event in stack.events if event.status.endswith("_FAILED")}
        assert "do not have sufficient t3.large capacity" in failed["MasterACapacityReservation"]
        assert running_master(where)["InstanceId"] == before["InstanceId"]
        assert [found["CapacityReservationId"] for found in reservations(where)] == [
            reservation["CapacityReservationId"]
        ]


def test_another_type_is_reserved_first_and_the_old_reservation_goes_last() -> None:
    with place() as where, checking_rules():
        where = Place(where.account, reserved())
        stack = where.create()
        beginning = len(stack.events)
        assert where.update(reserved("controlPlane.instanceType=t3.large")).status == "UPDATE_COMPLETE", stack.reason
        [reservation] = reservations(where)
        assert (reservation["InstanceType"], reservation["AvailableInstanceCount"]) == ("t3.large", 0)
        assert running_master(where)["InstanceType"] == "t3.large"
        order = [
            (event.logical_id, event.status)
            for event in stack.events[beginning:]
            if event.logical_id in ("MasterACapacityReservation", MASTERS) and event.status.endswith("_COMPLETE")
        ]
        assert order == [
            ("MasterACapacityReservation", "UPDATE_COMPLETE"),
            (MASTERS, "UPDATE_COMPLETE"),
            ("MasterACapacityReservation", "DELETE_COMPLETE"),
        ]


def test_nothing_is_reserved_once_the_key_is_off() -> None:
    with place() as where, checking_rules():
        where = Place(where.account, reserved())
        where.create()
        assert where.update(reserved("controlPlane.capacityReservation=false")).status == "UPDATE_COMPLETE"
        assert not reservations(where)
        sell_out(where, "t3.medium")
        assert running_master(where)["State"]["Name"] == "running"
