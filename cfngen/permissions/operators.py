"""The IAM policies of an operator and of CloudFormation's service role, ready to be attached.

The policies in docs/ are generated from these: one for an operator who uses a service role of CloudFormation; two
execution policies for that role, or for an operator who deploys without it; and additional ones for several masters and
for etcd's snapshots. Each fits into one managed policy (6,144 characters). Sources: the Service Authorization Reference
for resources and conditions, and the permissions of handlers in the CloudFormation registry for the calls of
CloudFormation.

Deleting or replacing a resource requires the cluster's tag on it. A resource that is being created has no tags yet, and
it is not documented whether CloudFormation tags it in the same call. So creating is restricted only by account and
region.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.policies import backups
from cfngen.deploy.policies.execution import of_network_and_machines, of_roles_and_secrets
from cfngen.deploy.policies.load_balancer import statements as load_balancer_statements
from cfngen.deploy.policies.policy_statements import Place, allow, document, merge_statements, tagged

SERVICE_ROLE = "cfngen-cloudformation"
"""Name of the service role that the operator may pass to CloudFormation."""


@dataclass(frozen=True)
class Group:
    """Permissions that belong together.

    Attributes:
        name: one word.
        purpose: which commands need them.
        statements: statements of a policy.
    """

    name: str
    purpose: str
    statements: Sequence[Mapping[str, Any]]


def groups(place: Place, *, role: str = SERVICE_ROLE) -> tuple[Group, ...]:
    """Return an operator's permissions, grouped by purpose.

    Args:
        place: account, region and cluster.
        role: name of CloudFormation's service role.
    """
    return (
        Group(
            "read",
            "looking at a cluster: status, events, drift, validate, and what every command begins with",
            _read(place),
        ),
        Group("deploy", "plan, deploy, rollback", _deploy(place, role)),
        Group("delete", "delete, with what Kubernetes has made and the uploaded templates", _delete(place)),
        Group("kubeconfig", "kubeconfig, and whatever talks to the cluster as its administrator", _kubeconfig(place)),
    )


def operator_policy(
    account: str = "*",
    region: str = "*",
    cluster: str = "*",
    *,
    partition: str = "aws",
    stack: str = "",
    role: str = SERVICE_ROLE,
    only: Collection[str] = (),
) -> dict[str, Any]:
    """Return the policy of an operator.

    Args:
        account: account number.
        region: region.
        cluster: name of the cluster.
        partition: partition of the ARNs.
        stack: name of the root stack; the cluster's if empty.
        role: name of CloudFormation's service role.
        only: names of groups; all of them if empty.
    """
    place = Place(partition, account, region, cluster, stack or cluster)
    selected = [group for group in groups(place, role=role) if not only or group.name in only]
    return document(merge_statements([statement for group in selected for statement in group.statements]))


def execution_policy(
    account: str = "*", region: str = "*", cluster: str = "*", *, partition: str = "aws", stack: str = ""
) -> dict[str, Any]:
    """Return the first policy of CloudFormation's service role: nested stacks, network and instances.

    An operator who deploys without such a role needs both policies in addition to their own.

    Args:
        account: account number.
        region: region.
        cluster: name of the cluster.
        partition: partition of the ARNs.
        stack: name of the root stack; the cluster's if empty.
    """
    return document(of_network_and_machines(Place(partition, account, region, cluster, stack or cluster)))


def roles_and_secrets_policy(
    account: str = "*", region: str = "*", cluster: str = "*", *, partition: str = "aws", stack: str = ""
) -> dict[str, Any]:
    """Return the second policy of CloudFormation's service role: roles, secrets and the bucket of etcd's snapshots.

    Args:
        account: account number.
        region: region.
        cluster: name of the cluster.
        partition: partition of the ARNs.
        stack: name of the root stack; the cluster's if empty.
    """
    return document(of_roles_and_secrets(Place(partition, account, region, cluster, stack or cluster)))


def several_masters_policy(
    account: str = "*", region: str = "*", cluster: str = "*", *, partition: str = "aws"
) -> dict[str, Any]:
    """Return the policy that the service role needs in addition if a cluster has several masters.

    Args:
        account: account number.
        region: region.
        cluster: name of the cluster.
        partition: partition of the ARNs.
    """
    return document(load_balancer_statements(Place(partition, account, region, cluster, cluster)))


def etcd_policy(
    account: str = "*", region: str = "*", cluster: str = "*", *, partition: str = "aws", stack: str = ""
) -> dict[str, Any]:
    """Return the policy that an operator needs in addition for `cfngen etcd backup` and `cfngen etcd restore`.

    Args:
        account: account number.
        region: region.
        cluster: name of the cluster.
        partition: partition of the ARNs.
        stack: name of the root stack; the cluster's if empty.
    """
    return document(backups.operating(Place(partition, account, region, cluster, stack or cluster)))


def _read(place: Place) -> list[dict[str, Any]]:
    return [
        allow(
            "ReadStacks",
            """cloudformation:DescribeChangeSet cloudformation:DescribeEvents cloudformation:DescribeStackEvents
            cloudformation:DescribeStackResourceDrifts cloudformation:DescribeStackResources
            cloudformation:DetectStackDrift cloudformation:DetectStackResourceDrift
            cloudformation:GetStackPolicy cloudformation:GetTemplate cloudformation:ListChangeSets
            cloudformation:ListStackResources""",
            [*place.stacks, *place.change_sets],
        ),
        # These actions support no resources, or are called before the resource exists. DescribeStacks is called
        # without a name to find another stack of a cluster with the same name.
        allow(
            "ReadAccount",
            """autoscaling:Describe*
            cloudformation:DescribeStackDriftDetectionStatus cloudformation:DescribeStacks
            cloudformation:GetTemplateSummary cloudformation:ListStacks
            ec2:Describe* elasticloadbalancing:Describe* iam:GetAccountSummary logs:DescribeLogGroups
            servicequotas:GetAWSDefaultServiceQuota servicequotas:GetServiceQuota""",
        ),
        allow("ReadConsole", "ec2:GetConsoleOutput", place.ec2("instance/*"), tagged(place)),
        # Drift detection reads each resource with the permissions of the caller ("Detect unmanaged configuration
        # changes to stacks and resources with drift detection", CloudFormation User Guide).
        allow(
            "ReadRoles",
            """iam:GetInstanceProfile iam:GetPolicy iam:GetPolicyVersion iam:GetRole iam:GetRolePolicy
            iam:ListAttachedRolePolicies iam:ListEntitiesForPolicy iam:ListRolePolicies""",
            place.roles,
        ),
        allow(
            "ReadKeys",
            "kms:DescribeKey kms:GetKeyPolicy kms:GetKeyRotationStatus kms:ListResourceTags",
            place.keys,
            tagged(place),
        ),
        allow("ReadSecretNames", "secretsmanager:DescribeSecret", place.secrets),
        *backups.reading(place),
    ]


def _deploy(place: Place, role: str) -> list[dict[str, Any]]:
    return [
        allow(
            "ChangeStacks",
            """cloudformation:CancelUpdateStack cloudformation:ContinueUpdateRollback cloudformation:CreateChangeSet
            cloudformation:DeleteChangeSet cloudformation:DeleteStack cloudformation:ExecuteChangeSet
            cloudformation:RollbackStack cloudformation:SetStackPolicy cloudformation:TagResource
            cloudformation:UntagResource cloudformation:UpdateStack cloudformation:UpdateTerminationProtection""",
            [*place.stacks, *place.change_sets],
        ),
        allow(
            "HandOverServiceRole",
            "iam:PassRole",
            [f"arn:{place.partition}:iam::{place.account}:role/{role}"],
            {"StringEquals": {"iam:PassedToService": "cloudformation.amazonaws.com"}},
        ),
        allow(
            "PrepareBucket",
            """s3:CreateBucket s3:GetBucketOwnershipControls s3:GetBucketPolicy s3:GetBucketPublicAccessBlock
            s3:GetBucketTagging s3:GetBucketVersioning s3:GetEncryptionConfiguration s3:GetLifecycleConfiguration
            s3:ListBucket s3:PutBucketOwnershipControls s3:PutBucketPolicy s3:PutBucketPublicAccessBlock
            s3:PutBucketTagging s3:PutBucketVersioning s3:PutEncryptionConfiguration s3:PutLifecycleConfiguration""",
            [place.bucket],
        ),
        # CloudFormation reads the root template with the operator's permissions.
        allow("UploadTemplates", "s3:GetObject s3:PutObject", [place.templates]),
    ]


def _delete(place: Place) -> list[dict[str, Any]]:
    security_group_actions = "ec2:DeleteSecurityGroup ec2:RevokeSecurityGroupEgress ec2:RevokeSecurityGroupIngress"
    load_balancer_actions = """elasticloadbalancing:DeleteLoadBalancer elasticloadbalancing:DeleteTargetGroup
        elasticloadbalancing:ModifyLoadBalancerAttributes"""
    interface_actions, storage_actions = "ec2:DeleteNetworkInterface", "ec2:DeleteSnapshot ec2:DeleteVolume"
    delete_actions = f"{load_balancer_actions} {interface_actions} {security_group_actions} {storage_actions}"
    statements_by_cluster_tag = (
        [
            allow(
                "RemoveOwned",
                delete_actions,
                condition=tagged(place, f"kubernetes.io/cluster/{place.cluster}", "owned"),
            )
        ]
        if place.cluster != "*"  # condition keys support no wildcards
        else []
    )
    return [
        allow("DeleteStacks", "cloudformation:DeleteStack cloudformation:UpdateTerminationProtection", place.stacks),
        # When the whole cluster is deleted, nodes are not drained, since their pods have nowhere to go.
        allow("StopDraining", "autoscaling:DeleteLifecycleHook autoscaling:PutLifecycleHook", place.groups),
        # A copy of the certificate authorities, which can be restored for some weeks.
        allow("KeepAuthorities", "secretsmanager:CreateSecret secretsmanager:DeleteSecret", [place.kept_authorities]),
        *statements_by_cluster_tag,
        allow("RemoveMarked", delete_actions, condition=tagged(place)),
        # The controllers that create these resources tag them with the cluster in different ways, or not at all.
        allow(
            "RemoveOfLoadBalancerController",
            f"{load_balancer_actions} {security_group_actions}",
            condition=tagged(place, "elbv2.k8s.aws/cluster"),
        ),
        allow("RemoveOfStorageDriver", storage_actions, condition=tagged(place, "ebs.csi.aws.com/cluster", "true")),
        allow("RemoveOfVpcCni", interface_actions, condition=tagged(place, "node.k8s.amazonaws.com/instance_id", "*")),
        # An existing route table does not have the cluster's tag.
        allow("RemovePodRoutes", "ec2:DeleteRoute", place.ec2("route-table/*")),
        allow("ListTemplates", "s3:DeleteBucket s3:ListBucket s3:ListBucketVersions", [place.bucket]),
        allow("RemoveTemplates", "s3:DeleteObject s3:DeleteObjectVersion", [place.templates]),
    ]


def _kubeconfig(place: Place) -> list[dict[str, Any]]:
    return [
        allow(
            "ReadAuthorities",
            "secretsmanager:DescribeSecret secretsmanager:GetSecretValue",
            [place.secret("CaSecret")],
            tagged(place),
        ),
        allow(
            "DecryptAuthorities",
            "kms:Decrypt",
            place.keys,
            {
                **tagged(place),
                "StringLike": {
                    **tagged(place)["StringLike"],
                    "kms:ViaService": f"secretsmanager.{place.region}.*",
                },
            },
        ),
    ]
