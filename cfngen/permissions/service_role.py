"""Statements of CloudFormation's service role for the resources of the templates, for two policies and a third.

One policy is for nested stacks and network; the other is for instances, roles, secrets and etcd's snapshots; a third is
for the API's load balancer. All statements together exceed the size of one managed policy. An operator who deploys
without a service role needs these policies in addition to the operator's policy.

Statements for resources of EC2 except instances, and for roles, are in modules of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import CLUSTER
from cfngen.permissions.ec2_resources import ec2_statements, tag_new_statements
from cfngen.permissions.role_changes import role_statements
from cfngen.permissions.scope import Scope, if_request_claims_untagged, if_resource_has_tag, unless_of_another_cluster
from cfngen.permissions.statements import Statement, allow


def stack_and_network_statements(scope: Scope) -> list[Statement]:
    """Return the service role's statements for stacks, resources of EC2, and the bucket of snapshots."""
    return [*_stack_statements(scope), *ec2_statements(scope), *_backup_bucket_statements(scope)]


def instance_and_secret_statements(scope: Scope) -> list[Statement]:
    """Return the statements for instances and their roles, and for secrets."""
    return [
        *_instance_statements(scope),
        *role_statements(scope),
        *_secret_statements(scope),
    ]


def _stack_statements(scope: Scope) -> list[Statement]:
    """Return the statements for nested stacks, their templates, and reading by CloudFormation."""
    return [
        # If a resource fails, CloudFormation cancels the other nested stacks and rolls them back: the reference of
        # AWS::CloudFormation::Stack requires permission to cancel updates, which the registry's schema leaves out.
        allow(
            sid="Stacks",
            actions="""
                cloudformation:CancelUpdateStack cloudformation:ContinueUpdateRollback cloudformation:CreateChangeSet
                cloudformation:CreateStack cloudformation:DeleteChangeSet cloudformation:DeleteStack
                cloudformation:DescribeChangeSet cloudformation:DescribeStacks cloudformation:ExecuteChangeSet
                cloudformation:GetTemplate cloudformation:RollbackStack cloudformation:TagResource
                cloudformation:UntagResource cloudformation:UpdateStack""",
            resources=scope.nested_stack_arns,
        ),
        allow(sid="Templates", actions="s3:GetObject", resources=[scope.template_arns]),
        allow(sid="Look", actions="autoscaling:Describe* ec2:Describe* ec2:GetLaunchTemplateData"),
        # Templates find machine images by the public SSM parameters of the images' publishers.
        allow(
            sid="Images",
            actions="ssm:GetParameters",
            resources=[f"arn:{scope.partition}:ssm:{scope.region}::parameter/aws/*"],
        ),
    ]


def _instance_statements(scope: Scope) -> list[Statement]:
    service_linked_roles = f"arn:{scope.partition}:iam::{scope.account}:role/aws-service-role"
    return [
        allow(
            sid="Groups",
            actions="""
                autoscaling:CreateAutoScalingGroup autoscaling:CreateOrUpdateTags autoscaling:DeleteAutoScalingGroup
                autoscaling:DeleteLifecycleHook autoscaling:DeleteTags autoscaling:PutLifecycleHook
                autoscaling:ResumeProcesses autoscaling:SetDesiredCapacity
                autoscaling:SuspendProcesses autoscaling:TerminateInstanceInAutoScalingGroup
                autoscaling:UpdateAutoScalingGroup""",
            resources=scope.auto_scaling_group_arns,
        ),
        # EC2 Auto Scaling checks this permission when a group gets a launch template ("Control Amazon EC2 launch
        # template usage in Auto Scaling groups", Amazon EC2 Auto Scaling User Guide). It launches instances with the
        # service-linked role.
        allow(
            sid="Launch",
            actions="ec2:RunInstances",
            condition={"ArnLike": {"ec2:LaunchTemplate": scope.ec2_arns("launch-template/*")[0]}},
        ),
        allow(
            sid="LinkedRoles",
            actions="iam:CreateServiceLinkedRole",
            resources=[f"{service_linked_roles}/{service}.amazonaws.com/*" for service in ("autoscaling", "spot")],
        ),
    ]


