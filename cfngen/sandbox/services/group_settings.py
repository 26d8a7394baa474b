"""Settings of Auto Scaling groups about replacements and reservations, which moto drops: what is refused, and where.

Auto Scaling API reference, CreateAutoScalingGroup, InstanceMaintenancePolicy and CapacityReservationSpecification.
"""

from __future__ import annotations

from cfngen.sandbox.json_types import JsonDict, JsonObject
from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services.capacity_reservations import ID_PATTERN, PREFERENCES_WITHOUT_TARGET, find, free_count
from cfngen.sandbox.services.rules import PendingCall, Refused, rule

VALIDATION_ERROR = "ValidationError"
KEY = "CapacityReservationSpecification"
# The least is in the API reference; the greatest is a year according to the Terraform provider ("either equal to 0 or
# between 86400 and 31536000 seconds").
INSTANCE_LIFETIMES = range(86_400, 31_536_001)  # seconds
PREFERENCES = ("capacity-reservations-only", "capacity-reservations-first", "none", "default")
CLEARED = -1  # clears a percentage of a maintenance policy
# Parameters of CreateAutoScalingGroup and UpdateAutoScalingGroup, by the attribute from which moto would describe them.
KEPT_SETTINGS = {
    "max_instance_lifetime": "MaxInstanceLifetime",
    "instance_maintenance_policy": "InstanceMaintenancePolicy",
    "capacity_reservation_specification": "CapacityReservationSpecification",
    "desired_capacity_type": "DesiredCapacityType",
}


def keep(backend: MotoBackend, group_name: str, parameters: JsonObject) -> None:
    """Keep the settings of a call that creates or updates a group."""
    kept = settings_of(backend, group_name)
    kept.update({name: parameters[name] for name in KEPT_SETTINGS.values() if parameters.get(name) is not None})
    if (kept.get("InstanceMaintenancePolicy") or {}).get("MinHealthyPercentage") == CLEARED:
        del kept["InstanceMaintenancePolicy"]


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


def launches_before_terminating(group: MotoModel) -> bool:
    """Return whether a group replaces an instance by launching the new one first.

    Auto Scaling user guide, "Instance maintenance policies": a minimum healthy percentage of 100 means launch before
    terminating; without a policy, health checks and the maximum instance lifetime terminate first.
    """
    policy = settings_of(group.autoscaling_backend, group.name).get("InstanceMaintenancePolicy") or {}
    return bool(policy.get("MinHealthyPercentage") == 100)


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


@rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")
def check_instance_lifetime(call: PendingCall) -> None:
    """Refuse a maximum instance lifetime of less than a day or more than a year; 0 is none."""
    lifetime = call.get("MaxInstanceLifetime")
    if lifetime and int(lifetime) not in INSTANCE_LIFETIMES:
        least, greatest = INSTANCE_LIFETIMES[0], INSTANCE_LIFETIMES[-1]
        raise Refused(
            VALIDATION_ERROR,
            f"MaxInstanceLifetime must be 0 or at least {least} seconds and at most {greatest}, and is {lifetime}",
        )


@rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")
def check_maintenance_percentages(call: PendingCall) -> None:
    """Refuse percentages of a maintenance policy that are out of range, alone, or too far apart."""
    policy = call.get("InstanceMaintenancePolicy")
    if policy is None:
        return
    least, greatest = policy.get("MinHealthyPercentage"), policy.get("MaxHealthyPercentage")
    if least is None or greatest is None:
        raise Refused(VALIDATION_ERROR, "Both MinHealthyPercentage and MaxHealthyPercentage must be specified")
    least, greatest = int(least), int(greatest)
    if (least == CLEARED) != (greatest == CLEARED):
        raise Refused(VALIDATION_ERROR, "Both MinHealthyPercentage and MaxHealthyPercentage are cleared with -1")
    if least == CLEARED:
        return
    if not 0 <= least <= 100:
        raise Refused(VALIDATION_ERROR, f"MinHealthyPercentage must be between 0 and 100, and is {least}")
    if not 100 <= greatest <= 200:
        raise Refused(VALIDATION_ERROR, f"MaxHealthyPercentage must be between 100 and 200, and is {greatest}")
    if greatest - least > 100:
        raise Refused(
            VALIDATION_ERROR,
            "The difference between MinHealthyPercentage and MaxHealthyPercentage cannot be greater than 100",
        )


@rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")
def check_reservation_preference(call: PendingCall) -> None:
    """Refuse a preference for Capacity Reservations that does not exist, or one without a target that has one."""
    specification = call.get("CapacityReservationSpecification")
    if specification is None:
        return
    preference = specification.get("CapacityReservationPreference")
    target = specification.get("CapacityReservationTarget")
    if preference not in PREFERENCES:
        raise Refused(VALIDATION_ERROR, f"CapacityReservationPreference {preference} is none of {PREFERENCES}")
    if target and preference in (*PREFERENCES_WITHOUT_TARGET, "default"):
        raise Refused(
            VALIDATION_ERROR,
            f"A CapacityReservationTarget cannot be specified with the CapacityReservationPreference {preference}",
        )
    for reservation_id in (target or {}).get("CapacityReservationIds") or []:
        if not ID_PATTERN.fullmatch(reservation_id):
            raise Refused(VALIDATION_ERROR, f"Invalid Capacity Reservation ID: {reservation_id}")
