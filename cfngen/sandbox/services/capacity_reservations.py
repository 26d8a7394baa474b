"""On-Demand Capacity Reservations of EC2, which moto lacks: their calls, and launches that use one.

Sources: Amazon EC2 User Guide, "Reserve compute capacity with EC2 On-Demand Capacity Reservations", and API reference,
CreateCapacityReservation, LaunchTemplateCapacityReservationSpecificationRequest and "Error codes". Only reservations
for immediate use are modelled, and no resource groups of them: a target that names one is not checked.

- A reservation is refused where EC2 has no capacity, and beyond the quota of vCPUs. Active reservations count towards
  that quota, used or not; an instance that runs in one is not counted again.
- An instance that uses a reservation is launched where its type is sold out otherwise. A targeted reservation must have
  its type and zone, and room (ReservationCapacityExceeded).
- *Assumed*: an instance has its place in a reservation until it is terminated.
- An instance keeps running when its reservation is cancelled ("Cancel a Capacity Reservation").
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.ec2.responses import EC2Response

from cfngen.sandbox.moto_patches.registry import replaces
from cfngen.sandbox.services.launch import Launch, launch_template_data
from cfngen.sandbox.services.rules import Refused, invalid_value
from cfngen.sandbox.untyped import JsonDict, MotoBackend, MotoModel, MotoResponse

PLATFORM = "Linux/UNIX"
_LIVE_STATES = ("pending", "running", "shutting-down")


@dataclass
class Reservation:
    """A Capacity Reservation.

    Attributes:
        id: its id, `cr-…`.
        match_criteria: `targeted`, or `open` if an instance with matching attributes uses it without naming it.
        is_active: whether it has not been cancelled.
    """

    id: str
    instance_type: str
    zone: str
    count: int
    match_criteria: str = "open"
    is_active: bool = True

    def fits(self, instance_type: str, zones: list[str]) -> bool:
        """Return whether instances of a type, in any of these zones, could use it."""
        return self.instance_type == instance_type and (not zones or self.zone in zones)


def reservations_of(backend: MotoBackend) -> dict[str, Reservation]:
    """Return the reservations of moto's EC2 in a region, by id; cancelled ones too."""
    reservations: dict[str, Reservation] = backend.__dict__.setdefault("capacity_reservations", {})
    return reservations


def add(region: str, reservation: Reservation) -> None:
    """Add a reservation to the account; one with the same id is replaced."""
    reservations_of(ec2_backends[DEFAULT_ACCOUNT_ID][region])[reservation.id] = reservation


def find(backend: MotoBackend, reservation_id: str) -> Reservation | None:
    """Return an active Capacity Reservation by its id; None if there is none."""
    reservation = reservations_of(backend).get(reservation_id)
    return reservation if reservation and reservation.is_active else None


def free_count(backend: MotoBackend, reservation: Reservation) -> int:
    """Return for how many further instances a reservation has room."""
    if not reservation.is_active:
        return 0
    return reservation.count - sum(_uses(instance, reservation) for instance in backend.all_instances())


def runs_in_active_reservation(instance: MotoModel) -> bool:
    """Return whether an instance of moto runs in an active reservation."""
    return any(_uses(instance, reservation) for reservation in active_reservations(instance.ec2_backend))


def active_reservations(backend: MotoBackend) -> list[Reservation]:
    """Return the reservations that are not cancelled."""
    return [reservation for reservation in reservations_of(backend).values() if reservation.is_active]


def _uses(instance: MotoModel, reservation: Reservation) -> bool:
    """Return whether an instance has its place in a reservation: it targets it, or an open one has its attributes."""
    if instance.state not in _LIVE_STATES:
        return False
    of_template = launch_template_data(instance).get("CapacityReservationSpecification")
    specification = instance.__dict__.get("reservation_of_group") or of_template or {}
    if target := specification.get("CapacityReservationTarget"):
        return bool(target.get("CapacityReservationId") == reservation.id)
    preference = specification.get("CapacityReservationPreference", "open")
    is_match = reservation.fits(instance.instance_type, [instance.placement.zone])
    return is_match and reservation.match_criteria == "open" and preference != "none"


def find_target(backend: MotoBackend, reservation_id: str) -> Reservation:
    """Return the reservation that a launch targets.

    Raises:
        Refused: there is no such reservation, or it was cancelled (that the error is the same then, is assumed)
    """
    reservation = find(backend, reservation_id)
    if reservation is None:
        raise Refused(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation_id}' does not exist"
        )
    return reservation


