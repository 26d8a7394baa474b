"""Checks of the ports that `ingress` opens: what EC2 refuses, and what may not be intended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from cfngen.cluster.checks.sections import ingress_rules, node_groups
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SecurityGroupRole, traffic_of_purpose
from cfngen.cluster.network.existing_parts import existing_group, group_key, group_path
from cfngen.cluster.network.topology import has_api_load_balancer
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.ingress import IngressRule
from cfngen.cluster.security_groups.rules import bastion_sources, sources
from cfngen.cluster.security_groups.sources import Source, ingress_sources, origin_text

_LAST_PORT = 65535
_PROTOCOLS_WITH_PORTS = ("tcp", "udp")


@dataclass(frozen=True)
class _Section:
    """A section with `ingress`.

    Attributes:
        owner: whose ports are opened, in words.
        is_alone: whether the rules share their security group with no other sources of the cluster file.
        others: the other sources that may reach these instances.
    """

    path: Path
    rules: tuple[IngressRule, ...]
    owner: str
    is_alone: bool
    others: tuple[Source, ...]

    def sources(self) -> Iterator[tuple[Path, Source]]:
        """Yield the sources of the rules with valid ports, each with its path."""
        for position, rule in enumerate(self.rules):
            if _ports_fault(rule):
                continue
            lists = {"cidrs": rule.cidrs, "prefixLists": rule.prefix_lists, "securityGroups": rule.security_groups}
            paths = [(*self.path, position, key, index) for key, items in lists.items() for index in range(len(items))]
            yield from zip(paths, ingress_sources([rule]), strict=True)


def _sections(cluster: Cluster) -> Iterator[_Section]:
    rules = cluster.control_plane.ingress
    yield _Section(("controlPlane", "ingress"), rules, "masters", is_alone=False, others=_others(cluster, "Master"))
    for path, group in node_groups(cluster):
        owner = f"the nodes of {group.name}"
        yield _Section((*path, "ingress"), group.ingress, owner, is_alone=True, others=_others(cluster, "Node"))
    if bastion := cluster.bastion:
        others = tuple(source for source in bastion_sources(bastion) if source.purpose == "Ssh")
        yield _Section(("bastion", "ingress"), bastion.ingress, "the bastion", is_alone=False, others=others)


def _others(cluster: Cluster, role: SecurityGroupRole) -> tuple[Source, ...]:
    return tuple(source for source in sources(cluster, role) if source.purpose in ("Api", "Ssh"))


def _other_place(section: _Section, source: Source) -> tuple[str, tuple[Path, ...]]:
    """Return the section of the cluster file that lets another source in, and the paths of its lists of sources."""
    key = "bastion" if section.path[0] == "bastion" else source.purpose.lower()
    return key, ((key, "allowedCidrs"), (key, "allowedPrefixLists"))


def _ports_fault(rule: IngressRule) -> str:
    """Return what is wrong with the ports of a rule; empty if nothing is."""
    if rule.protocol not in _PROTOCOLS_WITH_PORTS:
        return f"{rule.protocol} has no ports here; remove the key" if rule.ports else ""
    if rule.port_range is None:
        return f"is missing; write the ports of {rule.protocol}, such as 30080, or 0-{_LAST_PORT} for all"
    first, last = rule.port_range
    if last > _LAST_PORT:
        return f"{last} is no port; the last one is {_LAST_PORT}"
    return f"the range ends before it begins; write {last}-{first}" if first > last else ""


def _check_rules(cluster: Cluster) -> Iterator[Problem]:
    for path, rule in ingress_rules(cluster):
        if fault := _ports_fault(rule):
            yield Problem((*path, "ports"), fault, related_paths=((*path, "protocol"),))
        if not (rule.cidrs or rule.prefix_lists or rule.security_groups):
            yield Problem(path, "lets nobody in; add cidrs, prefixLists or securityGroups")


def _check_no_repeated_source(cluster: Cluster) -> Iterator[Problem]:
    """Check that no security group gets a rule twice, which EC2 refuses (`InvalidPermission.Duplicate`)."""
    for section in _sections(cluster):
        first_places: dict[tuple[str, str], tuple[str, tuple[Path, ...]]] = {}
        if not section.is_alone:
            first_places = {source.identity: _other_place(section, source) for source in section.others}
        for path, source in section.sources():
            key, related_paths = first_places.setdefault(source.identity, (dotted(path), (path,)))
            if key != dotted(path):
                message = f"{_opening(source)} is a rule of {key} already; remove one of the two"
                yield Problem(path, message, related_paths=related_paths)


def _check_api_port(cluster: Cluster) -> Iterator[Problem]:
    """Check that who reaches the API of a single master is said in one place, perhaps at the deployment."""
    if has_api_load_balancer(cluster):
        return
    port = cluster.api.port
    for position, rule in enumerate(cluster.control_plane.ingress):
        if (rule.protocol, rule.port_range) == ("tcp", (port, port)):
            message = f"{port} is the port of the API; write who may reach it in api.allowedCidrs, and remove the rule"
            related_paths: tuple[Path, ...] = (("api", "port"), ("controlPlane", "count"))
            yield Problem(("controlPlane", "ingress", position, "ports"), message, related_paths=related_paths)


def _warn_of_open_to_the_world(cluster: Cluster) -> Iterator[Problem]:
    for section in _sections(cluster):
        for path, source in section.sources():
            if isinstance(source.origin, IPv4Network) and source.origin.prefixlen == 0:
                message = (
                    f"{source.origin} lets the whole internet reach {traffic_of_purpose(source.purpose)} of "
                    f"{section.owner}; use your own ranges"
                )
                yield Problem(path, message)


def _warn_of_what_is_open_already(cluster: Cluster) -> Iterator[Problem]:
    for section in _sections(cluster):
        located = list(section.sources())
        for path, source in located:
            places = [_other_place(section, other) for other in section.others if other.includes(source)]
            places += [
                (dotted(other_path), (other_path,))
                for other_path, other in located
                if other.includes(source) and other.identity != source.identity
            ]
            if places:
                key, related_paths = places[0]
                message = f"{_opening(source)} is open by {key} already; remove it there or here"
                yield Problem(path, message, related_paths=related_paths)


def _warn_of_shared_group(cluster: Cluster) -> Iterator[Problem]:
    if not existing_group(cluster, "Node") or len(cluster.node_groups) == 1:
        return
    for path, group in node_groups(cluster):
        if group.ingress:
            message = (
                f"a rule in {existing_group(cluster, 'Node')} ({group_key('Node')}) opens its ports on the nodes of "
                "every group; for these alone, add it to a group of theirs in additionalSecurityGroups"
            )
            yield Problem((*path, "ingress"), message, related_paths=(group_path("Node"),))


def _opening(source: Source) -> str:
    return f"{traffic_of_purpose(source.purpose)} from {origin_text(source.origin)}"


PROBLEM_CHECKS = (_check_rules, _check_no_repeated_source, _check_api_port)
WARNING_CHECKS = (_warn_of_open_to_the_world, _warn_of_what_is_open_already, _warn_of_shared_group)
