"""Expands a node group with `oneGroupPerZone` into one group for each of its zones.

This is the last step that completes a cluster file: everything after it sees plain groups of one zone. A group's name
gets the end of its zone's name, so that groups keep their names, and thus their stacks and instances, when zones are
added or removed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cfngen.cluster.defaults.completed_data import Section, WrittenGroup, WrittenGroups
from cfngen.cluster.naming.zones import zone_suffix
from cfngen.cluster.sections.field_types import NAME_PATTERN
from cfngen.cluster.sections.instances import NodeGroup

_DEFAULT_NAME: str = NodeGroup.model_fields["name"].default


def expand(data: Section) -> WrittenGroups:
    """Replace each group with `oneGroupPerZone` by one group for each of its zones; return where groups were written.

    A group with an invalid name or zone stays as it is, so that validation reports what the user wrote.
    """
    groups = data.get("nodeGroups")
    if not isinstance(groups, list) or not any(isinstance(group, dict) and _is_expanded(group) for group in groups):
        return WrittenGroups()
    expanded: list[object] = []
    written: list[WrittenGroup] = []
    for index, group in enumerate(groups):
        if not isinstance(group, dict) or not _is_expanded(group):
            expanded.append(group)
            written.append(WrittenGroup(index))
            continue
        for zone_index, zone in enumerate(group["zones"]):
            name = f"{group.get('name', _DEFAULT_NAME)}-{zone_suffix(zone)}"
            # The new groups are plain ones, so that the completed cluster, written to a file, is the same cluster.
            expanded.append({**group, "name": name, "zones": [zone], "oneGroupPerZone": False})
            written.append(WrittenGroup(index, zone_index, zone, name))
    data["nodeGroups"] = expanded
    return WrittenGroups(tuple(written))


def _is_expanded(group: Section) -> bool:
    """Return whether a group has `oneGroupPerZone`, and a name and zones from which names can be made."""
    name, zones = group.get("name", _DEFAULT_NAME), group.get("zones")
    return (
        group.get("oneGroupPerZone") is True
        and isinstance(name, str)
        and re.fullmatch(NAME_PATTERN, name) is not None
        and isinstance(zones, Sequence)
        and not isinstance(zones, str)
        and bool(zones)
        and all(isinstance(zone, str) and zone_suffix(zone) for zone in zones)
        and len(set(zones)) == len(zones)
    )
