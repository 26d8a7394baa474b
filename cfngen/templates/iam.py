"""The IAM stack: a role and an instance profile for masters, and a role and an instance profile for nodes.

A node group with policies or statements of its own has a separate role in the group's stack, created and deleted with
the group.
The cluster file may name existing roles, which get instance profiles only, or none if these exist, too.
CloudFormation generates the names of the roles of instances. So CAPABILITY_IAM suffices (fixed names need
CAPABILITY_NAMED_IAM), and the role names of two clusters cannot conflict, as they did with kube-up. Roles of service
accounts, in the same stack, do have fixed names (`cfngen.templates.service_account_roles`).
"""

from __future__ import annotations

from typing import Literal

from awacs.aws import Allow, PolicyDocument, Principal
from awacs.aws import Statement as TrustStatement
from awacs.sts import AssumeRole
from troposphere import GetAtt, Ref, Sub, iam

from cfngen.cluster.iam.existing_roles import group_role, has_own_role, last_name, shares_made_role
from cfngen.cluster.iam.service_accounts import keeps_statements_in_policies
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import MASTER_POLICY, node_group_prefix
from cfngen.cluster.naming.network_ids import SecurityGroupRole
from cfngen.cluster.network.existing_parts import SECURITY_GROUP, existing_group, groups_of_instances
from cfngen.cluster.sections.instances import InstanceRole, NodeGroup
from cfngen.permissions.addons import addon_statements
from cfngen.permissions.cloud_controller import cloud_controller_statements
from cfngen.permissions.instance_roles import (
    backup_key_statements,
    backup_lock_statements,
    master_statements,
    masters_pull_statements,
    node_statements,
    plugin_statements_of_masters,
    plugin_statements_of_nodes,
)
from cfngen.permissions.node_groups import own_statements
from cfngen.permissions.references import arn
from cfngen.permissions.statements import Expression, Statement
from cfngen.templates.backups import backup_bucket_name
from cfngen.templates.expressions import substitute
from cfngen.templates.iam_properties import iam_path, permissions_boundary
from cfngen.templates.issuer import issuer_bucket_name
from cfngen.templates.network_references import route_table_id, vpc_id
from cfngen.templates.references import named_arn, part_value
from cfngen.templates.security_groups import first_group
from cfngen.templates.service_account_roles import add_service_account_roles
from cfngen.templates.stack import PropertyValue, Stack, as_json
from cfngen.templates.tagging import tags

# Trust policy that lets EC2 instances assume the role. EC2's service principal ends in the partition's DNS suffix:
# amazonaws.com, or amazonaws.com.cn in China.
_ASSUMED_BY_EC2 = TrustStatement(
    Effect=Allow, Principal=Principal("Service", Sub("ec2.${AWS::URLSuffix}")), Action=[AssumeRole]
)


class StackReferences:
    """References to the cluster's resources, for the IAM statements in one stack (see `permissions.references`).

    Reading a property adds to the stack the parameter that the reference names, so a stack has only the parameters that
    its statements use.

    Args:
        launches_nodes: whether the stack is that of a node group, whose nodes have the role.
    """

    def __init__(self, stack: Stack, cluster: Cluster, *, launches_nodes: bool = False) -> None:
        self._stack = stack
        self._cluster = cluster
        self._launches_nodes = launches_nodes

    @property
    def ca_secret_arn(self) -> Expression:
        """ARN of the secret that contains the certificate authorities."""
        return self._stack.parameter_from_other_stack(
            "CaSecretArn", description="Secret that holds the certificate authorities"
        )

    @property
    def join_secret_arn(self) -> Expression:
        """ARN of the secret that contains the data that nodes need to join."""
        return self._stack.parameter_from_other_stack(
            "JoinSecretArn", description="Secret that holds what nodes need to join"
        )

    @property
    def secrets_key_arn(self) -> Expression:
        """ARN of the KMS key that encrypts both secrets."""
        description = "KMS key that encrypts the cluster's secrets"
        return self._stack.parameter_from_other_stack("SecretsKeyArn", description=description)

    @property
    def backup_bucket_name(self) -> Expression:
        """Name of the bucket of etcd's snapshots."""
        return backup_bucket_name(self._stack)

    @property
    def issuer_bucket_names(self) -> list[Expression]:
        """Name of the bucket with the documents of the issuer of service-account tokens."""
        return [issuer_bucket_name(self._stack)]

    @property
    def root_stack_name(self) -> Expression:
        """Name of the root stack."""
        description = "Name of the cluster's root stack, which masters may signal"
        return self._stack.parameter_from_other_stack("ClusterStackName", description=description)

    @property
    def node_stack_arns(self) -> list[Expression]:
        """ARNs of the stacks that launch the nodes of a role: of node groups that share it, or of the group alone."""
        if self._launches_nodes:
            return [Ref("AWS::StackId")]
        description = "Names of the stacks that launch nodes and that nodes may signal; with wildcards"
        names = self._stack.parameter_from_other_stack("NodeStackNames", description=description)
        return [arn(self, "cloudformation", "stack/${Names}/*", Names=names)]

    @property
    def vpc_id(self) -> Expression:
        """Id of the VPC."""
        return vpc_id(self._stack, self._cluster)

    @property
    def route_table_id(self) -> Expression:
        """Id of the route table with the pods' routes."""
        return route_table_id(self._stack, self._cluster)

    @property
    def node_security_group_id(self) -> Expression:
        """Id of the existing security group of the nodes."""
        return first_group(self._stack, self._cluster, "Node")

    def existing_security_group_ids(self, instances: Literal["masters", "nodes"]) -> list[Expression]:
        """Return the ids of the existing security groups that masters or nodes have."""
        role: SecurityGroupRole = "Master" if instances == "masters" else "Node"
        return [
            first_group(self._stack, self._cluster, role)
            if group == existing_group(self._cluster, role)
            else part_value(self._stack, group, SECURITY_GROUP)
            for group in groups_of_instances(self._cluster, instances)
        ]

    def substitute(self, text: str, **values: Expression) -> Expression:
        """Return a text in which CloudFormation replaces the placeholders `${name}` by the values of that name.

        What the values refer to stands in the text itself, which checkers of templates can read.
        """
        return substitute(as_json(Sub(text, **values)), {})


