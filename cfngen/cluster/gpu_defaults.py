"""Fills in what a node group with `gpu` lacks: image, labels, taint; and turns NVIDIA's device plug-in on.

The data is not validated yet: a value of the wrong type is left as it is, and validation reports it.
"""

from __future__ import annotations

from cfngen.cluster import gpu, instance_types
from cfngen.cluster.completed_data import CompletedData, Derivation, Section
from cfngen.cluster.model import Image, NodeGroup
from cfngen.cluster.paths import Path

NVIDIA = "nvidia"
# Defaults of the model, from which other values are derived.
_DEFAULT_DISTRIBUTION: str = Image.model_fields["distribution"].default
_DEFAULT_INSTANCE_TYPE: str = NodeGroup.model_fields["instance_type"].default


def fill(completed: CompletedData) -> None:
    """Fill in what node groups with `gpu` lack, after the cluster's image has been inherited by them."""
    first_path: Path | None = None
    for path, group in completed.sections_in(("nodeGroups",)):
        if group.get("gpu") == NVIDIA:
            first_path = first_path or path
            _fill_image(completed, path, group)
            _fill_labels_and_taint(completed, path, group)
    if first_path is not None:
        completed.fill(("addons", "nvidiaDevicePlugin", "enabled"), value=True, derivation=from_gpu(first_path))


def from_gpu(path: Path) -> Derivation:
    """Return the derivation of a value that follows from the `gpu` of the node group at `path`."""
    return Derivation(reason="from gpu", source=(*path, "gpu"))


def _fill_image(completed: CompletedData, path: Path, group: Section) -> None:
    """Give a group without an image of its own AWS's Deep Learning Base AMI, if there is one of its distribution."""
    image, instance_type = group.get("image", {}), group.get("instanceType", _DEFAULT_INSTANCE_TYPE)
    if not isinstance(image, dict) or not isinstance(instance_type, str) or image.get("id"):
        return
    distribution = image.get("distribution", _DEFAULT_DISTRIBUTION)
    parameter = gpu.image_parameter(str(distribution), instance_types.architecture(instance_type))
    if parameter and gpu.accelerator(instance_type) and gpu.image_serves(instance_type):
        completed.fill((*path, "image", "ssmParameter"), parameter, from_gpu(path))


def _fill_labels_and_taint(completed: CompletedData, path: Path, group: Section) -> None:
    completed.fill((*path, "labels", gpu.PRESENT_LABEL), "true", from_gpu(path))
    accelerator = _accelerator(group)
    if accelerator:
        completed.fill((*path, "labels", gpu.ACCELERATOR_LABEL), accelerator, from_gpu(path))
    taint = {"key": gpu.TAINT_KEY, "value": gpu.TAINT_VALUE, "effect": "NoSchedule"}
    completed.fill((*path, "taints"), [taint], from_gpu(path))


def _accelerator(group: Section) -> str | None:
    """Return the value of the label for the GPU of a group's instance types; None if they have none."""
    if group.get("instanceRequirements"):
        # AWS may choose any GPU that meets the requirements.
        return gpu.ANY_ACCELERATOR
    types = group.get("instanceTypes") or [group.get("instanceType", "")]
    return gpu.common_accelerator([str(instance_type) for instance_type in types] if isinstance(types, list) else [])
