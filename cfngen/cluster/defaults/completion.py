"""Fills in missing values of the cluster file that are derived from others, such as a master's address from its subnet.

What networks and node groups lack is filled in by modules of their own. The data is not validated yet: a value of the
wrong type is left as it is, and validation reports it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence

from cfngen.cluster.defaults import group_defaults, network_defaults
from cfngen.cluster.defaults.completed_data import CompletedData, Derivation, Section, WrittenGroup, WrittenGroups
from cfngen.cluster.defaults.group_defaults import fill_device_names, fill_node_groups, fill_root_volume_sizes
from cfngen.cluster.defaults.network_defaults import network_of, without_local_zones
from cfngen.cluster.instances import instance_types
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import aws_partition
from cfngen.cluster.naming.zones import zone_suffix
from cfngen.cluster.paths import Path, dotted, lookup
from cfngen.cluster.sections.field_types import NAME_PATTERN
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.errors import CfngenError
from cfngen.releases import exact_version

# Defaults of the model, from which other values are derived.
DEFAULT_KUBERNETES_VERSION: str = Cluster.model_fields["kubernetes_version"].default
_DEFAULT_GROUP_NAME: str = NodeGroup.model_fields["name"].default
DEFAULT_INSTANCE_TYPE: str = NodeGroup.model_fields["instance_type"].default
# Instance types of the bastion: 1 GiB of memory suffices for SSH and for installing updates.
BASTION_TYPE_BY_ARCHITECTURE = {"amd64": "t3.micro", "arm64": "t4g.micro"}
MAX_MASTER_COUNT = 5
# The first master has the ninth address of its subnet.
FIRST_MASTER_HOST_NUMBER = 9
# The keys of `image` that name an AMI or belong to one.
_AMI_KEYS = ("id", "ssmParameter", "rootDevice")
_ISSUER: Path = ("serviceAccountIssuer",)


def complete(data: Mapping[str, object]) -> CompletedData:
    """Return the data with all derived values filled in, and node groups with `oneGroupPerZone` expanded.

    Args:
        data: a cluster file's content; not changed. Tuples are taken as lists.
    """
    completed = CompletedData({key: _copy_with_lists(value) for key, value in data.items()})
    # In this order: later steps use what earlier ones have filled in.
    network_defaults.fill(completed)
    _fill_master_addresses(completed)
    fill_node_groups(completed)
    fill_root_volume_sizes(completed)
    group_defaults.fill_preferred_types(completed)
    fill_device_names(completed)
    _fill_images(completed)
    group_defaults.fill_required_types(completed)
    group_defaults.fill_distributions(completed)
    group_defaults.fill_gpu_groups(completed)
    _fill_bastion(completed)
    _fill_service_accounts(completed)
    _fill_exact_version(completed)
    # The last step: the paths of derived values count the groups as the cluster file does.
    completed.written_groups = _expand_groups(completed.data)
    return completed


def _copy_with_lists(data: object) -> object:
    """Return a deep copy of plain data in which tuples are lists, and all mappings dicts."""
    if isinstance(data, Mapping):
        return {key: _copy_with_lists(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_copy_with_lists(item) for item in data]
    return copy.deepcopy(data)


def _fill_master_addresses(completed: CompletedData) -> None:
    """Give each master the ninth address of its subnet, as kube-up did; further masters get the next addresses."""
    count = lookup(completed.data, ("controlPlane", "count"))
    if not isinstance(count, int) or not 0 < count <= MAX_MASTER_COUNT:
        # Validation reports a wrong count later; until then one master is assumed.
        count = 1
    subnets = without_local_zones(list(completed.sections_in(("network", "subnets"))))
    if not subnets:
        return
    addresses: list[str] = []
    for index in range(count):
        # Masters are placed in the subnets in turn; after the last subnet follows the first, with its next address.
        _, subnet = subnets[index % len(subnets)]
        cidr = network_of(subnet.get("cidr"))
        host_number = FIRST_MASTER_HOST_NUMBER + index // len(subnets)
        if cidr is None or host_number >= cidr.num_addresses:
            return
        addresses.append(str(cidr[host_number]))
    first_subnet_path, _ = subnets[0]
    cidr_path: Path = (*first_subnet_path, "cidr")
    derivation = None
    if addresses != ["172.20.0.9"]:
        derivation = Derivation(reason=f"from {dotted(cidr_path)}", source=cidr_path)
    completed.fill(("controlPlane", "addresses"), addresses, derivation)


def _fill_images(completed: CompletedData) -> None:
    """Merge the cluster's image into the images of masters and groups, and derive the architecture."""
    cluster_image = completed.data.get("image")
    if not isinstance(cluster_image, dict):
        cluster_image = {}
    completed.fill(("controlPlane",), {})
    control_plane = completed.data["controlPlane"]
    all_instances = list(completed.sections_in(("nodeGroups",)))
    if isinstance(control_plane, dict):
        all_instances.insert(0, (("controlPlane",), control_plane))
    for path, instances in all_instances:
        image = instances.get("image", {})
        if isinstance(image, dict):
            _inherit_image(completed, path, cluster_image, image)
        _fill_architecture(completed, path, instances, DEFAULT_INSTANCE_TYPE)


