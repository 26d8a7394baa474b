"""All checks of a valid cluster that need more than one value, or knowledge of AWS and Kubernetes.

Each check is a function that takes the cluster and yields problems. The modules of this package list their checks.
"""

from __future__ import annotations

from cfngen.cluster.checks import (
    access,
    addons,
    addresses,
    autoscaler,
    buckets,
    capacity,
    entry_points,
    existing,
    gpu,
    group_updates,
    ingress,
    instance_types_and_images,
    kubernetes_configuration,
    naming,
    networking,
    placement,
    registry,
    roles,
    routes,
    secret_values,
    security_groups,
    service_accounts,
    sizes,
    topology,
    volumes,
)
from cfngen.cluster.checks.sections import Check
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import Problem

# Checks of what cannot work; their problems are errors.
PROBLEM_CHECKS: tuple[Check, ...] = (
    *naming.PROBLEM_CHECKS,
    *placement.PROBLEM_CHECKS,
    *existing.PROBLEM_CHECKS,
    *security_groups.PROBLEM_CHECKS,
    *topology.PROBLEM_CHECKS,
    *addresses.PROBLEM_CHECKS,
    *routes.PROBLEM_CHECKS,
    *networking.PROBLEM_CHECKS,
    *access.PROBLEM_CHECKS,
    *roles.PROBLEM_CHECKS,
    *service_accounts.PROBLEM_CHECKS,
    *registry.PROBLEM_CHECKS,
    *entry_points.PROBLEM_CHECKS,
    *ingress.PROBLEM_CHECKS,
    *instance_types_and_images.PROBLEM_CHECKS,
    *gpu.PROBLEM_CHECKS,
    *capacity.PROBLEM_CHECKS,
    *security_groups.SOURCE_CHECKS,
    *volumes.PROBLEM_CHECKS,
    *buckets.PROBLEM_CHECKS,
    *instance_types_and_images.WINDOWS_CHECKS,
    *sizes.PROBLEM_CHECKS,
    *kubernetes_configuration.PROBLEM_CHECKS,
    *autoscaler.PROBLEM_CHECKS,
    *group_updates.PROBLEM_CHECKS,
    *addons.PROBLEM_CHECKS,
    *naming.CHARACTER_CHECKS,
    *secret_values.PROBLEM_CHECKS,
)
# Checks of what works but may not be intended; their problems are warnings.
WARNING_CHECKS: tuple[Check, ...] = (
    *placement.WARNING_CHECKS,
    *addresses.WARNING_CHECKS,
    *topology.WARNING_CHECKS,
    *routes.WARNING_CHECKS,
    *networking.WARNING_CHECKS,
    *addons.WARNING_CHECKS,
    *access.WARNING_CHECKS,
    *roles.WARNING_CHECKS,
    *service_accounts.WARNING_CHECKS,
    *entry_points.WARNING_CHECKS,
    *ingress.WARNING_CHECKS,
    *instance_types_and_images.WARNING_CHECKS,
    *gpu.WARNING_CHECKS,
    *capacity.WARNING_CHECKS,
    *security_groups.WARNING_CHECKS,
    *sizes.WARNING_CHECKS,
    *kubernetes_configuration.WARNING_CHECKS,
    *autoscaler.WARNING_CHECKS,
    *group_updates.WARNING_CHECKS,
)


def problems(cluster: Cluster) -> tuple[Problem, ...]:
    """Return the problems because of which the cluster could not be created or would not work."""
    return tuple(problem for check in PROBLEM_CHECKS for problem in check(cluster))


def warnings(cluster: Cluster) -> tuple[Problem, ...]:
    """Return warnings about settings that work but may not be intended."""
    return tuple(problem for check in WARNING_CHECKS for problem in check(cluster))
