"""Statements of an operator, a person who deploys, watches and deletes a cluster with cfngen, and of pipelines.

Sources: the Service Authorization Reference for resources and conditions, and the permissions of handlers in the
CloudFormation registry for the calls of CloudFormation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import existing_group
from cfngen.permissions.operations import read_bucket_statements
from cfngen.permissions.scope import Scope, if_resource_has_tag, unless_of_another_cluster
from cfngen.permissions.statements import Statement, allow, merge_statements

SERVICE_ROLE = "cfngen-cloudformation"
"""Name of the service role that the operator may pass to CloudFormation."""


_READ_BUCKET_SETTINGS = """
    s3:GetBucketOwnershipControls s3:GetBucketPolicy s3:GetBucketPublicAccessBlock s3:GetBucketTagging
    s3:GetBucketVersioning s3:GetEncryptionConfiguration s3:GetLifecycleConfiguration"""


@dataclass(frozen=True)
class CommandGroup:
    """A group of cfngen's commands, with the IAM statements that they need.

    Attributes:
        name: name of the group in one word, e.g. `deploy`.
        purpose: the commands of the group and what they do.
    """

    name: str
    purpose: str
    statements: Sequence[Statement]


def command_groups(scope: Scope, *, service_role: str = SERVICE_ROLE) -> tuple[CommandGroup, ...]:
    """Return an operator's statements, grouped by the commands that need them."""
    return (
        CommandGroup(
            name="read",
            purpose="looking at a network or cluster: check, status, events, drift, validate, and how all begin",
            statements=_read_statements(scope),
        ),
        CommandGroup(
            name="deploy", purpose="plan, deploy, rollback", statements=_deploy_statements(scope, service_role)
        ),
        CommandGroup(
            name="delete",
            purpose="delete, with what Kubernetes has made and the uploaded templates",
            statements=_delete_statements(scope),
        ),
        CommandGroup(
            name="kubeconfig",
            purpose="kubeconfig, and whatever talks to the cluster as its administrator",
            statements=_kubeconfig_statements(scope),
        ),
    )


def operator_statements(scope: Scope, *, service_role: str = SERVICE_ROLE) -> list[Statement]:
    """Return the statements of an operator, for all groups of commands."""
    groups = command_groups(scope, service_role=service_role)
    return merge_statements([statement for group in groups for statement in group.statements])


def _read_statements(scope: Scope) -> list[Statement]:
    """Return the statements of the commands that only read, such as `cfngen status`."""
    return [
        allow(
            sid="ReadStacks",
            actions="""
                cloudformation:DescribeChangeSet cloudformation:DescribeEvents cloudformation:DescribeStackEvents
                cloudformation:DescribeStackResourceDrifts cloudformation:DescribeStackResources
                cloudformation:DetectStackDrift cloudformation:DetectStackResourceDrift
                cloudformation:GetStackPolicy cloudformation:GetTemplate cloudformation:ListChangeSets
                cloudformation:ListStackResources""",
            resources=[*scope.stack_arns, *scope.change_set_arns],
        ),
        # These actions do not support resource-level permissions, or cfngen calls them before the resource exists.
        # DescribeStacks is called without a name to find another stack of a cluster with the same name.
        allow(
            sid="ReadAccount",
            actions="""
                autoscaling:Describe*
                cloudformation:DescribeStackDriftDetectionStatus cloudformation:DescribeStacks
                cloudformation:GetTemplateSummary cloudformation:ListStacks
                ec2:Describe* elasticloadbalancing:Describe* iam:GetAccountSummary logs:DescribeLogGroups
                secretsmanager:ListSecrets
                servicequotas:GetAWSDefaultServiceQuota servicequotas:GetServiceQuota""",
        ),
        allow(
            sid="ReadConsole",
            actions="ec2:GetConsoleOutput",
            resources=scope.ec2_arns("instance/*"),
            condition=if_resource_has_tag(scope),
        ),
        # Drift detection reads each resource with the permissions of the caller ("Detect unmanaged configuration
        # changes to stacks and resources with drift detection", CloudFormation User Guide).
        *_read_role_statements(scope),
        _read_key_statement(scope),
        # A secret that is gone has no tag either.
        allow(
            sid="ReadSecretNames",
            actions="secretsmanager:DescribeSecret",
            resources=scope.secret_arns,
            condition=unless_of_another_cluster(scope),
        ),
        *read_bucket_statements(scope),
    ]


