"""Who needs permissions for one cluster, and the policies that grant them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cfngen.cluster.iam.existing_roles import existing_roles, group_role, makes_instance_profiles, makes_roles
from cfngen.cluster.iam.push_roles import made_push_roles
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import aws_partition
from cfngen.cluster.network.existing_parts import existing_group, groups_of_instances
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import has_api_load_balancer
from cfngen.cluster.paths import Path
from cfngen.cluster.sections.instances import InstanceRole, NodeGroup
from cfngen.cluster.sections.references import known_id, with_account
from cfngen.cluster.sections.registry import Push
from cfngen.errors import CfngenError
from cfngen.permissions.addons import addon_statements
from cfngen.permissions.api_dns import api_dns_statements, read_zone_statements
from cfngen.permissions.boundary import boundary_statements
from cfngen.permissions.ec2_resources import created_types, existing_parts
from cfngen.permissions.instance_roles import (
    backup_key_statements,
    backup_lock_statements,
    master_statements,
    masters_pull_statements,
    node_statements,
    plugin_statements_of_masters,
)
from cfngen.permissions.named_resources import (
    read_output_statements,
    read_parameter_statements,
    read_record_statements,
    record_statements,
)
from cfngen.permissions.network import (
    flow_log_delivery_statements,
    flow_log_statements,
    needs_private_network_statements,
    private_network_statements,
    read_flow_log_statements,
    subnet_tag_statements,
)
from cfngen.permissions.node_groups import own_statements, target_group_statements
from cfngen.permissions.operations import pause_statements, replacement_statements, snapshot_statements
from cfngen.permissions.operators import (
    SERVICE_ROLE,
    operator_statements,
    pipeline_statements,
    revoke_statements,
    template_bucket_statements,
)
from cfngen.permissions.pod_roles import pod_role_statements, read_pod_role_statements
from cfngen.permissions.registry import push_statements, read_registry_statements, registry_statements
from cfngen.permissions.scope import Scope
from cfngen.permissions.service_accounts import grantee_name, made_roles
from cfngen.permissions.service_role import (
    capacity_reservation_statements,
    instance_and_secret_statements,
    load_balancer_statements,
    stack_and_network_statements,
)
from cfngen.permissions.statements import MANAGED_POLICY_LIMIT, Statement, policy_size, split_into_documents


@dataclass(frozen=True)
class Grant:
    """The permissions of one grantee: a person or an IAM role.

    Attributes:
        name: name of the grantee: `operator`, `execution`, `bucket`, `pipeline`, `replace`, `etcd`, `master`,
            `nodes-<group>`, `pod-<namespace>-<service account>`, `flow-log`, or `push-<name>`; `boundary` is nobody's.
        purpose: who the grantee is, and what the permissions are for.
        managed_policies: ARNs of the managed policies that the grantee has in addition.
    """

    name: str
    purpose: str
    statements: Sequence[Statement]
    managed_policies: tuple[str, ...] = ()

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The statements as managed policies: one, or several if IAM's limit requires it."""
        policy_documents = split_into_documents(self.statements)
        return tuple(
            Policy(
                name=self.name if len(policy_documents) == 1 else f"{self.name}-{number}",
                grantee=self.name,
                purpose=self.purpose,
                managed_policies=self.managed_policies,
                characters=policy_size(policy_document),
                document=policy_document,
            )
            for number, policy_document in enumerate(policy_documents, start=1)
        )


class BoundaryTooLargeError(CfngenError):
    """A permissions boundary of the cluster's roles does not fit into one managed policy."""

    code = "boundary-too-large"

    def __init__(self, characters: int) -> None:
        super().__init__(
            f"the boundary would have {characters:,} characters, and a boundary is one managed policy of at most "
            f"{MANAGED_POLICY_LIMIT:,}",
            hint="make policies of your own of some policyStatements, name them in additionalPolicies, and write a "
            "boundary that allows these, too.",
        )


