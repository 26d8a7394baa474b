"""The sources (CIDRs and prefix lists) that may reach the API and SSH, and the security groups that hold their rules.

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

from cfngen.cluster.existing_security_groups import existing_group
from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.network import Api, PrefixList, Ssh
from cfngen.cluster.topology import has_api_load_balancer, has_both_endpoints, has_internal_load_balancer

# `ApiLoadBalancer` is the public load balancer, or an internal one without a public one; `InternalApiLoadBalancer` is
# the internal one beside a public one.
SecurityGroupRole = Literal["Master", "Node", "ApiLoadBalancer", "InternalApiLoadBalancer"]
SECURITY_GROUP_ROLES: tuple[SecurityGroupRole, ...] = ("Master", "Node", "ApiLoadBalancer", "InternalApiLoadBalancer")
LOAD_BALANCER_ROLES: tuple[SecurityGroupRole, ...] = ("ApiLoadBalancer", "InternalApiLoadBalancer")
SSH_PORT = 22
ANY_IPV4 = "0.0.0.0/0"
"""The range of all addresses."""
# The most that AWS grants.
MAX_RULES_PER_INTERFACE = 1000
# cfngen's own rules in the first security group of a role, between masters, nodes and the load balancer, including
# those for add-ons.
CFNGEN_RULES = 14
# Rules that every security group keeps free for updates, in which CloudFormation adds new rules before it removes old
# ones.
RESERVED_RULES = 10


class Source(NamedTuple):
    """A CIDR or a prefix list that may reach a port."""

    purpose: Literal["Api", "Ssh"]
    port: int
    origin: IPv4Network | PrefixList

    @property
    def rule_count(self) -> int:
        """Number of rules that EC2 counts for the source: for a prefix list, its maximum number of entries."""
        return self.origin.max_entries if isinstance(self.origin, PrefixList) else 1


def sources(cluster: Cluster, role: SecurityGroupRole) -> Iterator[Source]:
    """Yield the sources for which the security groups of a role have rules.

    Masters and nodes have rules for SSH; the load balancers, or a single master, have rules for the API. The range of
    the stack parameter ApiAllowedCidr is not yielded, although it needs a rule.
    """
    api_role = "ApiLoadBalancer" if has_api_load_balancer(cluster) else "Master"
    api_origins = _origins(cluster.api) if role == api_role else []
    yield from (Source(purpose="Api", port=cluster.api.port, origin=origin) for origin in api_origins)
    if role not in LOAD_BALANCER_ROLES:
        yield from (Source(purpose="Ssh", port=SSH_PORT, origin=origin) for origin in _origins(cluster.ssh))
    internal_role = "InternalApiLoadBalancer" if has_internal_load_balancer(cluster) else "Master"
    if has_both_endpoints(cluster) and role == internal_role:
        for cidr in internal_cidrs(cluster):
            # A single master has one rule for a range that may reach both endpoints.
            if cidr not in api_origins:
                yield Source(purpose="Api", port=cluster.api.port, origin=cidr)


def internal_cidrs(cluster: Cluster) -> tuple[IPv4Network, ...]:
    """Return the ranges that may reach the internal endpoint beside a public one: by default the VPC's."""
    return cluster.api.internal_cidrs or (cluster.network.vpc.cidr,)


def _origins(section: Api | Ssh) -> list[IPv4Network | PrefixList]:
    return [*section.allowed_cidrs, *section.allowed_prefix_lists]


def max_rules_for_sources(cluster: Cluster, position: int) -> int:
    """Return how many rules for sources fit into the security group of a role at a position.

    The first group (position 0) also has cfngen's own rules.
    """
    quota = cluster.network.quotas.rules_per_security_group
    return quota - RESERVED_RULES - (CFNGEN_RULES if position == 0 else 0)


def sources_by_group(cluster: Cluster, role: SecurityGroupRole) -> tuple[tuple[Source, ...], ...]:
    """Return the sources of each security group of a role, in order. The first group always exists and may have none.

    A source that is too large for any group gets a group of its own, and `cfngen.cluster.checks.security_groups`
    refuses it. An existing security group has the rules for all sources: the user puts them into it.
    """
    if existing_group(cluster, role):
        return (tuple(sources(cluster, role)),)
    groups: list[list[Source]] = [[]]
    remaining_rules = max_rules_for_sources(cluster, position=0)
    for source in sources(cluster, role):
        # A source that does not fit goes into a new group, unless the last one is an additional group that is still
        # empty: a new group would not be larger.
        if source.rule_count > remaining_rules and (groups[-1] or len(groups) == 1):
            groups.append([])
            remaining_rules = max_rules_for_sources(cluster, position=len(groups) - 1)
        groups[-1].append(source)
        remaining_rules -= source.rule_count
    return tuple(map(tuple, groups))
