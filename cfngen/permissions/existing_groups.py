"""Statements for the rules that the cloud controller manager makes in an existing security group of the nodes.

An existing group need not have the tag `KubernetesCluster`, by which other statements recognize the cluster's groups.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import existing_group
from cfngen.permissions.references import References, arn
from cfngen.permissions.scope import Scope
from cfngen.permissions.statements import Statement, allow


def existing_group_statements(
    cluster: Cluster, references: References, *, sid: str = "CloudControllerExistingGroup"
) -> list[Statement]:
    """Return the statement for a controller of load balancers; none if cfngen creates the nodes' security group.

    The controller may change the group only while the user lets it: by the tag `kubernetes.io/cluster/<name>`.
    """
    if not existing_group(cluster, "Node"):
        return []
    group = arn(references, "ec2", "security-group/${NodeGroup}", NodeGroup=references.node_security_group_id)
    return [
        allow(
            sid=sid,
            actions="ec2:AuthorizeSecurityGroupIngress ec2:RevokeSecurityGroupIngress",
            resources=[group],
            condition={"Null": {f"aws:ResourceTag/kubernetes.io/cluster/{cluster.name}": "false"}},
        )
    ]


def revoke_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statement with which `cfngen delete` takes the controller's rules out of the nodes' existing group.

    Rules are revoked by their ids, so the rules are resources of the request too ("Actions, resources, and condition
    keys for Amazon EC2", Service Authorization Reference).
    """
    group_id = existing_group(cluster, "Node")
    if not group_id:
        return []
    return [
        allow(
            sid="RevokeInExistingGroup",
            actions="ec2:RevokeSecurityGroupEgress ec2:RevokeSecurityGroupIngress",
            resources=scope.ec2_arns(f"security-group/{scope.node_security_group_id}", "security-group-rule/*"),
        )
    ]
