"""A change of one resource as the rules ask about it: whose it is, and its values before and after."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.cluster.names import group_id, slot_id
from cfngen.deploy.preview.change_set_reading import UNKNOWN, Entry
from cfngen.deploy.preview.plan import Change, Replacement

_RESOURCE_SUFFIXES = (
    "Stack|Program[0-9a-f]{12}|LaunchTemplate|AutoScalingGroup|Role|InstanceProfile|NetworkInterface|Volume|ElasticIp|"
    "ElasticIpAssociation|WaitCondition"
)
_GROUP_RESOURCE = re.compile(rf"NodeGroup(\w+?)({_RESOURCE_SUFFIXES})")


class Subject:
    """A change and its surroundings, as the rules ask for them.

    Attributes:
        change: the change.
        whose: the slot or node group it belongs to, e.g. "master a"; empty if to neither.
        master: whether it belongs to a master.
        masters: how many masters there are now.
        instances: how many instances an Auto Scaling group has now; None where that is not known.
    """

    def __init__(
        self, cluster: Cluster, change: Change, entry: Entry, masters: int, instances: int | None = None
    ) -> None:
        self.cluster = cluster
        self.masters = masters
        self.change = change
        self.instances = instances
        self._before = entry.before.get("Properties", {})
        self._after = entry.after.get("Properties", {})
        self.whose, self.master = owner(cluster, change.logical_id)

    @property
    def might(self) -> bool:
        """Whether it is not certain that it is replaced."""
        return self.change.replacement is Replacement.MIGHT

    @property
    def goes(self) -> bool:
        """Whether the resource is removed, is replaced or might be."""
        return self.change.action == "remove" or self.change.replacement is not Replacement.NO

    @property
    def going(self) -> str:
        """`is removed`, `is replaced` or `might be replaced`."""
        if self.change.action == "remove":
            return "is removed"
        return "might be replaced" if self.might else "is replaced"

    def before(self, *path: str) -> Any:
        """Return a value before, or None if it is not told."""
        return self._value(self._before, path, 0)

    def after(self, *path: str) -> Any:
        """Return a value after, or None if it is not told or not known yet."""
        return self._value(self._after, path, 1)

    def touches(self, *names: str) -> bool:
        """Return whether any of these properties changes or might; without names, any property at all."""
        changed = {
            _name(property_.path) for property_ in self.change.properties if property_.path.startswith("/Properties/")
        }
        return bool(changed & set(names)) if names else bool(changed - {"Tags"})

    def certain(self, *names: str) -> bool:
        """Return whether one of these properties changes for certain."""
        return any(
            property_.certain and _name(property_.path) in names
            for property_ in self.change.properties
            if property_.path.startswith("/Properties/")
        )

    def _value(self, properties: Any, path: tuple[str, ...], side: int) -> Any:
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


def _name(path: str) -> str:
    """Return the property that a path leads into."""
    return path.split("/")[2].partition("[")[0]


def owner(cluster: Cluster, logical_id: str) -> tuple[str, bool]:
    """Return the slot or node group that a resource belongs to, in words, and whether it is a master's."""
    for slot in cluster.slots:
        if re.fullmatch(rf"{slot_id(slot.letter)}({_RESOURCE_SUFFIXES})", logical_id):
            return f"master {slot.letter}", True
    for group in cluster.node_groups:
        if re.fullmatch(rf"{group_id(group.name)}({_RESOURCE_SUFFIXES})", logical_id):
            return f"node group `{group.name}`", False
    if match := re.fullmatch(rf"Master([A-E])({_RESOURCE_SUFFIXES})", logical_id):
        return f"master {match[1].lower()}", True
    if match := _GROUP_RESOURCE.fullmatch(logical_id):
        # A group that the cluster file no longer has: of its name, the logical id keeps all but the hyphens.
        return f"node group `{re.sub(r'(?<!^)(?=[A-Z])', '-', match[1]).lower()}`", False
    return "", False


def number(value: Any) -> int | None:
    """Return a whole number that is told as text, or None."""
    return int(value) if str(value).isdecimal() else None
