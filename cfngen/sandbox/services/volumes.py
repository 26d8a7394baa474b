"""Volumes of EBS: where they can be attached, and when they can be modified."""

from __future__ import annotations

from cfngen.sandbox.services.rules import Attempt, Refused, rule


@rule("ec2", "AttachVolume")
def zone_of_the_instance(attempt: Attempt) -> None:
    """Refuse a volume that is in another zone than the instance."""
    volume = attempt.backend.get_volume(attempt.get("VolumeId"))
    instance = attempt.backend.get_instance(attempt.get("InstanceId"))
    if volume.zone.name != instance.placement.zone:
        raise Refused(
            "InvalidVolume.ZoneMismatch",
            f"The volume '{volume.id}' is not in the same availability zone as instance '{instance.id}'",
        )
