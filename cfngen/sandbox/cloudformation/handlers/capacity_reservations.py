"""The handler of AWS::EC2::CapacityReservation."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.handlers.handler import CreatedResource, Handler, HandlerCall, Tag
from cfngen.sandbox.json_types import Properties


class CapacityReservation(Handler):
    """A capacity reservation: another type, platform or zone replaces it, anything else is updated in place."""

    modifiable = frozenset({"InstanceCount", "InstanceMatchCriteria"})

    supported_properties = frozenset(
        {
            "AvailabilityZone",
            "InstanceCount",
            "InstanceMatchCriteria",
            "InstancePlatform",
            "InstanceType",
            "TagSpecifications",
        }
    )
    updatable_properties = modifiable | {"TagSpecifications"}

    def create(self, call: HandlerCall) -> CreatedResource:
        reservation = call.ec2.create_capacity_reservation(**call.pick(*self.supported_properties))
        reservation_id = reservation["CapacityReservation"]["CapacityReservationId"]
        return CreatedResource(reservation_id, {"Id": reservation_id})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        if changed & self.modifiable:
            call.ec2.modify_capacity_reservation(
                CapacityReservationId=call.physical_id, **call.pick(*sorted(self.modifiable))
            )
        if "TagSpecifications" in changed:
            self.change_tags(call, _tags(old_properties), _tags(call.properties))
        return {}

    def delete(self, call: HandlerCall) -> None:
        call.ec2.cancel_capacity_reservation(CapacityReservationId=call.physical_id)


def _tags(properties: Properties) -> list[Tag]:
    return [tag for specification in properties.get("TagSpecifications", []) for tag in specification["Tags"]]
