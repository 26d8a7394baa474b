"""Mixed instances policies: what Auto Scaling refuses in them, and which types have the attributes that one requires.

Auto Scaling API reference, MixedInstancesPolicy, LaunchTemplate, LaunchTemplateOverrides and InstancesDistribution,
except where a rule names another source; InstanceRequirements: every attribute that is set must match, and of several
values one. The attributes of instance types are those in moto's copy of DescribeInstanceTypes. Price protection is not
modelled, for want of prices: every type that has the attributes matches.
"""

from __future__ import annotations

import fnmatch
import functools
import json
from collections.abc import Callable, Sequence

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.instance_types import INSTANCE_TYPES

from cfngen.sandbox.services.capacity import MIN_SPOT_PRICE
from cfngen.sandbox.services.launch import from_template
from cfngen.sandbox.services.launch_checks import is_offered
from cfngen.sandbox.services.rules import PendingCall, Refused, rule, validation_error
from cfngen.sandbox.untyped import JsonObject

MAX_OVERRIDES = 40  # instance types of a mixed instances policy
MAX_REQUIREMENTS = 4  # sets of instance requirements
PRIORITIZED = ("prioritized", "capacity-optimized-prioritized")  # strategies of lists of instance types
LOWEST_PRICE = "lowest-price"
DISTRIBUTION_NUMBERS = {
    "OnDemandBaseCapacity": range(2**31),
    "OnDemandPercentageAboveBaseCapacity": range(101),
    "SpotInstancePools": range(1, 21),
}
# kubernetes/kops#7066 and kubernetes-sigs/cluster-api-provider-aws#4656 have the code and the words.
MARKET_OPTIONS_MESSAGE = (
    "Incompatible launch template: You cannot use a launch template that is set to request Spot Instances "
    "(InstanceMarketOptions) when you configure an Auto Scaling group with a mixed instances policy. Add a different "
    "launch template to the group and try again."
)


def overrides_of(policy: JsonObject) -> Sequence[JsonObject]:
    """Return the overrides of a mixed instances policy."""
    return (policy.get("LaunchTemplate") or {}).get("Overrides") or []


def uses_requirements(policy: JsonObject) -> bool:
    """Return whether a policy selects instance types by attributes."""
    return any(override.get("InstanceRequirements") for override in overrides_of(policy))


def template_of(policy: JsonObject) -> JsonObject:
    """Return the reference to the launch template of a policy; empty if it has none."""
    reference: JsonObject = (policy.get("LaunchTemplate") or {}).get("LaunchTemplateSpecification") or {}
    return reference


def policy_in_effect(call: PendingCall) -> JsonObject:
    """Return the policy that a group has after the call: an update keeps the parts that it does not name.

    InstancesDistribution, SpotMaxPrice: "To remove a maximum price that you previously set, include the property but
    specify an empty string".
    """
    group = call.backend.autoscaling_groups.get(call.get("AutoScalingGroupName"))
    return merged_policy(getattr(group, "mixed_instances_policy", None), call.get("MixedInstancesPolicy") or {})


def merged_policy(previous: JsonObject | None, changes: JsonObject) -> JsonObject:
    """Return a policy with the changes of an update."""
    previous = previous or {}
    distribution = {**(previous.get("InstancesDistribution") or {}), **(changes.get("InstancesDistribution") or {})}
    new_strategy = (changes.get("InstancesDistribution") or {}).get("SpotAllocationStrategy")
    if new_strategy and "SpotInstancePools" not in changes["InstancesDistribution"]:
        distribution.pop("SpotInstancePools", None)  # it belongs to the previous strategy
    template = {**(previous.get("LaunchTemplate") or {}), **(changes.get("LaunchTemplate") or {})}
    if "LaunchTemplateSpecification" in template and "LaunchTemplateSpecification" not in (
        changes.get("LaunchTemplate") or {}
    ):
        reference = template["LaunchTemplateSpecification"]  # as it is described, by both id and name
        template["LaunchTemplateSpecification"] = {
            key: value for key, value in reference.items() if key != "LaunchTemplateName"
        }
    return {"LaunchTemplate": template, "InstancesDistribution": distribution}


def policy_rule(check: Callable[[JsonObject], None]) -> Callable[[JsonObject], None]:
    """Register a check of a mixed instances policy for the calls that set one."""

    def check_call(call: PendingCall) -> None:
        if call.get("MixedInstancesPolicy"):
            check(policy_in_effect(call))

    rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")(check_call)
    return check


@policy_rule
def check_template(policy: JsonObject) -> None:
    """Refuse a policy without a launch template."""
    if not template_of(policy):
        raise validation_error("A mixed instances policy must have a launch template")