@dataclass(frozen=True)
class Policy:
    """A policy document that fits into one managed policy of IAM.

    Attributes:
        name: the grantee's name; if the grantee's statements need several policies, with a number: `execution-1`. A
            role's trust policy is named `master-trust`.
        grantee: `operator`, `execution` (CloudFormation's service role), `bucket`, `pipeline`, `replace`, `etcd`,
            `master`, `nodes-<group>`, `pod-<namespace>-<service account>`, `flow-log`, `push-<name>`, or `boundary`.
        purpose: who the grantee is, and what the permissions are for.
        managed_policies: ARNs of the managed policies that the cluster file adds to the grantee.
        characters: size of the document as IAM counts it, at most 6,144.
        document: the policy document as JSON-ready data.
    """

    kind: ClassVar[str] = "policy"
    name: str
    grantee: str
    purpose: str
    managed_policies: tuple[str, ...]
    characters: int
    document: Mapping[str, object]


def scope_of(cluster: Cluster, *, stack: str = "", account: str = "*") -> Scope:
    """Return the scope of a cluster.

    Args:
        stack: name of the cluster's root stack; if empty, it is the cluster's name.
        account: account number; an asterisk stands for any account.
    """
    issuer = cluster.service_account_issuer
    return Scope(
        account=account,
        region=cluster.region,
        cluster=cluster.name,
        partition=aws_partition(cluster.region),
        stack=stack,
        own_backup_bucket=cluster.etcd.backups.bucket or "",
        locks_snapshots=cluster.etcd.backups.object_lock is not None,
        own_issuer_bucket=(issuer.bucket or "") if issuer else "",
        vpc_id=known_id(cluster.network.vpc.id) or "*",
        route_table_id=known_id(cluster.network.route_table) or "*",
        node_security_group_id=known_id(existing_group(cluster, "Node")) or "*",
        security_groups_of_masters=tuple(known_id(group) or "*" for group in groups_of_instances(cluster, "masters")),
        security_groups_of_nodes=tuple(known_id(group) or "*" for group in groups_of_instances(cluster, "nodes")),
        own_secrets_key=with_account(cluster.secrets.kms_key or "", account),
        own_backup_key=with_account(cluster.etcd.backups.kms_key or "", account),
        removes_pod_routes=network_plugin(cluster).uses_vpc_routes
        and any(subnet.id for subnet in cluster.network.subnets),
        # A plug-in of the user's may create interfaces.
        removes_interfaces=network_plugin(cluster).gives_pods_vpc_addresses or cluster.network.plugin == "none",
        created_types=created_types(cluster),
        existing_parts=existing_parts(cluster),
        permissions_boundaries=_in_account(_permissions_boundaries(cluster), account),
        existing_roles=tuple(dict.fromkeys(existing.role for _, existing in existing_roles(cluster))),
        existing_instance_profiles=tuple(
            dict.fromkeys(
                existing.instance_profile for _, existing in existing_roles(cluster) if existing.instance_profile
            )
        ),
        makes_roles=makes_roles(cluster),
        makes_instance_profiles=makes_instance_profiles(cluster),
        iam_path=cluster.iam.path,
        has_registry=any(not repository.existing for repository in cluster.registry.repositories)
        or any(made_push_roles(cluster)),
    )


def _permissions_boundaries(cluster: Cluster) -> tuple[str, ...]:
    """Return the boundaries of all roles that are made: the cluster's, and those of single service accounts."""
    if not cluster.iam.permissions_boundary:
        return ()
    of_accounts = (account.permissions_boundary for account in cluster.iam.service_accounts)
    return tuple(dict.fromkeys([cluster.iam.permissions_boundary, *filter(None, of_accounts)]))


def _in_account(arns: Iterable[str], account: str) -> tuple[str, ...]:
    return tuple(with_account(arn, account) for arn in arns)


