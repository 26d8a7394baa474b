"""The IAM stack: a role and an instance profile for masters, one for nodes.

A node group with additional policies has its own role in its own stack, created and deleted with the group. No role has
a fixed name: CAPABILITY_IAM suffices, and the names of two clusters cannot conflict (with kube-up they did).
"""

from __future__ import annotations

from typing import Any

from awacs.aws import Allow, PolicyDocument, Principal, Statement
from awacs.sts import AssumeRole
from troposphere import GetAtt, Ref, Sub, iam

from cfngen.cluster.logical_ids import group_id
from cfngen.cluster.model import Cluster, NodeGroup
from cfngen.cluster.network_plugins import network_plugin
from cfngen.templates import addon_statements, statements
from cfngen.templates.backups import bucket_name
from cfngen.templates.network import route_table_id, vpc_id
from cfngen.templates.stack import Stack
from cfngen.templates.tagging import tags

# The service principal of EC2 ends in the partition's DNS suffix: amazonaws.com.cn in China.
_ASSUMED_BY_EC2 = Statement(
    Effect=Allow, Principal=Principal("Service", Sub("ec2.${AWS::URLSuffix}")), Action=[AssumeRole]
)


def build(cluster: Cluster) -> Stack:
    """Return the stack."""
    stack = Stack(
        cluster,
        "iam",
        "IamStack",
        __name__,
        f"IAM roles and instance profiles of the Kubernetes cluster {cluster.name}",
    )
    interfaces = network_plugin(cluster).interfaces
    master = [
        *statements.cloud_controller(cluster),
        *([] if interfaces else _network_plugin_statements(stack, cluster, master=True)),
        *statements.data_volume(cluster),
        *statements.volume_key(cluster.control_plane.volume.kms_key),
        statements.write_secrets(
            "Secrets",
            [
                stack.wired_parameter("CaSecretArn", description="Secret that holds the certificate authorities"),
                _join_secret(stack),
            ],
        ),
        statements.secrets_key(_secrets_key(stack), write=True),
        *statements.own_authority(cluster.certificate_authority.secret),
        *_backup_statements(stack, cluster),
        *_common_statements(stack, cluster, "MasterStack"),
    ]
    for role, profile in (
        (
            "Master",
            _add_role(
                stack,
                cluster,
                prefix="Master",
                owner="masters",
                allowed=master,
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
                allowed=_node_statements(stack, cluster),
                managed_policies=(),
            ),
        ),
    ):
        stack.output(f"{role}InstanceProfileArn", GetAtt(profile, "Arn"), f"Instance profile of {role.lower()}s")
    of_cluster = f"on masters of the Kubernetes cluster {cluster.name}"
    if interfaces:
        _attach_to_masters(
            stack,
            "PodAddressesPolicy",
            f"pods' addresses {of_cluster}",
            _network_plugin_statements(stack, cluster, master=True),
        )
    addons = addon_statements.of_masters(cluster)
    if addons:
        _attach_to_masters(stack, "AddonsPolicy", f"add-ons {of_cluster}", addons)
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
        allowed=_node_statements(stack, cluster),
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
            PolicyDocument=PolicyDocument(Version="2012-10-17", Statement=allowed),
            Roles=[Ref("MasterRole")],
        )
    )


def _join_secret(stack: Stack) -> Any:
    return stack.wired_parameter("JoinSecretArn", description="Secret that holds what nodes need to join")


def _secrets_key(stack: Stack) -> Any:
    return stack.wired_parameter("SecretsKeyArn", description="KMS key that encrypts the cluster's secrets")


def _backup_statements(stack: Stack, cluster: Cluster) -> list[Statement]:
    bucket = bucket_name(stack, cluster)
    return [] if bucket is None else statements.backups(cluster, bucket)


def _network_plugin_statements(stack: Stack, cluster: Cluster, *, master: bool) -> list[Statement]:
    """Return the statements that the network plug-in needs."""
    plugin = network_plugin(cluster)
    if plugin.interfaces:
        return statements.pod_addresses(cluster, vpc_id(stack, cluster), master=master)
    return statements.pod_routes(cluster, route_table_id(stack, cluster)) if plugin.routes and master else []


def _common_statements(stack: Stack, cluster: Cluster, nested_stacks: str) -> list[Statement]:
    """Return the statements that masters and nodes share.

    Args:
        stack: the stack to add parameters to.
        cluster: the cluster.
        nested_stacks: logical ids of the nested stacks that hold the instances, with wildcards.
    """
    name = stack.wired_parameter(
        "ClusterStackName", description="Name of the cluster's root stack; instances may signal it and its children"
    )
    session = statements.session_manager() if cluster.ssh.session_manager else []
    return [statements.signal(name, nested_stacks), *statements.pull_images(), *session]


def _node_statements(stack: Stack, cluster: Cluster) -> list[Statement]:
    drained = any(group.drain_timeout for group in cluster.node_groups)
    return [
        statements.read_secrets("JoinSecret", [_join_secret(stack)]),
        statements.secrets_key(_secrets_key(stack), write=False),
        *_network_plugin_statements(stack, cluster, master=False),
        *([statements.drain(cluster)] if drained else []),
        *_common_statements(stack, cluster, "NodeGroup*Stack"),
    ]


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
                iam.Policy(
                    PolicyName="kubernetes", PolicyDocument=PolicyDocument(Version="2012-10-17", Statement=allowed)
                )
            ],
            Tags=tags(cluster, f"{cluster.name} {owner}"),
            **({"ManagedPolicyArns": list(managed_policies)} if managed_policies else {}),
            **({"PermissionsBoundary": boundary} if boundary else {}),
        )
    )
    return stack.add(iam.InstanceProfile(f"{prefix}InstanceProfile", Roles=[Ref(resource)]))
