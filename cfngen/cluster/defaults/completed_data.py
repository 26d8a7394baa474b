"""The data of a cluster file with missing values filled in: what each was derived from, and where groups were written.

The data is not validated yet: a value of the wrong type is left as it is, and validation reports it. A group with
`oneGroupPerZone` is several groups of the completed cluster (`cfngen.cluster.defaults.completion`); problems are
reported for the keys of the cluster file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.problems import Problem

_NODE_GROUPS: Path = ("nodeGroups",)
# A node group in the text of a message, such as `nodeGroups[2]`.
_GROUP_IN_TEXT = re.compile(r"nodeGroups\[([0-9]+)\]")
Section = dict[str, Any]
"""A section of the cluster file, not validated yet."""


@dataclass(frozen=True)
class WrittenGroup:
    """Where the user wrote a node group of the completed cluster.

    Attributes:
        zone_index: position of the zone in the group's zones; None if the group was not expanded.
        zone: the zone; empty if the group was not expanded.
        name: name of the group in that zone; empty if the group was not expanded.
    """

    index: int
    zone_index: int | None = None
    zone: str = ""
    name: str = ""


@dataclass(frozen=True)
class WrittenGroups:
    """Leads from the groups of the completed cluster back to the groups of the cluster file.

    Attributes:
        groups: for each group of the completed cluster, where the user wrote it; empty if nothing was expanded.
    """

    groups: tuple[WrittenGroup, ...] = ()

    def path(self, path: Path) -> Path:
        """Return the path, in the cluster file, of a key of the completed cluster."""
        group = self._group(path)
        if group is None:
            return path
        key: Path = path[2:]
        if group.zone_index is not None and key[:2] == ("zones", 0):
            key = ("zones", group.zone_index, *key[2:])
        return (*_NODE_GROUPS, group.index, *key)

    def problem(self, problem: Problem) -> Problem:
        """Return a problem of the completed cluster as one of the cluster file."""
        if not self.groups:
            return problem
        message = _GROUP_IN_TEXT.sub(self._text_in_file, problem.message)
        group = self._group(problem.path)
        if group and group.name and problem.path[2:] == ("name",):
            message = f"with oneGroupPerZone, the group of {group.zone} is named {group.name}: {message}"
        related_paths = [self.path(path) for path in problem.related_paths]
        for path in (problem.path, *problem.related_paths):
            named_group = self._group(path)
            if named_group and named_group.name and path[2:] == ("name",):
                group_path = (*_NODE_GROUPS, named_group.index)
                related_paths += [(*group_path, "oneGroupPerZone"), (*group_path, "zones")]
        return replace(
            problem, path=self.path(problem.path), message=message, related_paths=tuple(dict.fromkeys(related_paths))
        )

    def reason(self, path: Path) -> str:
        """Return what a value of an expanded group follows from: its name and its zone; "" for other values."""
        group = self._group(path)
        if group is None or not group.zone:
            return ""
        return {
            ("name",): "from the group's name and zone",
            ("zones", 0): "from oneGroupPerZone",
            ("oneGroupPerZone",): "one of several groups",
        }.get(path[2:], "")

    def _group(self, path: Path) -> WrittenGroup | None:
        """Return the group that a path of the completed cluster is in; None if nothing was expanded, or elsewhere."""
        if path[:1] != _NODE_GROUPS or len(path) == 1:
            return None
        index = path[1]
        return self.groups[index] if isinstance(index, int) and index < len(self.groups) else None

    def _text_in_file(self, match: re.Match[str]) -> str:
        """Return the text for a node group in a message, e.g. `nodeGroups[0]`, or `nodeGroups[0] in us-west-2a`."""
        index = int(match[1])
        if index >= len(self.groups):
            return match[0]
        group = self.groups[index]
        return f"nodeGroups[{group.index}]" + (f" in {group.zone}" if group.zone else "")


@dataclass(frozen=True)
class Derivation:
    """What a filled-in value was derived from.

    Attributes:
        reason: what the value is derived from, as `cfngen config` shows it, e.g. `from region`.
        source: path of the key that the value is derived from; None if there are several.
    """

    reason: str
    source: Path | None = None


@dataclass
class CompletedData:
    """The cluster file's data with missing values filled in.

    Attributes:
        data: the completed data, a deep copy of the file's.
        derived: the derivation of each value that was derived from others, by path. Filled-in values that equal the
            model's defaults have none.
        written_groups: leads from the node groups of the data back to the file's, which are in the paths of `derived`.
    """

    data: Section
    derived: dict[Path, Derivation] = field(default_factory=dict)
    written_groups: WrittenGroups = field(default_factory=WrittenGroups)

    def fill(self, path: Path, value: object, derivation: Derivation | None = None) -> None:
        """Set the key at `path` to a value, unless it has one; missing parents are created.

        Nothing is set below a value that is neither a mapping nor a list.

        Args:
            derivation: what the value is derived from; without a derivation it counts as a default.
        """
        parent: Any = self.data
        for part in path[:-1]:
            if isinstance(part, str) and isinstance(parent, dict):
                parent = parent.setdefault(part, {})
            else:
                parent = lookup(parent, (part,))
            if not isinstance(parent, (dict, list)):
                return
        if isinstance(parent, dict) and path[-1] not in parent:
            parent[path[-1]] = value
            if derivation:
                self.derived[path] = derivation

    def sections_in(self, path: Path) -> Iterator[tuple[Path, Section]]:
        """Yield the path and the data of each section in the list at `path`; nothing if there is no list."""
        items = lookup(self.data, path)
        if not isinstance(items, list):
            return
        for index, item in enumerate(items):
            if isinstance(item, dict):
                yield (*path, index), item
