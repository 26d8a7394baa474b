"""Whether the security groups of an interface hold everybody who may come in."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.access import all_instances
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.sources import HOLDERS, MOST_RULES_OF_INTERFACE, Holder, room, sources, spread

_QUOTAS: Path = ("network", "quotas")
# A template has 500 resources at most ("CloudFormation quotas", November 2026); its stack has some twenty others.
_MOST_RULES = 460
_WHOSE: dict[Holder, str] = {
    "Master": "the masters",
    "Node": "the nodes",
    "ApiLoadBalancer": "the API's load balancer",
}


def _quotas(cluster: Cluster) -> Iterator[Problem]:
    quotas = cluster.network.quotas
    product = quotas.rules_per_security_group * quotas.security_groups_per_interface
    if product > MOST_RULES_OF_INTERFACE:
        message = (
            f"{quotas.rules_per_security_group} rules in each of {quotas.security_groups_per_interface} security "
            f"groups make {product} of an interface; AWS allows {MOST_RULES_OF_INTERFACE}: lower one of the two"
        )
        yield Problem((*_QUOTAS, "rulesPerSecurityGroup"), message, ((*_QUOTAS, "securityGroupsPerInterface"),))


def _prefix_lists(cluster: Cluster) -> Iterator[Problem]:
    most = room(cluster, 1)
    for section, lists in (("api", cluster.api.allowed_prefix_lists), ("ssh", cluster.ssh.allowed_prefix_lists)):
        for position, each in enumerate(lists):
            if each.max_entries > most:
                message = (
                    f"{each.id} counts as {each.max_entries} rules, and one security group has room for {most}: make "
                    "its greatest number of entries smaller, or have the account's quota raised and name it in "
                    "network.quotas"
                )
                yield Problem((section, "allowedPrefixLists", position, "maxEntries"), message, (_QUOTAS,))


def _groups(cluster: Cluster) -> Iterator[Problem]:
    """Security groups of each interface: the cluster's own, further ones for sources, and the user's."""
    most = cluster.network.quotas.security_groups_per_interface
    for path, instances in all_instances(cluster):
        holder: Holder = "Master" if path == ("controlPlane",) else "Node"
        own, further = len(spread(cluster, holder)), len(instances.additional_security_groups)
        if further and own == 1 and own + further > most:
            message = (
                f"{further} further security groups and the cluster's own are more than the {most} of an interface; "
                "name fewer, or have the account's quota raised and name it in network.quotas"
            )
            yield Problem((*path, "additionalSecurityGroups"), message, (_QUOTAS,))


def _rules(cluster: Cluster) -> Iterator[Problem]:
    quotas = cluster.network.quotas
    for holder in HOLDERS:
        groups = len(spread(cluster, holder))
        users = max(
            (
                len(instances.additional_security_groups)
                for path, instances in all_instances(cluster)
                if holder == ("Master" if path == ("controlPlane",) else "Node")
            ),
            default=0,
        )
        allowed = quotas.security_groups_per_interface - users
        if groups == 1 or groups <= allowed:
            continue
        held = list(sources(cluster, holder))
        purpose = "api" if holder == "ApiLoadBalancer" or held[0].purpose == "Api" else "ssh"
        section = cluster.api if purpose == "api" else cluster.ssh
        key = "allowedCidrs" if section.allowed_cidrs else "allowedPrefixLists"
        holds = sum(room(cluster, position) for position in range(allowed))
        message = (
            f"{len(held)} sources count as {sum(each.weight for each in held)} rules of {_WHOSE[holder]}, and the "
            f"{allowed} security groups that an interface may have for them hold {holds} at most "
            f"({quotas.rules_per_security_group} rules each, some of them kept free): name fewer and larger ranges, or "
            "have the account's quotas raised and name them in network.quotas"
        )
        yield Problem((purpose, key), message, (_QUOTAS,))


def _resources(cluster: Cluster) -> Iterator[Problem]:
    rules = sum(1 for holder in HOLDERS for _ in sources(cluster, holder))
    if rules > _MOST_RULES:
        key = "api" if len(cluster.api.allowed_cidrs) >= 2 * len(cluster.ssh.allowed_cidrs) else "ssh"
        message = (
            f"who may come in makes {rules} rules, and a stack holds {_MOST_RULES} of them at most: put ranges into a "
            "prefix list (allowedPrefixLists)"
        )
        yield Problem((key, "allowedCidrs"), message)


def _groups_before_their_vpc(cluster: Cluster) -> Iterator[Problem]:
    """Say that a security group cannot be older than its VPC.

    Not refused: once the cluster is there, its VPC may have security groups of the user's. `cfngen deploy` refuses them
    in a creation, and those of other VPCs at any time.
    """
    if cluster.network.vpc.id:
        return
    for path, instances in all_instances(cluster):
        if instances.additional_security_groups:
            message = (
                "a security group belongs to one VPC, and the cluster's is made with the cluster: a group that exists "
                "before cannot be used, and EC2 refuses it; create the cluster without the key and name a group of its "
                "VPC afterwards, or name an existing VPC in network.vpc.id"
            )
            yield Problem((*path, "additionalSecurityGroups"), message, (("network", "vpc", "id"),))


PROBLEMS = (_quotas, _prefix_lists, _groups, _rules, _resources)
WARNINGS = (_groups_before_their_vpc,)