def grants(cluster: Cluster, scope: Scope, *, service_role: str = SERVICE_ROLE) -> tuple[Grant, ...]:
    """Return the permissions of each grantee; `service_role` is the one that the operator passes to CloudFormation."""
    return (
        _operator_grant(cluster, scope, service_role),
        _service_role_grant(cluster, scope, service_role),
        Grant(
            name="bucket",
            purpose="creates the bucket for templates that the account's clusters in the region share, corrects its "
            "settings and deletes it; in addition to the operator's permissions",
            statements=template_bucket_statements(scope),
        ),
        Grant(
            name="pipeline",
            purpose="deploys and deletes the cluster's stack by the AWS CLI, the CDK or the console, without cfngen, "
            f"where CloudFormation works with the role {service_role}",
            statements=pipeline_statements(scope, service_role=service_role),
        ),
        Grant(
            name="replace",
            purpose="replaces instances with cfngen, a master's also by one of another type; in addition to the "
            "operator's permissions",
            statements=replacement_statements(scope),
        ),
        *_etcd_grants(cluster, scope),
        Grant(
            name="pause",
            purpose="pauses and resumes the cluster with cfngen; in addition to the operator's permissions",
            statements=pause_statements(scope),
        ),
        _master_grant(cluster, scope),
        *(_node_grant(cluster, group, scope) for group in cluster.node_groups),
        *_pod_grants(cluster, scope),
        *_flow_log_grants(cluster, scope),
        *_push_grants(cluster, scope, cluster.registry.push),
    )


def role_grants(cluster: Cluster, scope: Scope) -> tuple[Grant, ...]:
    """Return the permissions of the roles that the stacks make: of instances, pods, flow logs and who pushes images."""
    return (
        *(() if cluster.iam.masters else (_master_grant(cluster, scope),)),
        *(_node_grant(cluster, group, scope) for group in cluster.node_groups if not group_role(cluster, group)),
        *_pod_grants(cluster, scope),
        *_flow_log_grants(cluster, scope),
        *_push_grants(cluster, scope, [push for _, push in made_push_roles(cluster)]),
    )


def boundary(cluster: Cluster, scope: Scope) -> Grant:
    """Return a permissions boundary of the roles that the stacks make.

    Its `managed_policies` are those of the cluster file, whose contents are not in the boundary.

    Raises:
        BoundaryTooLargeError: the boundary does not fit into one managed policy.
    """
    made = role_grants(cluster, scope)
    grant = Grant(
        name="boundary",
        purpose="a permissions boundary of all roles that the stacks make, which an administrator of the account "
        "installs and iam.permissionsBoundary names",
        statements=boundary_statements(statement for grant in made for statement in grant.statements),
        managed_policies=tuple(dict.fromkeys(arn for grant in made for arn in grant.managed_policies)),
    )
    if len(grant.policies) > 1:
        raise BoundaryTooLargeError(sum(policy.characters for policy in grant.policies))
    return grant


def grants_of_existing_roles(cluster: Cluster, scope: Scope) -> Iterator[tuple[Path, InstanceRole, Grant]]:
    """Yield each existing role that instances have, with its path in the cluster file and the permissions it needs."""
    for path, existing in existing_roles(cluster):
        if existing is cluster.iam.masters:
            yield path, existing, _master_grant(cluster, scope)
        # Node groups that share a role need the same permissions.
        groups = (group for group in cluster.node_groups if group_role(cluster, group) is existing)
        if group := next(groups, None):
            yield path, existing, _node_grant(cluster, group, scope)


def _operator_grant(cluster: Cluster, scope: Scope, service_role: str) -> Grant:
    return Grant(
        name="operator",
        purpose="deploys, watches and deletes the cluster with cfngen, where CloudFormation works with the role "
        f"{service_role}",
        statements=[
            *operator_statements(scope, service_role=service_role),
            *revoke_statements(cluster, scope),
            *read_zone_statements(cluster, scope),
            *read_parameter_statements(cluster, scope),
            *read_flow_log_statements(cluster, scope),
            *read_record_statements(cluster, scope),
            *subnet_tag_statements(cluster, scope),
            *read_pod_role_statements(cluster, scope),
            *read_registry_statements(cluster, scope),
        ],
    )


