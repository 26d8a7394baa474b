"""Applies all patches of moto but for the speedups."""

from __future__ import annotations

from cfngen.sandbox.moto_patches import (
    instances,
    networks,  # noqa: F401 - importing it registers its patches
    registry,
)
from cfngen.sandbox.services import (
    capacity_reservations,
    distributions,
    flow_logs,
    launch_template_versions,
    launched_volumes,
    nat_gateway_patches,
    oidc_providers,
    policy_simulation,
    scaling_patches,
    vpc_endpoint_patches,
    web_identity,
)


def apply() -> None:
    """Apply the patches, each once per process."""
    registry.apply()
    instances.offer_instance_types_everywhere()
    launched_volumes.apply()
    scaling_patches.apply()
    nat_gateway_patches.apply()
    vpc_endpoint_patches.apply()
    policy_simulation.apply()
    flow_logs.apply()
    capacity_reservations.apply()
    launch_template_versions.apply()
    distributions.apply()
    oidc_providers.apply()
    web_identity.apply()
