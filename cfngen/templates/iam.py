"""The IAM stack: a role and an instance profile for masters, one for nodes, one more for groups with own policies.

No name is fixed, so CAPABILITY_IAM suffices and two clusters never collide; kube-up's fixed names were its users' most
common failure on a second run.
"""

from __future__ import annotations

from typing import Any

from awacs.aws import PolicyDocument, Statement
from awacs.helpers.trust import make_simple_assume_policy
from troposphere import GetAtt, Ref, iam

from cfngen.cluster.model import Cluster
from cfngen.templates import statements
from cfngen.templates.naming import group_id
from cfngen.templates.network import route_table_id
from cfngen.templates.stack import Stack
from cfngen.templates.tagging import tags


def build(cluster: Cluster) -> Stack:
    """Return the stack."""
    stack = Stack(
        cluster,
        "iam",
        "IamStack",
        __name__,
        f"IAM roles and instance profiles of the Kubernetes cluster {cluster.name}",
    )
    stack_name = stack.wire(
        "ClusterStackName", description="Name of the cluster's root stack; instances may signal it and its children"
    )
    key = stack.wire("SecretsKeyArn", description="KMS key that encrypts the cluster's secrets")
    authorities = stack.wire("CaSecretArn", description="Secret that holds the certificate authorities")
    join = stack.wire("JoinSecretArn", description="Secret that holds what nodes need to join")
    everywhere = [statements.signal(stack_name), *statements.pull_images()]
    if cluster.ssh.session_manager:
        everywhere.append(statements.session_manager())

    master = [
        *statements.cloud_controller(cluster, route_table_id(stack, cluster)),
        *statements.data_volume(cluster),
        statements.write_secrets("Secrets", [authorities, join]),
        statements.secrets_key(key, write=True),
        *everywhere,
    ]
    if cluster.control_plane.volume.kms_key:
        master.append(statements.volume_key(cluster.control_plane.volume.kms_key))
    node = [statements.read_secrets("JoinSecret", [join]), statements.secrets_key(key, write=False), *everywhere]

    _role(stack, cluster, "Master", "masters", master, cluster.control_plane.additional_policies)
    _role(stack, cluster, "Node", "nodes", node, ())
    for group in cluster.node_groups:
        if group.additional_policies:
            name = f"{cluster.name}-nodes-{group.name}"
            _role(stack, cluster, group_id(group.name), name, node, group.additional_policies)
    return stack


def instance_profile(stack: Stack, role: str) -> Any:
    """Return the reference to the ARN of a role's instance profile.

    Args:
        stack: the stack that needs it.
        role: `Master`, `Node` or a node group's prefix.
    """
    return stack.wire(f"{role}InstanceProfileArn", description="Instance profile of the instances")


def _role(
    stack: Stack, cluster: Cluster, role: str, plural: str, allowed: list[Statement], managed: tuple[str, ...]
) -> None:
    boundary = cluster.iam.permissions_boundary
    resource = stack.add(
        iam.Role(
            f"{role}Role",
            Description=f"{plural} of the Kubernetes cluster {cluster.name}",
            AssumeRolePolicyDocument=make_simple_assume_policy("ec2.amazonaws.com"),
            Policies=[
                iam.Policy(
                    PolicyName="kubernetes", PolicyDocument=PolicyDocument(Version="2012-10-17", Statement=allowed)
                )
            ],
            Tags=tags(cluster, f"{cluster.name}-{role.lower()}"),
            **({"ManagedPolicyArns": list(managed)} if managed else {}),
            **({"PermissionsBoundary": boundary} if boundary else {}),
        )
    )
    profile = stack.add(iam.InstanceProfile(f"{role}InstanceProfile", Roles=[Ref(resource)]))
    stack.output(f"{role}InstanceProfileArn", GetAtt(profile, "Arn"), f"Instance profile of {plural}")
    stack.output(f"{role}RoleArn", GetAtt(resource, "Arn"), f"Role of {plural}")