def _secret_statements(scope: Scope) -> list[Statement]:
    via_services = {"StringLike": {"kms:ViaService": [f"ec2.{scope.region}.*", f"secretsmanager.{scope.region}.*"]}}
    used_keys = list(scope.kms_key_arns)
    # The pattern does not match a key of another account.
    if scope.own_secrets_key and scope.own_secrets_key.split(":")[4] != scope.account:
        used_keys.append(scope.own_secrets_key)
    return [
        # CloudFormation creates the secrets empty, so it needs no permission to read them. Names of secrets begin alike
        # in all clusters, so their tags tell them apart. It is not documented whether the call that creates a secret
        # sets the tags; a call that does so needs the permission for tags as well.
        allow(
            sid="NewSecrets",
            actions="secretsmanager:CreateSecret",
            resources=scope.secret_arns,
            condition={"StringLikeIfExists": {f"aws:RequestTag/{CLUSTER}": scope.cluster}},
        ),
        allow(
            sid="ReadSecretNames",
            actions="secretsmanager:DescribeSecret",
            resources=scope.secret_arns,
            condition=unless_of_another_cluster(scope),
        ),
        allow(
            sid="TagNewSecrets",
            actions="secretsmanager:TagResource",
            resources=scope.secret_arns,
            condition=if_request_claims_untagged(scope),
        ),
        allow(
            sid="OwnSecrets",
            actions="""
                secretsmanager:DeleteSecret secretsmanager:TagResource secretsmanager:UntagResource
                secretsmanager:UpdateSecret""",
            resources=scope.secret_arns,
            condition=if_resource_has_tag(scope),
        ),
        *_key_statements(scope),
        allow(sid="UseKeys", actions="kms:Decrypt kms:GenerateDataKey*", resources=used_keys, condition=via_services),
        allow(
            sid="GrantKeys",
            actions="kms:CreateGrant",
            resources=scope.kms_key_arns,
            condition={**via_services, "Bool": {"kms:GrantIsForAWSResource": "true"}},
        ),
    ]


def _key_statements(scope: Scope) -> list[Statement]:
    """Return the statements for the KMS key that CloudFormation creates, and for looking at keys of volumes."""
    if scope.own_secrets_key:
        return [allow(sid="LookAtKeys", actions="kms:DescribeKey")]
    return [
        # A call that creates a key has no resource; only a key for encryption by AWS services may be created.
        allow(
            sid="MakeKeys",
            actions="kms:CreateKey",
            condition={
                "StringLikeIfExists": {
                    "kms:KeySpec": "SYMMETRIC_DEFAULT",
                    "kms:KeyUsage": "ENCRYPT_DECRYPT",
                    f"aws:RequestTag/{CLUSTER}": scope.cluster,
                }
            },
        ),
        # Changes of a key's tags may take five minutes to affect authorization ("ABAC for AWS KMS", AWS KMS Developer
        # Guide).
        allow(
            sid="CompleteNewKeys",
            actions="""
                kms:DescribeKey kms:EnableKeyRotation kms:GetKeyPolicy kms:GetKeyRotationStatus kms:ListResourceTags""",
            resources=scope.kms_key_arns,
            condition=unless_of_another_cluster(scope),
        ),
        allow(
            sid="TagNewKeys",
            actions="kms:TagResource",
            resources=scope.kms_key_arns,
            condition=if_request_claims_untagged(scope),
        ),
        allow(
            sid="OwnKeys",
            actions="""
                kms:DisableKey kms:DisableKeyRotation kms:EnableKey kms:PutKeyPolicy kms:ScheduleKeyDeletion
                kms:TagResource kms:UntagResource kms:UpdateKeyDescription""",
            resources=scope.kms_key_arns,
            condition=if_resource_has_tag(scope),
        ),
    ]


def _backup_bucket_statements(scope: Scope) -> list[Statement]:
    """Return the statements for the bucket of etcd's snapshots that CloudFormation creates; empty for the user's own.

    CloudFormation deletes the bucket only if the stack's creation fails and the bucket is empty.
    """
    if scope.own_backup_bucket:
        return []
    if_locked = "s3:PutBucketObjectLockConfiguration" if scope.locks_snapshots else ""
    return [
        allow(
            sid="BackupBucket",
            actions=f"""
                {if_locked} s3:CreateBucket s3:DeleteBucket s3:Get*Configuration s3:GetBucket* s3:ListBucket
                s3:ListTagsForResource s3:PutBucketOwnershipControls s3:PutBucketPolicy s3:PutBucketPublicAccessBlock
                s3:PutBucketTagging s3:PutBucketVersioning s3:PutEncryptionConfiguration s3:PutLifecycleConfiguration
                s3:TagResource s3:UntagResource""",
            resources=scope.backup_bucket_arns,
        )
    ]