def usable(launch: Launch) -> Reservation | None:
    """Return the Capacity Reservation that the next instance of a launch would use; None if it would use none.

    Raises:
        Refused: the launch needs a Capacity Reservation, and cannot have one (the words for other attributes are
            assumed)
    """
    specification = launch.data.get("CapacityReservationSpecification") or {}
    preference = specification.get("CapacityReservationPreference", "open")
    target = specification.get("CapacityReservationTarget") or {}
    if launch.is_spot or preference == "none":
        return None
    candidate_zones = list(launch.candidate_zones)
    if reservation_id := target.get("CapacityReservationId"):
        reservation = find_target(launch.backend, reservation_id)
        if not reservation.fits(launch.type, candidate_zones):
            raise invalid_value(
                f"The attributes of the instance ({launch.type} in {', '.join(candidate_zones) or 'any zone'}) do not "
                f"match those of the capacity reservation {reservation_id} ({reservation.instance_type} in "
                f"{reservation.zone})"
            )
        if free_count(launch.backend, reservation) < launch.count:
            raise _exceeded(reservation_id)
        return reservation
    for reservation in active_reservations(launch.backend):
        is_match = reservation.match_criteria == "open" and reservation.fits(launch.type, candidate_zones)
        if is_match and free_count(launch.backend, reservation) >= launch.count:
            return reservation
    if preference == "capacity-reservations-only":
        raise _exceeded("")
    return None


def _exceeded(reservation_id: str) -> Refused:
    reservation = f"requested reservation '{reservation_id}' does" if reservation_id else "open reservations do"
    message = f"The {reservation} not have sufficient compatible and available capacity"
    return Refused("ReservationCapacityExceeded", message)


@replaces(EC2Response, "create_capacity_reservation")
def create_capacity_reservation(response: MotoResponse) -> ActionResult:
    """Reserve capacity (API, CreateCapacityReservation)."""
    backend, parameters = response.ec2_backend, response._get_params()  # noqa: SLF001 - moto has no other way
    reservation = Reservation(
        id=f"cr-{uuid.uuid4().hex[:17]}",
        instance_type=parameters["InstanceType"],
        zone=parameters["AvailabilityZone"],
        count=int(parameters["InstanceCount"]),
        match_criteria=parameters.get("InstanceMatchCriteria", "open"),
    )
    reservations_of(backend)[reservation.id] = reservation
    tags = response._parse_tag_specification().get("capacity-reservation", {})  # noqa: SLF001
    if tags:
        backend.create_tags([reservation.id], tags)
    return ActionResult({"CapacityReservation": _description(backend, reservation)})


@replaces(EC2Response, "describe_capacity_reservations")
def describe_capacity_reservations(response: MotoResponse) -> ActionResult:
    """Describe reservations by their ids or states (API, DescribeCapacityReservations)."""
    backend, parameters = response.ec2_backend, response._get_params()  # noqa: SLF001
    reservation_ids = parameters.get("CapacityReservationIds") or parameters.get("CapacityReservationId") or []
    known_reservations = reservations_of(backend)
    if missing := [reservation_id for reservation_id in reservation_ids if reservation_id not in known_reservations]:
        find_target(backend, missing[0])
    descriptions = [_description(backend, reservation) for reservation in known_reservations.values()]
    names = {"state": "State", "instance-type": "InstanceType", "availability-zone": "AvailabilityZone"}
    for name, values in response._filters_from_querystring().items():  # noqa: SLF001
        descriptions = [description for description in descriptions if description[names[name]] in values]
    if reservation_ids:
        descriptions = [
            description for description in descriptions if description["CapacityReservationId"] in reservation_ids
        ]
    return ActionResult({"CapacityReservations": descriptions})


@replaces(EC2Response, "cancel_capacity_reservation")
def cancel_capacity_reservation(response: MotoResponse) -> ActionResult:
    """Cancel a reservation; its instances keep running (API, CancelCapacityReservation)."""
    reservation_id = response._get_params()["CapacityReservationId"]  # noqa: SLF001
    reservations_of(response.ec2_backend)[reservation_id].is_active = False
    return ActionResult({"Return": True})


def _description(backend: MotoBackend, reservation: Reservation) -> JsonDict:
    tags = backend.describe_tags(filters={"resource-id": [reservation.id]})
    return {
        "CapacityReservationId": reservation.id,
        "InstanceType": reservation.instance_type,
        "InstancePlatform": PLATFORM,
        "AvailabilityZone": reservation.zone,
        "TotalInstanceCount": reservation.count,
        "AvailableInstanceCount": free_count(backend, reservation),
        "InstanceMatchCriteria": reservation.match_criteria,
        "Tenancy": "default",
        "EndDateType": "unlimited",
        "State": "active" if reservation.is_active else "cancelled",
        "Tags": [{"Key": tag["key"], "Value": tag["value"]} for tag in tags],
    }
