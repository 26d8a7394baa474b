"""Checks of security groups: existing ones, and whether the rules for all allowed sources fit into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.cluster.checks.sections import all_instances, node_groups, source_prefix_lists
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SECURITY_GROUP_ROLES, SecurityGroupRole
from cfngen.cluster.network.existing_parts import GROUPS_PATH, GroupRole, existing_group, existing_groups, group_path
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.security_groups.rules import (
    MAX_RULES_PER_INTERFACE,
    RESERVED_RULES,
    load_balancer_roles,
    max_rules_for_sources,
    sources,
    sources_by_group,
    used_roles,
)
from cfngen.cluster.security_groups.sources import Source, ingress_sources
from cfngen.text import pluralize

# Why a cluster may have no security group of a role.
_REASONS_OF_ABSENCE: Mapping[GroupRole, str] = {
    "ApiLoadBalancer": "the API has no load balancer: clients reach the single master by its own address",
    "InternalApiLoadBalancer": "the API has no internal load balancer beside a public one; a single one, public or "
    "internal, has the group of apiLoadBalancer",
    "Endpoints": "cfngen creates no interface endpoints, which it does with `nat: none` and `endpoints.create`",
}
_QUOTAS_PATH: Path = ("network", "quotas")
_GROUPS_PER_INTERFACE_PATH: Path = (*_QUOTAS_PATH, "securityGroupsPerInterface")
# A template has 500 resources at most ("CloudFormation quotas", November 2026); the security groups' template has some
# twenty resources besides these rules.
_MAX_RULES_OF_STACK = 460
# How messages call the instances or the load balancer of a role.
_ROLE_NAMES: dict[SecurityGroupRole, str] = {
    "Master": "the masters",
    "Node": "the nodes",
    "ApiLoadBalancer": "the API's load balancer",
    "InternalApiLoadBalancer": "the API's internal load balancer",
}


def _check_groups_have_vpc(cluster: Cluster) -> Iterator[Problem]:
    if cluster.network.vpc.id:
        return
    for role, group_id in existing_groups(cluster).items():
        message = (
            f"{group_id} is in an existing VPC; set network.vpc.id (or VPC_ID) to the id of that VPC, or remove the "
            "key: cfngen then creates the group"
        )
        yield Problem(group_path(role), message, related_paths=(("network", "vpc", "id"),))


def _check_groups_used(cluster: Cluster) -> Iterator[Problem]:
    for role in existing_groups(cluster):
        if role not in used_roles(cluster):
            related_paths = (("api",), ("controlPlane", "count"), ("network", "topology"), ("network", "endpoints"))
            yield Problem(group_path(role), f"{_REASONS_OF_ABSENCE[role]}; remove the key", related_paths=related_paths)


def check_groups_not_repeated(cluster: Cluster) -> Iterator[Problem]:
    """Check that no instance gets its first security group a second time: EC2 refuses a group that is named twice."""
    for path, instances in all_instances(cluster):
        role: GroupRole = "Master" if path == ("controlPlane",) else "Node"
        group_id = existing_group(cluster, role)
        if group_id in instances.additional_security_groups:
            position = instances.additional_security_groups.index(group_id)
            message = f"{group_id} is the instances' first security group already; remove it from this list"
            yield Problem((*path, "additionalSecurityGroups", position), message, related_paths=(group_path(role),))


def _warn_of_unknown_clients(cluster: Cluster) -> Iterator[Problem]:
    role: GroupRole = "ApiLoadBalancer" if load_balancer_roles(cluster) else "Master"
    group_id = existing_group(cluster, role)
    if group_id and not (cluster.api.allowed_cidrs or cluster.api.allowed_prefix_lists):
        message = (
            f"its rules decide who reaches the API, and cfngen does not know who should: name the ranges in "
            f"api.allowedCidrs, so that `cfngen check network` looks whether {group_id} lets them in"
        )
        yield Problem(group_path(role), message, related_paths=(("api", "allowedCidrs"), GROUPS_PATH))


def _check_quotas(cluster: Cluster) -> Iterator[Problem]:
    """Check that AWS can grant both quotas together: it limits their product, the rules of a network interface."""
    quotas = cluster.network.quotas
    rules_per_interface = quotas.rules_per_security_group * quotas.security_groups_per_interface
    if rules_per_interface > MAX_RULES_PER_INTERFACE:
        message = (
            f"{quotas.rules_per_security_group} rules in each of {quotas.security_groups_per_interface} security "
            f"groups make {rules_per_interface} of an interface; AWS allows {MAX_RULES_PER_INTERFACE}: lower one of "
            "the two"
        )
        yield Problem(
            (*_QUOTAS_PATH, "rulesPerSecurityGroup"),
            message,
            related_paths=(_GROUPS_PER_INTERFACE_PATH,),
        )


def _check_prefix_list_sizes(cluster: Cluster) -> Iterator[Problem]:
    # The room in an additional security group (position 1). The first (position 0) has less, since it also has cfngen's
    # own rules.
    max_rules = max_rules_for_sources(cluster, position=1)
    for path, prefix_list in source_prefix_lists(cluster):
        # Bastion and node groups have one security group each, which checks of their own look at.
        if path[0] in ("api", "ssh", "controlPlane") and prefix_list.max_entries > max_rules:
            message = (
                f"{prefix_list.id} counts as {prefix_list.max_entries} rules, and one security group has room for "
                f"{max_rules}: make its greatest number of entries smaller, or have the account's quota raised and "
                "name it in network.quotas"
            )
            yield Problem((*path, "maxEntries"), message, related_paths=(_QUOTAS_PATH,))


def _check_additional_group_count(cluster: Cluster) -> Iterator[Problem]:
    """Check that an interface can have the user's additional security groups besides cfngen's.

    Only for instances with one of cfngen's groups for their role; for those that need several, `_check_rules_fit` makes
    this check.
    """
    max_groups = cluster.network.quotas.security_groups_per_interface
    for path, instances in all_instances(cluster):
        role = _role_of_instances(path)
        own_groups = _own_groups(cluster, role)
        additional_groups = len(instances.additional_security_groups)
        if 1 + own_groups + additional_groups > max_groups and len(sources_by_group(cluster, role)) == 1:
            others = "the cluster's and the node group's own" if own_groups else "the cluster's own"
            remedy = "write the rules of one in ingress and leave it out, " if own_groups else "name fewer, "
            message = (
                f"{pluralize(additional_groups, 'further security group')} and {others} are more than the {max_groups} "
                f"of an interface; {remedy}or have the account's quota raised and name it in network.quotas"
            )
            key = (*path, "additionalSecurityGroups") if additional_groups else _GROUPS_PER_INTERFACE_PATH
            yield Problem(key, message, related_paths=(_QUOTAS_PATH,) if additional_groups else ())


def _own_groups(cluster: Cluster, role: SecurityGroupRole) -> int:
    """Return how many security groups of their own the instances of one group have: a node group has one."""
    return 1 if role == "Node" and not existing_group(cluster, "Node") else 0


def _role_of_instances(path: Path) -> SecurityGroupRole:
    return "Master" if path == ("controlPlane",) else "Node"


def _check_rules_fit(cluster: Cluster) -> Iterator[Problem]:
    quotas = cluster.network.quotas
    for role in SECURITY_GROUP_ROLES:
        needed_groups = len(sources_by_group(cluster, role))
        # The most additional security groups that instances of the role have; the load balancer has none.
        additional_groups = 0
        for path, instances in all_instances(cluster):
            if role == _role_of_instances(path):
                additional_groups = max(additional_groups, len(instances.additional_security_groups))
        allowed_groups = quotas.security_groups_per_interface - additional_groups - _own_groups(cluster, role)
        if needed_groups == 1 or needed_groups <= allowed_groups:
            continue
        allowed_sources = list(sources(cluster, role))
        path = _path_of_first_source(cluster, role, allowed_sources[0])
        rules = sum(source.rule_count for source in allowed_sources)
        max_rules = sum(max_rules_for_sources(cluster, position=position) for position in range(allowed_groups))
        message = (
            f"{len(allowed_sources)} sources count as {rules} rules of {_ROLE_NAMES[role]}, and the "
            f"{allowed_groups} security groups that an interface may have for them hold {max_rules} at most "
            f"({quotas.rules_per_security_group} rules each, some of them kept free): name fewer and larger ranges, or "
            "have the account's quotas raised and name them in network.quotas"
        )
        yield Problem(path, message, related_paths=(_QUOTAS_PATH,))


def _path_of_first_source(cluster: Cluster, role: SecurityGroupRole, source: Source) -> Path:
    """Return the section, and the list in it, whose sources come first."""
    if source.purpose not in ("Api", "Ssh"):
        return ("controlPlane", "ingress")
    purpose = source.purpose.lower()
    section = cluster.api if purpose == "api" else cluster.ssh
    if role == "InternalApiLoadBalancer" or not (section.allowed_cidrs or section.allowed_prefix_lists):
        return (purpose, "internalCidrs")
    return (purpose, "allowedCidrs" if section.allowed_cidrs else "allowedPrefixLists")


def _check_rules_of_node_groups_fit(cluster: Cluster) -> Iterator[Problem]:
    """Check that the security group of each node group holds the rules of its `ingress`."""
    if existing_group(cluster, "Node"):
        return
    max_rules = cluster.network.quotas.rules_per_security_group - RESERVED_RULES
    for path, group in node_groups(cluster):
        group_sources = list(ingress_sources(group.ingress))
        rules = sum(source.rule_count for source in group_sources)
        if rules > max_rules or len(group_sources) > _MAX_RULES_OF_STACK:
            room = min(max_rules, _MAX_RULES_OF_STACK)
            message = (
                f"{pluralize(len(group_sources), 'source', 'count')} as {rules} rules, and the security group of "
                f"{group.name} holds {room}: name fewer and larger ranges, or have the account's quota raised and name "
                "it in network.quotas"
            )
            yield Problem((*path, "ingress"), message, related_paths=(_QUOTAS_PATH,))


def _check_rules_fit_into_stack(cluster: Cluster) -> Iterator[Problem]:
    created_roles = [role for role in SECURITY_GROUP_ROLES if not existing_group(cluster, role)]
    rule_count = sum(1 for role in created_roles for _ in sources(cluster, role))
    if rule_count > _MAX_RULES_OF_STACK:
        # Reported at the section that makes most rules: a source of SSH makes two, for masters and for nodes.
        counts: dict[Path, int] = {
            ("api", "allowedCidrs"): len(cluster.api.allowed_cidrs),
            ("ssh", "allowedCidrs"): 2 * len(cluster.ssh.allowed_cidrs),
            ("controlPlane", "ingress"): sum(1 for _ in ingress_sources(cluster.control_plane.ingress)),
        }
        message = (
            f"who may come in makes {rule_count} rules, and a stack holds {_MAX_RULES_OF_STACK} of them at most: put "
            "ranges into a prefix list (allowedPrefixLists)"
        )
        yield Problem(max(counts, key=lambda path: counts[path]), message)


def _warn_of_groups_before_vpc_exists(cluster: Cluster) -> Iterator[Problem]:
    """Warn about additional security groups if cfngen creates the VPC.

    This is not an error, since the user may create security groups in the VPC once the cluster exists. `cfngen deploy`
    refuses additional security groups when it creates the cluster, and groups of other VPCs at any time.
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
            yield Problem((*path, "additionalSecurityGroups"), message, related_paths=(("network", "vpc", "id"),))


PROBLEM_CHECKS = (_check_groups_have_vpc, _check_groups_used, check_groups_not_repeated)
WARNING_CHECKS = (_warn_of_groups_before_vpc_exists, _warn_of_unknown_clients)
SOURCE_CHECKS = (
    _check_quotas,
    _check_prefix_list_sizes,
    _check_additional_group_count,
    _check_rules_fit,
    _check_rules_fit_into_stack,
    _check_rules_of_node_groups_fit,
)
