"""Who may come in from outside, as rules of security groups: how many there are, and which group holds which.

EC2 counts the rules of a group in each direction, a prefix list as its greatest number of entries, and the groups of a
network interface; groups times rules must not exceed 1,000 ("Amazon VPC quotas", Amazon VPC User Guide, and "Security
group rules limits" of prefix lists there, November 2026). What does not fit into the one group that masters, nodes or
the load balancer have goes into further ones, in the order of the cluster file: what is added at the end of a list
moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Literal, NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.network import Api, PrefixList, Ssh

Holder = Literal["Master", "Node", "ApiLoadBalancer"]
HOLDERS: tuple[Holder, ...] = ("Master", "Node", "ApiLoadBalancer")
SSH_PORT = 22
MOST_RULES_OF_INTERFACE = 1000
# Rules of the group itself, between masters, nodes and the load balancer, those that add-ons bring among them; and what
# an update needs for a while: CloudFormation adds new rules before it takes old ones away.
OWN_RULES, SPARE = 14, 10


class Source(NamedTuple):
    """A range or a prefix list that may reach a port.

    Attributes:
        purpose: `Api` or `Ssh`.
        port: TCP port.
        origin: the range, or the prefix list.
    """

    purpose: Literal["Api", "Ssh"]
    port: int
    origin: IPv4Network | PrefixList

    @property
    def weight(self) -> int:
        """As how many rules of a security group it counts."""
        return self.origin.max_entries if isinstance(self.origin, PrefixList) else 1


def sources(cluster: Cluster, holder: Holder) -> Iterator[Source]:
    """Yield who may come in through the security groups of masters, nodes or the API's load balancer.

    A range that the console asks for counts too, and is not among them.
    """
    several = cluster.control_plane.count > 1
    if holder == ("ApiLoadBalancer" if several else "Master"):
        yield from (Source("Api", cluster.api.port, origin) for origin in _origins(cluster.api))
    if holder != "ApiLoadBalancer":
        yield from (Source("Ssh", SSH_PORT, origin) for origin in _origins(cluster.ssh))


def _origins(section: Api | Ssh) -> list[IPv4Network | PrefixList]:
    return [*section.allowed_cidrs, *section.allowed_prefix_lists]


def room(cluster: Cluster, position: int) -> int:
    """Return how many rules for sources a security group takes; the first, of position 0, has others besides."""
    quota = cluster.network.quotas.rules_per_security_group
    return quota - SPARE - (OWN_RULES if position == 0 else 0)


def spread(cluster: Cluster, holder: Holder) -> tuple[tuple[Source, ...], ...]:
    """Return the sources of each security group in turn; there is one group at least, which may hold none of them.

    A source that no group has room for gets one for itself; `cfngen.cluster.checks.sources` refuses it.
    """
    groups: list[list[Source]] = [[]]
    remaining = room(cluster, 0)
    for source in sources(cluster, holder):
        if source.weight > remaining and (groups[-1] or len(groups) == 1):
            groups.append([])
            remaining = room(cluster, len(groups) - 1)
        groups[-1].append(source)
        remaining -= source.weight
    return tuple(map(tuple, groups))
