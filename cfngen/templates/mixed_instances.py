"""What an Auto Scaling group of nodes launches: its launch template, or the types of a mixed instances policy.

Going from one to the other is an update of the group in place: `LaunchTemplate` and `MixedInstancesPolicy` are
"conditional create-only properties" in the schema of AWS::AutoScaling::AutoScalingGroup, whose change starts a rolling
update under the group's UpdatePolicy.
"""

from __future__ import annotations

from troposphere import autoscaling, ec2

from cfngen.cluster.instances.group_types import has_mixed_instances_policy, may_be_spot
from cfngen.cluster.naming.logical_ids import NodeGroupId
from cfngen.cluster.sections.capacity import InstanceRequirements, InstancesDistribution
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.templates.launch import latest_version
from cfngen.templates.stack import PropertyValue, Stack

_MIB_PER_GIB = 1024
_SECONDS_PER_DAY = 86_400


def market_options(stack: Stack, node_group: NodeGroup, parameter_group: str) -> dict[str, object]:
    """Return the launch template's property for Spot Instances; empty for a node group of On-Demand Instances.

    It is also empty with a mixed instances policy, which decides on Spot Instances itself: "You cannot use a launch
    template that is set to request Spot Instances (InstanceMarketOptions) when you configure an Auto Scaling group with
    a mixed instances policy" (the API's refusal, as in kubernetes/kops#7066).
    """
    if node_group.spot_price is None or has_mixed_instances_policy(node_group):
        return {}
    max_price = _spot_price_parameter(stack, node_group, parameter_group)
    # EC2 Auto Scaling accepts one-time spot requests only; it replaces interrupted instances itself.
    return {
        "InstanceMarketOptions": ec2.InstanceMarketOptions(
            MarketType="spot", SpotOptions=ec2.SpotOptions(MaxPrice=max_price, SpotInstanceType="one-time")
        )
    }


def launch_source(
    stack: Stack, node_group: NodeGroup, launch_template: ec2.LaunchTemplate, parameter_group: str
) -> dict[str, object]:
    """Return the Auto Scaling group's property that says what it launches: a launch template, or a policy with one."""
    specification = latest_version(launch_template)
    if not has_mixed_instances_policy(node_group):
        return {"LaunchTemplate": specification}
    source = autoscaling.LaunchTemplate(
        LaunchTemplateSpecification=specification, Overrides=_overrides(node_group, launch_template)
    )
    properties: dict[str, object] = {"LaunchTemplate": source}
    if node_group.instances_distribution:
        properties["InstancesDistribution"] = _distribution(
            stack, node_group, node_group.instances_distribution, parameter_group
        )
    return {"MixedInstancesPolicy": autoscaling.MixedInstancesPolicy(**properties)}


def capacity_properties(node_group: NodeGroup) -> dict[str, object]:
    """Return the group's properties for rebalancing, the lifetime of instances, and Capacity Reservations."""
    properties: dict[str, object] = {}
    if node_group.capacity_rebalance:
        properties["CapacityRebalance"] = True
    if node_group.max_instance_lifetime:
        properties["MaxInstanceLifetime"] = node_group.max_instance_lifetime * _SECONDS_PER_DAY
    reservation = node_group.capacity_reservation
    if reservation:
        target: dict[str, object] = {}
        if reservation.id:
            target["CapacityReservationIds"] = [reservation.id]
        if reservation.resource_group:
            target["CapacityReservationResourceGroupArns"] = [reservation.resource_group]
        specification: dict[str, object] = {
            "CapacityReservationPreference": reservation.preference or "capacity-reservations-first"
        }
        if target:
            specification["CapacityReservationTarget"] = autoscaling.CapacityReservationTarget(**target)
        properties["CapacityReservationSpecification"] = autoscaling.CapacityReservationSpecification(**specification)
    return properties


def _overrides(node_group: NodeGroup, launch_template: ec2.LaunchTemplate) -> list[autoscaling.LaunchTemplateOverrides]:
    """Return the instance types of the policy, or what they must have.

    A group of one type has an override too: an update of a policy without overrides would keep the previous ones (this
    is assumed, from what the API reference says of other parts of a policy).
    """
    if node_group.instance_requirements:
        return [
            autoscaling.LaunchTemplateOverrides(InstanceRequirements=_requirements(node_group.instance_requirements))
        ]
    types = node_group.instance_types or (launch_template.LaunchTemplateData.InstanceType,)
    return [autoscaling.LaunchTemplateOverrides(InstanceType=instance_type) for instance_type in types]


