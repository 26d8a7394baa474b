"""The instance types of a node group, and whether they are launched by a mixed instances policy.

A group has one type (`instanceType`), a list (`instanceTypes`), or those that AWS finds to have what is required
(`instanceRequirements`). In the last case the types are known here only as far as `instance_type_facts` has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from cfngen.cluster.instances import gpu, instance_types
from cfngen.cluster.instances.instance_types import InstanceTypeFacts, all_facts, facts_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.base import Architecture
from cfngen.cluster.sections.capacity import Accelerators, InstanceRequirements
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.text import join_and

_MIB_PER_GIB = 1024
_MAX_TYPES_SHOWN = 3
# Families of amd64 with processors of AMD: an `a` after the generation ("Instance type names", Amazon EC2 Instance
# Types guide), and accelerated families, whose names do not say it.
_AMD_FAMILY = re.compile(r"[a-z]+[0-9]+a[a-z]*|g4ad|g5|g6|g6e|g6f|gr6|gr6f|p5|p5e")


def types_of(cluster: Cluster, group: NodeGroup) -> tuple[str, ...]:
    """Return the instance types of a group: the preferred one first, or by size those that are known to match."""
    if group.instance_requirements:
        return matching_types(group.instance_requirements, required_architecture(group), cluster.region)
    return group.instance_types or (group.instance_type,)


def types_key(group: NodeGroup) -> str:
    """Return the key of the cluster file that says which instance types a group has."""
    if group.instance_requirements:
        return "instanceRequirements"
    return "instanceTypes" if group.instance_types else "instanceType"


def has_mixed_instances_policy(group: NodeGroup) -> bool:
    """Return whether the Auto Scaling group of a node group has a mixed instances policy."""
    return bool(group.instance_types or group.instance_requirements or group.instances_distribution)


def may_be_spot(group: NodeGroup) -> bool:
    """Return whether some nodes of a group are Spot Instances."""
    distribution = group.instances_distribution
    if distribution is None or distribution.on_demand_percentage is None:
        return group.spot_price is not None
    return distribution.on_demand_percentage < 100


def required_architecture(group: NodeGroup) -> Architecture:
    """Return the CPU architecture of a group's types: with requirements its image's, which EC2 follows.

    "Instances will be launched with a compatible CPU architecture based on the Amazon Machine Image (AMI) that you
    specify in your launch template" (CpuManufacturers, InstanceRequirements, EC2 Auto Scaling API Reference).
    """
    if group.instance_requirements:
        return group.image.architecture or "amd64"
    return instance_types.architecture(group.instance_type)


@cache
def matching_types(
    requirements: InstanceRequirements, architecture: Architecture, region: str | None
) -> tuple[str, ...]:
    """Return the known types that a region offers and that have what is required, the smallest first.

    Prices are not known here, so AWS may leave out those that cost too much.

    Args:
        region: the region; None, or a region that is not known here, stands for all.
    """
    offered_types = instance_types.types_in_region(region) if region else None
    return by_size(
        name
        for name, facts in all_facts().items()
        if (offered_types is None or name in offered_types)
        and facts.architecture == architecture
        and not instance_types.why_unsuitable(name, "node")
        and _has_required_size(requirements, facts)
        and _has_required_kind(requirements, name, facts)
        and _has_required_gpus(requirements.accelerators, name, facts)
        and _is_chosen(requirements, name)
    )


def by_size(types: Iterable[str]) -> tuple[str, ...]:
    """Return instance types from the smallest to the largest, as far as their facts are known."""

    def sort_key(name: str) -> tuple[int, int, str]:
        facts = facts_of(name)
        return (facts.vcpus, facts.memory_mib, name) if facts else (0, 0, name)

    return tuple(sorted(types, key=sort_key))


def type_list(types: Sequence[str]) -> str:
    """Return instance types in a few words: `m7i.large or m7a.large`, `one of 12 types, c7i.large to m7i.xlarge`."""
    if len(types) <= _MAX_TYPES_SHOWN:
        return " or ".join(join_and(types).rsplit(" and ", 1)) if types else "no known type"
    sorted_types = by_size(types)
    return f"one of {len(types)} types, {sorted_types[0]} to {sorted_types[-1]}"


def cpu_manufacturer(instance_type: str, architecture: Architecture) -> str:
    """Return the manufacturer of a type's CPU, in the words of `cpuManufacturers`."""
    if architecture == "arm64":
        return "amazon-web-services"
    return "amd" if _AMD_FAMILY.fullmatch(instance_type.partition(".")[0]) else "intel"


def _has_required_size(requirements: InstanceRequirements, facts: InstanceTypeFacts) -> bool:
    vcpus, memory = requirements.vcpus, requirements.memory
    return (
        vcpus.min <= facts.vcpus <= (vcpus.max or facts.vcpus)
        and memory.min * _MIB_PER_GIB <= facts.memory_mib
        and (memory.max is None or facts.memory_mib <= memory.max * _MIB_PER_GIB)
    )


def _has_required_kind(requirements: InstanceRequirements, name: str, facts: InstanceTypeFacts) -> bool:
    generation = "current" if facts.is_current_generation else "previous"
    manufacturers = requirements.cpu_manufacturers
    return (
        generation in requirements.generations
        and (not manufacturers or cpu_manufacturer(name, facts.architecture) in manufacturers)
        and _is_included(requirements.burstable, facts.is_burstable)
        and _is_included(requirements.bare_metal, facts.is_bare_metal)
        and _is_included(requirements.local_storage, bool(facts.local_disk_gb))
    )


def _has_required_gpus(accelerators: Accelerators | None, name: str, facts: InstanceTypeFacts) -> bool:
    """Return whether a type has the required GPUs; without a requirement, whether it has no accelerators."""
    if accelerators is None:
        return not facts.gpu_count and not gpu.other_accelerators(name)
    return (
        accelerators.count.min <= facts.gpu_count <= (accelerators.count.max or facts.gpu_count)
        and (not accelerators.manufacturers or facts.gpu_manufacturer.lower() in accelerators.manufacturers)
        and (not accelerators.names or facts.gpu.lower().replace(" ", "-") in accelerators.names)
    )


def _is_included(rule: str, has_property: bool) -> bool:
    """Return whether a type is included by a rule, `included`, `excluded` or `required`, about a property of types."""
    return rule == "included" or has_property == (rule == "required")


def _is_chosen(requirements: InstanceRequirements, name: str) -> bool:
    if requirements.allowed_types and not _matches_any(name, requirements.allowed_types):
        return False
    return not _matches_any(name, requirements.excluded_types)


def _matches_any(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a type is one of some patterns, in which an asterisk stands for any characters."""
    return any(re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name) for pattern in patterns)
