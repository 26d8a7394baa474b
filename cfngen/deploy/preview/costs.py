"""The billed items that an update adds to a cluster, or removes from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cfngen.deploy.preview.bill_of_materials import Cost
from cfngen.deploy.quotas.demand import LOAD_BALANCER, Demand

_PRICED_RESOURCES = (
    (LOAD_BALANCER, "load balancer", "Elastic Load Balancing"),
    ("AWS::EC2::NatGateway", "gateway", "NAT"),
    ("AWS::SecretsManager::Secret", "secret", "Secrets Manager"),
    ("AWS::KMS::Key", "key", "KMS"),
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
    for kind, count in _count_differences(_count_by_type(current), _count_by_type(planned)):
        yield Cost(count, "instance", kind)
    for kind, size in _count_differences(Counter(current.storage), Counter(planned.storage)):
        yield Cost(size, "GiB", f"{kind} volumes")
    # Amazon VPC pricing: every public IPv4 address is charged, in use or not, Elastic or an instance's own.
    current_addresses, planned_addresses = (
        demand.resources.get("AWS::EC2::EIP", 0) + demand.addresses for demand in (current, planned)
    )
    if current_addresses != planned_addresses:
        yield Cost(planned_addresses - current_addresses, "address", "public IPv4")
    for resource, unit, label in _PRICED_RESOURCES:
        count = planned.resources.get(resource, 0) - current.resources.get(resource, 0)
        if count:
            yield Cost(count, unit, label)


def _count_by_type(demand: Demand) -> Counter[str]:
    counts: Counter[str] = Counter()
    for instance in demand.instances:
        counts[f"{instance.type} (spot)" if instance.spot else instance.type] += instance.count
    return counts


def _count_differences(current: Counter[str], planned: Counter[str]) -> Iterator[tuple[str, int]]:
    for kind in sorted(current.keys() | planned.keys()):
        if current[kind] != planned[kind]:
            yield kind, planned[kind] - current[kind]
