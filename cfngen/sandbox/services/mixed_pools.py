"""The instance types of a mixed instances policy: how much On-Demand and Spot capacity, and which type comes first.

Auto Scaling user guide, "Auto Scaling groups with multiple instance types and purchase options" and "Allocation
strategies for multiple instance types". A Spot pool is an instance type in a zone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from moto.ec2.models.instance_types import INSTANCE_TYPES

from cfngen.sandbox.json_types import JsonDict, JsonObject
from cfngen.sandbox.moto_types import MotoModel
from cfngen.sandbox.services import capacity
from cfngen.sandbox.services.instance_requirements import matching_types
from cfngen.sandbox.services.mixed_policies import overrides_of, template_of, uses_requirements

DEFAULT_POOLS = 2  # SpotInstancePools
# An On-Demand price for the order of instance types only: AWS's prices are in no data of the emulator. Assumed.
DOLLARS_PER_VCPU, DOLLARS_PER_GIB = 0.0336, 0.00375
DOLLARS_PER_ACCELERATOR = 0.4
SPOT_DISCOUNT = 0.65


@dataclass(frozen=True)
class Candidate:
    """An instance type that a group may launch, with the version of a launch template."""

    instance_type: str
    template: MotoModel
    version: int

    @property
    def version_model(self) -> MotoModel:
        """Moto's version of the launch template."""
        return self.template.get_version(str(self.version))

    def launch_data(self, *, spot: bool, max_price: str = "") -> JsonDict:
        """Return the launch template's data with the instance type and the market, as in RequestLaunchTemplateData."""
        data = {**self.version_model.data, "InstanceType": self.instance_type}
        if spot:
            options = {"MaxPrice": max_price} if max_price else {}
            data["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": options}
        return data


def distribution_of(policy: JsonObject) -> JsonDict:
    """Return the InstancesDistribution of a policy with its defaults."""
    settings = (policy.get("InstancesDistribution") or {}).items()
    # An empty SpotMaxPrice removes it.
    settings_in_effect = {key: value for key, value in settings if value not in (None, "")}
    distribution: JsonDict = {
        "OnDemandAllocationStrategy": "lowest-price" if uses_requirements(policy) else "prioritized",
        "OnDemandBaseCapacity": 0,
        "OnDemandPercentageAboveBaseCapacity": 100,
        "SpotAllocationStrategy": "lowest-price",
        **settings_in_effect,
    }
    if distribution["SpotAllocationStrategy"] == "lowest-price":
        distribution.setdefault("SpotInstancePools", DEFAULT_POOLS)
    return distribution


def on_demand_count(policy: JsonObject, desired: int) -> int:
    """Return how many instances of a desired capacity are On-Demand; the others are Spot.

    "If the result creates a fractional number, Amazon EC2 Auto Scaling rounds up to the next integer in favor of
    On-Demand Instances."
    """
    distribution = distribution_of(policy)
    base = min(int(distribution["OnDemandBaseCapacity"]), desired)
    percentage = int(distribution["OnDemandPercentageAboveBaseCapacity"])
    return base + -(-(desired - base) * percentage // 100)


def candidates_of(group: MotoModel) -> list[Candidate]:
    """Return the instance types that a group may launch, in the order of its overrides."""
    policy = group.mixed_instances_policy
    template, version = _template(group, template_of(policy))
    return [
        Candidate(name, template, version)
        for override in overrides_of(policy) or [{}]
        for name in _types(group, override, template, version)
    ]


def in_order(group: MotoModel, candidates: Sequence[Candidate], zone: str, *, spot: bool) -> list[Candidate]:
    """Return the candidates in the order in which a zone's capacity is requested; each falls to the next one.

    With lowest-price, Spot Instances spread over the cheapest pools; more than these only where a pool runs out.
    """
    distribution = distribution_of(group.mixed_instances_policy)
    strategy = distribution["SpotAllocationStrategy" if spot else "OnDemandAllocationStrategy"]
    if strategy in ("prioritized", "capacity-optimized-prioritized"):
        return list(candidates)
    by_price = sorted(candidates, key=lambda candidate: _price(group, candidate, spot=spot))
    if not spot:
        return by_price
    backend = group.ec2_backend
    free = {
        candidate.instance_type: capacity.free_count(backend, candidate.instance_type, zone, spot=True)
        for candidate in candidates
    }
    if strategy == "capacity-optimized":
        return sorted(candidates, key=lambda candidate: -free[candidate.instance_type])
    if strategy == "price-capacity-optimized":
        # Assumed: a pool without limit is as good as any other of its kind, and the price decides between them.
        return sorted(by_price, key=lambda candidate: free[candidate.instance_type] != math.inf)
    available = [candidate for candidate in by_price if free[candidate.instance_type]]
    pools = available[: int(distribution["SpotInstancePools"])]
    used = {candidate: _running(group, candidate.instance_type, zone) for candidate in pools}
    rest = [candidate for candidate in by_price if candidate not in used]
    return sorted(pools, key=lambda candidate: used[candidate]) + rest


def _template(group: MotoModel, reference: JsonObject) -> tuple[MotoModel, int]:
    if reference.get("LaunchTemplateId"):
        template = group.ec2_backend.get_launch_template(reference["LaunchTemplateId"])
    else:
        template = group.ec2_backend.get_launch_template_by_name(reference["LaunchTemplateName"])
    return template, template.get_version(str(reference.get("Version") or "$Default")).number


def _types(group: MotoModel, override: JsonObject, template: MotoModel, version: int) -> list[str]:
    """Return the instance types of an override: one, or all that have the required attributes."""
    data = template.get_version(str(version)).data
    requirements = override.get("InstanceRequirements")
    if not requirements:
        return [override.get("InstanceType") or data.get("InstanceType", "")]
    image = group.ec2_backend.amis.get(data.get("ImageId"))
    return matching_types(group.region, requirements, getattr(image, "architecture", "") or "")


def _price(group: MotoModel, candidate: Candidate, *, spot: bool) -> float:
    price = capacity.spot_price(group.region, candidate.instance_type) if spot else None
    if price is None:
        description = INSTANCE_TYPES[candidate.instance_type]
        price = (
            DOLLARS_PER_VCPU * description["VCpuInfo"]["DefaultVCpus"]
            + DOLLARS_PER_GIB * description["MemoryInfo"]["SizeInMiB"] / 1024
            + DOLLARS_PER_ACCELERATOR * len((description.get("GpuInfo") or {}).get("Gpus", []))
        ) * (1 - SPOT_DISCOUNT if spot else 1)
    return price


def _running(group: MotoModel, instance_type: str, zone: str) -> int:
    return sum(
        state.instance.lifecycle == "spot"
        and state.instance.instance_type == instance_type
        and state.instance.placement.zone == zone
        for state in group.instance_states
    )