def build(cluster: Cluster) -> Stack | None:
    """Return the IAM stack; None if all roles and instance profiles exist, or are in the stacks of node groups."""
    stack = Stack(
        cluster,
        name="iam",
        logical_id="IamStack",
        source_module=__name__,
        description=f"IAM roles and instance profiles of the Kubernetes cluster {cluster.name}",
    )
    references = StackReferences(stack, cluster)
    masters_profile = _masters_profile(stack, cluster, references)
    nodes_profile = _shared_nodes_profile(stack, cluster, references)
    if masters_profile:
        stack.output(
            "MasterInstanceProfileArn", value=GetAtt(masters_profile, "Arn"), description="Instance profile of masters"
        )
    if nodes_profile:
        stack.output(
            "NodeInstanceProfileArn", value=GetAtt(nodes_profile, "Arn"), description="Instance profile of nodes"
        )
    if not cluster.iam.masters:
        _add_policies_of_masters(stack, cluster, references)
    add_service_account_roles(stack, cluster, references)
    return stack if stack.resource_ids else None


def master_profile(stack: Stack, cluster: Cluster) -> PropertyValue:
    """Return the ARN of the masters' instance profile, for the master stack."""
    if cluster.iam.masters and cluster.iam.masters.instance_profile:
        return cluster.iam.masters.instance_profile
    return stack.parameter_from_other_stack("MasterInstanceProfileArn", description="Instance profile of the masters")


def node_profile(stack: Stack, cluster: Cluster, group: NodeGroup) -> PropertyValue:
    """Return the ARN of a node group's instance profile.

    Node groups share the profile of the IAM stack. For a group with policies or statements of its own, this
    function adds a separate
    role and profile to the group's stack; for a group with an existing role of its own, only a profile.
    """
    existing = group_role(cluster, group)
    if existing and existing.instance_profile:
        return existing.instance_profile
    prefix = node_group_prefix(group.name)
    if group.iam:
        return GetAtt(_add_profile_of_existing_role(stack, prefix, group.iam), "Arn")
    if existing or not has_own_role(group):
        return stack.parameter_from_other_stack("NodeInstanceProfileArn", description="Instance profile of the nodes")
    references = StackReferences(stack, cluster, launches_nodes=True)
    profile = _add_role(
        stack,
        cluster,
        logical_id_prefix=prefix,
        used_by=f"node group {group.name}",
        statements=[*node_statements(cluster, references), *own_statements(group)],
        managed_policies=group.additional_policies,
    )
    _add_policy_of_nodes(stack, cluster, references, prefix)
    return GetAtt(profile, "Arn")


def _masters_profile(stack: Stack, cluster: Cluster, references: StackReferences) -> iam.InstanceProfile | None:
    """Add the masters' instance profile, and their role unless it exists; None if the profile exists, too."""
    if cluster.iam.masters:
        return _add_profile_if_missing(stack, "Master", cluster.iam.masters)
    return _add_role(
        stack,
        cluster,
        logical_id_prefix="Master",
        used_by="masters",
        statements=master_statements(cluster, references),
        managed_policies=cluster.control_plane.additional_policies,
    )


def _shared_nodes_profile(stack: Stack, cluster: Cluster, references: StackReferences) -> iam.InstanceProfile | None:
    """Add the instance profile that node groups share, and its role unless that exists; None if it is not needed."""
    if cluster.iam.nodes:
        return _add_profile_if_missing(stack, "Node", cluster.iam.nodes)
    if not shares_made_role(cluster):
        return None
    profile = _add_role(
        stack,
        cluster,
        logical_id_prefix="Node",
        used_by="nodes",
        statements=node_statements(cluster, references),
        managed_policies=(),
    )
    _add_policy_of_nodes(stack, cluster, references, "Node")
    return profile


