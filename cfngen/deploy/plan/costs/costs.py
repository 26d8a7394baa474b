"""The data of costs and components, and what AWS charges for while a cluster is paused or after an update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.references import known_id
from cfngen.deploy.aws import volumes
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.inventory import Inventory, read_inventory
from cfngen.deploy.aws.launched_versions import find_capacity_reservations
from cfngen.deploy.aws.load_balancers import LoadBalancerView, find_load_balancers, find_orphaned_load_balancers
from cfngen.deploy.aws.network import count_endpoint_interfaces
from cfngen.deploy.aws.snapshots import BUCKET_OUTPUT
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Notice, Report
from cfngen.deploy.preflight.quotas.demand import LOAD_BALANCER, Demand
from cfngen.text import join_and, pluralize


@dataclass(frozen=True)
class ComponentCount:
    """A kind of component that a new cluster consists of, and how many there are.

    Attributes:
        count: how many components of this kind.
        what: the kind, e.g. `master`, `node`, `VPC`.
        detail: further information, e.g. `t3.medium, group gpu`; may be empty.
    """

    count: int
    what: str
    detail: str = ""


@dataclass(frozen=True)
class Cost:
    """Something that AWS charges for as long as it exists; prices are not included.

    Attributes:
        quantity: how much.
        unit: e.g. `instance`, `GiB`, `address`.
        what: the billed item, e.g. `t3.medium`, `gp3 volume`.
        detail: what the item is used for; may be empty.
    """

    quantity: int
    unit: str
    what: str
    detail: str = ""


@dataclass(frozen=True)
class CreationSummary:
    """What a deployment creates if the cluster does not exist yet.

    Attributes:
        items: what it consists of.
        costs: what AWS charges for as long as it exists; traffic, requests and snapshots are not included.
    """

    items: tuple[ComponentCount, ...] = ()
    costs: tuple[Cost, ...] = ()


_LOAD_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
# CloudFormation type, unit in which it is billed, and name of the billed item.
_RESOURCES_BILLED_BY_NUMBER = (
    ("AWS::EC2::NatGateway", "gateway", "NAT"),
    ("AWS::SecretsManager::Secret", "secret", "Secrets Manager"),
    ("AWS::KMS::Key", "key", "KMS"),
    ("AWS::Route53::HostedZone", "zone", "Route 53"),
    ("AWS::EC2::CapacityReservation", "reservation", "capacity reservation"),
)


def read_remaining_costs(
    account: Account, stack: StackView, cluster: Cluster, report: Report
) -> tuple[Cost, ...] | None:
    """Return what AWS still charges for; None if it cannot be read, which is reported."""
    try:
        with translate_aws_errors():
            inventory = read_inventory(
                account,
                stack,
                cluster=cluster.name,
                vpc_id=known_id(cluster.network.vpc.id) or "",
                pod_cidr=str(cluster.network.pod_cidr),
            )
            return tuple(_find_costs(account, stack, inventory))
    except AwsError as error:
        report(Notice(f"what still costs money could not be counted: {error}", error.hint))
        return None


def _find_costs(account: Account, stack: StackView, inventory: Inventory) -> Iterator[Cost]:
    if inventory.unmanaged_instances:
        yield Cost(
            len(inventory.unmanaged_instances),
            "instance",
            what="EC2",
            detail=f"not of the cluster's groups: {join_and(sorted(inventory.unmanaged_instances))}",
        )
    yield from _volume_costs(account, inventory)
    yield from _snapshot_costs(account, inventory)
    load_balancers = _find_load_balancers(account, inventory)
    # Amazon VPC pricing: every public IPv4 address is charged, in use or not, Elastic or a load balancer's own.
    elastic_ips = len(inventory.existing_ids("AWS::EC2::EIP"))
    existing_ips = len({value for value in stack.values.values() if value.startswith("eipalloc-")})
    balancer_ips = sum(balancer.own_addresses for balancer in load_balancers)
    if address_count := elastic_ips + existing_ips + balancer_ips:
        elastic_text = pluralize(elastic_ips + existing_ips, "Elastic IP") if elastic_ips + existing_ips else ""
        detail = join_and([*filter(None, (elastic_text, f"{balancer_ips} of load balancers" if balancer_ips else ""))])
        yield Cost(address_count, "address", what="public IPv4", detail=detail)
    if load_balancers:
        own_count = len(inventory.existing_ids(_LOAD_BALANCER))
        of_kubernetes = len(load_balancers) - own_count
        detail = f"{of_kubernetes} made by Kubernetes" if of_kubernetes else ""
        yield Cost(len(load_balancers), "load balancer", what="Elastic Load Balancing", detail=detail)
    if endpoint_interfaces := count_endpoint_interfaces(account, inventory.existing_ids("AWS::EC2::VPCEndpoint")):
        detail = "interface endpoints, counted in each zone"
        yield Cost(endpoint_interfaces, "endpoint", what="PrivateLink", detail=detail)
    for resource_type, unit, label in _RESOURCES_BILLED_BY_NUMBER:
        if count := len(inventory.existing_ids(resource_type)):
            yield Cost(count, unit, what=label)
    named_reservations = find_capacity_reservations(account, inventory.existing_ids("AWS::EC2::LaunchTemplate"))
    if reservations := named_reservations - set(inventory.existing_ids("AWS::EC2::CapacityReservation")):
        detail = f"charged as if they were used: {join_and(sorted(reservations))}"
        yield Cost(len(reservations), "reservation", what="capacity reservation", detail=detail)
    if bucket := _find_bucket(stack, inventory):
        yield Cost(1, "bucket", what="S3", detail=f"etcd's snapshots, until they expire: {bucket}")


def _volume_costs(account: Account, inventory: Inventory) -> Iterator[Cost]:
    """Yield the GiB of volumes of the stacks and of PersistentVolumeClaims, by volume type."""
    claim_volumes = {volume.id for volume in volumes.find_claim_volumes(account, inventory)}
    stack_volumes = set(inventory.existing_ids("AWS::EC2::Volume"))
    gib_by_type: Counter[str] = Counter()
    claim_gib_by_type: Counter[str] = Counter()
    for volume in volumes.read_volumes(account, claim_volumes | stack_volumes).values():
        gib_by_type[volume.type] += volume.size
        if volume.id in claim_volumes:
            claim_gib_by_type[volume.type] += volume.size
    for volume_type, gib in sorted(gib_by_type.items()):
        claims = f", and {claim_gib_by_type[volume_type]} GiB of claims" if claim_gib_by_type[volume_type] else ""
        masters_gib = gib - claim_gib_by_type[volume_type]
        detail = f"{masters_gib} GiB of masters' data{claims}" if masters_gib else claims.removeprefix(", and ")
        yield Cost(gib, "GiB", what=f"{volume_type} volumes", detail=detail)


def _snapshot_costs(account: Account, inventory: Inventory) -> Iterator[Cost]:
    """Yield the number of EBS snapshots: of the masters' volumes, and of PersistentVolumeClaims."""
    snapshots = {snapshot.id: snapshot.gigabytes for snapshot in volumes.find_claim_snapshots(account, inventory)}
    taken = volumes.read_snapshots(account, inventory.ids("AWS::EC2::Volume"))
    snapshots |= {snapshot.id: snapshot.volume_size for snapshot in taken}
    if snapshots:
        detail = f"of volumes of {sum(snapshots.values())} GiB; billed by the stored data"
        yield Cost(len(snapshots), "snapshot", what="EBS", detail=detail)