def _read_role_statements(scope: Scope) -> list[Statement]:
    """Return the statements for reading the roles that CloudFormation creates, and for checking those that exist."""
    statements = []
    if scope.makes_instance_profiles:
        statements.append(
            allow(
                sid="ReadRoles",
                actions="""
                    iam:GetInstanceProfile iam:GetPolicy iam:GetPolicyVersion iam:GetRole iam:GetRolePolicy
                    iam:ListAttachedRolePolicies iam:ListEntitiesForPolicy iam:ListRolePolicies""",
                resources=scope.iam_arns,
            )
        )
    elif scope.makes_roles:
        # The role of the flow log, which has no instance profile and no managed policy.
        statements.append(
            allow(
                sid="ReadRoles",
                actions="iam:GetRole iam:GetRolePolicy iam:ListAttachedRolePolicies iam:ListRolePolicies",
                resources=scope.flow_log_role_arns,
            )
        )
    if scope.existing_roles:
        statements.append(
            allow(sid="CheckRoles", actions="iam:GetRole iam:SimulatePrincipalPolicy", resources=scope.existing_roles)
        )
    if scope.existing_instance_profiles:
        statements.append(
            allow(sid="CheckProfiles", actions="iam:GetInstanceProfile", resources=scope.existing_instance_profiles)
        )
    return statements


def _read_key_statement(scope: Scope) -> Statement:
    """Return the statement for reading the key of the cluster's secrets; an existing key has no tag of the cluster."""
    if scope.own_secrets_key:
        return allow(sid="CheckKey", actions="kms:DescribeKey kms:GetKeyPolicy", resources=[scope.own_secrets_key])
    return allow(
        sid="ReadKeys",
        actions="kms:DescribeKey kms:GetKeyPolicy kms:GetKeyRotationStatus kms:ListResourceTags",
        resources=scope.kms_key_arns,
        condition=if_resource_has_tag(scope),
    )


def _deploy_statements(scope: Scope, service_role: str) -> list[Statement]:
    """Return the statements of `cfngen plan`, `deploy` and `rollback` that are not among those for reading."""
    return [
        allow(
            sid="ChangeStacks",
            actions="""
                cloudformation:CancelUpdateStack cloudformation:ContinueUpdateRollback cloudformation:CreateChangeSet
                cloudformation:DeleteChangeSet cloudformation:DeleteStack cloudformation:ExecuteChangeSet
                cloudformation:RollbackStack cloudformation:SetStackPolicy cloudformation:TagResource
                cloudformation:UntagResource cloudformation:UpdateStack cloudformation:UpdateTerminationProtection""",
            resources=[*scope.stack_arns, *scope.change_set_arns],
        ),
        pass_service_role_statement(scope, service_role),
        allow(
            sid="ReadBucket",
            actions=f"{_READ_BUCKET_SETTINGS} s3:ListBucket",
            resources=[scope.template_bucket_arn],
        ),
        upload_templates_statement(scope),
    ]


def service_role_arn(scope: Scope, service_role: str) -> str:
    """Return the ARN of CloudFormation's service role with this name."""
    return f"arn:{scope.partition}:iam::{scope.account}:role/{service_role}"


def pass_service_role_statement(scope: Scope, service_role: str) -> Statement:
    """Return the statement to pass its service role to CloudFormation."""
    return allow(
        sid="HandOverServiceRole",
        actions="iam:PassRole",
        resources=[service_role_arn(scope, service_role)],
        condition={"StringEquals": {"iam:PassedToService": "cloudformation.amazonaws.com"}},
    )


