"""The table of checks of an existing network, and the function that carries them out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import existing_groups
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.messages.message import Report, Step
from cfngen.deploy.preflight.findings import (
    ASK_FOR_PERMISSIONS,
    READING,
    Finding,
    NetworkCheck,
    NetworkProblemsError,
    Severity,
    problem,
    unread,
    warning,
)
from cfngen.deploy.preflight.network import access_lists, endpoints, routes, security_groups, subnet_tags, vpc
from cfngen.deploy.preflight.network.reading import read
from cfngen.deploy.preflight.network.situation import Situation, with_named_parts
from cfngen.deploy.preflight.references import resolve_references
from cfngen.text import verb_form

QUOTAS = "quotas"
SECURITY_GROUPS = "security-groups"
SECURITY_GROUP_TAGS = "security-group-tags"
_ORDER = tuple(Severity)
# What to call the attributes of `NetworkFacts` and `Situation` that may not be readable.
_LABELS: Mapping[str, str] = {
    "endpoints": "the list of VPC endpoints",
    "foreign": "what the cluster file names",
    "has_dns_host_names": "enableDnsHostnames",
    "has_dns_support": "enableDnsSupport",
    "interfaces": "the list of network interfaces",
    "internet_gateways": "the list of internet gateways",
    "nat_gateways": "the list of NAT gateways",
    "network_acls": "the list of network ACLs",
    "own_instances": "the list of instances",
    "peerings": "the list of peering connections",
    "route_tables": "the list of route tables",
    "security_groups": "the list of security groups",
    "subnets": "the list of subnets",
}


def _always(situation: Situation) -> bool:
    return True


def _has_existing_subnets(situation: Situation) -> bool:
    return bool(situation.existing_subnets)


def _has_subnets_to_create(situation: Situation) -> bool:
    return any(not subnet.id for subnet in situation.subnets)


def _has_existing_tables(situation: Situation) -> bool:
    return any(situation.route_table(subnet) is not None for subnet in situation.subnets)


def _has_nat_gateways(situation: Situation) -> bool:
    return any(subnet.nat_gateway for subnet in situation.subnets)


def _uses_vpc_routes(situation: Situation) -> bool:
    return network_plugin(situation.cluster).uses_vpc_routes and _has_existing_subnets(situation)


def _needs_endpoints(situation: Situation) -> bool:
    return bool(endpoints.subnets_without_way_out(situation))


def _has_existing_groups(situation: Situation) -> bool:
    return bool(existing_groups(situation.cluster))


def _find_exceeded_quotas(situation: Situation) -> Iterator[Finding]:
    key = "network.quotas"
    for quota in situation.quotas:
        # An unknown usage is neither sufficient nor insufficient.
        numbers = f"{quota.name}: {quota.used} {verb_form(quota.used or 0, 'are')} used of {quota.limit}"
        hint = str(quota.hint).removesuffix(".")
        if quota.sufficient is False:
            yield problem(key, f"{numbers}, and the cluster needs {quota.needed} more", hint)
        elif quota.room_to_grow is False:
            text = (
                f"{numbers}, and the cluster needs {quota.needed_at_maximum} more when groups have their greatest size"
            )
            yield warning(key, text, hint)
        elif quota.sufficient is None:
            yield warning(key, f"{quota.name}: the quota cannot be read ({hint})", ASK_FOR_PERMISSIONS)


class Check(NamedTuple):
    """A check of an existing network.

    Attributes:
        name: its name, in one word.
        in_order: what is the case if it finds nothing, as a sentence.
        applies: whether there is something to check.
        find: finds what is wrong.
        reads: attributes of `NetworkFacts` or `Situation` that it judges: without one of them, nothing is said to be in
            order.
    """

    name: str
    in_order: str
    applies: Callable[[Situation], bool]
    find: Callable[[Situation], Iterable[Finding]]
    reads: tuple[str, ...] = ()


_EXISTENCE = Check("vpc", "the VPC exists", _always, vpc.find_missing_vpc)
CHECKS: tuple[Check, ...] = (
    _EXISTENCE,
    Check("range", "the VPC has the range in the cluster file", _always, vpc.find_range_problems),
    Check(
        "dns",
        "the VPC has DNS support and DNS host names",
        _always,
        vpc.find_dns_problems,
        reads=("has_dns_support", "has_dns_host_names"),
    ),
    Check(
        "objects",
        "what the cluster file names exists, in the VPC, and in its zone and range",
        _always,
        vpc.find_foreign_objects,
        reads=("foreign",),
    ),
    Check(
        "free-ranges",
        "the ranges of subnets that are to be created are free",
        _has_subnets_to_create,
        vpc.find_occupied_ranges,
        reads=("subnets",),
    ),
    Check(
        "routes",
        "default routes lead where the subnets need them to",
        _has_existing_tables,
        routes.find_unrouted_subnets,
        reads=("route_tables", "internet_gateways", "nat_gateways"),
    ),
    Check(
        "nat-gateways",
        "the NAT gateways are available",
        _has_nat_gateways,
        routes.find_unusable_nat_gateways,
        reads=("nat_gateways", "route_tables"),
    ),
    Check(
        "pod-routes",
        "the subnets use one route table",
        _uses_vpc_routes,
        routes.find_divided_route_tables,
        reads=("route_tables",),
    ),
    Check(
        "endpoints",
        "instances without a default route reach the services that they call",
        _needs_endpoints,
        endpoints.find_endpoint_problems,
        reads=("endpoints", "security_groups"),
    ),
    Check(
        "master-addresses",
        "the masters' addresses are free",
        _always,
        vpc.find_used_master_addresses,
        reads=("interfaces",),
    ),
    Check("room", "the subnets have room for the cluster", _always, vpc.find_full_subnets, reads=("subnets",)),
    Check(
        "overlaps",
        "nothing overlaps the ranges of pods and services",
        _always,
        vpc.find_overlaps,
        reads=("peerings", "route_tables"),
    ),
    Check(
        "network-acls",
        "the network ACLs let the cluster's traffic through",
        _has_existing_subnets,
        access_lists.find_blocked_traffic,
        reads=("network_acls",),
    ),
    Check(
        SECURITY_GROUPS,
        "the existing security groups have the rules that the cluster needs",
        _has_existing_groups,
        security_groups.find_missing_rules,
        reads=("security_groups",),
    ),
    Check(
        SECURITY_GROUP_TAGS,
        "the cloud controller manager can open the nodes' security group for load balancers",
        _has_existing_groups,
        security_groups.find_tag_problems,
        reads=("security_groups",),
    ),
    Check(
        "tags", "controllers find the subnets for load balancers", _has_existing_subnets, subnet_tags.find_tag_problems
    ),
    Check(QUOTAS, "the quotas of networks are large enough", _always, _find_exceeded_quotas),
)
"""All checks, in the order of their findings. Without a VPC only the first one is carried out."""


def judge(situation: Situation, *, without: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return what the checks not named in `without` find: problems first, then warnings, then what is in order."""
    checks = [check for check in CHECKS if check.name not in without] if situation.facts.vpc else [_EXISTENCE]
    findings = [finding for check in checks if check.applies(situation) for finding in _carry_out(check, situation)]
    findings += [unread(_LABELS[name], reason, vpc.VPC_ID_KEY) for name, reason in situation.unread]
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)))


