"""The components and billed items of a new cluster, from its change set, in which parameters have their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from cfngen.cluster.logical_ids import auto_scaling_group_id, launch_template_id, master_prefix, node_group_prefix
from cfngen.cluster.model import Cluster, NodeGroup
from cfngen.deploy.aws_types import TemplatePart
from cfngen.deploy.preview.bill_of_materials import Cost, Creation, Item
from cfngen.deploy.preview.change_set_reading import UNKNOWN, ChangeSet, ResourceChange

# Resources that are listed by type, in this order.
_LOAD_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
_ITEM_LABELS = {
    "AWS::EC2::VPC": "VPC",
    "AWS::EC2::Subnet": "subnet",
    "AWS::EC2::RouteTable": "route table",
    "AWS::EC2::EIP": "public address of the API (Elastic IP)",
    _LOAD_BALANCER: "network load balancer of the API",
    "AWS::EC2::SecurityGroup": "security group",
    "AWS::IAM::Role": "IAM role",
    "AWS::SecretsManager::Secret": "secret",
    "AWS::KMS::Key": "encryption key",
    "AWS::EC2::KeyPair": "SSH key pair",
    "AWS::S3::Bucket": "bucket of etcd's snapshots",
}
_ITEM_DETAILS = {"AWS::S3::Bucket": "stays when the cluster is deleted"}


def creation(cluster: Cluster, root: ChangeSet) -> Creation:
    """Return the components and billed items of a new cluster.

    Args:
        cluster: the cluster.
        root: the change set of its root; values in it take precedence over those of the cluster file.
    """
    entries = {entry.logical_id: entry for entry in _all_entries(root)}
    gib_by_volume_type: Counter[str] = Counter()
    count_by_instance_type: Counter[str] = Counter()
    users_by_instance_type: dict[str, list[str]] = {}
    items: list[Item] = []
    public_addresses = 0

    for prefix, role, group in _instance_groups(cluster):
        launch_template_data = _properties(entries, launch_template_id(prefix)).get("LaunchTemplateData", {})
        group_properties = _properties(entries, auto_scaling_group_id(prefix))
        source = group or cluster.control_plane
        kind = str(_known_value(launch_template_data.get("InstanceType")) or source.instance_type)
        count = _initial_size(group_properties, group)
        max_size = _to_int(group_properties.get("MaxSize")) or (group.max_size if group else 1)
        is_spot = bool(launch_template_data.get("InstanceMarketOptions"))
        details = [kind]
        if group:
            details.append(f"group {group.name}")
        if is_spot:
            details.append("spot")
        if max_size > count:
            details.append(f"up to {max_size}")
        items.append(Item(count, role, ", ".join(details)))
        name = f"{kind} (spot)" if is_spot else kind
        count_by_instance_type[name] += count
        users_by_instance_type.setdefault(name, []).append(f"group {group.name}" if group else "masters")
        ebs: TemplatePart = next(
            (
                block_device_mapping.get("Ebs", {})
                for block_device_mapping in launch_template_data.get("BlockDeviceMappings", ())
            ),
            {},
        )
        size = _to_int(ebs.get("VolumeSize")) or source.root_volume.size
        gib_by_volume_type[str(_known_value(ebs.get("VolumeType")) or source.root_volume.type)] += count * size
        public_addresses += count if group and group.public_ip else 0
    for entry in entries.values():
        if entry.type == "AWS::EC2::Volume":
            properties = _properties(entries, entry.logical_id)
            volume = cluster.control_plane.volume
            kind = str(_known_value(properties.get("VolumeType")) or volume.type)
            gib_by_volume_type[kind] += _to_int(properties.get("Size")) or volume.size
    counts_by_type = Counter(entry.type for entry in entries.values())
    labels = dict(_ITEM_LABELS)
    if counts_by_type[_LOAD_BALANCER]:
        # Behind a load balancer, masters use their Elastic IPs only to reach the internet.
        labels["AWS::EC2::EIP"] = "public address of a master (Elastic IP)"
    items += [
        Item(counts_by_type[kind], label, _ITEM_DETAILS.get(kind, ""))
        for kind, label in labels.items()
        if counts_by_type[kind]
    ]
    # An internet-facing load balancer has a public address in each zone.
    public_addresses += sum(
        len(_properties(entries, entry.logical_id).get("Subnets", ()))
        for entry in entries.values()
        if entry.type == _LOAD_BALANCER and _properties(entries, entry.logical_id).get("Scheme") == "internet-facing"
    )
    return Creation(
        _merge_items(items),
        tuple(
            _costs(count_by_instance_type, users_by_instance_type, gib_by_volume_type, public_addresses, counts_by_type)
        ),
    )


def _merge_items(items: list[Item]) -> tuple[Item, ...]:
    """Return the items with equal ones, such as masters, counted together."""
    counted: Counter[tuple[str, str]] = Counter()
    for item in items:
        counted[item.what, item.detail] += item.count
    return tuple(Item(count, *label) for label, count in counted.items())


def _costs(
    count_by_instance_type: Mapping[str, int],
    users_by_instance_type: Mapping[str, list[str]],
    gib_by_volume_type: Mapping[str, int],
    other_addresses: int,
    counts_by_type: Mapping[str, int],
) -> Iterator[Cost]:
    for kind, count in count_by_instance_type.items():
        if count:
            yield Cost(count, "instance", kind, ", ".join(dict.fromkeys(users_by_instance_type[kind])))
    for kind, size in gib_by_volume_type.items():
        if size:
            yield Cost(size, "GiB", f"{kind} volumes", "root volumes and the masters' data")
    # Amazon VPC pricing: every public IPv4 address is charged, in use or not, Elastic or an instance's own.
    elastic_ips = counts_by_type.get("AWS::EC2::EIP", 0)
    if elastic_ips + other_addresses:
        if counts_by_type.get(_LOAD_BALANCER):
            detail = "the masters', the API's and the nodes'"
        elif elastic_ips and other_addresses:
            detail = "the API's and the nodes'"
        else:
            detail = "the API's" if elastic_ips else "the nodes'"
        yield Cost(elastic_ips + other_addresses, "address", "public IPv4", detail)
    for kind, unit, label in (
        (_LOAD_BALANCER, "load balancer", "Elastic Load Balancing"),
        ("AWS::SecretsManager::Secret", "secret", "Secrets Manager"),
        ("AWS::KMS::Key", "key", "KMS"),
    ):
        if counts_by_type.get(kind):
            yield Cost(counts_by_type[kind], unit, label)


def _instance_groups(cluster: Cluster) -> Iterator[tuple[str, str, NodeGroup | None]]:
    """Yield the logical id prefix of each Auto Scaling group, `master` or `node`, and its node group."""
    for slot in cluster.slots:
        yield master_prefix(slot.letter), "master", None
    for group in cluster.node_groups:
        yield node_group_prefix(group.name), "node", group


def _initial_size(sizes: TemplatePart, group: NodeGroup | None) -> int:
    """Return the initial number of instances of an Auto Scaling group; 1 for a master's group (`group` is None)."""
    if group is None:
        return 1
    for value in (sizes.get("DesiredCapacity"), sizes.get("MinSize"), group.desired_size):
        number = _to_int(value)
        if number is not None:
            return number
    return group.min_size


def _all_entries(description: ChangeSet) -> Iterator[ResourceChange]:
    yield from description.entries.values()
    for child in description.children.values():
        yield from _all_entries(child)


def _properties(entries: Mapping[str, ResourceChange], logical_id: str) -> TemplatePart:
    entry = entries.get(logical_id)
    properties = entry.after.get("Properties", {}) if entry else {}
    return properties if isinstance(properties, Mapping) else {}


def _known_value(value: object) -> object:
    """Return the value; None if CloudFormation knows it only once the change set is executed."""
    return None if isinstance(value, str) and UNKNOWN in value else value


def _to_int(value: object) -> int | None:
    """Return a decimal text as an integer; None if it is not one."""
    return int(str(value)) if str(value).isdecimal() else None
