"""How a node group of a drawn cluster file finds capacity: keys that hang on each other, and on the group's sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from cfngen.cluster.instances import gpu, instance_types
from cfngen.cluster.instances.group_types import matching_types
from cfngen.cluster.instances.instance_types import facts_of
from cfngen.cluster.sections.capacity import InstanceRequirements

if TYPE_CHECKING:
    from drawn_files import Design, File

KEYS = (
    "instanceType", "instanceTypes", "instanceRequirements", "instancesDistribution", "capacityRebalance",
    "maxInstanceLifetime", "capacityReservation", "gpu",
)  # fmt: skip
"""Keys of a node group that are drawn together."""
RESERVATIONS = "arn:{partition}:resource-groups:{region}:123456789012:group/reservations"
# What uses a reservation only where there is one that matches; the account of a lived cluster has none.
_WITHOUT_RESERVATION = ("capacity-reservations-first", "none", "default")


@st.composite
def capacity(draw: DrawFn, design: Design, types: Sequence[str]) -> File:
    """The keys by which a group finds capacity.

    Args:
        draw: of Hypothesis.
        design: what the keys have to go with.
        types: the instance types that a group may have.
    """
    if not design.lived and draw(st.integers(0, 9)) == 0 and (gpu_types := _gpu_types(design)):
        return {"instanceType": draw(st.sampled_from(gpu_types)), "gpu": "nvidia"}
    preferred = draw(st.sampled_from(types))
    found: File = {"instanceType": preferred}
    if draw(st.integers(0, 3)) == 0:
        found = draw(_several_types(design, preferred, types)) or found
    if draw(st.integers(0, 2)) == 0:
        found["instancesDistribution"] = draw(_distributions())
    if draw(st.integers(0, 3)) == 0:
        found["capacityRebalance"] = True
    if draw(st.integers(0, 3)) == 0:
        found["maxInstanceLifetime"] = draw(st.integers(1, 365))
    if draw(st.integers(0, 3)) == 0:
        found["capacityReservation"] = draw(_reservations(design))
    return found


def _gpu_types(design: Design) -> list[str]:
    """Types with GPUs that AWS's image with NVIDIA's driver serves, and that need not be bought otherwise."""
    known = instance_types.types_in_region(design.region) or ("g4dn.xlarge", "g5g.xlarge")
    fit = (name for name in sorted(known) if gpu.accelerator(name) and gpu.image_serves(name))
    return [
        name
        for name in fit
        if instance_types.architecture(name) in design.architectures and not instance_types.why_unsuitable(name, "node")
    ]


@st.composite
def _several_types(draw: DrawFn, design: Design, preferred: str, types: Sequence[str]) -> File:
    """A list of types with Spot Instances, or what types must have; nothing if the design has no room for either."""
    architecture = instance_types.architecture(preferred)
    alike = [name for name in types if instance_types.architecture(name) == architecture and _has_spot(name)]
    if len(alike) > 1 and draw(st.booleans()):
        return {"instanceTypes": draw(st.lists(st.sampled_from(alike), min_size=2, max_size=4, unique=True))}
    if design.lived:
        # The account's quota of processors is small.
        small = {"vcpus": {"min": 2, "max": 2}, "memory": {"min": draw(st.integers(2, 4)), "max": 8}}
        return {"instanceRequirements": small} if design.architectures == ("amd64",) else {}
    if design.architectures != ("amd64",):
        return {"instanceRequirements": {"vcpus": {"min": 2}, "memory": {"min": draw(st.integers(2, 16))}}}
    return {"instanceRequirements": draw(_requirements(design).filter(lambda drawn: _has_match(design, drawn)))}


def _has_spot(instance_type: str) -> bool:
    facts = facts_of(instance_type)
    return facts is not None and facts.has_spot


def _has_match(design: Design, requirements: File) -> bool:
    """Whether a known type has what is required."""
    return bool(matching_types(InstanceRequirements.model_validate(requirements), "amd64", design.region))


def _requirements(design: Design) -> st.SearchStrategy[File]:
    """What types must have, most of which goes together."""
    inclusions = st.sampled_from(("included", "excluded"))
    optional: dict[str, st.SearchStrategy[Any]] = {
        "generations": st.sampled_from((["current"], ["current", "previous"])),
        "burstable": inclusions | st.just("required"),
        "bareMetal": inclusions,
        "localStorage": inclusions | st.just("required"),
        "cpuManufacturers": st.sampled_from((["intel"], ["amd"], ["intel", "amd"])),
        "maxSpotPricePercentage": st.sampled_from((1, 100, 999999)),
        "maxOnDemandPricePercentage": st.sampled_from((1, 20, 999999)),
    }
    wanted = {"allowedTypes": st.sampled_from((["m*"], ["c*", "r*", "t*"]))}
    unwanted = {"excludedTypes": st.sampled_from((["m6*"], ["*.metal", "x*"]))}
    sizes = {"vcpus": _limits(2, 8, 16, 96), "memory": _limits(2, 16, 64, 512)}
    gpus = {
        "vcpus": st.just({"min": 2}),
        "memory": st.just({"min": 8}),
        "accelerators": st.fixed_dictionaries(
            {},
            optional={
                "count": _limits(1, 1, 4, 8),
                "manufacturers": st.just(["nvidia"]),
                "names": st.sampled_from((["t4"], ["t4", "v100"], ["a100"])),
            },
        ).filter(bool),
    }
    return (
        st.fixed_dictionaries(sizes, optional={**optional, **wanted})
        | st.fixed_dictionaries(sizes, optional={**optional, **unwanted})
        | st.fixed_dictionaries(gpus, optional={"generations": optional["generations"]})
    )


def _limits(least: int, most: int, lowest_limit: int, highest_limit: int) -> st.SearchStrategy[File]:
    """A least number, and sometimes a greatest."""
    return st.fixed_dictionaries(
        {"min": st.integers(least, most)}, optional={"max": st.integers(lowest_limit, highest_limit)}
    )


def _distributions() -> st.SearchStrategy[File]:
    return st.fixed_dictionaries(
        {},
        optional={
            "onDemandBase": st.integers(0, 3),
            "onDemandPercentage": st.sampled_from((0, 50, 100)) | st.integers(0, 100),
            "onDemandAllocationStrategy": st.sampled_from(("prioritized", "lowest-price")),
            "spotAllocationStrategy": st.sampled_from(
                ("price-capacity-optimized", "capacity-optimized", "capacity-optimized-prioritized", "lowest-price")
            ),
            "spotInstancePools": st.integers(1, 20),
        },
    )


def _reservations(design: Design) -> st.SearchStrategy[File]:
    """Reservations that exist, where the cluster is not deployed, or which of those that may exist are used."""
    untargeted = st.fixed_dictionaries({"preference": st.sampled_from(_WITHOUT_RESERVATION)})
    if design.lived:
        return untargeted
    preferences = {"preference": st.sampled_from(("capacity-reservations-only", "capacity-reservations-first"))}
    groups = st.just(RESERVATIONS.format(partition=design.partition, region=design.region))
    return (
        untargeted
        | st.fixed_dictionaries({"id": st.just("cr-0123456789abcdef0")}, optional=preferences)
        | st.fixed_dictionaries({"resourceGroup": groups}, optional=preferences)
    )


def has_spot_instances(group: File) -> bool:
    """Whether some nodes of a group are Spot Instances."""
    percentage = group.get("instancesDistribution", {}).get("onDemandPercentage")
    return bool(group.get("spotPrice")) if percentage is None else percentage < 100


def settle_capacity(group: File) -> None:
    """Leave out of a group what its other keys make pointless."""
    distribution = group.get("instancesDistribution", {})
    if distribution.get("onDemandPercentage") == 100:
        group.pop("spotPrice", None)
    if not has_spot_instances(group):
        group.pop("capacityRebalance", None)
        for key in ("onDemandBase", "spotAllocationStrategy", "spotInstancePools"):
            distribution.pop(key, None)
    else:
        group.pop("capacityReservation", None)
    if distribution.get("onDemandBase", 0) >= group["maxSize"]:
        distribution.pop("onDemandBase")
    if distribution.get("spotAllocationStrategy") != "lowest-price":
        distribution.pop("spotInstancePools", None)
    if group.get("gpu"):
        for key in ("rootVolume", "image"):
            group.pop(key, None)
        group["image"] = {"distribution": "ubuntu-24.04"}
    if requirements := group.get("instanceRequirements"):
        _settle_requirements(group, requirements, distribution)


def _settle_requirements(group: File, requirements: File, distribution: File) -> None:
    """Leave out what goes with a list of types only, and limits of prices that no node has."""
    if distribution.get("onDemandAllocationStrategy") == "prioritized":
        del distribution["onDemandAllocationStrategy"]
    if distribution.get("spotAllocationStrategy") == "capacity-optimized-prioritized":
        del distribution["spotAllocationStrategy"]
    if not has_spot_instances(group):
        requirements.pop("maxSpotPricePercentage", None)
    percentage = distribution.get("onDemandPercentage", 0 if group.get("spotPrice") else 100)
    if percentage == 0 and not distribution.get("onDemandBase"):
        requirements.pop("maxOnDemandPricePercentage", None)
