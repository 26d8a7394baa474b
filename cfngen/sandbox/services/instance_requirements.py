"""Attribute-based selection of instance types: what is refused in InstanceRequirements, and which types match.

Auto Scaling API reference, InstanceRequirements: every attribute that is set must match, and of several values one. The
attributes of instance types are those in moto's copy of DescribeInstanceTypes. Price protection is not modelled, as
there are no prices: every type that has the attributes matches.
"""

from __future__ import annotations

import fnmatch
import functools
import json
from collections.abc import Callable

from moto.ec2.models.instance_types import INSTANCE_TYPES

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.services.launch_failures import is_offered
from cfngen.sandbox.services.mixed_policies import overrides_of, policy_rule
from cfngen.sandbox.services.rules import validation_error

MAX_NAMES = 400  # names of allowed or excluded instance types
MAX_NAME_LENGTH = 30  # API: AllowedInstanceType, ExcludedInstanceType
REQUIRED = ("VCpuCount", "MemoryMiB")  # of these, the minimum too
RANGES = (*REQUIRED, "AcceleratorCount")


def requirements_rule(check: Callable[[JsonObject], None]) -> Callable[[JsonObject], None]:
    """Register a check of each InstanceRequirements of a policy."""

    def check_all(policy: JsonObject) -> None:
        for override in overrides_of(policy):
            if override.get("InstanceRequirements") is not None:
                check(override["InstanceRequirements"])

    policy_rule(check_all)
    return check


@requirements_rule
def check_required_ranges(requirements: JsonObject) -> None:
    """Refuse requirements without a number of vCPUs and a size of memory; both need a minimum, which may be 0."""
    for name in REQUIRED:
        if (requirements.get(name) or {}).get("Min") is None:
            raise validation_error(f"InstanceRequirements must have {name} with a Min")


@requirements_rule
def check_ranges(requirements: JsonObject) -> None:
    """Refuse ranges whose minimum is negative or above the maximum."""
    for name in RANGES:
        bounds = requirements.get(name) or {}
        low, high = bounds.get("Min"), bounds.get("Max")
        if any(float(bound) < 0 for bound in (low, high) if bound is not None):
            raise validation_error(f"{name} must not be negative")
        if low is not None and high is not None and float(low) > float(high):
            raise validation_error(f"The Min of {name}, {low}, is greater than its Max, {high}")


@requirements_rule
def check_allowed_or_excluded(requirements: JsonObject) -> None:
    """Refuse allowed beside excluded instance types, and lists or names that are too long."""
    if requirements.get("AllowedInstanceTypes") and requirements.get("ExcludedInstanceTypes"):
        raise validation_error(
            "InstanceRequirements has either AllowedInstanceTypes or ExcludedInstanceTypes, not both"
        )
    for key in ("AllowedInstanceTypes", "ExcludedInstanceTypes"):
        names = requirements.get(key) or []
        if len(names) > MAX_NAMES:
            raise validation_error(f"{key} has {MAX_NAMES} names at most, and not {len(names)}")
        if long := [name for name in names if not 1 <= len(name) <= MAX_NAME_LENGTH]:
            raise validation_error(f"{key}: {long[0]} is longer than {MAX_NAME_LENGTH} characters")


def matching_types(region: str, requirements: JsonObject, architecture: str) -> list[str]:
    """Return the instance types of a region with all required attributes, by name.

    Args:
        requirements: InstanceRequirements in the form of the API.
        architecture: architecture of the image; types of another one do not match. Empty if it is unknown.
    """
    return list(_matching_types(region, json.dumps(requirements, sort_keys=True, default=str), architecture))


@functools.lru_cache(maxsize=256)
def _matching_types(region: str, requirements_json: str, architecture: str) -> tuple[str, ...]:
    """Return the types for `matching_types`; the requirements are JSON, so that they can be a key of the cache."""
    requirements = json.loads(requirements_json)
    return tuple(
        sorted(
            name
            for name, description in INSTANCE_TYPES.items()
            if is_offered(region, name)
            and (not architecture or architecture in description["ProcessorInfo"]["SupportedArchitectures"])
            and _has_name(name, requirements)
            and _is_in_ranges(description, requirements)
            and _has_features(description, requirements)
        )
    )


def _has_name(name: str, requirements: JsonObject) -> bool:
    """Return whether a type is allowed, or not excluded; patterns have asterisks, and `c5*` means `c5*.*`."""
    allowed, excluded = requirements.get("AllowedInstanceTypes"), requirements.get("ExcludedInstanceTypes") or []
    if allowed:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed)
    return not any(fnmatch.fnmatchcase(name, pattern) for pattern in excluded)


def _is_in_ranges(description: JsonObject, requirements: JsonObject) -> bool:
    # A type without an accelerator satisfies no minimum.
    numbers = {
        "VCpuCount": description["VCpuInfo"]["DefaultVCpus"],
        "MemoryMiB": description["MemoryInfo"]["SizeInMiB"],
        "AcceleratorCount": sum(count for _, _, count in _accelerators(description)),
    }
    for name, number in numbers.items():
        bounds = requirements.get(name) or {}
        if bounds.get("Min") is not None and number < float(bounds["Min"]):
            return False
        if bounds.get("Max") is not None and number > float(bounds["Max"]):
            return False
    return True


def _has_features(description: JsonObject, requirements: JsonObject) -> bool:
    """Return whether a type has the required features; bare metal and burstable types are excluded by default."""
    for name, default, has_feature in (
        ("BareMetal", "excluded", bool(description.get("BareMetal"))),
        ("BurstablePerformance", "excluded", bool(description.get("BurstablePerformanceSupported"))),
        ("LocalStorage", "included", bool(description.get("InstanceStorageSupported"))),
    ):
        wanted = requirements.get(name) or default
        if has_feature is not (wanted == "required") and wanted != "included":
            return False
    manufacturer = str(description["ProcessorInfo"].get("Manufacturer", "")).lower()
    accelerators = _accelerators(description)
    values = {
        "CpuManufacturers": {"amazon-web-services" if manufacturer == "aws" else manufacturer},
        "InstanceGenerations": {"current" if description.get("CurrentGeneration") else "previous"},
        "AcceleratorTypes": {kind for kind, _, _ in accelerators},
        "AcceleratorManufacturers": {maker for _, maker, _ in accelerators},
        "AcceleratorNames": {
            gpu["Name"].lower().replace(" ", "-") for gpu in (description.get("GpuInfo") or {}).get("Gpus", [])
        },
    }
    return all(not requirements.get(name) or values[name] & set(requirements[name]) for name in values)


def _accelerators(description: JsonObject) -> list[tuple[str, str, int]]:
    """Return type, manufacturer and number of each accelerator."""
    makers = {"aws": "amazon-web-services"}
    result = []
    for kind, section, key in (
        ("gpu", "GpuInfo", "Gpus"),
        ("fpga", "FpgaInfo", "Fpgas"),
        ("inference", "InferenceAcceleratorInfo", "Accelerators"),
        ("media", "MediaAcceleratorInfo", "Accelerators"),
    ):
        for accelerator in (description.get(section) or {}).get(key) or []:
            maker = str(accelerator.get("Manufacturer", "")).lower()
            result.append((kind, makers.get(maker, maker), int(accelerator.get("Count", 1))))
    return result