def _find_load_balancers(account: Account, inventory: Inventory) -> tuple[LoadBalancerView, ...]:
    orphans = {orphan.id for orphan in find_orphaned_load_balancers(account, inventory)}  # target groups, too
    return find_load_balancers(account, orphans | set(inventory.existing_ids(_LOAD_BALANCER)))


def _find_bucket(stack: StackView, inventory: Inventory) -> str:
    return next(iter(inventory.existing_ids("AWS::S3::Bucket")), "") or stack.outputs.get(BUCKET_OUTPUT, "")


UNUSED_CAPACITY = "reserved capacity without an instance"
"""The billed item of capacity reservations: an instance in one is charged itself, and the reservation is not."""
# CloudFormation type, unit in which it is billed, and name of the billed item.
_PRICED_RESOURCES = (
    ("AWS::EC2::CapacityReservation", "reservation", UNUSED_CAPACITY),
    (LOAD_BALANCER, "load balancer", "Elastic Load Balancing"),
    ("AWS::EC2::NatGateway", "gateway", "NAT"),
    ("AWS::EC2::FlowLog", "flow log", "vended logs"),
    ("AWS::SecretsManager::Secret", "secret", "Secrets Manager"),
    ("AWS::KMS::Key", "key", "KMS"),
    ("AWS::Route53::HostedZone", "zone", "Route 53"),
)


def cost_differences(current: Demand, planned: Demand) -> tuple[Cost, ...]:
    """Return the billed items that an update adds (quantity above 0) or removes (quantity below 0).

    Auto Scaling groups count with their initial size; instances that an autoscaler adds are not included.
    """
    return tuple(_cost_differences(current, planned))


def _cost_differences(current: Demand, planned: Demand) -> Iterator[Cost]:
    for difference in _count_differences(_count_by_instance_type(current), _count_by_instance_type(planned)):
        yield Cost(difference.added, "instance", what=difference.key)
    for difference in _count_differences(Counter(current.gib_by_volume_type), Counter(planned.gib_by_volume_type)):
        yield Cost(difference.added, "GiB", what=f"{difference.key} volumes")
    # Amazon VPC pricing: every public IPv4 address is charged, in use or not, Elastic or an instance's own.
    added_addresses = _count_addresses(planned) - _count_addresses(current)
    if added_addresses:
        yield Cost(added_addresses, "address", what="public IPv4")
    for resource_type, unit, label in _PRICED_RESOURCES:
        current_count = current.count_by_resource_type.get(resource_type, 0)
        planned_count = planned.count_by_resource_type.get(resource_type, 0)
        if planned_count != current_count:
            yield Cost(planned_count - current_count, unit, what=label)
    # AWS PrivateLink pricing: an interface endpoint is charged by the hour in each zone.
    if planned.endpoint_interfaces != current.endpoint_interfaces:
        added_interfaces = planned.endpoint_interfaces - current.endpoint_interfaces
        yield Cost(added_interfaces, "endpoint", what="PrivateLink", detail="interface endpoints, counted in each zone")


def _count_addresses(demand: Demand) -> int:
    return demand.count_by_resource_type.get("AWS::EC2::EIP", 0) + demand.public_addresses


def _count_by_instance_type(demand: Demand) -> Counter[str]:
    """Return the number of instances by instance type; for spot instances, ` (spot)` follows the type."""
    counts: Counter[str] = Counter()
    for instances in demand.instances:
        key = f"{instances.label} (spot)" if instances.is_spot else instances.label
        counts[key] += instances.count
    return counts


class _CountDifference(NamedTuple):
    """A count that an update changes: what is counted, and how many are added (negative if they are removed)."""

    key: str
    added: int


def _count_differences(current: Counter[str], planned: Counter[str]) -> Iterator[_CountDifference]:
    """Yield the difference of each key whose planned count is not its current count, sorted by key."""
    for key in sorted(current.keys() | planned.keys()):
        if current[key] != planned[key]:
            yield _CountDifference(key, added=planned[key] - current[key])
