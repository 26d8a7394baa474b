"""What an update adds to, and takes from, what costs money for as long as it exists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cfngen.deploy.preview.plan import Cost
from cfngen.deploy.quotas.demand import BALANCER, Demand

_PRICED_RESOURCES = (
    (BALANCER, "load balancer", "Elastic Load Balancing"),
    ("AWS::EC2::NatGateway", "gateway", "NAT"),
    ("AWS::SecretsManager::Secret", "secret", "Secrets Manager"),
    ("AWS::KMS::Key", "key", "KMS"),
)


def difference(current: Demand, planned: Demand) -> tuple[Cost, ...]:
    """Return the difference between what a cluster has and what it will have.

    Groups count with the number of instances that they start with: what an autoscaler makes of that comes with use.

    Args:
        before: what it takes now.
        after: what it will take.
    """
    return tuple(_differences(current, planned))


def _differences(current: Demand, planned: Demand) -> Iterator[Cost]:
    for kind, count in _changes(_instances(current), _instances(planned)):
        yield Cost(count, "instance", kind)
    for kind, size in _changes(Counter(current.storage), Counter(planned.storage)):
        yield Cost(size, "GiB", f"{kind} volumes")
    # Amazon VPC pricing: every public IPv4 address is charged, in use or not, Elastic or an instance's own.
    addresses = [demand.resources.get("AWS::EC2::EIP", 0) + demand.addresses for demand in (current, planned)]
    if addresses[0] != addresses[1]:
        yield Cost(addresses[1] - addresses[0], "address", "public IPv4")
    for resource, unit, label in _PRICED_RESOURCES:
        count = planned.resources.get(resource, 0) - current.resources.get(resource, 0)
        if count:
            yield Cost(count, unit, label)


def _instances(demand: Demand) -> Counter[str]:
    counts: Counter[str] = Counter()
    for instance in demand.instances:
        counts[f"{instance.type} (spot)" if instance.spot else instance.type] += instance.count
    return counts


def _changes(current: Counter[str], planned: Counter[str]) -> Iterator[tuple[str, int]]:
    for kind in sorted(current.keys() | planned.keys()):
        if current[kind] != planned[kind]:
            yield kind, planned[kind] - current[kind]
