"""What checks go through, each section with its path, and the forms that many checks have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, parse_path
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.ingress import IngressRule
from cfngen.cluster.sections.instances import ExtraVolume, Instances, Machine, NodeGroup
from cfngen.cluster.sections.network import PrefixList

Check = Callable[[Cluster], Iterator[Problem]]
"""Yields what is wrong with a cluster, or what may not be intended."""


@dataclass(frozen=True)
class KeyCheck:
    """A check of one key: a row of a table in place of a function.

    Attributes:
        message: the problem's message, in which `{cluster.name}` stands for a value of the cluster.
    """

    key: str
    when: Callable[[Cluster], object]
    message: str
    related: tuple[str, ...] = ()

    def __call__(self, cluster: Cluster) -> Iterator[Problem]:
        """Yield the problem, if there is one."""
        if self.when(cluster):
            message = self.message.format(cluster=cluster)
            yield Problem(parse_path(self.key), message, related_paths=tuple(map(parse_path, self.related)))


@dataclass(frozen=True)
class GroupCheck:
    """A check of one key of each node group.

    Attributes:
        key: the key within the group, e.g. `update.pause`.
        message: the problem's message, in which `{group.name}` stands for a value of the group.
        related: the keys on whose values the problem depends; one within the group begins with a dot.
    """

    key: str
    when: Callable[[Cluster, NodeGroup], object]
    message: str
    related: tuple[str, ...] = ()

    def __call__(self, cluster: Cluster) -> Iterator[Problem]:
        """Yield the problem of each group that has it."""
        for path, group in node_groups(cluster):
            if self.when(cluster, group):
                related_paths = tuple(
                    (*path, *parse_path(key[1:])) if key.startswith(".") else parse_path(key) for key in self.related
                )
                message = self.message.format(group=group)
                yield Problem((*path, *parse_path(self.key)), message, related_paths=related_paths)


def repeated(items: Sequence[object], path: Path, *, is_related: bool = False) -> Iterator[Problem]:
    """Yield a problem for each item that a list has already; with `is_related` it depends on the first one."""
    for position, item in enumerate(items):
        first_position = items.index(item)
        if first_position < position:
            related_paths = ((*path, first_position),) if is_related else ()
            yield Problem((*path, position), f"{item} appears twice; remove one", related_paths=related_paths)


def subnet_path(index: int, key: str = "cidr") -> Path:
    """Return the path of a key of the subnet at a position of `network.subnets`."""
    return ("network", "subnets", index, key)


def type_paths(path: Path) -> tuple[Path, ...]:
    """Return the paths of the keys from which the instance types of the instances at a path follow."""
    return tuple((*path, key) for key in ("instanceType", "instanceTypes", "instanceRequirements"))


def node_groups(cluster: Cluster) -> Iterator[tuple[Path, NodeGroup]]:
    """Yield the path and the settings of each node group."""
    for index, group in enumerate(cluster.node_groups):
        yield ("nodeGroups", index), group


def all_instances(cluster: Cluster) -> Iterator[tuple[Path, Instances]]:
    """Yield the path and the settings of the masters and of each node group."""
    yield ("controlPlane",), cluster.control_plane
    yield from node_groups(cluster)


def all_machines(cluster: Cluster) -> Iterator[tuple[Path, Machine]]:
    """Yield the path and the settings of the masters, of each node group and of the bastion."""
    yield from all_instances(cluster)
    if cluster.bastion:
        yield ("bastion",), cluster.bastion


def ingress_rules(cluster: Cluster) -> Iterator[tuple[Path, IngressRule]]:
    """Yield the path and the settings of each rule of `ingress`."""
    sections = [(path, instances.ingress) for path, instances in all_instances(cluster)]
    if cluster.bastion:
        sections.append((("bastion",), cluster.bastion.ingress))
    for path, rules in sections:
        yield from (((*path, "ingress", index), rule) for index, rule in enumerate(rules))


def source_prefix_lists(cluster: Cluster) -> Iterator[tuple[Path, PrefixList]]:
    """Yield the path and the settings of each prefix list that may reach a port."""
    lists: dict[Path, Sequence[PrefixList]] = {
        ("api", "allowedPrefixLists"): cluster.api.allowed_prefix_lists,
        ("ssh", "allowedPrefixLists"): cluster.ssh.allowed_prefix_lists,
        ("bastion", "allowedPrefixLists"): cluster.bastion.allowed_prefix_lists if cluster.bastion else (),
        **{(*path, "prefixLists"): rule.prefix_lists for path, rule in ingress_rules(cluster)},
    }
    for path, prefix_lists in lists.items():
        yield from (((*path, index), prefix_list) for index, prefix_list in enumerate(prefix_lists))


def extra_volumes(cluster: Cluster) -> Iterator[tuple[Path, ExtraVolume]]:
    """Yield the path and the settings of each further volume of node groups."""
    for path, group in node_groups(cluster):
        for position, volume in enumerate(group.volumes):
            yield (*path, "volumes", position), volume
