"""The sources that may reach the API and SSH from outside, and the security groups that hold their rules.

EC2 limits the rules of a security group in each direction (a prefix list counts as its maximum number of entries) and
the security groups of a network interface; groups times rules must not exceed 1,000 ("Amazon VPC quotas", Amazon VPC
User Guide, and "Security group rules limits" of prefix lists there, November 2026). Rules that do not fit into the
first security group of masters, nodes or the load balancer go into additional ones, in the order of the cluster file,
so that sources added at the end of a list do not move the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Literal, NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.network import Api, PrefixList, Ssh
from cfngen.cluster.topology import has_api_load_balancer

SecurityGroupRole = Literal["Master", "Node", "ApiLoadBalancer"]
SECURITY_GROUP_ROLES: tuple[SecurityGroupRole, ...] = ("Master", "Node", "ApiLoadBalancer")
SSH_PORT = 22
MAX_RULES_PER_INTERFACE = 1000
# cfngen's own rules in the first group, between masters, nodes and the load balancer, including those for add-ons.
CFNGEN_RULES = 14
# Rules kept free for updates, in which CloudFormation adds new rules before it removes old ones.
RESERVED_RULES = 10


class Source(NamedTuple):
    """A CIDR or a prefix list that may reach a port.

    Attributes:
        purpose: `Api` or `Ssh`.
        port: TCP port.
        origin: the CIDR or the prefix list.
    """

    purpose: Literal["Api", "Ssh"]
    port: int
    origin: IPv4Network | PrefixList

    @property
    def weight(self) -> int:
        """Number of rules that the source counts as; EC2 counts a prefix list's maximum number of entries."""
        return self.origin.max_entries if isinstance(self.origin, PrefixList) else 1


def sources(cluster: Cluster, role: SecurityGroupRole) -> Iterator[Source]:
    """Yield the sources for which the security groups of masters, nodes or the API's load balancer have rules.

    The range of the stack parameter ApiAllowedCidr is not yielded, although it needs a rule.
    """
    api_role = "ApiLoadBalancer" if has_api_load_balancer(cluster) else "Master"
    if role == api_role:
        yield from (Source("Api", cluster.api.port, origin) for origin in _origins(cluster.api))
    if role != "ApiLoadBalancer":
        yield from (Source("Ssh", SSH_PORT, origin) for origin in _origins(cluster.ssh))


def _origins(section: Api | Ssh) -> list[IPv4Network | PrefixList]:
    """Return the CIDRs, then the prefix lists, of the `api` or `ssh` section."""
    return [*section.allowed_cidrs, *section.allowed_prefix_lists]


def rules_that_fit(cluster: Cluster, position: int) -> int:
    """Return how many rules for sources fit into a security group; the first one (position 0) has other rules too."""
    quota = cluster.network.quotas.rules_per_security_group
    return quota - RESERVED_RULES - (CFNGEN_RULES if position == 0 else 0)


def sources_by_group(cluster: Cluster, role: SecurityGroupRole) -> tuple[tuple[Source, ...], ...]:
    """Return the sources of each security group, in order. The first group always exists and may have none.

    A source that is too large for any group gets a group of its own; `cfngen.cluster.checks.sources` refuses it.
    """
    groups: list[list[Source]] = [[]]
    remaining_rules = rules_that_fit(cluster, position=0)
    for source in sources(cluster, role):
        # An additional group without sources has its full size: another new group would not be larger.
        if source.weight > remaining_rules and (groups[-1] or len(groups) == 1):
            groups.append([])
            remaining_rules = rules_that_fit(cluster, position=len(groups) - 1)
        groups[-1].append(source)
        remaining_rules -= source.weight
    return tuple(map(tuple, groups))
