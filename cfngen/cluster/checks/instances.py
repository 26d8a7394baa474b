"""Instance types and images: they exist, are large enough, and speak the same machine language."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster import instance_types
from cfngen.cluster.checks.access import all_instances
from cfngen.cluster.model import Cluster, Image
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem

_SHOWN = 3


def _types_fit(cluster: Cluster) -> Iterator[Problem]:
    for path, instances in all_instances(cluster):
        reason = instance_types.unfit(instances.instance_type, "master" if path == ("controlPlane",) else "node")
        if reason:
            yield Problem((*path, "instanceType"), reason)


def _types_exist(cluster: Cluster) -> Iterator[Problem]:
    known = instance_types.known(cluster.region)
    if known is None:
        return
    for path, instances in all_instances(cluster):
        wanted = instances.instance_type
        if wanted in known or instance_types.unfit(wanted, "node"):
            continue
        message = _absence(wanted, cluster.region)
        yield Problem((*path, "instanceType"), message, (("region",),))


def _absence(wanted: str, region: str) -> str:
    elsewhere = instance_types.regions_of(wanted)
    if elsewhere:
        shown = ", ".join(elsewhere[:_SHOWN]) + (f" and {len(elsewhere) - _SHOWN} more" if elsewhere[_SHOWN:] else "")
        return f"{wanted} is not offered in {region}, but in {shown}; choose another type"
    near = instance_types.similar(wanted, region)
    advice = f"did you mean {' or '.join(near)}?" if near else "t3.medium is a common one"
    return f"AWS has no instance type {wanted}; {advice}"


def _architectures(cluster: Cluster) -> Iterator[Problem]:
    for path, instances in all_instances(cluster):
        wanted = instance_types.architecture(instances.instance_type)
        given = instances.image.architecture
        if given and given != wanted:
            message = f"the image is for {given}, but {instances.instance_type} is {wanted}; change one of them"
            yield Problem((*path, "image", "architecture"), message, ((*path, "instanceType"),))


def _image_sources(cluster: Cluster) -> Iterator[Problem]:
    yield from _image_source(("image",), cluster.image)
    for path, instances in all_instances(cluster):
        yield from _image_source((*path, "image"), instances.image)


def _image_source(path: Path, image: Image) -> Iterator[Problem]:
    if image.id and image.ssm_parameter:
        message = "image.id and image.ssmParameter exclude each other; keep the one that names your image"
        yield Problem((*path, "ssmParameter"), message, ((*path, "id"),))
    if image.root_device and not (image.id or image.ssm_parameter):
        message = "the distributions' own images have a known root device; remove the key, or name your image too"
        yield Problem((*path, "rootDevice"), message, ((*path, "id"), (*path, "ssmParameter")))


def _without_public_address(cluster: Cluster) -> Iterator[tuple[Path, str]]:
    """Return the keys that take instances their public address, and which instances those are."""
    if not cluster.api.public:
        yield ("api", "public"), "masters"
    for index, group in enumerate(cluster.node_groups):
        if not group.public_ip:
            yield ("nodeGroups", index, "publicIp"), "nodes"


def _no_way_out(cluster: Cluster) -> Iterator[Problem]:
    # The subnets that cfngen makes lead to an internet gateway, which serves public addresses only.
    if cluster.network.subnets[0].id:
        return
    for path, who in _without_public_address(cluster):
        message = (
            f"{who} without public addresses cannot install Kubernetes from the subnets that cfngen makes, for these "
            "have no NAT gateway; name existing subnets that have one in network.subnets, or leave the key out"
        )
        yield Problem(path, message, (("network", "subnets"),))


def _way_out(cluster: Cluster) -> Iterator[Problem]:
    for path, who in _without_public_address(cluster):
        message = (
            f"{who} without public addresses reach nothing outside by themselves; their subnets need a route through "
            "a NAT gateway, or Kubernetes cannot be installed"
        )
        yield Problem(path, message)


PROBLEMS = (_types_fit, _types_exist, _architectures, _image_sources, _no_way_out)
WARNINGS = (_way_out,)
