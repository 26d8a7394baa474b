"""Checks of the instance types of node groups that have several: lists of types, and requirements."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster import instance_types
from cfngen.cluster.checks.sections import node_groups, repeated
from cfngen.cluster.group_types import matching_types, may_be_spot, required_architecture
from cfngen.cluster.instance_type_facts import facts_of
from cfngen.cluster.model import Architecture, Cluster, InstanceRequirements, NodeGroup
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.text import join_and

# What is dropped in turn to find out which requirement leaves no type: the key, and the field's value without it.
_DROPPED: tuple[tuple[str, str, object], ...] = (
    ("allowedTypes", "allowed_types", ()),
    ("excludedTypes", "excluded_types", ()),
    ("cpuManufacturers", "cpu_manufacturers", ()),
    ("accelerators", "accelerators", None),
    ("generations", "generations", ("current", "previous")),
    ("burstable", "burstable", "included"),
    ("bareMetal", "bare_metal", "included"),
    ("localStorage", "local_storage", "included"),
)


def _check_one_way_to_choose(cluster: Cluster) -> Iterator[Problem]:
    for path, group in node_groups(cluster):
        types_path, requirements_path = (*path, "instanceTypes"), (*path, "instanceRequirements")
        if group.instance_types and group.instance_requirements:
            message = "instanceTypes and instanceRequirements cannot be combined; keep one of them"
            yield Problem(requirements_path, message, related_paths=(types_path,))
        elif group.instance_types and group.instance_type != group.instance_types[0]:
            message = (
                "the group has a list of types, whose first is the preferred one; remove instanceType, or put "
                f"{group.instance_type} first in instanceTypes"
            )
            yield Problem((*path, "instanceType"), message, related_paths=(types_path,))
        elif group.instance_requirements and _has_type_beside_requirements(cluster, group):
            message = "instanceRequirements choose the types; remove instanceType, or remove instanceRequirements"
            yield Problem((*path, "instanceType"), message, related_paths=(requirements_path,))


def _has_type_beside_requirements(cluster: Cluster, group: NodeGroup) -> bool:
    """Return whether a group has a type that was not derived from its requirements."""
    if group.instance_requirements is None or "instance_type" not in group.model_fields_set:
        return False
    types = matching_types(group.instance_requirements, required_architecture(group), cluster.region)
    return bool(types) and group.instance_type != types[0]


def _check_type_lists(cluster: Cluster) -> Iterator[Problem]:
    for path, group in node_groups(cluster):
        types = group.instance_types
        list_path = (*path, "instanceTypes")
        if len(types) == 1:
            yield Problem(list_path, f"a list has at least two types; add one, or use instanceType: {types[0]}")
        for position, name in enumerate(types):
            if name in types[:position]:
                yield Problem((*list_path, position), f"{name} appears twice; remove one")
                continue
            yield from _architecture_problem((*list_path, position), name, types[0])
            facts = facts_of(name)
            if may_be_spot(group) and facts and not facts.has_spot:
                message = f"EC2 has no Spot Instances of {name}; remove it, or set onDemandPercentage to 100"
                yield Problem((*list_path, position), message, related_paths=((*path, "instancesDistribution"),))


def _architecture_problem(path: Path, name: str, first_type: str) -> Iterator[Problem]:
    """Yield a problem if a type has another architecture than the first of its list.

    An override could name a launch template with an image of the other architecture, but nodes of one group would then
    differ in more than their size: images of pods, and user data, are for one architecture.
    """
    architecture, first_architecture = map(instance_types.architecture, (name, first_type))
    if architecture != first_architecture:
        message = (
            f"{name} is {architecture}, but {first_type} is {first_architecture}: a group has one image and so one "
            "architecture; make a second group for it"
        )
        yield Problem(path, message)


def _check_requirements(cluster: Cluster) -> Iterator[Problem]:
    for path, group in node_groups(cluster):
        requirements = group.instance_requirements
        if requirements is None:
            continue
        problems = list(_contradictions((*path, "instanceRequirements"), requirements, required_architecture(group)))
        yield from problems or _no_match_problem(cluster, path, group, requirements)


def _contradictions(path: Path, requirements: InstanceRequirements, architecture: Architecture) -> Iterator[Problem]:
    """Yield a problem for each pair of requirements that exclude each other; `path` leads to the section."""
    ranges: list[tuple[Path, int, int | None]] = [
        (("vcpus",), requirements.vcpus.min, requirements.vcpus.max),
        (("memory",), requirements.memory.min, requirements.memory.max),
    ]
    if requirements.accelerators:
        gpus = requirements.accelerators.count
        ranges.append((("accelerators", "count"), gpus.min, gpus.max))
    for keys, least, greatest in ranges:
        if greatest is not None and greatest < least:
            message = f"{greatest} is less than min ({least}); raise it or lower min"
            yield Problem((*path, *keys, "max"), message, related_paths=((*path, *keys, "min"),))
    if requirements.allowed_types and requirements.excluded_types:
        message = "allowedTypes and excludedTypes cannot be combined; keep one of them"
        yield Problem((*path, "excludedTypes"), message, related_paths=((*path, "allowedTypes"),))
    for key, values in (
        ("generations", requirements.generations),
        ("cpuManufacturers", requirements.cpu_manufacturers),
        ("allowedTypes", requirements.allowed_types),
        ("excludedTypes", requirements.excluded_types),
    ):
        yield from repeated(values, (*path, key))
    made_for_arm = "amazon-web-services"
    for position, manufacturer in enumerate(requirements.cpu_manufacturers):
        if (manufacturer == made_for_arm) != (architecture == "arm64"):
            other = "amd64" if architecture == "arm64" else "arm64"
            message = (
                f"{manufacturer} makes no CPUs of {architecture}, which the image is for; remove it, or set "
                f"image.architecture to {other}"
            )
            yield Problem((*path, "cpuManufacturers", position), message)


def _no_match_problem(
    cluster: Cluster, path: Path, group: NodeGroup, requirements: InstanceRequirements
) -> Iterator[Problem]:
    """Yield a problem if no known type of the region has what is required: which requirement is to blame, if one is."""
    architecture = required_architecture(group)
    requirements_path = (*path, "instanceRequirements")
    if matching_types(requirements, architecture, cluster.region):
        return
    other_architecture: Architecture = "amd64" if architecture == "arm64" else "arm64"
    without_manufacturers = requirements.model_copy(update={"cpu_manufacturers": ()})
    hints = [
        (f"without {key}", matching_types(requirements.model_copy(update={field: value}), architecture, cluster.region))
        for key, field, value in _DROPPED
        if getattr(requirements, field) != value
    ]
    hints += [
        (
            f"without a greatest number of {key}",
            matching_types(
                requirements.model_copy(update={key: getattr(requirements, key).model_copy(update={"max": None})}),
                architecture,
                cluster.region,
            ),
        )
        for key in ("vcpus", "memory")
        if getattr(requirements, key).max is not None
    ]
    hints.append(
        (
            f"with image.architecture: {other_architecture}",
            matching_types(without_manufacturers, other_architecture, cluster.region),
        )
    )
    hints.append(("in other regions", matching_types(requirements, architecture, None)))
    useful = [f"{types[0]} {hint}" for hint, types in hints if types]
    advice = f"there would be {join_and(useful[:2])}" if useful else "ask for less"
    message = f"no instance type of {cluster.region} that is known here ({architecture}) has all of this; {advice}"
    yield Problem(requirements_path, message, related_paths=((*path, "image"), ("region",)))


PROBLEM_CHECKS = (_check_one_way_to_choose, _check_type_lists, _check_requirements)
