"""Maximum instance lifetime and Capacity Reservations of Auto Scaling groups, which moto drops: kept here.

Auto Scaling API reference, CreateAutoScalingGroup and CapacityReservationSpecification.
"""

from __future__ import annotations

from cfngen.sandbox.services.capacity_reservations import find, free_count
from cfngen.sandbox.services.rules import PendingCall, rule, validation_error
from cfngen.sandbox.untyped import JsonDict, JsonObject, MotoBackend, MotoModel

# The least is in the API reference; the greatest is a year according to the Terraform provider ("either equal to 0 or
# between 86400 and 31536000 seconds").
INSTANCE_LIFETIMES = range(86_400, 31_536_001)  # seconds
KEY = "CapacityReservationSpecification"
# Parameters of CreateAutoScalingGroup and UpdateAutoScalingGroup, by the attribute from which moto would describe them.
KEPT_SETTINGS = {
    "max_instance_lifetime": "MaxInstanceLifetime",
    "capacity_reservation_specification": "CapacityReservationSpecification",
}


@rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")
def check_instance_lifetime(call: PendingCall) -> None:
    """Refuse a maximum instance lifetime of less than a day or more than a year; 0 means no maximum."""
    lifetime = call.get("MaxInstanceLifetime")
    if lifetime and int(lifetime) not in INSTANCE_LIFETIMES:
        least, greatest = INSTANCE_LIFETIMES[0], INSTANCE_LIFETIMES[-1]
        raise validation_error(
            f"MaxInstanceLifetime must be 0 or at least {least} seconds and at most {greatest}, and is {lifetime}"
        )


@rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")
def check_reservation_preference(call: PendingCall) -> None:
    """Refuse a target of Capacity Reservations beside a preference that has none."""
    specification = call.get(KEY) or {}
    preference = specification.get("CapacityReservationPreference")
    if specification.get("CapacityReservationTarget") and preference in ("default", "none"):
        raise validation_error(
            f"A CapacityReservationTarget cannot be specified with the CapacityReservationPreference {preference}"
        )


def keep(backend: MotoBackend, group_name: str, parameters: JsonObject) -> None:
    """Keep the settings of a call that creates or updates a group."""
    kept = settings_of(backend, group_name)
    kept.update({name: parameters[name] for name in KEPT_SETTINGS.values() if parameters.get(name) is not None})


def forget(backend: MotoBackend, group_name: str) -> None:
    """Forget the settings of a group that is deleted, or about to be created."""
    backend.__dict__.setdefault("kept_settings", {}).pop(group_name, None)


def settings_of(backend: MotoBackend, group_name: str) -> JsonDict:
    """Return the settings of a group, by the names of the API."""
    settings: JsonDict = backend.__dict__.setdefault("kept_settings", {}).setdefault(group_name, {})
    return settings


def max_instance_lifetime(group: MotoModel) -> float:
    """Return the seconds after which a group replaces an instance; 0 if it does not."""
    return float(settings_of(group.autoscaling_backend, group.name).get("MaxInstanceLifetime") or 0)


def with_reservation(group: MotoModel, data: JsonObject) -> JsonDict:
    """Return launch template data with the group's choice of a Capacity Reservation, which comes before the template's.

    `capacity-reservations-first` without room is a launch without one. That a target of several is used in their order
    is assumed.
    """
    settings = settings_of(group.autoscaling_backend, group.name).get("CapacityReservationSpecification") or {}
    preference = settings.get("CapacityReservationPreference", "default")
    if preference == "default":
        return dict(data)
    specification: JsonDict = {"CapacityReservationPreference": preference}
    target_ids = (settings.get("CapacityReservationTarget") or {}).get("CapacityReservationIds") or []
    for reservation_id in target_ids:
        reservation = find(group.ec2_backend, reservation_id)
        fits = reservation is not None and reservation.fits(str(data.get("InstanceType")), group.availability_zones)
        if reservation is not None and fits and free_count(group.ec2_backend, reservation) > 0:
            return {**data, KEY: {"CapacityReservationTarget": {"CapacityReservationId": reservation_id}}}
    if preference == "capacity-reservations-first":
        specification = {"CapacityReservationPreference": "open"}
    elif target_ids:
        specification = {"CapacityReservationTarget": {"CapacityReservationId": target_ids[0]}}
    return {**data, KEY: specification}


def note_reservation(group: MotoModel, instance: MotoModel) -> None:
    """Note the choice of a Capacity Reservation with which a group has just launched an On-Demand Instance."""
    instance.reservation_of_group = with_reservation(group, {"InstanceType": instance.instance_type}).get(KEY)
