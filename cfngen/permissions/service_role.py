"""Statements of CloudFormation's service role for the resources of the templates, for two policies and a third.

One policy is for nested stacks, network and instances; the other is for roles, secrets and etcd's snapshots; a third is
for the API's load balancer. All statements together exceed the size of one managed policy. An operator who deploys
without a service role needs these policies in addition to the operator's policy.

Deleting or replacing a resource requires that the resource has the cluster's tag. A resource that is being
created has no tags yet, and it is not documented whether CloudFormation sets the tags in the call that creates the
resource. So creation is restricted only by account and region.
"""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.model import Cluster
from cfngen.permissions.scope import Scope, if_request_sets_cluster_tag, if_resource_has_tag
from cfngen.permissions.statements import Statement, allow


def network_and_instance_statements(scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role for stacks, network and instances."""
    return [
        *_stack_statements(scope),
        *_network_statements(scope),
        *_tag_statements(scope),
        *_instance_statements(scope),
    ]


def role_and_secret_statements(scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role for roles, secrets and the bucket of etcd's snapshots."""
    return [*_role_statements(scope), *_secret_statements(scope), *_backup_bucket_statements(scope)]


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


def _network_statements(scope: Scope) -> list[Statement]:
    """Return the statements for resources of EC2 except instances, such as VPC, launch templates and volumes."""
    return [
        # An existing Elastic IP or VPC does not have the cluster's tag.
        allow(
            sid="Make",
            actions="""
                ec2:AllocateAddress ec2:AssociateAddress ec2:AssociateDhcpOptions ec2:AssociateRouteTable
                ec2:AttachInternetGateway ec2:AuthorizeSecurityGroupEgress ec2:AuthorizeSecurityGroupIngress
                ec2:CreateDhcpOptions ec2:CreateInternetGateway ec2:CreateLaunchTemplate ec2:CreateNetworkInterface
                ec2:CreateRoute ec2:CreateRouteTable ec2:CreateSecurityGroup ec2:CreateSubnet ec2:CreateVolume
                ec2:CreateVpc
                ec2:DisassociateAddress ec2:ImportKeyPair ec2:ModifyNetworkInterfaceAttribute ec2:ModifySubnetAttribute
                ec2:ModifyVpcAttribute ec2:ReplaceRouteTableAssociation ec2:RevokeSecurityGroupEgress
                ec2:UpdateSecurityGroupRuleDescriptions*""",
            resources=scope.ec2_arns("*"),
        ),
        allow(
            sid="ChangeOwn",
            actions="""
                ec2:AssignPrivateIpAddresses ec2:AssociateVpcCidrBlock
                ec2:CreateLaunchTemplateVersion ec2:DeleteDhcpOptions ec2:DeleteInternetGateway ec2:DeleteKeyPair
                ec2:DeleteLaunchTemplate ec2:DeleteLaunchTemplateVersions
                ec2:DeleteNetworkInterface ec2:DeleteRoute ec2:DeleteRouteTable ec2:DeleteSecurityGroup ec2:DeleteSubnet
                ec2:DeleteTags ec2:DeleteVolume ec2:DeleteVpc ec2:DetachInternetGateway ec2:DetachNetworkInterface
                ec2:DetachVolume ec2:DisassociateRouteTable ec2:DisassociateVpcCidrBlock ec2:ModifyLaunchTemplate
                ec2:ModifyVolume ec2:ModifyVolumeAttribute ec2:ReleaseAddress ec2:ReplaceRoute
                ec2:RevokeSecurityGroupIngress ec2:UnassignPrivateIpAddresses""",
            resources=scope.ec2_arns("*"),
            condition=if_resource_has_tag(scope),
        ),
        # When CloudFormation deletes or replaces a data volume, it creates a snapshot first.
        allow(
            sid="SnapshotOwn",
            actions="ec2:CreateSnapshot",
            resources=scope.ec2_arns("volume/*"),
            condition=if_resource_has_tag(scope),
        ),
        allow(
            sid="NewSnapshots",
            actions="ec2:CreateSnapshot",
            resources=[f"arn:{scope.partition}:ec2:{scope.region}::snapshot/*"],
        ),
    ]


def _tag_statements(scope: Scope) -> list[Statement]:
    """Return the statements for tags of EC2 resources: new resources, the cluster's own, and new snapshots."""
    return [
        allow(
            sid="TagNew",
            actions="ec2:CreateTags",
            resources=scope.ec2_arns("*"),
            condition=if_request_sets_cluster_tag(scope),
        ),
        allow(
            sid="TagOwn", actions="ec2:CreateTags", resources=scope.ec2_arns("*"), condition=if_resource_has_tag(scope)
        ),
        allow(
            sid="TagSnapshots",
            actions="ec2:CreateTags",
            resources=[f"arn:{scope.partition}:ec2:{scope.region}::snapshot/*"],
            condition={"StringEquals": {"ec2:CreateAction": "CreateSnapshot"}},
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


def _role_statements(scope: Scope) -> list[Statement]:
    """Return the statements for the roles, instance profiles and managed policies that the stacks hold.

    Existing roles are only passed. Their ARNs limit the permission, and the services that they trust.
    """
    statements = []
    if scope.makes_roles:
        # If no instance profile is made, all roles of instances exist, and the only role is that of the flow log.
        made_roles = _made_roles_statement if scope.makes_instance_profiles else _flow_log_role_statement
        statements.append(made_roles(scope))
    elif scope.makes_instance_profiles:
        # The permissions of the handlers of AWS::IAM::InstanceProfile in the CloudFormation registry, without
        # iam:PassRole, whose resource is the role.
        statements.append(
            allow(
                sid="Profiles",
                actions="""
                    iam:AddRoleToInstanceProfile iam:CreateInstanceProfile iam:DeleteInstanceProfile
                    iam:GetInstanceProfile iam:RemoveRoleFromInstanceProfile""",
                resources=scope.instance_profile_arns,
            )
        )
    if scope.existing_roles:
        # Who adds a role to an instance profile, or launches instances with the profile, must be allowed to pass the
        # role (AddRoleToInstanceProfile, IAM API Reference; "Grant permissions to attach an IAM role to an instance",
        # Amazon EC2 User Guide).
        statements.append(allow(sid="PassRoles", actions="iam:PassRole", resources=scope.existing_roles))
    return statements


def _made_roles_statement(scope: Scope) -> Statement:
    return allow(
        sid="Roles",
        actions="""
            iam:AddRoleToInstanceProfile iam:AttachRolePolicy iam:CreateInstanceProfile iam:CreatePolicy
            iam:CreatePolicyVersion iam:CreateRole iam:DeleteInstanceProfile iam:DeletePolicy iam:DeletePolicyVersion
            iam:DeleteRole iam:DeleteRolePolicy iam:DetachRolePolicy iam:GetInstanceProfile iam:GetPolicy
            iam:GetPolicyVersion iam:GetRole iam:GetRolePolicy iam:ListAttachedRolePolicies iam:ListEntitiesForPolicy
            iam:ListPolicyVersions iam:ListRolePolicies iam:PassRole iam:PutRolePermissionsBoundary iam:PutRolePolicy
            iam:RemoveRoleFromInstanceProfile iam:TagRole iam:UntagRole iam:UpdateAssumeRolePolicy iam:UpdateRole
            iam:UpdateRoleDescription""",
        resources=scope.role_arns,
    )


def _flow_log_role_statement(scope: Scope) -> Statement:
    """Return the statement for the role that delivers flow logs, which has no instance profile and no managed policy.

    The actions are those on roles that `_made_roles_statement` has, without iam:AttachRolePolicy. Who creates the flow
    log must be allowed to pass the role.
    """
    return allow(
        sid="Roles",
        actions="""
            iam:CreateRole iam:DeleteRole iam:DeleteRolePolicy iam:DetachRolePolicy iam:GetRole iam:GetRolePolicy
            iam:ListAttachedRolePolicies iam:ListRolePolicies iam:PassRole iam:PutRolePermissionsBoundary
            iam:PutRolePolicy iam:TagRole iam:UntagRole iam:UpdateAssumeRolePolicy iam:UpdateRole
            iam:UpdateRoleDescription""",
        resources=[arn for arn in scope.role_arns if ":role/" in arn],
    )


def _secret_statements(scope: Scope) -> list[Statement]:
    via_services = {"StringLike": {"kms:ViaService": [f"ec2.{scope.region}.*", f"secretsmanager.{scope.region}.*"]}}
    used_keys = list(scope.kms_key_arns)
    # The pattern does not match a key of another account.
    if scope.own_secrets_key and scope.own_secrets_key.split(":")[4] != scope.account:
        used_keys.append(scope.own_secrets_key)
    return [
        # CloudFormation creates the secrets empty, so it needs no permission to read them.
        allow(
            sid="Secrets",
            actions="""
                secretsmanager:CreateSecret secretsmanager:DeleteSecret secretsmanager:DescribeSecret
                secretsmanager:TagResource secretsmanager:UntagResource secretsmanager:UpdateSecret""",
            resources=scope.secret_arns,
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
        # Changes of a key's tags may take five minutes to affect authorization ("ABAC for AWS KMS", AWS KMS Developer
        # Guide).
        allow(
            sid="NewKeys",
            actions="""
                kms:CreateKey kms:DescribeKey kms:EnableKeyRotation kms:GetKeyPolicy kms:GetKeyRotationStatus
                kms:ListResourceTags""",
        ),
        allow(
            sid="TagNewKeys",
            actions="kms:TagResource",
            resources=scope.kms_key_arns,
            condition=if_request_sets_cluster_tag(scope),
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
    """Return the statements for the bucket of etcd's snapshots.

    CloudFormation creates the bucket. It deletes the bucket only if the stack's creation fails and the bucket is empty.
    """
    return [
        allow(
            sid="BackupBucket",
            actions="""
                s3:CreateBucket s3:DeleteBucket s3:Get*Configuration s3:GetBucket* s3:ListBucket
                s3:ListTagsForResource s3:PutBucketOwnershipControls s3:PutBucketPolicy s3:PutBucketPublicAccessBlock
                s3:PutBucketTagging s3:PutEncryptionConfiguration s3:PutLifecycleConfiguration s3:TagResource
                s3:UntagResource""",
            resources=[scope.backup_bucket_arn],
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
        allow(sid="NewCapacityReservations", actions="ec2:CreateCapacityReservation", resources=arns),
        allow(
            sid="OwnCapacityReservations",
            actions="ec2:CancelCapacityReservation ec2:ModifyCapacityReservation",
            resources=arns,
            condition=if_resource_has_tag(scope),
        ),
    ]
