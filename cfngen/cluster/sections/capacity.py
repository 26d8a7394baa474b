"""The sections about how a node group finds capacity, and about its nodes as cluster-autoscaler sees them.

Keys, values and defaults are those of `InstanceRequirements`, `InstancesDistribution` and
`CapacityReservationSpecification`, Amazon EC2 Auto Scaling API Reference, where no comment says otherwise.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.base import List, Model

Inclusion = Literal["included", "excluded", "required"]
Generation = Literal["current", "previous"]
CpuManufacturer = Literal["intel", "amd", "amazon-web-services"]
GpuManufacturer = Literal["nvidia"]
GpuName = Literal["a100", "v100", "t4"]
OnDemandStrategy = Literal["prioritized", "lowest-price"]
SpotStrategy = Literal[
    "price-capacity-optimized", "capacity-optimized", "capacity-optimized-prioritized", "lowest-price"
]
ReservationPreference = Literal["capacity-reservations-only", "capacity-reservations-first", "none", "default"]


class VcpuRange(Model):
    """A number of vCPUs."""

    min: int = Field(ge=2, le=1024, description="Minimum; Kubernetes needs 2.")
    max: int | None = Field(None, ge=2, le=1024, description="Maximum. Default: no limit.")


class MemoryRange(Model):
    """An amount of memory."""

    min: int = Field(ge=2, le=32768, description="Least amount in GiB; Kubernetes needs 2.")
    max: int | None = Field(None, ge=2, le=32768, description="Greatest amount in GiB. Default: no limit.")


class GpuRange(Model):
    """A number of GPUs."""

    min: int = Field(1, ge=1, le=64, description="Minimum.")
    max: int | None = Field(None, ge=1, le=64, description="Maximum. Default: no limit.")


class Accelerators(Model):
    """GPUs that instance types must have."""

    count: GpuRange = Field(default_factory=GpuRange, description="Number of GPUs. Default: at least one.")
    manufacturers: List[GpuManufacturer] = Field((), description="Manufacturers of the GPUs. Default: any.")
    names: List[GpuName] = Field(
        (), description="Names of the GPUs. Default: any. For others use `allowedTypes`, as in `g6.*`."
    )


class InstanceRequirements(Model):
    """What instance types must have, so that AWS may choose among all of them, those of the future included."""

    vcpus: VcpuRange = Field(description="Number of vCPUs.")
    memory: MemoryRange = Field(description="Memory in GiB.")
    generations: List[Generation] = Field(
        ("current",), min_length=1, description="Generations of instance types: `current`, `previous` or both."
    )
    allowed_types: List[field_types.InstanceTypePattern] = Field(
        (),
        max_length=400,
        description="The only instance types to choose from; `*` stands for any characters, as in `m7*`. Default: all.",
    )
    excluded_types: List[field_types.InstanceTypePattern] = Field(
        (), max_length=400, description="Instance types that are not chosen, written as in `allowedTypes`."
    )
    burstable: Inclusion = Field("excluded", description="Types whose CPU performance depends on credits (T types).")
    bare_metal: Inclusion = Field("excluded", description="Types without a hypervisor.")
    local_storage: Inclusion = Field("included", description="Types with local disks.")
    accelerators: Accelerators | None = Field(
        None, description="GPUs that instance types must have. Default: types with accelerators are not chosen."
    )
    cpu_manufacturers: List[CpuManufacturer] = Field(
        (), description="Manufacturers of the CPU. Default: any; the architecture is that of the image."
    )
    max_spot_price_percentage: int | None = Field(
        None,
        ge=1,
        le=999999,
        description="Highest Spot price, as a percentage of the On-Demand price of the cheapest current C, M or R type "
        "that matches; 999999 is no limit. Default: AWS decides.",
    )
    max_on_demand_price_percentage: int | None = Field(
        None,
        ge=1,
        le=999999,
        description="How many percent more than the cheapest current C, M or R type that matches an On-Demand "
        "Instance may cost; 999999 is no limit. Default: 20.",
    )


class InstancesDistribution(Model):
    """How many nodes are On-Demand Instances and how many Spot Instances, and which types are launched first."""

    on_demand_base: int = Field(
        0, ge=0, le=5000, description="Number of nodes that are On-Demand Instances before any is a Spot Instance."
    )
    on_demand_percentage: int | None = Field(
        None,
        ge=0,
        le=100,
        description="Percentage of On-Demand Instances among the nodes above `onDemandBase`; the others are Spot "
        "Instances. Default: 0 with `spotPrice`, otherwise 100.",
    )
    on_demand_allocation_strategy: OnDemandStrategy | None = Field(
        None,
        description="How the type of an On-Demand Instance is chosen. Default: `prioritized`, which takes "
        "`instanceTypes` in order, or `lowest-price` with `instanceRequirements`.",
    )
    spot_allocation_strategy: SpotStrategy | None = Field(
        None, description="How the type of a Spot Instance is chosen. Default: `price-capacity-optimized`."
    )
    spot_instance_pools: int | None = Field(
        None,
        ge=1,
        le=20,
        description="Number of the cheapest types among which Spot Instances are spread; only with the strategy "
        "`lowest-price`. Default: 2.",
    )


class CapacityReservation(Model):
    """On-Demand Capacity Reservations in which nodes run, which cfngen does not make."""

    id: field_types.CapacityReservationId | None = Field(None, description="Id of a Capacity Reservation.")
    resource_group: field_types.ResourceGroupArn | None = Field(
        None, description="ARN of a resource group of Capacity Reservations, such as one for each zone."
    )
    preference: ReservationPreference | None = Field(
        None,
        description="`capacity-reservations-only` launches nowhere else, `capacity-reservations-first` launches "
        "On-Demand Instances where no reservation has room, `none` uses no reservation, and `default` the open ones "
        "that match. Default: `capacity-reservations-first`.",
    )


class GroupAutoscaler(Model):
    """What cluster-autoscaler is told about a node group, by tags of its Auto Scaling group."""

    enabled: bool = Field(
        True, description="Whether cluster-autoscaler finds the group. If false, only you change its size."
    )
    resources: dict[field_types.LabelKey, field_types.Quantity] = Field(
        default_factory=dict,
        description="What pods can have on one node, while the group has none: `cpu`, `memory`, `ephemeral-storage`, "
        "`pods`, `nvidia.com/gpu`, … Default: cluster-autoscaler derives it from the instance type.",
    )
    scale_down_utilization_threshold: field_types.Fraction | None = Field(
        None,
        description="A node is removed if pods request at most this share of its CPU and of its memory. Default: "
        "cluster-autoscaler's, 0.5.",
    )
    scale_down_gpu_utilization_threshold: field_types.Fraction | None = Field(
        None, description="The same for GPUs, on nodes that have some. Default: cluster-autoscaler's, 0.5."
    )
    scale_down_unneeded_time: field_types.Duration | None = Field(
        None, description="How long a node must be unneeded before it is removed. Default: cluster-autoscaler's, 10m."
    )
    scale_down_unready_time: field_types.Duration | None = Field(
        None,
        description="How long a node that is not ready must be unneeded before it is removed. Default: "
        "cluster-autoscaler's, 20m.",
    )
    ignore_daemon_sets_utilization: bool | None = Field(
        None,
        description="Whether requests of DaemonSets' pods do not count as use of a node. Default: "
        "cluster-autoscaler's, false.",
    )
