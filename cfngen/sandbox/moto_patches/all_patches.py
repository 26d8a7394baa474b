"""Applies all patches of moto but for the speedups."""

from __future__ import annotations

from cfngen.sandbox.moto_patches import (
    instances,
    networks,  # noqa: F401 - importing it registers its patches, as with the services
    registry,
)
from cfngen.sandbox.services import (  # noqa: F401
    capacity_reservations,
    distributions,
    flow_logs,
    launch_templates,
    nat_gateways,
    object_locks,
    policy_simulation,
    scaling_notifications,
    scaling_patches,
    tag_limits,
    volumes,
    vpc_endpoints,
    web_identity,
)


def apply() -> None:
    """Apply the patches, each once per process."""
    registry.apply()
    instances.offer_instance_types_everywhere()
