"""The checks of EC2 on calls that make, change or cancel a capacity reservation."""

from __future__ import annotations

from moto.ec2.models.instance_types import INSTANCE_TYPES

from cfngen.sandbox.services import capacity
from cfngen.sandbox.services.capacity_reservations import find_target
from cfngen.sandbox.services.launch_failures import check_offered, check_vcpu_quota
from cfngen.sandbox.services.rules import PendingCall, invalid_value, rule

MAX_COUNT = 1000  # API, CreateCapacityReservation: InstanceCount


@rule("ec2", "CreateCapacityReservation")
def check_new_reservation(call: PendingCall) -> None:
    """Refuse a reservation of an unknown type, of a number that is not allowed, or where EC2 has no capacity."""
    instance_type, zone = str(call.get("InstanceType")), str(call.get("AvailabilityZone"))
    if instance_type not in INSTANCE_TYPES:
        raise invalid_value(f"Invalid value '{instance_type}' for InstanceType.")
    count = int(call.get("InstanceCount"))
    if not 1 <= count <= MAX_COUNT:
        raise invalid_value(f"Invalid value '{count}' for InstanceCount.")
    check_offered(call.region, instance_type, [zone])
    check_vcpu_quota(call.backend, instance_type, count, is_spot=False)
    if not capacity.has_capacity(call.region, instance_type, zone):
        raise capacity.insufficient_capacity(call.region, instance_type, zone)


@rule("ec2", "CancelCapacityReservation", "ModifyCapacityReservation")
def check_existing_reservation(call: PendingCall) -> None:
    """Refuse to cancel or to change a reservation that does not exist, or is cancelled."""
    find_target(call.backend, str(call.get("CapacityReservationId")))
