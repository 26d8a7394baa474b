"""Fills in what node groups lack: zones, sizes, volumes, types, shares of Spot Instances, what GPUs need.

The data is not validated yet: a value of the wrong type is left as it is, and validation reports it.
"""

from __future__ import annotations

from pydantic import ValidationError

from cfngen.cluster.defaults.completed_data import CompletedData, Derivation, Section
from cfngen.cluster.defaults.network_defaults import DEFAULT_REGION, without_local_zones
from cfngen.cluster.instances import gpu, instance_types
from cfngen.cluster.instances.gpu import DEFAULT_ROOT_VOLUME_GIB
from cfngen.cluster.instances.group_types import matching_types
from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.sections.capacity import InstanceRequirements
from cfngen.cluster.sections.instances import Image, NodeGroup

DEFAULT_MIN_SIZE: int = NodeGroup.model_fields["min_size"].default
DEFAULT_NODE_ROOT_VOLUME_SIZE: int = NodeGroup().root_volume.size
# The device names of further volumes ("Device names for volumes on Amazon EC2 instances", EC2 User Guide: recommended
# for EBS volumes).
EXTRA_DEVICE_NAMES = tuple(f"/dev/sd{letter}" for letter in "fghijklmnop")
_MIXED_KEYS = ("instanceTypes", "instanceRequirements", "instancesDistribution")
NVIDIA = "nvidia"
# Defaults of the model, from which other values are derived.
_DEFAULT_DISTRIBUTION: str = Image.model_fields["distribution"].default
_DEFAULT_INSTANCE_TYPE: str = NodeGroup.model_fields["instance_type"].default


def fill_node_groups(completed: CompletedData) -> None:
    """Fill in one node group if the file has none, and the zones and sizes that node groups lack."""
    completed.fill(("nodeGroups",), [{}])
    subnets = without_local_zones(list(completed.sections_in(("network", "subnets"))))
    zones = [subnet["zone"] for _, subnet in subnets if isinstance(subnet.get("zone"), str)]
    derivation = None
    if zones != [f"{DEFAULT_REGION}a"]:
        derivation = Derivation(reason="from network.subnets", source=("network", "subnets"))
    for path, group in completed.sections_in(("nodeGroups",)):
        if zones:
            completed.fill((*path, "zones"), list(zones), derivation)
        min_size = group.get("minSize")
        max_size = group.get("maxSize")
        if isinstance(min_size, int) and "maxSize" not in group:
            size_derivation = Derivation(reason="from minSize", source=(*path, "minSize"))
            completed.fill((*path, "maxSize"), max(min_size, 1), size_derivation)
        elif isinstance(max_size, int) and max_size < DEFAULT_MIN_SIZE and "minSize" not in group:
            size_derivation = Derivation(reason="from maxSize", source=(*path, "maxSize"))
            completed.fill((*path, "minSize"), max(max_size, 0), size_derivation)


def fill_root_volume_sizes(completed: CompletedData) -> None:
    """Give each root volume of a node group the default size for nodes, which is not the default of other volumes."""
    for path, group in completed.sections_in(("nodeGroups",)):
        if group.get("gpu") == NVIDIA:
            completed.fill((*path, "rootVolume", "size"), DEFAULT_ROOT_VOLUME_GIB, from_gpu(path))
        elif isinstance(group.get("rootVolume"), dict):
            completed.fill((*path, "rootVolume", "size"), DEFAULT_NODE_ROOT_VOLUME_SIZE)


def fill_device_names(completed: CompletedData) -> None:
    """Give each further volume of a node group without a device name the first one that no other volume has."""
    for path, _ in completed.sections_in(("nodeGroups",)):
        volumes = list(completed.sections_in((*path, "volumes")))
        used_names = [volume.get("device") for _, volume in volumes]
        free_names = [name for name in EXTRA_DEVICE_NAMES if name not in used_names]
        unnamed_paths = [volume_path for volume_path, volume in volumes if "device" not in volume]
        # Validation reports more volumes than there are names.
        for volume_path, name in zip(unnamed_paths, free_names, strict=False):
            completed.fill((*volume_path, "device"), name)


def fill_preferred_types(completed: CompletedData) -> None:
    """Give each node group with a list of types the first of them as its `instanceType`."""
    for path, group in completed.sections_in(("nodeGroups",)):
        types = group.get("instanceTypes")
        if isinstance(types, list) and types and isinstance(types[0], str):
            source: Path = (*path, "instanceTypes", 0)
            completed.fill((*path, "instanceType"), types[0], Derivation("from instanceTypes[0]", source))


def fill_required_types(completed: CompletedData) -> None:
    """Give each node group with requirements the smallest type that has what is required as its `instanceType`.

    Images must be filled in before, since their architecture is the types'.
    """
    region = completed.data.get("region")
    for path, group in completed.sections_in(("nodeGroups",)):
        if not isinstance(group.get("instanceRequirements"), dict):
            continue
        try:
            requirements = InstanceRequirements.model_validate(group["instanceRequirements"])
        except ValidationError:
            continue
        architecture = lookup(group, ("image", "architecture"))
        if architecture not in ("amd64", "arm64"):
            continue
        types = matching_types(requirements, architecture, region if isinstance(region, str) else None)
        if types:
            derivation = Derivation("smallest that instanceRequirements allow", (*path, "instanceRequirements"))
            completed.fill((*path, "instanceType"), types[0], derivation)


def fill_distributions(completed: CompletedData) -> None:
    """Fill in the shares of On-Demand and Spot Instances, and the allocation strategies, of groups that have them."""
    for path, group in completed.sections_in(("nodeGroups",)):
        if any(isinstance(group.get(key), (dict, list)) and group[key] != [] for key in _MIXED_KEYS):
            _fill_distribution(completed, path, group)


def _fill_distribution(completed: CompletedData, path: Path, group: Section) -> None:
    distribution_path: Path = (*path, "instancesDistribution")
    has_spot_price = "spotPrice" in group
    derivation = Derivation("from spotPrice", (*path, "spotPrice")) if has_spot_price else None
    completed.fill((*distribution_path, "onDemandPercentage"), 0 if has_spot_price else 100, derivation)
    is_required = isinstance(group.get("instanceRequirements"), dict)
    completed.fill((*distribution_path, "onDemandAllocationStrategy"), "lowest-price" if is_required else "prioritized")
    percentage = lookup(group, ("instancesDistribution", "onDemandPercentage"))
    if isinstance(percentage, int) and percentage < 100:
        completed.fill((*distribution_path, "spotAllocationStrategy"), "price-capacity-optimized")


def fill_gpu_groups(completed: CompletedData) -> None:
    """Fill in what node groups with `gpu` lack, after the cluster's image has been inherited by them."""
    first_path: Path | None = None
    for path, group in completed.sections_in(("nodeGroups",)):
        if group.get("gpu") == NVIDIA:
            first_path = first_path or path
            _fill_gpu_image(completed, path, group)
            _fill_labels_and_taint(completed, path, group)
    if first_path is not None:
        completed.fill(("addons", "nvidiaDevicePlugin", "enabled"), value=True, derivation=from_gpu(first_path))


def from_gpu(path: Path) -> Derivation:
    """Return the derivation of a value that follows from the `gpu` of the node group at `path`."""
    return Derivation(reason="from gpu", source=(*path, "gpu"))


def _fill_gpu_image(completed: CompletedData, path: Path, group: Section) -> None:
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
