"""What a new cluster consists of and what of it costs money, as its change set says it with the values filled in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from cfngen.cluster.model import Cluster, NodeGroup
from cfngen.cluster.names import auto_scaling_group, group_id, slot_id
from cfngen.deploy.preview.change_set_reading import UNKNOWN, Description, Entry
from cfngen.deploy.preview.plan import Cost, Creation, Item

# What else is counted one by one, in the order in which a person thinks of it.
_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
_KINDS = {
    "AWS::EC2::VPC": "VPC",
    "AWS::EC2::Subnet": "subnet",
    "AWS::EC2::RouteTable": "route table",
    "AWS::EC2::EIP": "public address of the API (Elastic IP)",
    _BALANCER: "network load balancer of the API",
    "AWS::EC2::SecurityGroup": "security group",
    "AWS::IAM::Role": "IAM role",
    "AWS::SecretsManager::Secret": "secret",
    "AWS::KMS::Key": "encryption key",
    "AWS::EC2::KeyPair": "SSH key pair",
    "AWS::S3::Bucket": "bucket of etcd's snapshots",
}
_DETAILS = {"AWS::S3::Bucket": "stays when the cluster is deleted"}


def creation(cluster: Cluster, root: Description) -> Creation:
    """Return what a new cluster consists of.

    Args:
        cluster: the cluster.
        root: the change set of its root; values given at deployment count, not those of the cluster file.
    """
    made = {entry.logical_id: entry for entry in _entries(root)}
    volumes: Counter[str] = Counter()
    instances: Counter[str] = Counter()
    users: dict[str, list[str]] = {}
    items: list[Item] = []
    addresses = 0

    for prefix, what, group in _launched(cluster):
        data = _properties(made, f"{prefix}LaunchTemplate").get("LaunchTemplateData", {})
        sizes = _properties(made, auto_scaling_group(prefix))
        source = group or cluster.control_plane
        kind = str(_known(data.get("InstanceType")) or source.instance_type)
        number = _at_first(sizes, group)
        greatest = _whole(sizes.get("MaxSize")) or (group.max_size if group else 1)
        spot = bool(data.get("InstanceMarketOptions"))
        detail = [kind, *([f"group {group.name}"] if group else []), *(["spot"] if spot else [])]
        detail += [f"up to {greatest}"] if greatest > number else []
        items.append(Item(number, "node" if group else what, ", ".join(detail)))
        name = f"{kind} (spot)" if spot else kind
        instances[name] += number
        users.setdefault(name, []).append(f"group {group.name}" if group else "masters")
        ebs: Mapping[str, Any] = next(
            (block_device_mapping.get("Ebs", {}) for block_device_mapping in data.get("BlockDeviceMappings", ())), {}
        )
        size = _whole(ebs.get("VolumeSize")) or source.root_volume.size
        volumes[str(_known(ebs.get("VolumeType")) or source.root_volume.type)] += number * size
        addresses += number if group and group.public_ip else 0
    for entry in made.values():
        if entry.type == "AWS::EC2::Volume":
            properties = _properties(made, entry.logical_id)
            volume = cluster.control_plane.volume
            kind = str(_known(properties.get("VolumeType")) or volume.type)
            volumes[kind] += _whole(properties.get("Size")) or volume.size
    kinds = Counter(entry.type for entry in made.values())
    words = {**_KINDS, **({"AWS::EC2::EIP": "public address of a master (Elastic IP)"} if kinds[_BALANCER] else {})}
    items += [Item(kinds[kind], what, _DETAILS.get(kind, "")) for kind, what in words.items() if kinds[kind]]
    # An internet-facing load balancer has a public address in each zone.
    addresses += sum(
        len(_properties(made, entry.logical_id).get("Subnets", ()))
        for entry in made.values()
        if entry.type == _BALANCER and _properties(made, entry.logical_id).get("Scheme") == "internet-facing"
    )
    return Creation(_merged(items), tuple(_costs(instances, users, volumes, addresses, kinds)))


def _merged(items: list[Item]) -> tuple[Item, ...]:
    """Return items in which those that are alike, such as masters, are counted together."""
    counted: Counter[tuple[str, str]] = Counter()
    for each in items:
        counted[each.what, each.detail] += each.count
    return tuple(Item(number, *alike) for alike, number in counted.items())


def _costs(
    instances: Mapping[str, int],
    users: Mapping[str, list[str]],
    volumes: Mapping[str, int],
    addresses: int,
    kinds: Mapping[str, int],
) -> Iterator[Cost]:
    for kind, number in instances.items():
        if number:
            yield Cost(number, "instance", kind, ", ".join(dict.fromkeys(users[kind])))
    for kind, size in volumes.items():
        if size:
            yield Cost(size, "GiB", f"{kind} volumes", "root volumes and the masters' data")
    # Amazon VPC pricing: every public IPv4 address is charged, in use or not, Elastic or an instance's own.
    elastic = kinds.get("AWS::EC2::EIP", 0)
    if elastic + addresses:
        detail = "the API's" if not addresses else ("the API's and the nodes'" if elastic else "the nodes'")
        detail = "the masters', the API's and the nodes'" if kinds.get(_BALANCER) else detail
        yield Cost(elastic + addresses, "address", "public IPv4", detail)
    for kind, unit, what in (
        (_BALANCER, "load balancer", "Elastic Load Balancing"),
        ("AWS::SecretsManager::Secret", "secret", "Secrets Manager"),
        ("AWS::KMS::Key", "key", "KMS"),
    ):
        if kinds.get(kind):
            yield Cost(kinds[kind], unit, what)


def _launched(cluster: Cluster) -> Iterator[tuple[str, str, NodeGroup | None]]:
    """Return the prefix of the logical ids of everything that launches instances, what it is, and the node group."""
    for slot in cluster.slots:
        yield slot_id(slot.letter), "master", None
    for group in cluster.node_groups:
        yield group_id(group.name), "node", group


def _at_first(sizes: Mapping[str, Any], group: NodeGroup | None) -> int:
    if group is None:
        return 1
    for value in (sizes.get("DesiredCapacity"), sizes.get("MinSize"), group.desired_size):
        number = _whole(value)
        if number is not None:
            return number
    return group.min_size


def _entries(description: Description) -> Iterator[Entry]:
    yield from description.entries.values()
    for child in description.children.values():
        yield from _entries(child)


def _properties(made: Mapping[str, Entry], logical_id: str) -> Mapping[str, Any]:
    entry = made.get(logical_id)
    found = entry.after.get("Properties", {}) if entry else {}
    return found if isinstance(found, Mapping) else {}


def _known(value: Any) -> Any:
    return None if isinstance(value, str) and UNKNOWN in value else value


def _whole(value: Any) -> int | None:
    return int(value) if str(value).isdecimal() else None