def _carry_out(check: Check, situation: Situation) -> Iterator[Finding]:
    """Yield the findings of a check, or that everything is in order."""
    findings = [replace(finding, check=check.name) for finding in check.find(situation)]
    if findings or any(map(situation.is_unread, check.reads)):
        return iter(findings)
    return iter([Finding(Severity.OK, check.in_order, check=check.name)])


def check_network(
    account: Account,
    cluster: Cluster,
    report: Report,
    *,
    values: Mapping[str, str] | None = None,
    without: Collection[str] = (),
) -> NetworkCheck:
    """Look at the existing VPC that a cluster is to be created in. Nothing is changed.

    Args:
        report: receives the step, since reading takes seconds.

    Returns:
        The findings; none if the cluster file names no VPC.

    Raises:
        AwsError: not even the VPC can be read.
        UnresolvedReferenceError: a reference of the cluster file leads to nothing.
    """
    cluster = resolve_references(account, cluster, values or {}).cluster
    names = with_named_parts(cluster, values or {})
    vpc_id = names.get("VpcId", "")
    if not vpc_id:
        return NetworkCheck(cluster.name, account.region, "", ())
    report(Step(f"looking at the network of {vpc_id}"))
    return NetworkCheck(cluster.name, account.region, vpc_id, judge(read(account, cluster, names), without=without))


def ensure_network(
    account: Account,
    cluster: Cluster,
    report: Report,
    values: Mapping[str, str],
    *,
    without: Collection[str] = (),
    is_update: bool = False,
    source_of: Callable[[str], str] = str,
) -> bool:
    """Check the existing VPC before a cluster is created in it; return whether all of it was read and judged.

    Before an update only existing security groups are checked, whose rules may lack what the update needs.

    Args:
        report: receives the step and, unless everything is in order, the findings.
        source_of: returns for a key of the cluster file the parameter that overrides it, or else the key.

    Raises:
        NetworkProblemsError: there are problems.
    """
    if is_update:
        if not existing_groups(cluster):
            return False
        without = {check.name for check in CHECKS} - {SECURITY_GROUPS, SECURITY_GROUP_TAGS}
    try:
        result = check_network(account, cluster, report, values=values, without=without)
    except AwsError as error:
        vpc_id = values.get("VpcId", "")
        finding = unread(f"the VPC {vpc_id}", error, source_of(vpc.VPC_ID_KEY))
        report(NetworkCheck(cluster.name, account.region, vpc_id, (finding,)))
        return False
    findings = tuple(replace(finding, key=source_of(finding.key)) for finding in result.findings)
    result = replace(result, findings=findings)
    if result.problems or result.warnings:
        report(replace(result, findings=(*result.problems, *result.warnings)))
    if result.problems:
        raise NetworkProblemsError(result, is_update=is_update)
    return bool(result.vpc) and not is_update and all(finding.check != READING for finding in findings)
