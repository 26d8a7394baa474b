"""The components and billed items of a new cluster, from its templates and the values of their parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cfngen.cluster.instances.group_types import type_list, types_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.identity_ids import RegistryId
from cfngen.cluster.naming.logical_ids import (
    BASTION_ELASTIC_IP,
    BASTION_PREFIX,
    ISSUER_BUCKET,
    auto_scaling_group_id,
    launch_template_id,
    master_prefix,
    node_group_prefix,
)
from cfngen.cluster.naming.network_ids import SubnetId, ZonalId
from cfngen.cluster.network.topology import is_private
from cfngen.cluster.sections.instances import Machine, NodeGroup
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.plan.costs.costs import UNUSED_CAPACITY, ComponentCount, Cost, CreationSummary
from cfngen.deploy.preflight.quotas.demand import LOAD_BALANCER, VPC_ENDPOINT
from cfngen.deploy.preflight.quotas.instance_counts import on_demand_share
from cfngen.templates.evaluation import known_value
from cfngen.text import join_and, pluralize

_ELASTIC_IP = "AWS::EC2::EIP"
_NAT_GATEWAY = "AWS::EC2::NatGateway"
# Components that a CloudFormation type alone does not distinguish; see `_component_kind`.
_NAT_ELASTIC_IP = "Elastic IP of a NAT gateway"
_BASTION_ELASTIC_IP = "Elastic IP of the bastion"
_PUBLIC_SUBNET, _PRIVATE_SUBNET = "public subnet", "private subnet"
_GATEWAY_ENDPOINT, _INTERFACE_ENDPOINT = "gateway endpoint", "interface endpoint"
_ISSUER_BUCKET = "bucket of the issuer's documents"
_REPOSITORY, _PUSH_PROVIDER = "AWS::ECR::Repository", "OIDC provider of jobs"
_RESERVATION = "AWS::EC2::CapacityReservation"
# Resources that are listed by their CloudFormation type, or kind of component, in this order, and what they are called.
_COMPONENT_LABELS = {
    "AWS::EC2::VPC": "VPC",
    "AWS::EC2::Subnet": "subnet",
    _PRIVATE_SUBNET: "private subnet",
    _PUBLIC_SUBNET: "public subnet",
    "AWS::EC2::RouteTable": "route table",
    _NAT_GATEWAY: "NAT gateway",
    _NAT_ELASTIC_IP: "public address of a NAT gateway (Elastic IP)",
    _GATEWAY_ENDPOINT: "gateway endpoint",
    _INTERFACE_ENDPOINT: "interface endpoint",
    _ELASTIC_IP: "public address of the API (Elastic IP)",
    _BASTION_ELASTIC_IP: "public address of the bastion (Elastic IP)",
    LOAD_BALANCER: "network load balancer of the API",
    _RESERVATION: "capacity reservation of a master",
    "AWS::EC2::SecurityGroup": "security group",
    "AWS::IAM::Role": "IAM role",
    "AWS::SecretsManager::Secret": "secret",
    "AWS::KMS::Key": "encryption key",
    "AWS::EC2::KeyPair": "SSH key pair",
    "AWS::S3::Bucket": "bucket of etcd's snapshots",
    _ISSUER_BUCKET: "bucket of the documents by which AWS checks service-account tokens",
    "AWS::CloudFront::Distribution": "CloudFront distribution of these documents",
    "AWS::IAM::OIDCProvider": "OIDC provider for service-account tokens",
    _REPOSITORY: "repository for images",
    _PUSH_PROVIDER: "OIDC provider of who pushes images",
    "AWS::EC2::FlowLog": "flow log of the VPC",
    "AWS::Logs::LogGroup": "log group of the flow log",
    "AWS::Route53::HostedZone": "hosted zone of the API's name",
    "AWS::Route53::RecordSet": "DNS record of the API",
}
_COMPONENT_DETAILS = {
    _RESERVATION: "for its instances only",
    _REPOSITORY: "each GB of images is billed",
    _PUSH_PROVIDER: "stays when the cluster is deleted",
    "AWS::Logs::LogGroup": "stays when the cluster is deleted",
    "AWS::S3::Bucket": "stays when the cluster is deleted",
    "AWS::CloudFront::Distribution": "no charge by the hour; the few requests are billed",
    _NAT_ELASTIC_IP: "under which others see the instances",
    _GATEWAY_ENDPOINT: "for S3, free of charge",
    _INTERFACE_ENDPOINT: "for AWS services at private addresses",
}


@dataclass(frozen=True)
class _InstanceGroup:
    """An Auto Scaling group of a new cluster: of one master, a node group, or the bastion.

    Attributes:
        id_prefix: start of the logical ids of the group's resources.
        settings: the settings of its instances in the cluster file.
    """

    kind: Literal["master", "node", "bastion"]
    id_prefix: str
    settings: Machine

    @property
    def node_group(self) -> NodeGroup | None:
        """The node group; None if it is the group of a master or of the bastion."""
        return self.settings if isinstance(self.settings, NodeGroup) else None

    @property
    def title(self) -> str:
        """What the costs call the group."""
        if self.node_group:
            return f"group {self.node_group.name}"
        return "bastion" if self.kind == "bastion" else "masters"


@dataclass
class _Usage:
    """What is billed by the hour or month, collected while the components of a new cluster are listed.

    Attributes:
        count_by_instance_type: number of instances by instance type; for spot instances, ` (spot)` follows the type.
        groups_by_instance_type: by the same key, the node groups (or `masters`, or `bastion`) that use the instance
            type.
        gib_by_volume_type: GiB of EBS volumes by volume type.
        api_addresses: number of public IPv4 addresses of the API's load balancer.
        node_addresses: number of public IPv4 addresses of nodes.
        endpoint_interfaces: number of network interfaces of interface endpoints: one in each zone of each.
        has_further_volumes: whether nodes have volumes beside their root volumes.
    """

    count_by_instance_type: Counter[str] = field(default_factory=Counter)
    groups_by_instance_type: dict[str, list[str]] = field(default_factory=dict)
    gib_by_volume_type: Counter[str] = field(default_factory=Counter)
    api_addresses: int = 0
    node_addresses: int = 0
    endpoint_interfaces: int = 0
    has_further_volumes: bool = False


def summarize_creation(cluster: Cluster, resources: Mapping[str, TemplatePart]) -> CreationSummary:
    """Return the components and billed items of a new cluster.

    Args:
        resources: the evaluated resources of its templates by logical id; known values take precedence over the cluster
            file.
    """
    usage = _Usage()
    components = [
        _add_instances(cluster, instance_group, resources, usage) for instance_group in _instance_groups(cluster)
    ]
    for logical_id, resource in resources.items():
        kind, properties = resource["Type"], _properties(resources, logical_id)
        if kind == "AWS::EC2::Volume":
            master_volume = cluster.control_plane.volume
            volume_type = str(known_value(properties.get("VolumeType")) or master_volume.type)
            usage.gib_by_volume_type[volume_type] += _to_int(properties.get("Size")) or master_volume.size
        elif kind == LOAD_BALANCER and properties.get("Scheme") == "internet-facing":
            # An internet-facing load balancer has a public address in each zone.
            usage.api_addresses += len(properties.get("Subnets", ()))
        elif kind == VPC_ENDPOINT and properties.get("VpcEndpointType") == "Interface":
            usage.endpoint_interfaces += len(properties.get("SubnetIds", ()))
    count_by_kind = Counter(_component_kind(cluster, resources, logical_id) for logical_id in resources)
    labels = dict(_COMPONENT_LABELS)
    if count_by_kind[LOAD_BALANCER]:
        # Behind a load balancer, masters use their Elastic IPs only to reach the internet.
        labels[_ELASTIC_IP] = "public address of a master (Elastic IP)"
    components += [
        ComponentCount(count_by_kind[kind], what=label, detail=_COMPONENT_DETAILS.get(kind, ""))
        for kind, label in labels.items()
        if count_by_kind[kind]
    ]
    return CreationSummary(items=_merge_equal_components(components), costs=tuple(_costs(usage, count_by_kind)))


def _component_kind(cluster: Cluster, resources: Mapping[str, TemplatePart], logical_id: str) -> str:
    """Return the CloudFormation type of a new resource, or what it is if its type has several kinds of components."""
    resource_type = str(resources[logical_id]["Type"])
    if resource_type == _ELASTIC_IP:
        zonal = ZonalId.parse(logical_id)
        if logical_id == BASTION_ELASTIC_IP:
            return _BASTION_ELASTIC_IP
        return _NAT_ELASTIC_IP if zonal and zonal.kind == "NatElasticIp" else _ELASTIC_IP
    if resource_type == "AWS::EC2::Subnet" and is_private(cluster):
        subnet = SubnetId.parse(logical_id)
        return _PUBLIC_SUBNET if subnet and subnet.is_public else _PRIVATE_SUBNET
    if logical_id == ISSUER_BUCKET:
        return _ISSUER_BUCKET
    if resource_type == "AWS::IAM::OIDCProvider" and RegistryId.parse(logical_id):
        return _PUSH_PROVIDER
    if resource_type == VPC_ENDPOINT:
        is_interface = _properties(resources, logical_id).get("VpcEndpointType") == "Interface"
        return _INTERFACE_ENDPOINT if is_interface else _GATEWAY_ENDPOINT
    return resource_type


@dataclass(frozen=True)
class _Launches:
    """The instances that an Auto Scaling group launches when it is created.

    Attributes:
        type: their instance type, or several in words.
        is_spot: whether all of them are spot instances.
    """

    type: str
    count: int
    spot_count: int
    is_spot: bool


def _add_instances(
    cluster: Cluster, instance_group: _InstanceGroup, resources: Mapping[str, TemplatePart], usage: _Usage
) -> ComponentCount:
    """Add the instances of an Auto Scaling group to the usage, and return them as a component."""
    node_group = instance_group.node_group
    template_properties = _properties(resources, launch_template_id(instance_group.id_prefix))
    launch_template_data = template_properties.get("LaunchTemplateData", {})
    group_properties = _properties(resources, auto_scaling_group_id(instance_group.id_prefix))
    launches = _launches(cluster, instance_group, launch_template_data, group_properties)
    _add_types(usage, instance_group, launches)
    _add_volumes(usage, instance_group, launch_template_data, launches.count)
    if node_group and node_group.public_ip:
        usage.node_addresses += launches.count
    details = [launches.type]
    if node_group:
        details.append(f"group {node_group.name}")
    if launches.is_spot:
        details.append("spot")
    elif launches.spot_count:
        details.append(f"{launches.spot_count} of them spot")
    max_size = _to_int(group_properties.get("MaxSize")) or (node_group.max_size if node_group else 1)
    if max_size > launches.count:
        details.append(f"up to {max_size}")
    return ComponentCount(launches.count, what=instance_group.kind, detail=", ".join(details))


def _launches(
    cluster: Cluster, instance_group: _InstanceGroup, launch_template_data: TemplatePart, group_properties: TemplatePart
) -> _Launches:
    node_group = instance_group.node_group
    # The cluster file's value, if the template's is not known.
    known_type = known_value(launch_template_data.get("InstanceType"))
    instance_type = str(known_type or instance_group.settings.instance_type)
    count = _initial_size(group_properties, node_group)
    is_spot = bool(launch_template_data.get("InstanceMarketOptions"))
    spot_count = count if is_spot else 0
    policy = group_properties.get("MixedInstancesPolicy", {})
    if node_group and policy:
        if node_group.instance_types or node_group.instance_requirements:
            instance_type = type_list(types_of(cluster, node_group))
        distribution = policy.get("InstancesDistribution", {})
        spot_count = count - on_demand_share(count, distribution)
        # A group that starts without instances is named after the first one that it will launch.
        is_spot = on_demand_share(max(count, 1), distribution) == 0
    return _Launches(instance_type, count, spot_count, is_spot)


def _add_types(usage: _Usage, instance_group: _InstanceGroup, launches: _Launches) -> None:
    count_by_key = {launches.type: launches.count - launches.spot_count, f"{launches.type} (spot)": launches.spot_count}
    for key, count in count_by_key.items():
        # A group without instances is named with the type that it will launch.
        if count or (key == launches.type) != launches.is_spot:
            usage.count_by_instance_type[key] += count
            usage.groups_by_instance_type.setdefault(key, []).append(instance_group.title)


def _add_volumes(usage: _Usage, group: _InstanceGroup, launch_template_data: TemplatePart, count: int) -> None:
    block_devices = launch_template_data.get("BlockDeviceMappings", ())
    root_volume: TemplatePart = block_devices[0].get("Ebs", {}) if block_devices else {}
    volume_type = str(known_value(root_volume.get("VolumeType")) or group.settings.root_volume.type)
    volume_size = _to_int(root_volume.get("VolumeSize")) or group.settings.root_volume.size
    usage.gib_by_volume_type[volume_type] += count * volume_size
    for volume in group.node_group.volumes if group.node_group else ():
        usage.gib_by_volume_type[volume.type] += count * volume.size
        usage.has_further_volumes = True


def _merge_equal_components(components: Iterable[ComponentCount]) -> tuple[ComponentCount, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    for component in components:
        counts[component.what, component.detail] += component.count
    return tuple(ComponentCount(count, what, detail) for (what, detail), count in counts.items())


# Kind of component, unit in which it is billed, name of the billed item, and what else is charged.
# Amazon VPC pricing: a NAT gateway is charged by the hour and by GB.
_COSTS_BEFORE_ENDPOINTS = (
    (LOAD_BALANCER, "load balancer", "Elastic Load Balancing", ""),
    (_NAT_GATEWAY, "gateway", "NAT", "each by the hour, and by GB"),
    (_RESERVATION, "reservation", UNUSED_CAPACITY, "as much as the instance, while none runs in it"),
    # Amazon CloudWatch pricing: vended logs are charged by GB, whether they go to CloudWatch Logs or to S3.
    ("AWS::EC2::FlowLog", "flow log", "vended logs", "by GB delivered, and by GB stored"),
)
_COSTS_AFTER_ENDPOINTS = (
    ("AWS::SecretsManager::Secret", "secret", "Secrets Manager", ""),
    ("AWS::KMS::Key", "key", "KMS", ""),
    ("AWS::Route53::HostedZone", "zone", "Route 53", ""),
)


def _costs(usage: _Usage, count_by_kind: Mapping[str, int]) -> Iterator[Cost]:
    """Yield what AWS charges for: instances, storage, public addresses, and resources with a price of their own.

    Args:
        count_by_kind: number of resources by CloudFormation type or kind of component.
    """
    yield from _instance_and_volume_costs(usage)
    yield from _address_costs(usage, count_by_kind)
    yield from _listed_costs(_COSTS_BEFORE_ENDPOINTS, count_by_kind)
    if usage.endpoint_interfaces:
        # AWS PrivateLink pricing: an interface endpoint is charged by the hour in each zone, and by GB.
        endpoints = pluralize(count_by_kind.get(_INTERFACE_ENDPOINT, 0), "interface endpoint")
        detail = f"{endpoints}, in each zone by the hour, and by GB"
        yield Cost(usage.endpoint_interfaces, "endpoint", what="PrivateLink", detail=detail)
    yield from _listed_costs(_COSTS_AFTER_ENDPOINTS, count_by_kind)


def _instance_and_volume_costs(usage: _Usage) -> Iterator[Cost]:
    for instance_type, count in usage.count_by_instance_type.items():
        if count:
            group_names = dict.fromkeys(usage.groups_by_instance_type[instance_type])
            yield Cost(count, "instance", what=instance_type, detail=", ".join(group_names))
    volume_users = "root volumes and the masters' data"
    if usage.has_further_volumes:
        volume_users = "root volumes, further volumes of nodes, and the masters' data"
    for volume_type, gib in usage.gib_by_volume_type.items():
        if gib:
            yield Cost(gib, "GiB", what=f"{volume_type} volumes", detail=volume_users)


def _address_costs(usage: _Usage, count_by_kind: Mapping[str, int]) -> Iterator[Cost]:
    # Amazon VPC pricing: every public IPv4 address is charged, in use or not, Elastic or an instance's own.
    elastic_ips = count_by_kind.get(_ELASTIC_IP, 0)
    has_load_balancer = bool(count_by_kind.get(LOAD_BALANCER))
    count_by_owner = {
        "the masters'": elastic_ips if has_load_balancer else 0,
        "the API's": usage.api_addresses if has_load_balancer else elastic_ips,
        "the bastion's": count_by_kind.get(_BASTION_ELASTIC_IP, 0),
        "the NAT gateways'": count_by_kind.get(_NAT_ELASTIC_IP, 0),
        "the nodes'": usage.node_addresses,
    }
    owners = [owner for owner, count in count_by_owner.items() if count]
    if owners:
        yield Cost(sum(count_by_owner.values()), "address", what="public IPv4", detail=join_and(owners))


def _listed_costs(
    billed_kinds: Iterable[tuple[str, str, str, str]], count_by_kind: Mapping[str, int]
) -> Iterator[Cost]:
    for kind, unit, label, detail in billed_kinds:
        if count_by_kind.get(kind):
            yield Cost(count_by_kind[kind], unit, what=label, detail=detail)


def _instance_groups(cluster: Cluster) -> Iterator[_InstanceGroup]:
    """Yield the Auto Scaling groups: each master's, each node group's, then the bastion's."""
    for slot in cluster.slots:
        yield _InstanceGroup("master", master_prefix(slot.letter), cluster.control_plane)
    for node_group in cluster.node_groups:
        yield _InstanceGroup("node", node_group_prefix(node_group.name), node_group)
    if cluster.bastion:
        yield _InstanceGroup("bastion", BASTION_PREFIX, cluster.bastion)


def _initial_size(group_properties: TemplatePart, node_group: NodeGroup | None) -> int:
    """Return the initial number of instances of an Auto Scaling group.

    Args:
        node_group: the node group; None for the group of a master or the bastion, which has one instance.
    """
    if node_group is None:
        return 1
    for size in (group_properties.get("DesiredCapacity"), group_properties.get("MinSize"), node_group.desired_size):
        number = _to_int(size)
        if number is not None:
            return number
    return node_group.min_size


def _properties(resources: Mapping[str, TemplatePart], logical_id: str) -> TemplatePart:
    properties: TemplatePart = resources.get(logical_id, {}).get("Properties", {})
    return properties


def _to_int(value: object) -> int | None:
    return int(str(value)) if str(value).isdecimal() else None