def upload_templates_statement(scope: Scope) -> Statement:
    """Return the statement to upload the cluster's templates; CloudFormation reads the root with the caller's."""
    return allow(sid="UploadTemplates", actions="s3:GetObject s3:PutObject", resources=[scope.template_arns])


def _delete_statements(scope: Scope) -> list[Statement]:
    """Return the statements of `cfngen delete`, also for resources that controllers in the cluster have created."""
    return [
        allow(
            sid="DeleteStacks",
            actions="cloudformation:DeleteStack cloudformation:UpdateTerminationProtection",
            resources=scope.stack_arns,
        ),
        # When the whole cluster is deleted, nodes are not drained, since their pods have nowhere to go.
        allow(
            sid="StopDraining",
            actions="autoscaling:DeleteLifecycleHook autoscaling:PutLifecycleHook",
            resources=scope.auto_scaling_group_arns,
        ),
        # Before a deletion, the certificate authorities are copied to a secret, which can be restored for some weeks.
        allow(
            sid="KeepAuthorities",
            actions="secretsmanager:CreateSecret secretsmanager:DeleteSecret",
            resources=[scope.authority_copy_arns],
        ),
        *_orphan_statements(scope),
        *_pod_route_statements(scope),
        allow(
            sid="ListTemplates",
            actions="s3:ListBucket s3:ListBucketVersions",
            resources=[scope.template_bucket_arn],
        ),
        allow(sid="RemoveTemplates", actions="s3:DeleteObject s3:DeleteObjectVersion", resources=[scope.template_arns]),
    ]


def template_bucket_statements(scope: Scope) -> list[Statement]:
    """Return the statements for the bucket for templates, which the account's clusters in a region share.

    Whoever changes its settings can let others write the templates of all of them, so they are not among an operator's.
    """
    return [
        allow(
            sid="PrepareBucket",
            actions=f"""{_READ_BUCKET_SETTINGS}
                s3:CreateBucket s3:ListBucket s3:PutBucketOwnershipControls s3:PutBucketPolicy
                s3:PutBucketPublicAccessBlock s3:PutBucketTagging s3:PutBucketVersioning s3:PutEncryptionConfiguration
                s3:PutLifecycleConfiguration""",
            resources=[scope.template_bucket_arn],
        ),
        allow(sid="RemoveBucket", actions="s3:DeleteBucket", resources=[scope.template_bucket_arn]),
    ]


def _pod_route_statements(scope: Scope) -> list[Statement]:
    """Return the statement to remove routes to pods from an existing route table, which may lack the cluster's tag.

    It is empty if the cluster has no such routes. A table that a stack created is deleted with them.
    """
    if not scope.removes_pod_routes:
        return []
    return [
        allow(
            sid="RemovePodRoutes",
            actions="ec2:DeleteRoute",
            resources=scope.ec2_arns(f"route-table/{scope.route_table_id}"),
            condition={"ArnLike": {"ec2:Vpc": scope.ec2_arns(f"vpc/{scope.vpc_id}")[0]}},
        )
    ]


def _orphan_statements(scope: Scope) -> list[Statement]:
    """Return the statements to delete what controllers in the cluster have created, which no stack contains.

    cfngen has the EBS CSI driver and the Amazon VPC plug-in give the tag `KubernetesCluster` to all that they create
    (`cfngen.userdata.addons`). Their own tags, such as `ebs.csi.aws.com/cluster: true`, do not name a cluster.
    """
    security_group_actions = "ec2:DeleteSecurityGroup ec2:RevokeSecurityGroupEgress ec2:RevokeSecurityGroupIngress"
    load_balancer_actions = """elasticloadbalancing:DeleteLoadBalancer elasticloadbalancing:DeleteTargetGroup
        elasticloadbalancing:ModifyLoadBalancerAttributes"""
    interface_actions = "ec2:DeleteNetworkInterface" if scope.removes_interfaces else ""
    storage_actions = "ec2:DeleteSnapshot ec2:DeleteVolume"
    delete_actions = f"{load_balancer_actions} {interface_actions} {security_group_actions} {storage_actions}"
    statements_by_cluster_tag = []
    # Condition keys support no wildcards, so a policy for any cluster cannot use a tag key with the cluster's name.
    if scope.cluster != "*":
        has_cluster_tag = if_resource_has_tag(scope, key=f"kubernetes.io/cluster/{scope.cluster}", value="owned")
        statements_by_cluster_tag.append(allow(sid="RemoveOwned", actions=delete_actions, condition=has_cluster_tag))
    return [
        *statements_by_cluster_tag,
        allow(sid="RemoveMarked", actions=delete_actions, condition=if_resource_has_tag(scope)),
        # The controller creates resources with its own tag, whose value is the cluster's name.
        allow(
            sid="RemoveOfLoadBalancerController",
            actions=f"{load_balancer_actions} {security_group_actions}",
            condition=if_resource_has_tag(scope, key="elbv2.k8s.aws/cluster"),
        ),
    ]