def _inherit_image(
    completed: CompletedData, path: Path, cluster_image: Mapping[str, object], image: Mapping[str, object]
) -> None:
    """Fill in what the `image` of instances lacks from the cluster's image."""
    for key in _inherited_image_keys(cluster_image, image):
        derivation = Derivation(reason=f"from image.{key}", source=("image", key))
        completed.fill((*path, "image", key), cluster_image[key], derivation)


def _fill_architecture(completed: CompletedData, path: Path, instances: Section, default_type: str) -> None:
    instance_type = instances.get("instanceType", default_type)
    if isinstance(instance_type, str):
        architecture = instance_types.architecture(instance_type)
        type_derivation = None
        if "instanceType" in instances:
            type_derivation = Derivation(reason="from instanceType", source=(*path, "instanceType"))
        completed.fill((*path, "image", "architecture"), architecture, type_derivation)


def _fill_bastion(completed: CompletedData) -> None:
    """Fill in the image and the instance type of the bastion, if the cluster file has one.

    The type follows the architecture of its image; an inherited AMI has the architecture of the masters' type.
    """
    bastion = completed.data.get("bastion")
    if not isinstance(bastion, dict):
        return
    cluster_image = completed.data.get("image")
    image = bastion.get("image", {})
    if isinstance(cluster_image, dict) and isinstance(image, dict):
        _inherit_image(completed, ("bastion",), cluster_image, image)
    master_type = lookup(completed.data, ("controlPlane", "instanceType"))
    architecture = lookup(completed.data, ("bastion", "image", "architecture"))
    derivation = Derivation(reason="from bastion.image.architecture", source=("bastion", "image", "architecture"))
    if architecture is None and lookup(completed.data, ("bastion", "image", "id")) and isinstance(master_type, str):
        architecture = instance_types.architecture(master_type)
        derivation = Derivation(reason="from controlPlane.instanceType", source=("controlPlane", "instanceType"))
    default_type = BASTION_TYPE_BY_ARCHITECTURE.get(str(architecture), BASTION_TYPE_BY_ARCHITECTURE["amd64"])
    is_default = default_type == BASTION_TYPE_BY_ARCHITECTURE["amd64"]
    completed.fill(("bastion", "instanceType"), default_type, None if is_default else derivation)
    _fill_architecture(completed, ("bastion",), bastion, default_type)


def _inherited_image_keys(cluster_image: Mapping[str, object], image: Mapping[str, object]) -> Sequence[str]:
    """Return the keys of the cluster's image that masters or a group with an `image` of their own inherit.

    The cluster's AMI is not inherited by an `image` with another AMI, distribution or architecture: an AMI is for one
    distribution and one architecture. Without an AMI, instances use the newest image of their distribution.
    """
    has_other_system = any(
        key in image and image[key] != cluster_image.get(key) for key in ("distribution", "architecture")
    )
    has_other_ami = has_other_system or "id" in image or "ssmParameter" in image
    return [key for key in cluster_image if not (has_other_ami and key in _AMI_KEYS)]


