"""Statements for what a cluster file adds to masters and nodes: statements of their roles, and target groups."""

from __future__ import annotations

from collections.abc import Iterable

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.instances import Instances
from cfngen.cluster.sections.service_accounts import PolicyStatement
from cfngen.permissions.scope import Scope
from cfngen.permissions.statements import Statement, allow


def own_statements(instances: Instances) -> list[Statement]:
    """Return the statements of the `policyStatements` of masters or of a node group."""
    return statements_of_cluster_file(instances.policy_statements)


def statements_of_cluster_file(policy_statements: Iterable[PolicyStatement]) -> list[Statement]:
    """Return the statements that the cluster file has for a role, numbered in its order."""
    statements: list[Statement] = []
    for number, own_statement in enumerate(policy_statements, start=1):
        statement: Statement = {
            "Sid": f"ClusterFile{number}",
            "Effect": own_statement.effect,
            "Action": list(own_statement.actions),
            "Resource": list(own_statement.resources),
        }
        if own_statement.conditions:
            statement["Condition"] = own_statement.conditions
        statements.append(statement)
    return statements


def target_group_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role for target groups; empty if no node group names any.

    Calls: permissions of the handler of AWS::AutoScaling::AutoScalingGroup in the CloudFormation registry.
    """
    if not any(group.target_groups for group in cluster.node_groups):
        return []
    return [
        allow(
            sid="TargetGroups",
            actions="autoscaling:AttachLoadBalancerTargetGroups autoscaling:DetachLoadBalancerTargetGroups",
            resources=scope.auto_scaling_group_arns,
        )
    ]