def _add_policies_of_masters(stack: Stack, cluster: Cluster, references: StackReferences) -> None:
    """Add the managed policies of masters for network plug-in, add-ons, backups and cluster file, as far as needed."""
    on_masters = f"on masters of the Kubernetes cluster {cluster.name}"
    policies = {
        "PodAddressesPolicy": ("pods' addresses", plugin_statements_of_masters(cluster, references)),
        "AddonsPolicy": ("add-ons", addon_statements(cluster, references)),
        MASTER_POLICY: ("statements of the cluster file", own_statements(cluster.control_plane)),
        "BackupsKeyPolicy": ("key of etcd's snapshots", backup_key_statements(cluster, references)),
        "PullImagesPolicy": ("container images", masters_pull_statements(cluster, references)),
        "BackupsLockPolicy": ("lock of etcd's snapshots", backup_lock_statements(cluster, references)),
    }
    if keeps_statements_in_policies(cluster):
        statements_of_controller = cloud_controller_statements(cluster, references)
        policies["CloudControllerPolicy"] = ("cloud controller manager", statements_of_controller)
    for logical_id, (purpose, statements) in policies.items():
        if statements:
            _attach_policy(stack, logical_id, f"{purpose} {on_masters}", statements, role="MasterRole")


def _add_policy_of_nodes(stack: Stack, cluster: Cluster, references: StackReferences, prefix: str) -> None:
    """Add the managed policy of a role of nodes that repeats what the network plug-in needs, if anything."""
    statements = plugin_statements_of_nodes(cluster, references) if keeps_statements_in_policies(cluster) else []
    if statements:
        description = f"pods' addresses on nodes of the Kubernetes cluster {cluster.name}"
        _attach_policy(stack, f"{prefix}PodAddressesPolicy", description, statements, role=f"{prefix}Role")


def _attach_policy(stack: Stack, logical_id: str, description: str, statements: list[Statement], role: str) -> None:
    """Add a managed policy with the statements, and attach it to a role.

    There are two reasons for statements outside of a role's inline policy. IAM allows 10,240 characters for all inline
    policies of a role, and the inline policy of masters is near that limit. And CloudFormation deletes a policy only
    after an update has succeeded: what add-ons no longer need once they have roles of their own, instances keep until
    then, and after a rollback.
    """
    stack.add(
        iam.ManagedPolicy(
            logical_id,
            Description=description,
            PolicyDocument={"Version": "2012-10-17", "Statement": statements},
            Roles=[Ref(role)],
            **iam_path(stack.cluster),
        )
    )


def _add_role(
    stack: Stack,
    cluster: Cluster,
    *,
    logical_id_prefix: str,
    used_by: str,
    statements: list[Statement],
    managed_policies: tuple[str, ...],
) -> iam.InstanceProfile:
    """Add a role and its instance profile; return the profile.

    Args:
        logical_id_prefix: prefix of the logical ids of role and profile, e.g. `Master` for `MasterRole`.
        used_by: the instances that use the role, e.g. `masters`, for its description and Name tag.
    """
    optional_properties: dict[str, object] = {}
    if managed_policies:
        optional_properties["ManagedPolicyArns"] = [named_arn(arn) for arn in managed_policies]
    role = stack.add(
        iam.Role(
            f"{logical_id_prefix}Role",
            Description=f"{used_by} of the Kubernetes cluster {cluster.name}",
            AssumeRolePolicyDocument=PolicyDocument(Version="2012-10-17", Statement=[_ASSUMED_BY_EC2]),
            Policies=[
                iam.Policy(PolicyName="kubernetes", PolicyDocument={"Version": "2012-10-17", "Statement": statements})
            ],
            Tags=tags(cluster, f"{cluster.name} {used_by}"),
            **iam_path(cluster),
            **optional_properties,
            **permissions_boundary(cluster.iam.permissions_boundary),
        )
    )
    profile = iam.InstanceProfile(f"{logical_id_prefix}InstanceProfile", Roles=[Ref(role)], **iam_path(cluster))
    return stack.add(profile)


def _add_profile_if_missing(stack: Stack, logical_id_prefix: str, existing: InstanceRole) -> iam.InstanceProfile | None:
    """Add the instance profile of an existing role and return it; None if the cluster file names an existing one."""
    return None if existing.instance_profile else _add_profile_of_existing_role(stack, logical_id_prefix, existing)


def _add_profile_of_existing_role(stack: Stack, logical_id_prefix: str, existing: InstanceRole) -> iam.InstanceProfile:
    """Add an instance profile that holds an existing role; return it.

    Its logical id differs from that of a made role's profile. So an update that gives an existing role in place of a
    made one replaces the instances before the made role is deleted. With the same profile, running instances would keep
    credentials of the deleted role.
    """
    logical_id = f"{logical_id_prefix}ExistingRoleProfile"
    return stack.add(iam.InstanceProfile(logical_id, Roles=[last_name(existing.role)], **iam_path(stack.cluster)))
