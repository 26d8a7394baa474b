"""A change of one resource, with the master or node group that the resource belongs to and its old and new values."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.id_form import pascal
from cfngen.cluster.naming.logical_ids import MasterId, NodeGroupId, ProgramId
from cfngen.cluster.naming.network_ids import NodeGroupRuleId
from cfngen.cluster.network.topology import has_api_load_balancer
from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.plan.plan import Change, Replacement
from cfngen.templates.evaluation import value_at
from cfngen.templates.expressions import is_function


@dataclass(frozen=True)
class ChangeContext:
    """A change of a resource with the context that determines its impact.

    Attributes:
        cluster: the cluster as it is to be deployed.
        resource_change: the change as CloudFormation lists it.
        master_count: current number of masters.
        instance_count: current number of instances of an Auto Scaling group; None if not known.
    """

    cluster: Cluster
    change: Change
    resource_change: ResourceChange
    _: KW_ONLY
    master_count: int
    instance_count: int | None = None

    @cached_property
    def _owner(self) -> Owner:
        return owner_of(self.cluster, self.change.logical_id)

    @property
    def owner(self) -> str:
        """The master or node group that the resource belongs to, e.g. "master a"; empty if none."""
        return self._owner.text

    @property
    def is_master(self) -> bool:
        """Whether the resource belongs to a master."""
        return self._owner.is_master

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

    @property
    def has_api_load_balancer(self) -> bool:
        """Whether the cluster's API will be reached through a load balancer."""
        return has_api_load_balancer(self.cluster)

    def before(self, *path: str) -> object:
        """Return the old value of a property, or None if it is not known.

        Args:
            path: names of the property and of the keys in it, or positions in lists, e.g. `Tags`, `0`, `Value`.
        """
        return self._value(self.resource_change.before.get("Properties", {}), path, is_new=False)

    def after(self, *path: str) -> object:
        """Return the new value of a property, or None if it is not known, or not known yet; `path` as in `before`."""
        return self._value(self.resource_change.after.get("Properties", {}), path, is_new=True)

    def touches(self, *names: str) -> bool:
        """Return whether any of these properties will or might change."""
        return not self._names_of_changed_properties.isdisjoint(names)

    @property
    def changes_any_property_but_tags(self) -> bool:
        """Whether any property except `Tags` will or might change."""
        return bool(self._names_of_changed_properties - {"Tags"})

    def certainly_touches(self, *names: str) -> bool:
        """Return whether one of these properties will certainly change."""
        return any(
            property_.certain and _property_name(property_.path) in names
            for property_ in self.change.properties
            if property_.path.startswith("/Properties/")
        )

    @property
    def _names_of_changed_properties(self) -> set[str]:
        return {
            _property_name(property_.path)
            for property_ in self.change.properties
            if property_.path.startswith("/Properties/")
        }

    def _value(self, properties: object, path: tuple[str, ...], *, is_new: bool) -> object:
        """Return the old or new value of a property: from the listed changes, else from the resource's definition."""
        for property_ in self.change.properties:
            if property_.path == "/Properties/" + "/".join(path):
                return property_.after if is_new else property_.before
        value = value_at(properties, path)
        return None if is_function(value) else value


def _property_name(path: str) -> str:
    """Return the name of the property in a path, e.g. `Tags` for `/Properties/Tags[team]`."""
    return path.split("/")[2].partition("[")[0]


class Owner(NamedTuple):
    """The master or node group that a resource belongs to.

    Attributes:
        text: in words, e.g. "master a" or "node group `gpu`"; empty if the resource belongs to none.
    """

    text: str
    is_master: bool

    @property
    def is_node_group(self) -> bool:
        """Whether it is a node group."""
        return bool(self.text) and not self.is_master


def owner_of(cluster: Cluster, logical_id: str) -> Owner:
    """Return the master or node group that the resource with this logical id belongs to."""
    # The resource with a boot program belongs to a master or to a node group.
    program_id = ProgramId.parse(logical_id)
    master_id = MasterId.parse(logical_id) or program_id
    if master_id and master_id.letter:
        return Owner(f"master {master_id.letter}", is_master=True)
    node_group_id = NodeGroupId.parse(logical_id) or NodeGroupRuleId.parse(logical_id) or program_id
    if node_group_id is None or not node_group_id.group:
        return Owner("", is_master=False)
    names_by_pascal_name = {pascal(group.name): group.name for group in cluster.node_groups}
    name = names_by_pascal_name.get(node_group_id.group) or _name_of_removed_group(node_group_id.group)
    return Owner(f"node group `{name}`", is_master=False)


def _name_of_removed_group(pascal_name: str) -> str:
    """Return the likely name of a node group that is no longer in the cluster file, e.g. `gpu-a` for `GpuA`."""
    return "".join(f"-{char.lower()}" if char.isupper() else char for char in pascal_name).removeprefix("-")


def number_if_decimal(value: object) -> int | None:
    """Return a value that consists of decimal digits as an integer; None for any other value."""
    return int(str(value)) if str(value).isdecimal() else None
