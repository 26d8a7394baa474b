"""The IAM policies that the documentation shows, each of which fits into one managed policy.

Without a scope, a policy is for any cluster in any account and region.
"""

from __future__ import annotations

from collections.abc import Collection

from cfngen.permissions.network import private_network_statements
from cfngen.permissions.operations import pause_statements, snapshot_statements
from cfngen.permissions.operators import (
    SERVICE_ROLE,
    command_groups,
    operator_statements,
    template_bucket_statements,
)
from cfngen.permissions.scope import Scope
from cfngen.permissions.service_role import (
    instance_and_secret_statements,
    load_balancer_statements,
    stack_and_network_statements,
)
from cfngen.permissions.statements import PolicyDocument, merge_statements, policy_document

ANY = Scope()
"""Any cluster in any account and region."""


def operator_policy(
    scope: Scope = ANY, *, service_role: str = SERVICE_ROLE, only_command_groups: Collection[str] = ()
) -> PolicyDocument:
    """Return the policy of an operator.

    Args:
        scope: account, region and cluster that the policy is for.
        service_role: name of the service role that the operator passes to CloudFormation.
        only_command_groups: names of the command groups to include; if empty, all groups are included.
    """
    if not only_command_groups:
        return policy_document(operator_statements(scope, service_role=service_role))
    groups = [group for group in command_groups(scope, service_role=service_role) if group.name in only_command_groups]
    return policy_document(merge_statements([statement for group in groups for statement in group.statements]))


def execution_policy(scope: Scope = ANY) -> PolicyDocument:
    """Return the first policy of CloudFormation's service role: nested stacks, network and bucket of snapshots."""
    return policy_document(stack_and_network_statements(scope))


def roles_and_secrets_policy(scope: Scope = ANY) -> PolicyDocument:
    """Return the second policy of CloudFormation's service role: instances, roles and secrets."""
    return policy_document(instance_and_secret_statements(scope))


def several_masters_policy(scope: Scope = ANY) -> PolicyDocument:
    """Return the third policy of CloudFormation's service role, for clusters whose API has a load balancer.

    Only clusters with several masters need it, and private clusters with a public API.
    """
    return policy_document(load_balancer_statements(scope))


def private_cluster_policy(scope: Scope = ANY) -> PolicyDocument:
    """Return the fourth policy of CloudFormation's service role, which only private clusters need."""
    return policy_document(private_network_statements(scope))


def etcd_policy(scope: Scope = ANY) -> PolicyDocument:
    """Return the policy that an operator needs in addition for `cfngen etcd backup` and `cfngen etcd restore`."""
    return policy_document(snapshot_statements(scope))


def pause_policy(scope: Scope = ANY) -> PolicyDocument:
    """Return the policy that an operator needs in addition for `cfngen pause` and `cfngen resume`."""
    return policy_document(pause_statements(scope))


def bucket_policy(scope: Scope = ANY) -> PolicyDocument:
    """Return the policy to create, change and delete the bucket for templates, which an account's clusters share."""
    return policy_document(template_bucket_statements(scope))