def _kubeconfig_statements(scope: Scope) -> list[Statement]:
    """Return the statements to read the cluster's secrets.

    The certificate authorities sign the administrator's certificate, with which `status` reads the Kubernetes API, too.
    The join information says until when its token is valid.
    """
    # An existing key does not have the cluster's tag.
    has_cluster_tag = {} if scope.own_secrets_key else if_resource_has_tag(scope)["StringLike"]
    for_secrets = {
        "kms:ViaService": f"secretsmanager.{scope.region}.*",
        "kms:EncryptionContext:SecretARN": scope.secret_arns,
    }
    return [
        allow(
            sid="ReadSecrets",
            actions="secretsmanager:GetSecretValue",
            resources=scope.secret_arns,
            condition=if_resource_has_tag(scope),
        ),
        allow(
            sid="DecryptSecrets",
            actions="kms:Decrypt",
            resources=[scope.secrets_key_arn],
            condition={"StringLike": {**has_cluster_tag, **for_secrets}},
        ),
    ]


def revoke_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statement for `cfngen delete` to take the controller's rules out of the nodes' existing group.

    An existing group need not have the tag `KubernetesCluster`, by which other statements recognize the cluster's.
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


def pipeline_statements(scope: Scope, *, service_role: str) -> list[Statement]:
    """Return the statements of who deploys the cluster by the AWS CLI, the CDK or the console, without cfngen.

    CloudFormation works with its service role: the actions that have the condition key `cloudformation:RoleArn` require
    it. ExecuteChangeSet has no such key: a change set has the role with which it was created. Change sets may have any
    name, and are authorized by the root stack.

    Args:
        service_role: name of CloudFormation's service role.
    """
    root_stack = scope.stack_arns[:1]
    return [
        allow(
            sid="FollowStacks",
            actions="""
                cloudformation:DescribeChangeSet cloudformation:DescribeEvents cloudformation:DescribeStackEvents
                cloudformation:DescribeStackResources cloudformation:DescribeStacks cloudformation:GetTemplate
                cloudformation:ListChangeSets cloudformation:ListStackResources""",
            resources=scope.stack_arns,
        ),
        # A template that no stack has yet is no resource.
        allow(
            sid="CheckTemplates",
            actions="cloudformation:GetTemplateSummary cloudformation:ListStacks cloudformation:ValidateTemplate",
        ),
        allow(
            sid="DeployWithServiceRole",
            actions="""
                cloudformation:ContinueUpdateRollback cloudformation:CreateChangeSet cloudformation:CreateStack
                cloudformation:DeleteStack cloudformation:RollbackStack cloudformation:UpdateStack""",
            resources=root_stack,
            condition={"ArnLike": {"cloudformation:RoleArn": service_role_arn(scope, service_role)}},
        ),
        allow(
            sid="CompleteDeployment",
            actions="""
                cloudformation:CancelUpdateStack cloudformation:DeleteChangeSet cloudformation:ExecuteChangeSet
                cloudformation:TagResource cloudformation:UntagResource cloudformation:UpdateTerminationProtection""",
            resources=root_stack,
        ),
        pass_service_role_statement(scope, service_role),
        upload_templates_statement(scope),
    ]
