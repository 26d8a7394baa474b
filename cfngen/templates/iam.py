"""The IAM stack: a role and an instance profile for masters, one for nodes.

A node group with additional policies has its own role in its own stack, created and deleted with the group. No role has
a fixed name: CAPABILITY_IAM suffices, and the names of two clusters cannot conflict (with kube-up they did).
"""

from __future__ import annotations

from typing import Any

from awacs.aws import Allow, PolicyDocument, Principal
from awacs.aws import Statement as TrustStatement
from awacs.sts import AssumeRole
from troposphere import GetAtt, Ref, Sub, iam

from cfngen.cluster.logical_ids import group_id
from cfngen.cluster.model import Cluster, NodeGroup
from cfngen.cluster.network_plugins import network_plugin
from cfngen.permissions.addons import addons
from cfngen.permissions.instances import master_statements, node_statements
from cfngen.permissions.pod_network import pod_network
from cfngen.permissions.statements import Expression, Statement
from cfngen.templates.backups import bucket_name
from cfngen.templates.network import route_table_id, vpc_id
from cfngen.templates.stack import Stack
from cfngen.templates.tagging import tags

# The service principal of EC2 ends in the partition's DNS suffix: amazonaws.com.cn in China.
_ASSUMED_BY_EC2 = TrustStatement(
    Effect=Allow, Principal=Principal("Service", Sub("ec2.${AWS::URLSuffix}")), Action=[AssumeRole]
)


class StackReferences:
    """How statements refer to the cluster's objects in a stack: a parameter is added to it when it is referred to."""

    def __init__(self, stack: Stack, cluster: Cluster) -> None:
        self._stack = stack
        self._cluster = cluster

    @property
    def ca_secret(self) -> Expression:
        """ARN of the secret that holds the certificate authorities."""
        return self._stack.wired_parameter("CaSecretArn", description="Secret that holds the certificate authorities")

    @property
    def join_secret(self) -> Expression:
        """ARN of the secret that holds what nodes need to join."""
        return self._stack.wired_parameter("JoinSecretArn", description="Secret that holds what nodes need to join")

    @property
    def secrets_key(self) -> Expression:
        """ARN of the KMS key that encrypts these secrets."""
        description = "KMS key that encrypts the cluster's secrets"
        return self._stack.wired_parameter("SecretsKeyArn", description=description)

    @property
    def backup_bucket(self) -> Expression:
        """Name of the bucket of etcd's snapshots."""
        return bucket_name(self._stack)

    @property
    def root_stack(self) -> Expression:
        """Name of the root stack."""
        description = "Name of the cluster's root stack; instances may signal it and its children"
        return self._stack.wired_parameter("ClusterStackName", description=description)

    @property
    def vpc(self) -> Expression:
        """Id of the VPC."""
        return vpc_id(self._stack, self._cluster)

    @property
    def route_table(self) -> Expression:
        """Id of the route table that holds the pods' routes."""
        return route_table_id(self._stack, self._cluster)

    def substitute(self, text: str, **values: Expression) -> Expression:
        """Return a text in which CloudFormation replaces the variables."""
        return Sub(text, **values)


def build(cluster: Cluster) -> Stack:
    """Return the stack."""
    stack = Stack(
        cluster,
        "iam",
        "IamStack",
        __name__,
        f"IAM roles and instance profiles of the Kubernetes cluster {cluster.name}",
    )
    references = StackReferences(stack, cluster)
    for role, profile in (
        (
            "Master",
            _add_role(
                stack,
                cluster,
                prefix="Master",
                owner="masters",
                allowed=master_statements(cluster, references),
                managed_policies=cluster.control_plane.additional_policies,
            ),
        ),
        (
            "Node",
            _add_role(
                stack,
                cluster,
                prefix="Node",
                owner="nodes",
                allowed=node_statements(cluster, references),
                managed_policies=(),
            ),
        ),
    ):
        stack.output(f"{role}InstanceProfileArn", GetAtt(profile, "Arn"), f"Instance profile of {role.lower()}s")
    of_cluster = f"on masters of the Kubernetes cluster {cluster.name}"
    if network_plugin(cluster).interfaces:
        statements = pod_network(cluster, references, master=True)
        _attach_to_masters(stack, "PodAddressesPolicy", f"pods' addresses {of_cluster}", statements)
    if statements := addons(cluster, references):
        _attach_to_masters(stack, "AddonsPolicy", f"add-ons {of_cluster}", statements)
    return stack


def master_profile(stack: Stack) -> Any:
    """Return the reference to the ARN of the masters' instance profile."""
    return stack.wired_parameter("MasterInstanceProfileArn", description="Instance profile of the masters")


def node_profile(stack: Stack, cluster: Cluster, group: NodeGroup) -> Any:
    """Return the ARN of a node group's instance profile: the one all nodes share, or one made in the group's stack."""
    if not group.additional_policies:
        return stack.wired_parameter("NodeInstanceProfileArn", description="Instance profile of the nodes")
    profile = _add_role(
        stack,
        cluster,
        prefix=group_id(group.name),
        owner=f"node group {group.name}",
        allowed=node_statements(cluster, StackReferences(stack, cluster)),
        managed_policies=group.additional_policies,
    )
    return GetAtt(profile, "Arn")


def _attach_to_masters(stack: Stack, name: str, description: str, allowed: list[Statement]) -> None:
    """Add a managed policy with further statements and attach it to the masters' role.

    The inline policies of a role may have 10,240 characters in all, and the role's own policy is near that limit.
    """
    stack.add(
        iam.ManagedPolicy(
            name,
            Description=description,
            PolicyDocument={"Version": "2012-10-17", "Statement": allowed},
            Roles=[Ref("MasterRole")],
        )
    )


def _add_role(
    stack: Stack,
    cluster: Cluster,
    *,
    prefix: str,
    owner: str,
    allowed: list[Statement],
    managed_policies: tuple[str, ...],
) -> iam.InstanceProfile:
    """Add a role and its instance profile; return the profile.

    Args:
        stack: the stack to add to.
        cluster: the cluster.
        prefix: prefix of the logical ids.
        owner: whose role it is, for its description and Name tag.
        allowed: statements of the role's inline policy.
        managed_policies: ARNs of the managed policies to attach.
    """
    boundary = cluster.iam.permissions_boundary
    resource = stack.add(
        iam.Role(
            f"{prefix}Role",
            Description=f"{owner} of the Kubernetes cluster {cluster.name}",
            AssumeRolePolicyDocument=PolicyDocument(Version="2012-10-17", Statement=[_ASSUMED_BY_EC2]),
            Policies=[
                iam.Policy(PolicyName="kubernetes", PolicyDocument={"Version": "2012-10-17", "Statement": allowed})
            ],
            Tags=tags(cluster, f"{cluster.name} {owner}"),
            **({"ManagedPolicyArns": list(managed_policies)} if managed_policies else {}),
            **({"PermissionsBoundary": boundary} if boundary else {}),
        )
    )
    return stack.add(iam.InstanceProfile(f"{prefix}InstanceProfile", Roles=[Ref(resource)]))
