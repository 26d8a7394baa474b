"""What EC2 refuses to delete because something else needs it, and moto deletes all the same.

Amazon VPC user guide, "Delete your VPC" and "Delete a security group": a subnet goes when no interface is in it, a
security group when no interface uses it and no rule of another group names it, a VPC when nothing of its own is left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models import EC2Backend


@contextlib.contextmanager
def dependencies() -> Iterator[None]:
    """Let moto refuse what EC2 refuses."""
    group, subnet, vpc = EC2Backend.delete_security_group, EC2Backend.delete_subnet, EC2Backend.delete_vpc

    def delete_security_group(self: Any, name: str | None = None, group_id: str | None = None) -> None:
        users = [each.id for each in _interfaces(self) if group_id in [used.id for used in each.group_set]]
        naming = [
            other.id
            for groups in self.groups.values()
            for other in groups.values()
            for rule in (*other.ingress_rules, *other.egress_rules)
            if other.id != group_id and group_id == (rule.source_group or {}).get("GroupId")
        ]
        if users or naming:
            raise DependencyViolationError(f"resource {group_id} has a dependent object")
        group(self, name, group_id)

    def delete_subnet(self: Any, subnet_id: str) -> Any:
        if any(each.subnet.id == subnet_id for each in _interfaces(self)):
            raise DependencyViolationError(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
        return subnet(self, subnet_id)

    def delete_vpc(self: Any, vpc_id: str) -> Any:
        if [each for each in self.groups[vpc_id].values() if each.name != "default"]:
            raise DependencyViolationError(f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
        return vpc(self, vpc_id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EC2Backend, "delete_security_group", delete_security_group)
        patch.setattr(EC2Backend, "delete_subnet", delete_subnet)
        patch.setattr(EC2Backend, "delete_vpc", delete_vpc)
        yield


def _interfaces(backend: Any) -> list[Any]:
    """Interfaces but those of terminated instances, which moto keeps."""
    return [each for each in backend.enis.values() if not (each.instance and each.instance.state == "terminated")]