def _service_role_grant(cluster: Cluster, scope: Scope, service_role: str) -> Grant:
    return Grant(
        name="execution",
        purpose=f"the service role {service_role} of CloudFormation, which creates the cluster's resources",
        statements=[
            *stack_and_network_statements(scope),
            *instance_and_secret_statements(scope),
            *(load_balancer_statements(scope) if has_api_load_balancer(cluster) else []),
            *(private_network_statements(scope) if needs_private_network_statements(cluster) else []),
            *api_dns_statements(cluster, scope),
            *read_output_statements(cluster, scope),
            *read_parameter_statements(cluster, scope),
            *flow_log_statements(cluster, scope),
            *record_statements(cluster, scope),
            *target_group_statements(cluster, scope),
            *capacity_reservation_statements(cluster, scope),
            *pod_role_statements(cluster, scope),
            *registry_statements(cluster, scope),
        ],
    )


def _master_grant(cluster: Cluster, scope: Scope) -> Grant:
    return Grant(
        name="master",
        purpose=_existing_role_purpose("the masters' instances", cluster.iam.masters)
        or "the role of the masters' instances, which the iam stack creates",
        statements=[
            *master_statements(cluster, scope),
            *plugin_statements_of_masters(cluster, scope),
            *backup_key_statements(cluster, scope),
            *masters_pull_statements(cluster, scope),
            *backup_lock_statements(cluster, scope),
            *addon_statements(cluster, scope),
            *own_statements(cluster.control_plane),
        ],
        managed_policies=_in_account(cluster.control_plane.additional_policies, scope.account),
    )


def _node_grant(cluster: Cluster, group: NodeGroup, scope: Scope) -> Grant:
    return Grant(
        name=f"nodes-{group.name}",
        purpose=_existing_role_purpose(f"the instances of the node group {group.name}", group_role(cluster, group))
        or f"the role of the instances of the node group {group.name}",
        statements=[*node_statements(cluster, scope), *own_statements(group)],
        managed_policies=_in_account(group.additional_policies, scope.account),
    )


def _existing_role_purpose(instances: str, existing: InstanceRole | None) -> str:
    """Return the purpose of the policies of an existing role; empty if there is none."""
    return f"{existing.role}, the existing role of {instances}, to which you attach them" if existing else ""


def _etcd_grants(cluster: Cluster, scope: Scope) -> Iterator[Grant]:
    """Yield the permissions to take and restore snapshots of etcd, or nothing if backups are disabled."""
    if cluster.etcd.backups.enabled:
        yield Grant(
            name="etcd",
            purpose="takes and restores snapshots of etcd with cfngen; in addition to the operator's permissions",
            statements=snapshot_statements(scope),
        )


def _pod_grants(cluster: Cluster, scope: Scope) -> Iterator[Grant]:
    """Yield the permissions of each role that the IAM stack makes for a service account, if it has any statements."""
    for role in made_roles(cluster, scope):
        if role.statements:
            yield Grant(
                name=grantee_name(cluster, role.account),
                purpose=f"the role of the service account {role.account.name} in {role.account.namespace}, which the "
                "iam stack creates",
                statements=role.statements,
                managed_policies=_in_account(role.managed_policies, scope.account),
            )


def _flow_log_grants(cluster: Cluster, scope: Scope) -> Iterator[Grant]:
    """Yield the permissions of the role that delivers flow logs to CloudWatch Logs, if the cluster has one."""
    flow_logs = cluster.network.flow_logs
    if flow_logs is not None and flow_logs.destination == "cloudWatchLogs":
        yield Grant(
            name="flow-log",
            purpose="the role with which AWS delivers the flow log, which the vpc stack creates",
            statements=flow_log_delivery_statements(scope.log_group_arns),
        )


def _push_grants(cluster: Cluster, scope: Scope, pushes: Sequence[Push]) -> Iterator[Grant]:
    """Yield the permissions of each role by which somebody pushes images."""
    for push in pushes:
        made = f"the role by which {push.name} pushes images, which the registry stack creates"
        yield Grant(
            name=f"push-{push.name}",
            purpose=f"{push.role}, the existing role by which {push.name} pushes images" if push.role else made,
            statements=push_statements(cluster, push, scope),
        )
