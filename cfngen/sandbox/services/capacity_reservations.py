"""Capacity Reservations: those of the account, which tests add, and what launch templates may say about them.

EC2 API reference, LaunchTemplateCapacityReservationSpecificationRequest and "Error codes for the Amazon EC2 API". moto
5.2 has no Capacity Reservations. Resource groups of them are not modelled: a target that names one is not checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.moto_types import MotoBackend
from cfngen.sandbox.services.launch import Launch
from cfngen.sandbox.services.rules import PendingCall, Refused, rule

ID_PATTERN = re.compile(r"cr-[0-9a-f]{8}([0-9a-f]{9})?")
PREFERENCES = ("capacity-reservations-only", "open", "none")
PREFERENCES_WITHOUT_TARGET = ("open", "none")
EXCEEDED = Refused(
    "ReservationCapacityExceeded",
    "The targeted Capacity Reservation does not have enough available instance capacity to fulfill your request. "
    "Either increase the instance capacity for the targeted Capacity Reservation, or target a different Capacity "
    "Reservation.",
)


@dataclass(frozen=True)
class Reservation:
    """A Capacity Reservation.

    Attributes:
        id: its id, `cr-…`.
        instance_type: the type of instances for which it reserves capacity.
        zone: name of the zone.
        count: the number of instances.
        is_open: whether an instance with matching attributes uses it without naming it.
    """

    id: str
    instance_type: str
    zone: str
    count: int
    is_open: bool = True

    def fits(self, instance_type: str, zones: list[str]) -> bool:
        """Return whether instances of a type, in any of these zones, could use it."""
        return self.instance_type == instance_type and (not zones or self.zone in zones)


_RESERVATIONS: dict[str, dict[str, Reservation]] = {}  # by region and id


def add(region: str, reservation: Reservation) -> None:
    """Add a Capacity Reservation to the account; one with the same id is replaced."""
    _RESERVATIONS.setdefault(region, {})[reservation.id] = reservation


def remove(region: str, reservation_id: str) -> None:
    """Remove a Capacity Reservation; its instances keep running."""
    del _RESERVATIONS[region][reservation_id]


def reset(region: str) -> None:
    """Remove all Capacity Reservations of a region."""
    _RESERVATIONS.pop(region, None)


def find(region: str, reservation_id: str) -> Reservation | None:
    """Return a Capacity Reservation by its id; None if there is none."""
    return _RESERVATIONS.get(region, {}).get(reservation_id)


def usable(launch: Launch) -> Reservation | None:
    """Return the Capacity Reservation that the next instance of a launch would use; None if it would use none.

    Raises:
        Refused: the launch needs a Capacity Reservation, and cannot have one
    """
    specification = launch.data.get("CapacityReservationSpecification") or {}
    preference = specification.get("CapacityReservationPreference", "open")
    target = specification.get("CapacityReservationTarget") or {}
    if launch.is_spot or preference == "none" or target.get("CapacityReservationResourceGroupArn"):
        return None
    candidate_zones = list(launch.candidate_zones)
    if reservation_id := target.get("CapacityReservationId"):
        reservation = find(launch.region, reservation_id)
        if reservation is None:
            # The code is in "Error codes"; the words are assumed.
            raise Refused(
                "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation_id}' does not exist"
            )
        if not reservation.fits(launch.type, candidate_zones):
            raise Refused(  # assumed, code and words
                "InvalidParameterValue",
                f"The attributes of the instance do not match those of the Capacity Reservation {reservation_id}: "
                f"{reservation.instance_type} in {reservation.zone}",
            )
        if free_count(launch.backend, reservation) < launch.count:
            raise EXCEEDED
        return reservation
    for reservation in _RESERVATIONS.get(launch.region, {}).values():
        is_match = reservation.is_open and reservation.fits(launch.type, candidate_zones)
        if is_match and free_count(launch.backend, reservation) >= launch.count:
            return reservation
    if preference == "capacity-reservations-only":
        raise EXCEEDED
    return None


def free_count(backend: MotoBackend, reservation: Reservation) -> int:
    """Return how many more instances a reservation has room for.

    Which instances use it is not recorded: those of its type in its zone count as its users.
    """
    users: int = sum(
        instance.state in ("pending", "running")
        and instance.instance_type == reservation.instance_type
        and instance.placement.zone == reservation.zone
        for instance in backend.all_instances()
    )
    return reservation.count - users


@rule("ec2", "CreateLaunchTemplate", "CreateLaunchTemplateVersion")
def check_specification(call: PendingCall) -> None:
    """Refuse an unknown preference in a launch template, a preference beside a target, and a malformed id.

    "You can specify only one option at a time."
    """
    data: JsonObject = call.get("LaunchTemplateData") or {}
    specification = data.get("CapacityReservationSpecification")
    if specification is None:
        return
    preference = specification.get("CapacityReservationPreference")
    target = specification.get("CapacityReservationTarget")
    if preference is not None and preference not in PREFERENCES:
        raise Refused("InvalidParameterValue", f"Invalid value '{preference}' for CapacityReservationPreference")
    if preference is not None and target:
        raise Refused(
            "InvalidParameterCombination",
            "CapacityReservationPreference and CapacityReservationTarget cannot be specified at the same time",
        )
    if target:
        names = [key for key in ("CapacityReservationId", "CapacityReservationResourceGroupArn") if target.get(key)]
        if len(names) != 1:
            raise Refused(
                "InvalidParameterCombination",
                "A CapacityReservationTarget has either CapacityReservationId or CapacityReservationResourceGroupArn",
            )
    reservation_id = (target or {}).get("CapacityReservationId")
    if reservation_id and not ID_PATTERN.fullmatch(reservation_id):
        raise Refused(
            "InvalidCapacityReservationId.Malformed",
            f'Invalid id: "{reservation_id}" (expecting "cr-...")',
        )
