"""The state of other EC2 instances."""

from __future__ import annotations

from ..machine import Machine

TERMINATED_STATES = ("terminated", "")


def state(machine: Machine, instance: str) -> str:
    """Return an instance's state, e.g. `running` or `terminated`; "" if EC2 says that it does not exist.

    If EC2 reports no error but lists no instance, the state is `unknown`.
    """
    response = machine.aws(
        "ec2",
        "describe_instances",
        "InvalidInstanceID.NotFound",
        "InvalidInstanceID.Malformed",
        InstanceIds=[instance],
    )
    if "Error" in response:
        return ""
    instances = [description for group in response.get("Reservations", []) for description in group["Instances"]]
    return str(instances[0]["State"]["Name"]) if instances else "unknown"