@policy_rule
def check_numbers(policy: JsonObject) -> None:
    """Refuse numbers of a distribution out of range, and Spot pools with another strategy than lowest-price."""
    distribution = policy["InstancesDistribution"]
    for name, allowed in DISTRIBUTION_NUMBERS.items():
        number = distribution.get(name)
        if number is not None and int(number) not in allowed:
            raise validation_error(f"{name} must be between {allowed[0]} and {allowed[-1]}, and is {number}")
    if "SpotInstancePools" in distribution and distribution.get("SpotAllocationStrategy", LOWEST_PRICE) != LOWEST_PRICE:
        raise validation_error(f"SpotInstancePools can be set with the strategy {LOWEST_PRICE} only")


@policy_rule
def check_spot_price(policy: JsonObject) -> None:
    """Refuse a maximum price that is not a number of dollars, or too low; an empty one removes it."""
    max_price = str(policy["InstancesDistribution"].get("SpotMaxPrice") or "")
    if not max_price:
        return
    if not max_price.replace(".", "", 1).isdecimal():
        raise validation_error(f"SpotMaxPrice {max_price} is no price")
    if float(max_price) < MIN_SPOT_PRICE:
        raise validation_error(f"SpotMaxPrice {max_price} is less than {MIN_SPOT_PRICE}")


@policy_rule
def check_instance_types(policy: JsonObject) -> None:
    """Refuse a type that stands twice or does not exist (which is assumed), too many, and types beside requirements."""
    types = [override["InstanceType"] for override in overrides_of(policy) if override.get("InstanceType")]
    if len(types) > MAX_OVERRIDES:
        raise validation_error(f"A group has {MAX_OVERRIDES} instance types at most, and not {len(types)}")
    if len(set(types)) < len(types):
        raise validation_error(f"Each instance type stands once in the overrides: {', '.join(types)}")
    strategies = policy["InstancesDistribution"].values()
    if uses_requirements(policy) and (strategy := next((name for name in PRIORITIZED if name in strategies), "")):
        raise validation_error(f"{strategy} cannot be used with InstanceRequirements")
    if len(overrides_of(policy)) - len(types) > MAX_REQUIREMENTS:
        raise validation_error(f"A group has {MAX_REQUIREMENTS} InstanceRequirements at most")
    if types and uses_requirements(policy):
        raise validation_error("The overrides have either InstanceType or InstanceRequirements, and not both")
    if unknown := [instance_type for instance_type in types if instance_type not in INSTANCE_TYPES]:
        raise validation_error(f"Invalid instance type: {', '.join(unknown)}")


@policy_rule
def check_requirements(policy: JsonObject) -> None:
    """Refuse ranges whose minimum is above the maximum, and allowed beside excluded instance types."""
    for requirements in [override.get("InstanceRequirements") or {} for override in overrides_of(policy)]:
        for name, bounds in requirements.items():
            if isinstance(bounds, dict) and float(bounds.get("Min", 0)) > float(bounds.get("Max", "inf")):
                raise validation_error(f"The Min of {name}, {bounds['Min']}, is greater than its Max, {bounds['Max']}")
        if requirements.get("AllowedInstanceTypes") and requirements.get("ExcludedInstanceTypes"):
            raise validation_error(
                "InstanceRequirements has either AllowedInstanceTypes or ExcludedInstanceTypes, not both"
            )


@rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")
def check_market_options(call: PendingCall) -> None:
    """Refuse a launch template that requests Spot Instances itself."""
    if not call.get("MixedInstancesPolicy"):
        return
    try:
        data = from_template(call.backend.ec2_backend, template_of(policy_in_effect(call))).data
    except (Refused, EC2ClientError):
        return  # that the template does not exist has its own rule
    if data.get("InstanceMarketOptions"):
        raise Refused("InvalidQueryParameter", MARKET_OPTIONS_MESSAGE)


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
            and _has_required_values(description, requirements)
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
    """Return whether a type has what is required and lacks what is excluded: by default bare metal and burstable."""
    for name, default, has_feature in (
        ("BareMetal", "excluded", bool(description.get("BareMetal"))),
        ("BurstablePerformance", "excluded", bool(description.get("BurstablePerformanceSupported"))),
        ("LocalStorage", "included", bool(description.get("InstanceStorageSupported"))),
    ):
        rule = requirements.get(name) or default
        if rule == "required" and not has_feature:
            return False
        if rule not in ("required", "included") and has_feature:
            return False
    return True


def _has_required_values(description: JsonObject, requirements: JsonObject) -> bool:
    """Return whether a type has one of the required values of each attribute, such as the manufacturer of its CPU."""
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