def _requirements(requirements: InstanceRequirements) -> autoscaling.InstanceRequirements:
    """Return what instance types must have; the architecture follows from the launch template's image."""
    memory_limits: dict[str, object] = {"Min": requirements.memory.min * _MIB_PER_GIB}
    if requirements.memory.max is not None:
        memory_limits["Max"] = requirements.memory.max * _MIB_PER_GIB
    accelerators = requirements.accelerators
    # "To exclude accelerator-enabled instance types, set Max to 0" (AcceleratorCount, InstanceRequirements, EC2 Auto
    # Scaling API Reference).
    accelerator_count = _limits(accelerators.count.min, accelerators.count.max) if accelerators else {"Max": 0}
    optional_properties: dict[str, object] = {
        "AllowedInstanceTypes": list(requirements.allowed_types),
        "ExcludedInstanceTypes": list(requirements.excluded_types),
        "CpuManufacturers": list(requirements.cpu_manufacturers),
        "AcceleratorTypes": ["gpu"] if accelerators else [],
        "AcceleratorManufacturers": list(accelerators.manufacturers) if accelerators else [],
        "AcceleratorNames": list(accelerators.names) if accelerators else [],
        "MaxSpotPriceAsPercentageOfOptimalOnDemandPrice": requirements.max_spot_price_percentage,
        "OnDemandMaxPricePercentageOverLowestPrice": requirements.max_on_demand_price_percentage,
    }
    return autoscaling.InstanceRequirements(
        VCpuCount=autoscaling.VCpuCountRequest(**_limits(requirements.vcpus.min, requirements.vcpus.max)),
        MemoryMiB=autoscaling.MemoryMiBRequest(**memory_limits),
        InstanceGenerations=list(requirements.generations),
        BurstablePerformance=requirements.burstable,
        BareMetal=requirements.bare_metal,
        LocalStorage=requirements.local_storage,
        AcceleratorCount=autoscaling.AcceleratorCountRequest(**accelerator_count),
        **{name: value for name, value in optional_properties.items() if value},
    )


def _limits(least: int, greatest: int | None) -> dict[str, object]:
    return {"Min": least} if greatest is None else {"Min": least, "Max": greatest}


def _distribution(
    stack: Stack, node_group: NodeGroup, distribution: InstancesDistribution, parameter_group: str
) -> autoscaling.InstancesDistribution:
    properties: dict[str, object] = {
        "OnDemandAllocationStrategy": distribution.on_demand_allocation_strategy,
        "OnDemandBaseCapacity": distribution.on_demand_base,
        "OnDemandPercentageAboveBaseCapacity": distribution.on_demand_percentage,
        "SpotAllocationStrategy": distribution.spot_allocation_strategy,
        "SpotInstancePools": distribution.spot_instance_pools,
    }
    if may_be_spot(node_group):
        # "To remove a maximum price that you previously set, include the property but specify an empty string"
        # (InstancesDistribution, EC2 Auto Scaling API Reference). The On-Demand price is the limit then.
        has_price = node_group.spot_price is not None
        properties["SpotMaxPrice"] = _spot_price_parameter(stack, node_group, parameter_group) if has_price else ""
    set_properties = {name: value for name, value in properties.items() if value is not None}
    return autoscaling.InstancesDistribution(**set_properties)


def _spot_price_parameter(stack: Stack, node_group: NodeGroup, parameter_group: str) -> PropertyValue:
    return stack.parameter(
        str(NodeGroupId(node_group.name, "SpotPrice")),
        label="Spot price (US dollars per hour)",
        parameter_group=parameter_group,
        description="Maximum price in US dollars for an hour of one instance",
        default=node_group.spot_price,
        only_in_this_nested_stack=True,
        AllowedPattern=r"^[0-9]+(\.[0-9]+)?$",
        ConstraintDescription="must be a number such as 0.05",
    )
