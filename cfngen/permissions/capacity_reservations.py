"""Statements of CloudFormation's service role for the capacity reservations of masters.

Calls: permissions of the handlers of AWS::EC2::CapacityReservation in the CloudFormation registry, without those for
another billing owner. Resources: "Actions, resources, and condition keys for Amazon EC2", Service Authorization
Reference. Describing and tagging are among the statements for every cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.model import Cluster
from cfngen.permissions.scope import Scope, if_resource_has_tag
from cfngen.permissions.statements import Statement, allow


def capacity_reservation_statements(cluster: Cluster, scope: Scope) -> Sequence[Statement]:
    """Return the statements to make, change and cancel reservations; empty if the cluster file reserves nothing."""
    if not cluster.control_plane.capacity_reservation:
        return []
    arns = scope.ec2_arns("capacity-reservation/*")
    return [
        allow(sid="NewCapacityReservations", actions="ec2:CreateCapacityReservation", resources=arns),
        allow(
            sid="OwnCapacityReservations",
            actions="ec2:CancelCapacityReservation ec2:ModifyCapacityReservation",
            resources=arns,
            condition=if_resource_has_tag(scope),
        ),
    ]
