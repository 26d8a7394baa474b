"""How many instances of which types an Auto Scaling group has, by its properties in a template.

With a mixed instances policy AWS chooses among several types. What follows from the types is then counted with the
largest of them, and with requirements, which name no types, with the least that they ask for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from cfngen.cluster.instances.group_types import type_list
from cfngen.deploy.aws.types import TemplatePart

# For a part of a template, e.g. `{"Ref": "…"}`, its value; None if that is not known before the deployment.
ValueOf = Callable[[object], object]


@dataclass(frozen=True)
class InstanceCount:
    """A number of instances, usually those of one Auto Scaling group, or its On-Demand or Spot Instances.

    Attributes:
        instance_type: e.g. `t3.medium`; empty if the templates do not specify it.
        count: number of instances; of an Auto Scaling group, the initial number.
        is_spot: whether they are spot instances.
        max_count: maximum number of instances of the Auto Scaling group.
        other_types: further types that AWS may choose instead.
        least_vcpus: least number of vCPUs of each instance, where requirements stand for the types; otherwise 0.
    """

    instance_type: str
    count: int
    is_spot: bool
    max_count: int = 0
    other_types: tuple[str, ...] = ()
    least_vcpus: int = 0

    @property
    def at_maximum_size(self) -> InstanceCount:
        """The instances of the same Auto Scaling group at its maximum size."""
        return replace(self, count=max(self.max_count, self.count))

    @property
    def types(self) -> tuple[str, ...]:
        """The types that the instances may have; empty if requirements stand for them."""
        return () if self.least_vcpus else (self.instance_type, *self.other_types)

    @property
    def label(self) -> str:
        """The types in a few words."""
        if self.least_vcpus:
            return f"types with {self.least_vcpus} or more vCPUs"
        return type_list(self.types) if self.other_types else self.instance_type


def instance_counts(
    group: TemplatePart, launch_template_data: TemplatePart, sizes: tuple[int, int], value_of: ValueOf
) -> Iterator[InstanceCount]:
    """Yield the instances of an Auto Scaling group: one number, or those of On-Demand and of Spot Instances.

    Args:
        sizes: its initial and its maximum number of instances.
        value_of: returns the value of an expression.
    """
    count, max_count = sizes
    template_type = str(value_of(launch_template_data.get("InstanceType")) or "")
    policy = group.get("MixedInstancesPolicy")
    if not policy:
        is_spot = launch_template_data.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
        yield InstanceCount(template_type, count, is_spot, max_count)
        return
    overrides = policy.get("LaunchTemplate", {}).get("Overrides", ())
    types = [str(value_of(override["InstanceType"]) or "") for override in overrides if "InstanceType" in override]
    least_vcpus = [
        int(override["InstanceRequirements"]["VCpuCount"]["Min"])
        for override in overrides
        if "InstanceRequirements" in override
    ]
    first_type, *other_types = types or [template_type if not least_vcpus else ""]
    distribution = policy.get("InstancesDistribution", {})
    on_demand_counts = [on_demand_share(number, distribution) for number in (count, max_count)]
    spot_counts = [number - share for number, share in zip((count, max_count), on_demand_counts, strict=True)]
    for is_spot, (initial, greatest) in ((False, on_demand_counts), (True, spot_counts)):
        if initial or greatest:
            yield InstanceCount(
                first_type, initial, is_spot, greatest, tuple(other_types), least_vcpus=max(least_vcpus, default=0)
            )


def on_demand_share(count: int, distribution: TemplatePart) -> int:
    """Return how many of a number of instances are On-Demand Instances.

    Auto Scaling rounds the percentage in favour of On-Demand Instances ("Auto Scaling groups with multiple instance
    types and purchase options", Amazon EC2 Auto Scaling User Guide).

    Args:
        distribution: the InstancesDistribution of the group's mixed instances policy.
    """
    base = min(int(distribution.get("OnDemandBaseCapacity", 0)), count)
    percentage = int(distribution.get("OnDemandPercentageAboveBaseCapacity", 100))
    return base + math.ceil((count - base) * percentage / 100)
