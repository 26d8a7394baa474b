"""Checks of instances: types that exist and are large enough, images of Linux, a way out without a public address."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.sections import all_instances, all_machines, type_paths
from cfngen.cluster.instances import instance_types
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.topology import is_private
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.base import NO_WINDOWS
from cfngen.cluster.sections.instances import Image, NodeGroup

_MAX_REGIONS_SHOWN = 3


def _check_types_suitable(cluster: Cluster) -> Iterator[Problem]:
    for path, instance_type in _named_types(cluster):
        role = "master" if path[0] == "controlPlane" else "node"
        reason = instance_types.why_unsuitable(instance_type, role)
        if reason:
            yield Problem(path, reason)


def _named_types(cluster: Cluster) -> Iterator[tuple[Path, str]]:
    """Yield the path and the name of each instance type of masters and node groups, except what is only required."""
    for path, instances in all_instances(cluster):
        if isinstance(instances, NodeGroup) and instances.instance_requirements:
            continue
        if isinstance(instances, NodeGroup) and instances.instance_types:
            for position, instance_type in enumerate(instances.instance_types):
                yield (*path, "instanceTypes", position), instance_type
        else:
            yield (*path, "instanceType"), instances.instance_type


def _check_types_offered(cluster: Cluster) -> Iterator[Problem]:
    offered_types = instance_types.types_in_region(cluster.region)
    if offered_types is None:
        return
    for path, instance_type in _named_types(cluster):
        if instance_type in offered_types or instance_types.why_unsuitable(instance_type, "node"):
            continue
        message = not_offered_message(instance_type, cluster.region)
        yield Problem(path, message, related_paths=(("region",),))


def not_offered_message(instance_type: str, region: str) -> str:
    """Return the message for an unknown type, or for one that only other regions offer."""
    other_regions = instance_types.regions_of(instance_type)
    if other_regions:
        region_list = ", ".join(other_regions[:_MAX_REGIONS_SHOWN])
        if len(other_regions) > _MAX_REGIONS_SHOWN:
            region_list += f" and {len(other_regions) - _MAX_REGIONS_SHOWN} more"
        return f"{instance_type} is not offered in {region}, but in {region_list}; choose another type"
    similar_types = instance_types.similar(instance_type, region)
    advice = f"did you mean {' or '.join(similar_types)}?" if similar_types else "t3.medium is a common one"
    return f"AWS has no instance type {instance_type}; {advice}"


def _check_image_architectures(cluster: Cluster) -> Iterator[Problem]:
    for path, instances in all_machines(cluster):
        if isinstance(instances, NodeGroup) and instances.instance_requirements:
            continue  # EC2 chooses types of the image's architecture
        type_architecture = instance_types.architecture(instances.instance_type)
        image_architecture = instances.image.architecture
        if image_architecture and image_architecture != type_architecture:
            message = (
                f"the image is for {image_architecture}, but {instances.instance_type} is {type_architecture}; "
                "change one of them"
            )
            related_paths = type_paths(path) if isinstance(instances, NodeGroup) else ((*path, "instanceType"),)
            yield Problem((*path, "image", "architecture"), message, related_paths=related_paths)


def _check_image_sources(cluster: Cluster) -> Iterator[Problem]:
    yield from _check_image_source(("image",), cluster.image)
    for path, instances in all_machines(cluster):
        yield from _check_image_source((*path, "image"), instances.image)


def _check_image_source(path: Path, image: Image) -> Iterator[Problem]:
    """Check that an image has one source, and a root device only if it is the user's own image."""
    if image.id and image.ssm_parameter:
        message = "image.id and image.ssmParameter cannot be combined; keep one of them"
        yield Problem((*path, "ssmParameter"), message, related_paths=((*path, "id"),))
    if image.root_device and not (image.id or image.ssm_parameter):
        message = (
            "cfngen knows the root device of the distributions' images; remove the key, or set image.id or "
            "image.ssmParameter too"
        )
        yield Problem((*path, "rootDevice"), message, related_paths=((*path, "id"), (*path, "ssmParameter")))


def _keys_without_way_out(cluster: Cluster) -> Iterator[tuple[Path, str]]:
    """Yield the path of each key that leaves instances without a way out, and which instances: masters or nodes.

    They have no public address then. In a private cluster no instance has one, so no key does; and a proxy is a way out
    as well.
    """
    if is_private(cluster) or cluster.network.proxy:
        return
    if not cluster.api.public:
        yield ("api", "public"), "masters"
    for index, group in enumerate(cluster.node_groups):
        if not group.public_ip:
            yield ("nodeGroups", index, "publicIp"), "nodes"


def _check_private_instances_have_nat(cluster: Cluster) -> Iterator[Problem]:
    # Subnets that cfngen creates have a route to an internet gateway, which needs public addresses.
    if all(subnet.id for subnet in cluster.network.subnets):
        return
    for path, role in _keys_without_way_out(cluster):
        message = (
            f"{role} without public addresses cannot download Kubernetes: the subnets that cfngen creates "
            "have no NAT gateway; set network.topology to private, list existing subnets with a route to one in "
            "network.subnets, or remove the key"
        )
        keys = ("subnets", "proxy", "topology")
        yield Problem(path, message, related_paths=tuple(("network", key) for key in keys))


def _warn_of_private_instances(cluster: Cluster) -> Iterator[Problem]:
    for path, role in _keys_without_way_out(cluster):
        message = (
            f"{role} without public addresses cannot reach the internet directly; their subnets need a route through "
            "a NAT gateway, otherwise Kubernetes cannot be installed"
        )
        yield Problem(path, message)


def _check_ssm_parameters(cluster: Cluster) -> Iterator[Problem]:
    for path, machine in all_machines(cluster):
        # "Calling AMI public parameters in Parameter Store", Systems Manager User Guide.
        if (machine.image.ssm_parameter or "").startswith("/aws/service/ami-windows-latest/"):
            yield Problem((*path, "image", "ssmParameter"), f"{machine.image.ssm_parameter} {NO_WINDOWS}")


PROBLEM_CHECKS = (
    _check_types_suitable,
    _check_types_offered,
    _check_image_architectures,
    _check_image_sources,
    _check_private_instances_have_nat,
)
WARNING_CHECKS = (_warn_of_private_instances,)
WINDOWS_CHECKS = (_check_ssm_parameters,)
