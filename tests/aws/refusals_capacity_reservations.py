"""Capacity reservations, and launches that target one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ec2_parts import CONDITION, ZONE, code, ec2, only, operation, resource
from refusal import Creation, Refusal, ServiceCall
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation
from cfngen.sandbox.services import capacity

UNKNOWN = "cr-0123456789abcdef0"
SETTINGS: Mapping[str, Any] = {
    "AvailabilityZone": ZONE,
    "InstanceType": "t3.medium",
    "InstanceCount": 1,
    "InstancePlatform": "Linux/UNIX",
    "InstanceMatchCriteria": "targeted",
}
RESERVATION = "AWS::EC2::CapacityReservation"
GUIDE = (
    "EC2 user guide: [Capacity Reservations]"
    "(https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html)"
)


def _reservation(**settings: Any) -> Creation:
    return only(Reservation=resource("CapacityReservation", **{**SETTINGS, **settings}))


def _sold_out() -> Mapping[str, Any]:
    capacity.remove_capacity(REGION, "t3.medium", ZONE)
    return {"Reservation": resource("CapacityReservation", **SETTINGS)}


def _launched(instance_type: str, *, times: int = 1, target: str = "") -> Callable[[CloudFormation], None]:
    """Return what launches instances by hand into a new reservation of one t3.medium, or into another one."""

    def run(_: CloudFormation) -> None:
        image = ec2().register_image(Name="image")["ImageId"]
        reservation = ec2().create_capacity_reservation(**SETTINGS)["CapacityReservation"]["CapacityReservationId"]
        specification = {"CapacityReservationTarget": {"CapacityReservationId": target or reservation}}
        template = ec2().create_launch_template(
            LaunchTemplateName="one",
            LaunchTemplateData={
                "ImageId": image,
                "InstanceType": instance_type,
                "CapacityReservationSpecification": specification,
            },
        )["LaunchTemplate"]["LaunchTemplateId"]
        for _ in range(times):
            ec2().run_instances(
                MinCount=1,
                MaxCount=1,
                LaunchTemplate={"LaunchTemplateId": template},
                Placement={"AvailabilityZone": ZONE},
            )

    return run


def _cancelled_twice(_: CloudFormation) -> None:
    reservation = ec2().create_capacity_reservation(**SETTINGS)["CapacityReservation"]["CapacityReservationId"]
    for _ in range(2):
        ec2().cancel_capacity_reservation(CapacityReservationId=reservation)


ROWS = [
    Refusal(
        RESERVATION,
        "type that is sold out in the zone",
        "We currently do not have sufficient t3.medium capacity in the Availability Zone you requested (us-west-2a)",
        operation("CreateCapacityReservation"),
        CONDITION,
        Creation(_sold_out, fails="Reservation"),
    ),
    Refusal(
        RESERVATION,
        "more processors than the quota of On-Demand instances",
        "You have requested more vCPU capacity than your current vCPU limit of 64 allows",
        operation("CreateCapacityReservation"),
        CONDITION,
        _reservation(InstanceType="m5.24xlarge"),
    ),
    Refusal(
        RESERVATION,
        "type that the zone does not offer",
        "Your requested instance type (h1.2xlarge) is not supported in your requested Availability Zone",
        operation("CreateCapacityReservation"),
        "assumed",
        _reservation(InstanceType="h1.2xlarge"),
    ),
    Refusal(
        RESERVATION,
        "type that there is not",
        "Invalid value 'm5.medium' for InstanceType",
        operation("CreateCapacityReservation", "InstanceType"),
        CONDITION,
        _reservation(InstanceType="m5.medium"),
    ),
    Refusal(
        "RunInstances",
        "second instance in a reservation for one",
        "does not have sufficient compatible and available capacity",
        code("ReservationCapacityExceeded"),
        CONDITION,
        ServiceCall(_launched("t3.medium", times=2)),
    ),
    Refusal(
        "RunInstances",
        "instance of another type than the reservation's",
        "do not match those of the capacity reservation",
        GUIDE,
        CONDITION,
        ServiceCall(_launched("t3.large")),
    ),
    Refusal(
        "RunInstances",
        "reservation that there is not",
        f"The capacity reservation '{UNKNOWN}' does not exist",
        code("InvalidCapacityReservationId.NotFound"),
        CONDITION,
        ServiceCall(_launched("t3.medium", target=UNKNOWN)),
    ),
    Refusal(
        "CancelCapacityReservation",
        "reservation that is cancelled already",
        "does not exist",
        code("InvalidCapacityReservationId.NotFound"),
        "assumed",
        ServiceCall(_cancelled_twice),
    ),
    Refusal(
        RESERVATION,
        "a zone that the region does not have",
        "Invalid value 'us-west-2z' for AvailabilityZone",
        operation("CreateCapacityReservation", "AvailabilityZone"),
        CONDITION,
        _reservation(AvailabilityZone="us-west-2z"),
    ),
]
