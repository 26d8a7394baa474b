"""The data of a cluster file with missing values filled in, and what each of them was derived from.

The data is not validated yet: a value of the wrong type is left as it is, and validation reports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.written_groups import WrittenGroups

Section = dict[str, Any]
"""A section of the cluster file, not validated yet."""


@dataclass(frozen=True)
class Derivation:
    """What a filled-in value was derived from.

    Attributes:
        reason: what the value is derived from, as `cfngen config` shows it, e.g. `from region`.
        source: path of the key that the value is derived from; empty if there are several.
    """

    reason: str
    source: Path = ()


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
