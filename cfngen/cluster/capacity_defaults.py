"""Fills in how a node group finds capacity: its preferred instance type, and the shares of Spot Instances.

The data is not validated yet: a value of the wrong type is left as it is, and validation reports it.
"""

from __future__ import annotations

from pydantic import ValidationError

from cfngen.cluster.completed_data import CompletedData, Derivation, Section
from cfngen.cluster.group_types import matching_types
from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.sections.capacity import InstanceRequirements

_MIXED_KEYS = ("instanceTypes", "instanceRequirements", "instancesDistribution")


def fill_preferred_types(completed: CompletedData) -> None:
    """Give each node group with a list of types the first of them as its `instanceType`."""
    for path, group in completed.sections_in(("nodeGroups",)):
        types = group.get("instanceTypes")
        if isinstance(types, list) and types and isinstance(types[0], str):
            source: Path = (*path, "instanceTypes", 0)
            completed.fill((*path, "instanceType"), types[0], Derivation("from instanceTypes[0]", source))


def fill_required_types(completed: CompletedData) -> None:
    """Give each node group with requirements the smallest type that has what is required as its `instanceType`.

    Images must be filled in before, since their architecture is the types'.
    """
    region = completed.data.get("region")
    for path, group in completed.sections_in(("nodeGroups",)):
        if not isinstance(group.get("instanceRequirements"), dict):
            continue
        try:
            requirements = InstanceRequirements.model_validate(group["instanceRequirements"])
        except ValidationError:
            continue
        architecture = lookup(group, ("image", "architecture"))
        if architecture not in ("amd64", "arm64"):
            continue
        types = matching_types(requirements, architecture, region if isinstance(region, str) else None)
        if types:
            derivation = Derivation("smallest that instanceRequirements allow", (*path, "instanceRequirements"))
            completed.fill((*path, "instanceType"), types[0], derivation)


def fill_distributions(completed: CompletedData) -> None:
    """Fill in the shares of On-Demand and Spot Instances, and the allocation strategies, of groups that have them."""
    for path, group in completed.sections_in(("nodeGroups",)):
        if any(isinstance(group.get(key), (dict, list)) and group[key] != [] for key in _MIXED_KEYS):
            _fill_distribution(completed, path, group)


def _fill_distribution(completed: CompletedData, path: Path, group: Section) -> None:
    distribution_path: Path = (*path, "instancesDistribution")
    has_spot_price = "spotPrice" in group
    derivation = Derivation("from spotPrice", (*path, "spotPrice")) if has_spot_price else None
    completed.fill((*distribution_path, "onDemandPercentage"), 0 if has_spot_price else 100, derivation)
    is_required = isinstance(group.get("instanceRequirements"), dict)
    completed.fill((*distribution_path, "onDemandAllocationStrategy"), "lowest-price" if is_required else "prioritized")
    percentage = lookup(group, ("instancesDistribution", "onDemandPercentage"))
    if isinstance(percentage, int) and percentage < 100:
        completed.fill((*distribution_path, "spotAllocationStrategy"), "price-capacity-optimized")
