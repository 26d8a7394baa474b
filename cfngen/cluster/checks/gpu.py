"""Checks of node groups with `gpu`: instance types with NVIDIA GPUs, images with the driver, and room for these."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from cfngen.cluster.checks.sections import GroupCheck, type_paths
from cfngen.cluster.instances import gpu
from cfngen.cluster.instances.group_types import types_key, types_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.text import join_and

# The Helm release of NVIDIA's GPU Operator, which installs driver and device plug-in by itself.
_GPU_OPERATOR = "gpu-operator"
_OWN_IMAGE = "set image.id or image.ssmParameter to an image with NVIDIA's driver and the NVIDIA Container Toolkit"


def _gpu_groups(cluster: Cluster) -> Iterator[tuple[Path, NodeGroup]]:
    for index, group in enumerate(cluster.node_groups):
        if group.gpu:
            yield ("nodeGroups", index), group


def _types(cluster: Cluster, path: Path, group: NodeGroup) -> Iterator[tuple[Path, str]]:
    """Yield the instance types of a group, each with the path of the key that names it or lets AWS choose it."""
    key = types_key(group)
    for position, instance_type in enumerate(types_of(cluster, group)):
        yield (*path, key, position) if key == "instanceTypes" else (*path, key), instance_type


def _check_types_have_gpus(cluster: Cluster) -> Iterator[Problem]:
    for path, group in _gpu_groups(cluster):
        types_without = (
            (key, instance_type)
            for key, instance_type in _types(cluster, path, group)
            if not gpu.accelerator(instance_type)
        )
        for key, instance_type in islice(types_without, 1):
            other_accelerators = gpu.other_accelerators(instance_type)
            if group.instance_requirements:
                message = (
                    f"{instance_type}, which the requirements allow, has no NVIDIA GPU; add accelerators: "
                    "{manufacturers: [nvidia]} to instanceRequirements, or remove the key"
                )
            elif other_accelerators:
                message = (
                    f"{instance_type} has {other_accelerators}, for which cfngen installs nothing; remove the key, "
                    "and install their driver and device plug-in by image.id and addons.charts"
                )
            else:
                message = (
                    f"{instance_type} has no NVIDIA GPU; choose an instanceType that has, e.g. g6.xlarge or "
                    "g5g.xlarge (arm64), or remove the key"
                )
            related_paths = tuple(dict.fromkeys((key, *type_paths(path))))
            yield Problem((*path, "gpu"), message, related_paths=related_paths)


def _check_images_have_driver(cluster: Cluster) -> Iterator[Problem]:
    for path, group in _gpu_groups(cluster):
        types = list(_types(cluster, path, group))
        if gpu.has_own_image(group.image) and not gpu.uses_aws_image(group):
            continue
        if not all(gpu.accelerator(instance_type) for _, instance_type in types):
            continue
        unserved_types = [(key, name) for key, name in types if not gpu.image_serves(name)]
        for key, instance_type in unserved_types[:1]:
            remedy = "choose a newer type, e.g. g6.xlarge"
            if group.instance_requirements:
                families = sorted({f"{name.partition('.')[0]}.*" for _, name in unserved_types})
                remedy = (
                    "set allowedTypes to newer ones, e.g. g6.*"
                    if group.instance_requirements.allowed_types
                    else f"add {join_and(families)} to excludedTypes"
                )
            message = (
                f"the driver in AWS's Deep Learning Base AMI does not serve the GPUs of {instance_type}; {remedy}, or "
                f"{_OWN_IMAGE}"
            )
            yield Problem(key, message, related_paths=((*path, "gpu"),))
        if unserved_types or gpu.has_own_image(group.image):
            continue
        message = (
            f"AWS has no Deep Learning Base AMI of {group.image.distribution}, and the distribution's image has no "
            f"driver; use {' or '.join(gpu.DISTRIBUTIONS_WITH_IMAGE)}, or {_OWN_IMAGE}"
        )
        yield Problem(
            (*path, "image", "distribution"), message, related_paths=((*path, "gpu"), ("image",), *type_paths(path))
        )


def _warn_of_unused_gpus(cluster: Cluster) -> Iterator[Problem]:
    charts = {chart.name for chart in cluster.addons.charts}
    if cluster.addons.nvidia_device_plugin.enabled or _GPU_OPERATOR in charts:
        return
    for index, group in enumerate(cluster.node_groups):
        types_with_gpus = [
            (key, name) for key, name in _types(cluster, ("nodeGroups", index), group) if gpu.accelerator(name)
        ]
        if types_with_gpus and not group.gpu and not gpu.has_own_image(group.image):
            key, instance_type = types_with_gpus[0]
            message = (
                f"{instance_type} has NVIDIA GPUs, which pods cannot use without a driver and a device plug-in; "
                "`gpu: nvidia` in the group brings both"
            )
            yield Problem(key, message)


def _warn_of_inherited_images(cluster: Cluster) -> Iterator[Problem]:
    for path, group in _gpu_groups(cluster):
        inherited_key = "id" if group.image.id else "ssmParameter"
        cluster_value = cluster.image.id or cluster.image.ssm_parameter
        if cluster_value and cluster_value in (group.image.id, group.image.ssm_parameter):
            message = (
                f"this is the cluster's image.{inherited_key}: it must have NVIDIA's driver and the NVIDIA Container "
                "Toolkit, or the nodes fail to boot"
            )
            yield Problem((*path, "image", inherited_key), message, related_paths=((*path, "gpu"),))


PROBLEM_CHECKS = (
    _check_types_have_gpus,
    _check_images_have_driver,
    GroupCheck(
        "rootVolume.size",
        # EC2 refuses a root volume that is smaller than the snapshot of its image.
        when=lambda cluster, group: (
            group.gpu and gpu.uses_aws_image(group) and group.root_volume.size < gpu.MIN_ROOT_VOLUME_GIB
        ),
        message="{group.root_volume.size} GiB is smaller than AWS's Deep Learning Base AMI, which has "
        f"{gpu.MIN_ROOT_VOLUME_GIB} GiB; enter more, or remove the key for {gpu.DEFAULT_ROOT_VOLUME_GIB}",
        related=(".gpu",),
    ),
)
WARNING_CHECKS = (_warn_of_unused_gpus, _warn_of_inherited_images)
