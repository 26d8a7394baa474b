"""Maximum instance lifetime and Capacity Reservations of Auto Scaling groups, which moto drops: kept here.

Auto Scaling API reference, CreateAutoScalingGroup and CapacityReservationSpecification.
"""

from __future__ import annotations

from cfngen.sandbox.json_types import JsonDict, JsonObject
from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services.capacity_reservations import find, free_count

KEY = "CapacityReservationSpecification"
# Parameters of CreateAutoScalingGroup and UpdateAutoScalingGroup, by the attribute from which moto would describe them.
KEPT_SETTINGS = {
    "max_instance_lifetime": "MaxInstanceLifetime",
    "capacity_reservation_specification": "CapacityReservationSpecification",
}


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
