"""Launches and terminations of a group with a mixed instances policy: markets, zones and instance types.

Auto Scaling user guide, "Auto Scaling groups with multiple instance types and purchase options": "Amazon EC2 Auto
Scaling first tries to ensure that your instances are evenly balanced across the Availability Zones that you specified.
Then, it launches instance types according to the allocation strategy" ("Allocation strategies for multiple instance
types"). A type that cannot be launched falls to the next one, and a zone to the next zone; Spot never falls to
On-Demand. moto 5.2 launches the launch template's own type, in one zone, On-Demand only. That all types of a zone are
tried before another zone is assumed. A Spot pool is an instance type in a zone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from moto.autoscaling.models import ASG_NAME_TAG, InstanceState
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.instance_types import INSTANCE_TYPES

from cfngen.sandbox.services import capacity, group_lifetime_and_reservation
from cfngen.sandbox.services.group_zones import check_launch_of_group, subnet_in, zones_by_use
from cfngen.sandbox.services.mixed_instances_policies import (
    matching_types,
    overrides_of,
    template_of,
    uses_requirements,
)
from cfngen.sandbox.services.rules import Refused
from cfngen.sandbox.untyped import JsonDict, JsonObject, MotoModel

# Words of failed activities: buildkite/elastic-ci-stack-for-aws#851 (Spot), aws-samples/aws-batch-efa (On-Demand).
UNFULFILLABLE = Refused(
    "UnfulfillableCapacity",
    "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again.",
)
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


@dataclass
class _Attempt:
    """The launches of one scaling activity.

    Attributes:
        refused: launches that EC2 has refused, so that they are not tried again: by market, zone and candidate.
    """

    group: MotoModel
    candidates: list[Candidate]
    refused: dict[tuple[bool, str, Candidate], Refused] = field(default_factory=dict)

    def launch(self, *, spot: bool) -> MotoModel:
        """Launch one instance; return its `InstanceState`.

        Raises:
            Refused: no type can be launched in any zone
        """
        zones = zones_by_use(self.group)
        for zone in zones:
            for candidate in in_order(self.group, self.candidates, zone, spot=spot):
                key = (spot, zone, candidate)
                if key in self.refused:
                    continue
                try:
                    self._check(candidate, zone, spot=spot)
                except Refused as refused:
                    self.refused[key] = refused
                except EC2ClientError as error:
                    self.refused[key] = Refused(str(error.code), str(error.message))
                else:
                    return _run_instance(self.group, candidate, zone, spot=spot)
        raise self._reason(zones[0], spot=spot)

    def _check(self, candidate: Candidate, zone: str, *, spot: bool) -> None:
        max_price = str(distribution_of(self.group.mixed_instances_policy).get("SpotMaxPrice") or "")
        data = candidate.launch_data(spot=spot, max_price=max_price)
        if not spot:
            data = group_lifetime_and_reservation.with_reservation(self.group, data)
        check_launch_of_group(self.group, zone, data)

    def _reason(self, zone: str, *, spot: bool) -> Refused:
        """Return the error of a failed activity, which is the first type's in the first zone."""
        if not self.candidates:
            return UNFULFILLABLE  # no type has the required attributes
        first = in_order(self.group, self.candidates, zone, spot=spot)[0]
        reason = self.refused[spot, zone, first]
        if spot and reason.code == "InsufficientInstanceCapacity" and len(self.candidates) > 1:
            return UNFULFILLABLE
        return reason


def launch_missing(group: MotoModel, desired: int, on_launched: Callable[[MotoModel], None]) -> str:
    """Launch instances until a group has its desired capacity; return the error of the first failure, if any."""
    attempt = _Attempt(group, candidates_of(group))
    on_demand_target = on_demand_count(group.mixed_instances_policy, desired)
    base = int(distribution_of(group.mixed_instances_policy)["OnDemandBaseCapacity"])
    failure = ""
    for spot in (False, True):  # On-Demand first: "This base portion is launched first as your group scales"
        target = desired - on_demand_target if spot else on_demand_target
        try:
            while active_count(group, spot=spot) < target and active_count(group) < desired:
                on_launched(attempt.launch(spot=spot))
        except Refused as refused:
            market = "Spot" if spot else "On-Demand"
            failure = failure or f"Could not launch {market} Instances. {refused.code} - {refused.message}"
        if not spot and active_count(group, spot=False) < min(base, desired):
            break  # "launches Spot Instances only after launching this base capacity"
    return failure


def surplus_states(group: MotoModel, desired: int) -> list[MotoModel]:
    """Return the instances to terminate so that a group, with a policy or without one, shrinks to a desired capacity.

    User guide, "Default termination policy": the purchase option that has more than its share, and the zone with the
    most instances, come first; then the oldest instance (assumed, instead of the allocation strategy).
    """
    chosen: list[MotoModel] = []
    remaining = list(group.active_instances())
    target = on_demand_count(group.mixed_instances_policy or {}, desired)
    while len(remaining) > desired:
        spot_count = sum(map(is_spot, remaining))
        surplus_of_spot, surplus_of_on_demand = spot_count - (desired - target), len(remaining) - spot_count - target
        unprotected = [state for state in remaining if not state.protected_from_scale_in]
        if not unprotected:
            break
        market_is_spot = surplus_of_spot > surplus_of_on_demand
        preferred = [state for state in unprotected if is_spot(state) is market_is_spot] or unprotected
        counts = Counter(state.availability_zone for state in preferred)
        chosen.append(max(preferred, key=lambda state: counts[state.availability_zone]))
        remaining.remove(chosen[-1])
    return chosen


def active_count(group: MotoModel, *, spot: bool | None = None) -> int:
    """Return how many instances count towards the capacity of a group: of one market, or of both."""
    return sum(spot is None or is_spot(state) is spot for state in group.active_instances())


def is_spot(state: MotoModel) -> bool:
    """Return whether an instance of a group is a Spot Instance."""
    return bool(state.instance.lifecycle == "spot")


def _run_instance(group: MotoModel, candidate: Candidate, zone: str, *, spot: bool) -> MotoModel:
    version = candidate.version_model
    tags = {**group.get_propagated_tags(), ASG_NAME_TAG: group.name, **version.instance_tags}
    reservation = group.ec2_backend.run_instances(
        version.image_id,
        1,
        version.user_data,
        version.security_groups,
        instance_type=candidate.instance_type,
        tags={"instance": tags},
        placement=zone,
        launch_config=None,
        launch_template={"LaunchTemplateId": candidate.template.id, "Version": str(candidate.version)},
        is_instance_type_default=False,
        associate_public_ip=None,
        subnet_id=subnet_in(group, zone),
        **({"instance_market_options": {"MarketType": "spot"}} if spot else {}),
    )
    [instance] = reservation.instances
    instance.autoscaling_group = group
    instance.launched_from = (candidate.template, candidate.version)
    if not spot:
        group_lifetime_and_reservation.note_reservation(group, instance)
    state: MotoModel = InstanceState(
        instance, protected_from_scale_in=group.new_instances_protected_from_scale_in, autoscaling_group=group
    )
    group.instance_states.append(state)
    return state


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
