"""A change of one resource with its context: its owner, and its old and new values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cfngen.cluster.model import Cluster
from cfngen.cluster.names import group_id, slot_id
from cfngen.deploy.preview.change_set_reading import UNKNOWN, ResourceChange
from cfngen.deploy.preview.changes import Change, Replacement

_RESOURCE_SUFFIXES = (
    "Stack|Program[0-9a-f]{12}|LaunchTemplate|AutoScalingGroup|Role|InstanceProfile|NetworkInterface|Volume|ElasticIp|"
    "ElasticIpAssociation|WaitCondition"
)
_GROUP_RESOURCE = re.compile(rf"NodeGroup(\w+?)({_RESOURCE_SUFFIXES})")


class ChangeContext:
    """A change of a resource with the context that determines its impact.

    Attributes:
        cluster: the cluster as it is to be deployed.
        change: the change.
        owner: the master or node group that the resource belongs to, e.g. "master a"; empty if none.
        is_master: whether it belongs to a master.
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
        return self._value(self._before, path, 0)

    def after(self, *path: str) -> object:
        """Return the new value of a property, or None if it is not known, or not known yet."""
        return self._value(self._after, path, 1)

    def touches(self, *names: str) -> bool:
        """Return whether any of these properties will or might change; without names, any property except tags."""
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

    def _value(self, properties: object, path: tuple[str, ...], side: int) -> object:
        for property_ in self.change.properties:
            if property_.path == "/Properties/" + "/".join(path):
                return (property_.before, property_.after)[side]
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
    for slot in cluster.slots:
        if re.fullmatch(rf"{slot_id(slot.letter)}({_RESOURCE_SUFFIXES})", logical_id):
            return f"master {slot.letter}", True
    for group in cluster.node_groups:
        if re.fullmatch(rf"{group_id(group.name)}({_RESOURCE_SUFFIXES})", logical_id):
            return f"node group `{group.name}`", False
    if match := re.fullmatch(rf"Master([A-E])({_RESOURCE_SUFFIXES})", logical_id):
        return f"master {match[1].lower()}", True
    if match := _GROUP_RESOURCE.fullmatch(logical_id):
        # A node group that was removed from the cluster file: its logical id is its name without the hyphens.
        return f"node group `{re.sub(r'(?<!^)(?=[A-Z])', '-', match[1]).lower()}`", False
    return "", False


def number(value: object) -> int | None:
    """Return a text as an integer, or None if it is not one."""
    return int(str(value)) if str(value).isdecimal() else None
