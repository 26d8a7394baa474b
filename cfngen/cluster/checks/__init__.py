"""All checks of a valid cluster that need more than one value, or knowledge of AWS and Kubernetes.

Each check is a function that takes the cluster and yields problems. The modules of this package list their checks.
"""

from __future__ import annotations

from cfngen.cluster.checks import (
    access,
    addons,
    addresses,
    api_dns,
    autoscaler,
    bastion,
    capacity,
    characters,
    existing,
    existing_roles,
    extra_volumes,
    flow_logs,
    gpu,
    group_types,
    group_updates,
    instances,
    interruptions,
    kubernetes,
    lasting_defaults,
    local_zones,
    naming,
    networking,
    node_template,
    nodes,
    placement,
    pods_per_node,
    policies,
    proxy,
    references,
    routes,
    security_groups,
    service_accounts,
    sizes,
    sources,
    tags,
    topology,
    volumes,
    vpc_ranges,
    windows,
)
from cfngen.cluster.checks.sections import Check
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import Problem

# Checks of what cannot work; their problems are errors.
PROBLEM_CHECKS: tuple[Check, ...] = (
    *naming.PROBLEM_CHECKS,
    *tags.PROBLEM_CHECKS,
    *placement.PROBLEM_CHECKS,
    *local_zones.PROBLEM_CHECKS,
    *existing.PROBLEM_CHECKS,
    *references.PROBLEM_CHECKS,
    *security_groups.PROBLEM_CHECKS,
    *topology.PROBLEMS,
    *addresses.PROBLEM_CHECKS,
    *vpc_ranges.PROBLEM_CHECKS,
    *routes.PROBLEM_CHECKS,
    *flow_logs.PROBLEM_CHECKS,
    *proxy.PROBLEM_CHECKS,
    *networking.PROBLEM_CHECKS,
    *access.PROBLEM_CHECKS,
    *existing_roles.PROBLEM_CHECKS,
    *policies.PROBLEM_CHECKS,
    *service_accounts.PROBLEM_CHECKS,
    *api_dns.PROBLEM_CHECKS,
    *bastion.PROBLEM_CHECKS,
    *instances.PROBLEM_CHECKS,
    *gpu.PROBLEM_CHECKS,
    *group_types.PROBLEM_CHECKS,
    *capacity.PROBLEM_CHECKS,
    *sources.PROBLEM_CHECKS,
    *volumes.PROBLEM_CHECKS,
    *extra_volumes.PROBLEM_CHECKS,
    *windows.PROBLEM_CHECKS,
    *sizes.PROBLEM_CHECKS,
    *kubernetes.PROBLEM_CHECKS,
    *nodes.PROBLEM_CHECKS,
    *autoscaler.PROBLEM_CHECKS,
    *node_template.PROBLEM_CHECKS,
    *pods_per_node.PROBLEM_CHECKS,
    *group_updates.PROBLEM_CHECKS,
    *addons.PROBLEM_CHECKS,
    *interruptions.PROBLEM_CHECKS,
    *characters.PROBLEM_CHECKS,
)
# Checks of what works but may not be intended; their problems are warnings.
WARNING_CHECKS: tuple[Check, ...] = (
    *lasting_defaults.WARNING_CHECKS,
    *placement.WARNING_CHECKS,
    *local_zones.WARNING_CHECKS,
    *addresses.WARNING_CHECKS,
    *topology.WARNINGS,
    *routes.WARNING_CHECKS,
    *proxy.WARNING_CHECKS,
    *networking.WARNING_CHECKS,
    *access.WARNING_CHECKS,
    *existing_roles.WARNING_CHECKS,
    *policies.WARNING_CHECKS,
    *service_accounts.WARNING_CHECKS,
    *api_dns.WARNING_CHECKS,
    *bastion.WARNING_CHECKS,
    *instances.WARNING_CHECKS,
    *gpu.WARNING_CHECKS,
    *capacity.WARNING_CHECKS,
    *sources.WARNING_CHECKS,
    *security_groups.WARNING_CHECKS,
    *sizes.WARNING_CHECKS,
    *nodes.WARNING_CHECKS,
    *autoscaler.WARNING_CHECKS,
    *node_template.WARNING_CHECKS,
    *pods_per_node.WARNING_CHECKS,
    *group_updates.WARNING_CHECKS,
)


def problems(cluster: Cluster) -> tuple[Problem, ...]:
    """Return the problems because of which the cluster could not be created or would not work."""
    return tuple(problem for check in PROBLEM_CHECKS for problem in check(cluster))


def warnings(cluster: Cluster) -> tuple[Problem, ...]:
    """Return warnings about settings that work but may not be intended."""
    return tuple(problem for check in WARNING_CHECKS for problem in check(cluster))