def _fill_exact_version(completed: CompletedData) -> None:
    """Replace a minor version of Kubernetes by its newest patch; validation reports a version that is not known."""
    requested = completed.data.get("kubernetesVersion", DEFAULT_KUBERNETES_VERSION)
    if not isinstance(requested, str):
        return
    try:
        exact = exact_version(requested)
    except CfngenError:
        return
    if "kubernetesVersion" not in completed.data:
        completed.fill(("kubernetesVersion",), exact)
    elif exact != requested:
        completed.data["kubernetesVersion"] = exact
        is_only_spelling = exact == requested.removeprefix("v")
        reason = f"from {requested}" if is_only_spelling else f"newest known patch of {requested}"
        path: Path = ("kubernetesVersion",)
        completed.derived[path] = Derivation(reason=reason, source=path)


def _fill_service_accounts(completed: CompletedData) -> None:
    """Fill in the issuer's discovery, the roles of add-ons and the webhook, after the region has been filled in."""
    issuer = completed.data.get("serviceAccountIssuer")
    if not isinstance(issuer, dict):
        return
    region = str(completed.data.get("region", ""))
    if aws_partition(region) != "aws":
        # "CloudFront endpoints and quotas", AWS General Reference: only the partition aws. In China it is a service of
        # its own that needs a registered domain (ICP).
        completed.fill((*_ISSUER, "discovery"), "bucket", Derivation(reason="from region", source=("region",)))
    if issuer.get("signTokens", True) is True:
        derivation = Derivation(reason="from serviceAccountIssuer", source=_ISSUER)
        # The user can publish the keys only once masters have made them, and masters do not boot without the cloud
        # controller manager. So that one has the masters' role until the documents are there.
        masters_publish = issuer.get("discovery") != "url" or bool(issuer.get("bucket"))
        completed.fill(("iam", "addonRoles"), value=masters_publish, derivation=derivation)
        completed.fill(("addons", "podIdentityWebhook", "enabled"), value=True, derivation=derivation)


def _expand_groups(data: Section) -> WrittenGroups:
    """Replace each group with `oneGroupPerZone` by one group for each of its zones; return where groups were written.

    Everything after it sees plain groups of one zone. A group's name gets the end of its zone's name, so that groups
    keep their names, and thus their stacks and instances, when zones are added or removed. A group with an invalid name
    or zone stays as it is, so that validation reports what the user wrote.
    """
    groups = data.get("nodeGroups")
    if not isinstance(groups, list) or not any(isinstance(group, dict) and _is_expanded(group) for group in groups):
        return WrittenGroups()
    expanded: list[object] = []
    written: list[WrittenGroup] = []
    for index, group in enumerate(groups):
        if not isinstance(group, dict) or not _is_expanded(group):
            expanded.append(group)
            written.append(WrittenGroup(index))
            continue
        for zone_index, zone in enumerate(group["zones"]):
            name = f"{group.get('name', _DEFAULT_GROUP_NAME)}-{zone_suffix(zone)}"
            # The new groups are plain ones, so that the completed cluster, written to a file, is the same cluster.
            expanded.append({**group, "name": name, "zones": [zone], "oneGroupPerZone": False})
            written.append(WrittenGroup(index, zone_index, zone, name))
    data["nodeGroups"] = expanded
    return WrittenGroups(tuple(written))


def _is_expanded(group: Section) -> bool:
    """Return whether a group has `oneGroupPerZone`, and a name and zones from which names can be made."""
    name, zones = group.get("name", _DEFAULT_GROUP_NAME), group.get("zones")
    return (
        group.get("oneGroupPerZone") is True
        and isinstance(name, str)
        and re.fullmatch(NAME_PATTERN, name) is not None
        and isinstance(zones, Sequence)
        and not isinstance(zones, str)
        and bool(zones)
        and all(isinstance(zone, str) and zone_suffix(zone) for zone in zones)
        and len(set(zones)) == len(zones)
    )
