"""Cross-checks between several values. Each check is a function that takes the cluster and yields problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cfngen.cluster.checks import (
    access,
    addons,
    addresses,
    characters,
    existing,
    instances,
    kubernetes,
    local_zones,
    naming,
    networking,
    nodes,
    placement,
    sizes,
    sources,
    tags,
    topology,
    volumes,
)
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import Problem

Check = Callable[[Cluster], Iterator[Problem]]

PROBLEMS: tuple[Check, ...] = (
    *naming.PROBLEMS,
    *tags.PROBLEMS,
    *placement.PROBLEMS,
    *local_zones.PROBLEMS,
    *existing.PROBLEMS,
    *topology.PROBLEMS,
    *addresses.PROBLEMS,
    *networking.PROBLEMS,
    *access.PROBLEMS,
    *instances.PROBLEMS,
    *sources.PROBLEMS,
    *volumes.PROBLEMS,
    *sizes.PROBLEMS,
    *kubernetes.PROBLEMS,
    *nodes.PROBLEMS,
    *addons.PROBLEMS,
    *characters.PROBLEMS,
)
WARNINGS: tuple[Check, ...] = (
    *placement.WARNINGS,
    *local_zones.WARNINGS,
    *addresses.WARNINGS,
    *topology.WARNINGS,
    *networking.WARNINGS,
    *access.WARNINGS,
    *instances.WARNINGS,
    *sources.WARNINGS,
    *sizes.WARNINGS,
    *nodes.WARNINGS,
)


def problems(cluster: Cluster) -> tuple[Problem, ...]:
    """Return the problems because of which the cluster could not be created or would not work."""
    return tuple(problem for check in PROBLEMS for problem in check(cluster))


def warnings(cluster: Cluster) -> tuple[Problem, ...]:
    """Return warnings about settings that work but may not be intended."""
    return tuple(problem for check in WARNINGS for problem in check(cluster))
