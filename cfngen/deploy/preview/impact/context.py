"""A change of one resource, with the master or node group that the resource belongs to and its old and new values."""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.cluster.logical_ids import MasterId, NodeGroupId, ProgramId, pascal
from cfngen.cluster.model import Cluster
from cfngen.deploy.preview.change_set_reading import UNKNOWN, ResourceChange
from cfngen.deploy.preview.changes import Change, Replacement


class ChangeContext:
    """A change of a resource with the context that determines its impact.

    Attributes:
        cluster: the cluster as it is to be deployed.
        change: the change.
        owner: the master or node group that the resource belongs to, e.g. "master a"; empty if none.
        is_master: whether the resource belongs to a master.
        masters: current number of masters.
        instances: current number of instances of an Auto Scaling group; None if not known.
    """

    def __init__(
        self, cluster: Cluster, change: Change, entry: ResourceChange, masters: int, instances: int | None = None
    ) -> None:
        self.cluster = cluster
        self.masters = masters
        self.change = change
        self.instances = instances
        self._before = entry.before.get("Properties", {})
        self._after = entry.after.get("Properties", {})
        self.owner, self.is_master = owner_of(cluster, change.logical_id)

    @property
    def might_be_replaced(self) -> bool:
        """Whether the resource might be replaced, which is not certain."""
        return self.change.replacement is Replacement.MIGHT

    @property
    def disappears(self) -> bool:
        """Whether the resource is removed, will be replaced or might be replaced."""
        return self.change.action == "remove" or self.change.replacement is not Replacement.NO

    @property
    def verb(self) -> str:
        """`is removed`, `is replaced` or `might be replaced`."""
        if self.change.action == "remove":
            return "is removed"
        return "might be replaced" if self.might_be_replaced else "is replaced"

    def before(self, *path: str) -> object:
        """Return the old value of a property, or None if it is not known."""
        return self._value(self._before, path, is_new=False)

    def after(self, *path: str) -> object:
        """Return the new value of a property, or None if it is not known, or not known yet."""
        return self._value(self._after, path, is_new=True)

    def touches(self, *names: str) -> bool:
        """Return whether any of these properties will or might change; without names, any property except `Tags`."""
        changed = {
            _property_name(property_.path)
            for property_ in self.change.properties
            if property_.path.startswith("/Properties/")
        }
        return bool(changed & set(names)) if names else bool(changed - {"Tags"})

    def certainly_touches(self, *names: str) -> bool:
        """Return whether one of these properties will certainly change."""
        return any(
            property_.certain and _property_name(property_.path) in names
            for property_ in self.change.properties
            if property_.path.startswith("/Properties/")
        )

    def _value(self, properties: object, path: tuple[str, ...], *, is_new: bool) -> object:
        """Return the old or new value of a property: from the listed changes, else from the resource's definition."""
        for property_ in self.change.properties:
            if property_.path == "/Properties/" + "/".join(path):
                return property_.after if is_new else property_.before
        value = properties
        for part in path:
            if isinstance(value, list):
                value = value[int(part)] if part.isdecimal() and int(part) < len(value) else None
            else:
                value = value.get(part) if isinstance(value, Mapping) else None
        return None if isinstance(value, str) and UNKNOWN in value else value


def _property_name(path: str) -> str:
    """Return the name of the property in a path, e.g. `Tags` for `/Properties/Tags[team]`."""
    return path.split("/")[2].partition("[")[0]


def owner_of(cluster: Cluster, logical_id: str) -> tuple[str, bool]:
    """Return the master or node group that a resource belongs to, in words, and whether it is a master."""
    program = ProgramId.parse(logical_id)
    # A boot program's resource belongs to a master or to a node group.
    if (master := MasterId.parse(logical_id) or program) and master.letter:
        return f"master {master.letter}", True
    node_group = NodeGroupId.parse(logical_id) or program
    if node_group is None or not node_group.group:
        return "", False
    name = next((group.name for group in cluster.node_groups if pascal(group.name) == node_group.group), "")
    return f"node group `{name or _name_of_removed_group(node_group.group)}`", False


def _name_of_removed_group(pascal_name: str) -> str:
    """Return the likely name of a node group that is no longer in the cluster file, e.g. `gpu-a` for `GpuA`."""
    return "".join(f"-{char.lower()}" if char.isupper() else char for char in pascal_name).removeprefix("-")


def number(value: object) -> int | None:
    """Return a value that consists of decimal digits as an integer; None for any other value."""
    return int(str(value)) if str(value).isdecimal() else None
