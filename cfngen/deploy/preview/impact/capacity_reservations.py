"""The impact of changes of the masters' capacity reservations: which comes first, what can fail, and what it costs."""

from __future__ import annotations

from cfngen.deploy.messages.message import Impact
from cfngen.deploy.preview.impact.context import ChangeContext

_IF_SOLD_OUT = "if EC2 has no capacity for it, the update fails before an instance is terminated"
# "Capacity Reservations are charged at the equivalent On-Demand rate whether you run instances in reserved capacity or
# not"; an instance in one is charged, and the reservation is not ("Pricing and billing", Amazon EC2 User Guide).
_COST = "it costs as much as the instance while none runs in it"


def _reservation_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of the capacity reservation of a master."""
    owner = context.owner or "a master"
    instance_type = str(context.after("InstanceType") or "its type")
    if context.change.action == "add":
        return Impact(f"EC2 reserves capacity of {instance_type} for {owner}: {_IF_SOLD_OUT}; {_COST}")
    if context.change.action == "remove":
        return Impact(
            f"the capacity reservation of {owner} is cancelled: its next instance starts only if its type is not sold "
            "out in the zone"
        )
    if context.disappears:
        return Impact(
            f"the capacity reservation of {owner} {context.verb} by one of {instance_type}, which is made first: "
            f"{_IF_SOLD_OUT}; the old one is cancelled at the end, and until then both count against the quota of vCPUs"
        )
    return None


IMPACT_BY_TYPE = {"AWS::EC2::CapacityReservation": _reservation_impact}
