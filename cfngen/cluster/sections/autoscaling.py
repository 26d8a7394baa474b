"""What cluster-autoscaler is told about one node group."""

from __future__ import annotations

from pydantic import Field

from cfngen.cluster import field_types
from cfngen.cluster.sections.base import Model


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
