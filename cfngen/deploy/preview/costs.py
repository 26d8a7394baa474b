"""The billed items that an update adds to a cluster, or removes from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from cfngen.deploy.preview.bill_of_materials import UNUSED_CAPACITY, Cost
from cfngen.deploy.quotas.demand import LOAD_BALANCER, Demand

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

    Args:
        current: the current resources of the cluster.
        planned: its resources after the update.
    """
    return tuple(_cost_differences(current, planned))


def _cost_differences(current: Demand, planned: Demand) -> Iterator[Cost]:
    """Yield each billed item of which an update changes the quantity; see `cost_differences`."""
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
    """Return the number of public IPv4 addresses, including Elastic IPs."""
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
