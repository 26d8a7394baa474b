"""What an update adds to, and takes from, what costs money for as long as it exists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cfngen.deploy.preview.plan import Cost
from cfngen.deploy.quotas.demand import BALANCER, Demand

_PRICED = (
    (BALANCER, "load balancer", "Elastic Load Balancing"),
    ("AWS::EC2::NatGateway", "gateway", "NAT"),
    ("AWS::SecretsManager::Secret", "secret", "Secrets Manager"),
    ("AWS::KMS::Key", "key", "KMS"),
)


def difference(before: Demand, after: Demand) -> tuple[Cost, ...]:
    """Return the difference between what a cluster has and what it will have.

    Groups count with the number of instances that they start with: what an autoscaler makes of that comes with use.

    Args:
        before: what it takes now.
        after: what it will take.
    """
    return tuple(_differences(before, after))


def _differences(before: Demand, after: Demand) -> Iterator[Cost]:
    for kind, number in _changes(_instances(before), _instances(after)):
        yield Cost(number, "instance", kind)
    for kind, size in _changes(Counter(before.storage), Counter(after.storage)):
        yield Cost(size, "GiB", f"{kind} volumes")
    # Amazon VPC pricing: every public IPv4 address is charged, in use or not, Elastic or an instance's own.
    addresses = [each.resources.get("AWS::EC2::EIP", 0) + each.addresses for each in (before, after)]
    if addresses[0] != addresses[1]:
        yield Cost(addresses[1] - addresses[0], "address", "public IPv4")
    for resource, unit, what in _PRICED:
        number = after.resources.get(resource, 0) - before.resources.get(resource, 0)
        if number:
            yield Cost(number, unit, what)


def _instances(needs: Demand) -> Counter[str]:
    found: Counter[str] = Counter()
    for instance in needs.instances:
        found[f"{instance.type} (spot)" if instance.spot else instance.type] += instance.count
    return found


def _changes(before: Counter[str], after: Counter[str]) -> Iterator[tuple[str, int]]:
    for kind in sorted(before.keys() | after.keys()):
        if before[kind] != after[kind]:
            yield kind, after[kind] - before[kind]
