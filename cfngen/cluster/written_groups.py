"""Leads from the node groups of a completed cluster back to what the user wrote.

A group with `oneGroupPerZone` is several groups of the completed cluster (`cfngen.cluster.groups_per_zone`). Problems
are reported for the keys of the cluster file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem

_NODE_GROUPS: Path = ("nodeGroups",)
# A node group in the text of a message, such as `nodeGroups[2]`.
_GROUP_IN_TEXT = re.compile(r"nodeGroups\[([0-9]+)\]")


@dataclass(frozen=True)
class WrittenGroup:
    """Where the user wrote a node group of the completed cluster.

    Attributes:
        index: position of the group in the cluster file.
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
        related_paths = tuple(map(self.path, problem.related_paths))
        return replace(problem, path=self.path(problem.path), message=message, related_paths=related_paths)

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