def load_balancer_statements(scope: Scope) -> list[Statement]:
    """Return the statements for the API's load balancer.

    They form a separate policy, for clusters with several masters, and for private clusters with a public API.
    Resources and conditions: "Actions, resources, and condition keys for AWS Elastic Load Balancing V2", Service
    Authorization Reference.
    """
    arn_prefix = f"arn:{scope.partition}:elasticloadbalancing:{scope.region}:{scope.account}:"
    # The templates name an internet-facing load balancer `<cluster>-api` and an internal one `<cluster>-int`. The ARNs
    # of listeners contain the name of their load balancer.
    load_balancer_and_listener_arns = [
        f"{arn_prefix}{arn_type}/net/{scope.cluster}-{suffix}/*"
        for arn_type in ("loadbalancer", "listener")
        for suffix in ("api", "int")
    ]
    # CloudFormation generates the names of target groups, so the pattern matches all of them.
    any_target_group_arn = f"{arn_prefix}targetgroup/*"
    service_linked_role = (
        f"arn:{scope.partition}:iam::{scope.account}:role/aws-service-role/elasticloadbalancing.amazonaws.com/*"
    )
    return [
        # The service describes security groups with the permissions of the caller (aws-load-balancer-controller#3917).
        allow(sid="LookAtBalancers", actions="ec2:GetSecurityGroupsForVpc elasticloadbalancing:Describe*"),
        allow(
            sid="Balance",
            actions="""
                elasticloadbalancing:AddTags elasticloadbalancing:CreateListener elasticloadbalancing:CreateLoadBalancer
                elasticloadbalancing:CreateTargetGroup elasticloadbalancing:ModifyListener
                elasticloadbalancing:ModifyListenerAttributes elasticloadbalancing:ModifyLoadBalancerAttributes
                elasticloadbalancing:SetIpAddressType elasticloadbalancing:SetSecurityGroups
                elasticloadbalancing:SetSubnets""",
            resources=[*load_balancer_and_listener_arns, any_target_group_arn],
            condition=unless_of_another_cluster(scope),
        ),
        allow(
            sid="BalanceOwn",
            actions="""
                elasticloadbalancing:DeleteListener elasticloadbalancing:DeleteLoadBalancer
                elasticloadbalancing:DeleteTargetGroup elasticloadbalancing:DeregisterTargets
                elasticloadbalancing:ModifyTargetGroup elasticloadbalancing:ModifyTargetGroupAttributes
                elasticloadbalancing:RegisterTargets elasticloadbalancing:RemoveTags""",
            resources=[*load_balancer_and_listener_arns, any_target_group_arn],
            condition=if_resource_has_tag(scope),
        ),
        # The first load balancer of an account creates the service-linked role.
        allow(sid="BalancersLinkedRole", actions="iam:CreateServiceLinkedRole", resources=[service_linked_role]),
    ]


def capacity_reservation_statements(cluster: Cluster, scope: Scope) -> Sequence[Statement]:
    """Return the statements to make, change and cancel reservations; empty if the cluster file reserves nothing.

    Calls: permissions of the handlers of AWS::EC2::CapacityReservation in the CloudFormation registry, without those
    for another billing owner. Resources: "Actions, resources, and condition keys for Amazon EC2", Service Authorization
    Reference. Describing and tagging are among the statements for every cluster.
    """
    if not cluster.control_plane.capacity_reservation:
        return []
    arns = scope.ec2_arns("capacity-reservation/*")
    return [
        *tag_new_statements(scope, "capacity-reservation", sid="TagNewCapacityReservations"),
        allow(sid="NewCapacityReservations", actions="ec2:CreateCapacityReservation", resources=arns),
        allow(
            sid="OwnCapacityReservations",
            actions="ec2:CancelCapacityReservation ec2:ModifyCapacityReservation",
            resources=arns,
            condition=if_resource_has_tag(scope),
        ),
    ]
