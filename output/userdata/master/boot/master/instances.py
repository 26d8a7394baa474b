"""Asks EC2 for the state of other instances, e.g. of the one that had this master's volume before."""

from __future__ import annotations

from ..machine import Machine

# The two results of `state` for a terminated instance: EC2 still lists it, or says that it does not exist.
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
    descriptions = [
        description for reservation in response.get("Reservations", []) for description in reservation["Instances"]
    ]
    return str(descriptions[0]["State"]["Name"]) if descriptions else "unknown"
