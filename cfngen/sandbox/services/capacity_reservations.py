"""On-Demand Capacity Reservations of EC2, which moto lacks: their calls, and launches that target one.

Sources: Amazon EC2 User Guide, "Reserve compute capacity with EC2 On-Demand Capacity Reservations", and API reference,
CreateCapacityReservation and "Error codes". Only targeted reservations for immediate use are modelled.

- A reservation is refused where EC2 has no capacity, and beyond the quota of vCPUs. Active reservations count towards
  that quota, used or not; an instance that runs in one is not counted again.
- An instance that targets a reservation is launched where its type is sold out otherwise. Its type and zone must be
  those of the reservation, and the reservation must have room (ReservationCapacityExceeded).
- *Assumed*: an instance has its place in a reservation until it is terminated.
- An instance keeps running when its reservation is cancelled ("Cancel a Capacity Reservation").
"""

from __future__ import annotations

import functools
import uuid
from dataclasses import dataclass

from moto.core.responses import ActionResult

from cfngen.sandbox.json_types import JsonDict, JsonObject
from cfngen.sandbox.moto_types import MotoBackend, MotoModel, MotoResponse
from cfngen.sandbox.services.rules import Refused

PLATFORM = "Linux/UNIX"
_LIVE_STATES = ("pending", "running", "shutting-down")


@dataclass
class Reservation:
    """A capacity reservation.

    Attributes:
        id: its id.
        instance_type: the type of its instances.
        zone: the zone.
        count: for how many instances.
        match_criteria: `targeted` or `open`.
        is_active: whether it has not been cancelled.
    """

    id: str
    instance_type: str
    zone: str
    count: int
    match_criteria: str
    is_active: bool = True


def reservations_of(backend: MotoBackend) -> dict[str, Reservation]:
    """Return the reservations of moto's EC2 in a region, by id; cancelled ones too."""
    reservations: dict[str, Reservation] = backend.__dict__.setdefault("capacity_reservations", {})
    return reservations


def target_id(data: JsonObject) -> str:
    """Return the id of the reservation that a launch targets; empty if it targets none."""
    specification = data.get("CapacityReservationSpecification") or {}
    return str((specification.get("CapacityReservationTarget") or {}).get("CapacityReservationId") or "")


def free_count(backend: MotoBackend, reservation: Reservation) -> int:
    """Return for how many further instances a reservation has room."""
    if not reservation.is_active:
        return 0
    return reservation.count - sum(
        1 for instance in backend.all_instances() if _reservation_id(instance) == reservation.id
    )


def runs_in_active_reservation(instance: MotoModel) -> bool:
    """Return whether an instance of moto runs in an active reservation."""
    reservation = reservations_of(instance.ec2_backend).get(_reservation_id(instance))
    return reservation is not None and reservation.is_active


def active_reservations(backend: MotoBackend) -> list[Reservation]:
    """Return the reservations that are not cancelled."""
    return [reservation for reservation in reservations_of(backend).values() if reservation.is_active]


def _reservation_id(instance: MotoModel) -> str:
    """Return the id of the reservation that an instance was launched into; empty for none, or if it is terminated."""
    if instance.state not in _LIVE_STATES:
        return ""
    tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
    template = instance.ec2_backend.launch_templates.get(tags.get("aws:ec2launchtemplate:id", ""))
    return target_id(template.get_version(tags["aws:ec2launchtemplate:version"]).data) if template else ""


def find_target(backend: MotoBackend, reservation_id: str) -> Reservation:
    """Return the reservation that a launch targets.

    Raises:
        Refused: there is no such reservation, or it was cancelled (that the error is the same then, is assumed)
    """
    reservation = reservations_of(backend).get(reservation_id)
    if reservation is None or not reservation.is_active:
        raise Refused(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation_id}' does not exist"
        )
    return reservation


def check_target(backend: MotoBackend, reservation_id: str, instance_type: str, zones: list[str], count: int) -> None:
    """Refuse a launch into a reservation for other instances, or one without room.

    Args:
        backend: moto's EC2 of the region.
        reservation_id: the reservation that the launch targets.
        instance_type: type of the instances.
        zones: the zones in which they may be launched; empty for any.
        count: how many there are.

    Raises:
        Refused: the error of RunInstances; the words for another type or zone are assumed.
    """
    reservation = find_target(backend, reservation_id)
    if reservation.instance_type != instance_type or (zones and reservation.zone not in zones):
        raise Refused(
            "InvalidParameterValue",
            f"The attributes of the instance ({instance_type} in {', '.join(zones) or 'any zone'}) do not match those "
            f"of the capacity reservation {reservation_id} ({reservation.instance_type} in {reservation.zone})",
        )
    if free_count(backend, reservation) < count:
        raise Refused(
            "ReservationCapacityExceeded",
            f"The requested reservation '{reservation_id}' does not have sufficient compatible and available capacity",
        )


@functools.cache
def apply() -> None:
    """Add the calls to moto's EC2, for the rest of the process."""
    from moto.ec2.responses import EC2Response

    for function in (
        create_capacity_reservation,
        describe_capacity_reservations,
        modify_capacity_reservation,
        cancel_capacity_reservation,
    ):
        setattr(EC2Response, function.__name__, function)


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


def modify_capacity_reservation(response: MotoResponse) -> ActionResult:
    """Change for how many instances a reservation is, or which may use it (API, ModifyCapacityReservation)."""
    parameters = response._get_params()  # noqa: SLF001
    reservation = reservations_of(response.ec2_backend)[parameters["CapacityReservationId"]]
    reservation.count = int(parameters.get("InstanceCount", reservation.count))
    reservation.match_criteria = parameters.get("InstanceMatchCriteria", reservation.match_criteria)
    return ActionResult({"Return": True})


def cancel_capacity_reservation(response: MotoResponse) -> ActionResult:
    """Cancel a reservation; its instances keep running (API, CancelCapacityReservation)."""
    reservation_id = response._get_params()["CapacityReservationId"]  # noqa: SLF001
    reservations_of(response.ec2_backend)[reservation_id].is_active = False
    return ActionResult({"Return": True})


def _description(backend: MotoBackend, reservation: Reservation) -> JsonDict:
    """Return a reservation as the API describes it."""
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
