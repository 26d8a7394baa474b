"""What CloudFormation's service role may do with capacity reservations, and who may replace instances."""

from __future__ import annotations

from typing import Any

from cfngen.cluster.load import parse
from cfngen.permissions.grants import scope_of
from cfngen.permissions.operations import replacement_statements
from cfngen.permissions.scope import Scope
from cfngen.permissions.service_role import capacity_reservation_statements

ROLE = "arn:aws:iam::123456789012:role/masters"


def reservation_statements(**control_plane: Any) -> dict[str, dict[str, Any]]:
    """Return the statements of a cluster with these keys of `controlPlane`, by their names."""
    cluster = parse({"controlPlane": control_plane})
    return {
        statement["Sid"]: dict(statement) for statement in capacity_reservation_statements(cluster, scope_of(cluster))
    }


def test_nothing_may_be_reserved_by_default() -> None:
    assert reservation_statements() == {}


def test_only_the_clusters_own_reservations_may_be_cancelled() -> None:
    statements = reservation_statements(capacityReservation=True)
    own = statements["OwnCapacityReservations"]
    assert own["Action"] == ["ec2:CancelCapacityReservation", "ec2:ModifyCapacityReservation"]
    assert own["Condition"] == {"StringLike": {"aws:ResourceTag/KubernetesCluster": "kubernetes"}}
    assert statements["NewCapacityReservations"]["Resource"] == ["arn:aws:ec2:us-west-2:*:capacity-reservation/*"]


def test_whoever_replaces_instances_touches_only_the_clusters_groups_and_launch_templates() -> None:
    statements = {
        statement["Sid"]: dict(statement)
        for statement in replacement_statements(Scope("123456789012", "us-west-2", "one", existing_roles=(ROLE,)))
    }
    groups = {arn.rpartition("/")[2] for arn in statements["ReplaceInstances"]["Resource"]}
    assert groups == {"one-Bastion*", "one-Master*", "one-NodeGroup*"}
    assert statements["NewTypes"]["Condition"] == {"StringLike": {"aws:ResourceTag/KubernetesCluster": "one"}}
    passed = statements["PassRoleToInstances"]
    assert ROLE in passed["Resource"]
    assert passed["Condition"] == {"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}}
