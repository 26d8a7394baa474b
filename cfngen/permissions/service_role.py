"""Permissions of CloudFormation for the resources of the templates, as statements of two policies.

One policy is for nested stacks, network and instances; the other for roles, secrets and etcd's snapshots. One managed
policy is too small for all of them.
"""

from __future__ import annotations

from typing import Any

from cfngen.deploy.policies.policy_statements import Place, allow, tagged, tagging


def of_network_and_machines(place: Place) -> list[dict[str, Any]]:
    """Return the statements of CloudFormation's service role for stacks, network and instances."""
    return [*_stacks(place), *_network(place), *_tags(place), *_instances(place)]


def of_roles_and_secrets(place: Place) -> list[dict[str, Any]]:
    """Return the statements of CloudFormation's service role for roles, secrets and the bucket of etcd's snapshots."""
    return [*_roles(place), *_secrets(place), *_backups(place)]


def _stacks(place: Place) -> list[dict[str, Any]]:
    return [
        # If a resource fails, CloudFormation cancels the other nested stacks and rolls them back: the reference of
        # AWS::CloudFormation::Stack requires permission to cancel updates, which the registry's schema leaves out.
        allow(
            "Stacks",
            """cloudformation:CancelUpdateStack cloudformation:ContinueUpdateRollback cloudformation:CreateChangeSet
            cloudformation:CreateStack cloudformation:DeleteChangeSet cloudformation:DeleteStack
            cloudformation:DescribeChangeSet cloudformation:DescribeStacks cloudformation:ExecuteChangeSet
            cloudformation:GetTemplate cloudformation:RollbackStack cloudformation:TagResource
            cloudformation:UntagResource cloudformation:UpdateStack""",
            place.nested,
        ),
        allow("Templates", "s3:GetObject", [place.templates]),
        allow("Look", "autoscaling:Describe* ec2:Describe* ec2:GetLaunchTemplateData"),
        # Images are found by public SSM parameters of their publishers.
        allow("Images", "ssm:GetParameters", [f"arn:{place.partition}:ssm:{place.region}::parameter/aws/*"]),
    ]


def _network(place: Place) -> list[dict[str, Any]]:
    return [
        # An existing Elastic IP or VPC does not have the cluster's tag.
        allow(
            "Make",
            """ec2:AllocateAddress ec2:AssociateAddress ec2:AssociateDhcpOptions ec2:AssociateRouteTable
            ec2:AttachInternetGateway ec2:AuthorizeSecurityGroupEgress ec2:AuthorizeSecurityGroupIngress
            ec2:CreateDhcpOptions ec2:CreateInternetGateway ec2:CreateLaunchTemplate ec2:CreateNetworkInterface
            ec2:CreateRoute ec2:CreateRouteTable ec2:CreateSecurityGroup ec2:CreateSubnet ec2:CreateVolume ec2:CreateVpc
            ec2:DisassociateAddress ec2:ImportKeyPair ec2:ModifyNetworkInterfaceAttribute ec2:ModifySubnetAttribute
            ec2:ModifyVpcAttribute ec2:ReplaceRouteTableAssociation ec2:RevokeSecurityGroupEgress
            ec2:UpdateSecurityGroupRuleDescriptions*""",
            place.ec2("*"),
        ),
        allow(
            "ChangeOwn",
            """ec2:AssignPrivateIpAddresses ec2:CreateLaunchTemplateVersion ec2:DeleteDhcpOptions
            ec2:DeleteInternetGateway ec2:DeleteKeyPair ec2:DeleteLaunchTemplate ec2:DeleteLaunchTemplateVersions
            ec2:DeleteNetworkInterface ec2:DeleteRoute ec2:DeleteRouteTable ec2:DeleteSecurityGroup ec2:DeleteSubnet
            ec2:DeleteTags ec2:DeleteVolume ec2:DeleteVpc ec2:DetachInternetGateway ec2:DetachNetworkInterface
            ec2:DetachVolume ec2:DisassociateRouteTable ec2:ModifyLaunchTemplate ec2:ModifyVolume
            ec2:ModifyVolumeAttribute ec2:ReleaseAddress ec2:ReplaceRoute ec2:RevokeSecurityGroupIngress
            ec2:UnassignPrivateIpAddresses""",
            place.ec2("*"),
            tagged(place),
        ),
        # When a data volume is deleted or replaced, a snapshot of it is created.
        allow("SnapshotOwn", "ec2:CreateSnapshot", place.ec2("volume/*"), tagged(place)),
        allow("NewSnapshots", "ec2:CreateSnapshot", [f"arn:{place.partition}:ec2:{place.region}::snapshot/*"]),
    ]


def _tags(place: Place) -> list[dict[str, Any]]:
    return [
        allow("TagNew", "ec2:CreateTags", place.ec2("*"), tagging(place)),
        allow("TagOwn", "ec2:CreateTags", place.ec2("*"), tagged(place)),
        allow(
            "TagSnapshots",
            "ec2:CreateTags",
            [f"arn:{place.partition}:ec2:{place.region}::snapshot/*"],
            {"StringEquals": {"ec2:CreateAction": "CreateSnapshot"}},
        ),
    ]


def _instances(place: Place) -> list[dict[str, Any]]:
    service_linked_roles = f"arn:{place.partition}:iam::{place.account}:role/aws-service-role"
    return [
        allow(
            "Groups",
            """autoscaling:CreateAutoScalingGroup autoscaling:CreateOrUpdateTags autoscaling:DeleteAutoScalingGroup
            autoscaling:DeleteLifecycleHook autoscaling:DeleteTags autoscaling:PutLifecycleHook
            autoscaling:ResumeProcesses autoscaling:SetDesiredCapacity
            autoscaling:SuspendProcesses autoscaling:TerminateInstanceInAutoScalingGroup
            autoscaling:UpdateAutoScalingGroup""",
            place.groups,
        ),
        # Checked when a launch template is set for a group ("Control Amazon EC2 launch template usage in Auto Scaling
        # groups", Amazon EC2 Auto Scaling User Guide); instances are launched with the service-linked role.
        allow(
            "Launch",
            "ec2:RunInstances",
            condition={"ArnLike": {"ec2:LaunchTemplate": place.ec2("launch-template/*")[0]}},
        ),
        allow(
            "LinkedRoles",
            "iam:CreateServiceLinkedRole",
            [f"{service_linked_roles}/{service}.amazonaws.com/*" for service in ("autoscaling", "spot")],
        ),
    ]


def _roles(place: Place) -> list[dict[str, Any]]:
    return [
        allow(
            "Roles",
            """iam:AddRoleToInstanceProfile iam:AttachRolePolicy iam:CreateInstanceProfile iam:CreatePolicy
            iam:CreatePolicyVersion iam:CreateRole iam:DeleteInstanceProfile iam:DeletePolicy iam:DeletePolicyVersion
            iam:DeleteRole iam:DeleteRolePolicy iam:DetachRolePolicy iam:GetInstanceProfile iam:GetPolicy
            iam:GetPolicyVersion iam:GetRole iam:GetRolePolicy iam:ListAttachedRolePolicies iam:ListEntitiesForPolicy
            iam:ListPolicyVersions iam:ListRolePolicies iam:PassRole iam:PutRolePermissionsBoundary iam:PutRolePolicy
            iam:RemoveRoleFromInstanceProfile iam:TagRole iam:UntagRole
            iam:UpdateAssumeRolePolicy iam:UpdateRole iam:UpdateRoleDescription""",
            place.roles,
        ),
    ]


def _secrets(place: Place) -> list[dict[str, Any]]:
    via_services = {"StringLike": {"kms:ViaService": [f"ec2.{place.region}.*", f"secretsmanager.{place.region}.*"]}}
    return [
        # No permission to read secrets: CloudFormation creates them empty.
        allow(
            "Secrets",
            """secretsmanager:CreateSecret secretsmanager:DeleteSecret secretsmanager:DescribeSecret
            secretsmanager:TagResource secretsmanager:UntagResource secretsmanager:UpdateSecret""",
            place.secrets,
        ),
        # Changes of a key's tags may take five minutes to affect authorization ("ABAC for AWS KMS", AWS KMS Developer
        # Guide).
        allow(
            "NewKeys",
            """kms:CreateKey kms:DescribeKey kms:EnableKeyRotation kms:GetKeyPolicy kms:GetKeyRotationStatus
            kms:ListResourceTags""",
        ),
        allow("TagNewKeys", "kms:TagResource", place.keys, tagging(place)),
        allow(
            "OwnKeys",
            """kms:DisableKey kms:DisableKeyRotation kms:EnableKey kms:PutKeyPolicy kms:ScheduleKeyDeletion
            kms:TagResource kms:UntagResource kms:UpdateKeyDescription""",
            place.keys,
            tagged(place),
        ),
        allow("UseKeys", "kms:Decrypt kms:GenerateDataKey*", place.keys, via_services),
        allow(
            "GrantKeys", "kms:CreateGrant", place.keys, {**via_services, "Bool": {"kms:GrantIsForAWSResource": "true"}}
        ),
    ]


def _backups(place: Place) -> list[dict[str, Any]]:
    # CloudFormation creates the bucket of etcd's snapshots, and deletes it only if the creation fails and it is empty.
    return [
        allow(
            "BackupBucket",
            """s3:CreateBucket s3:DeleteBucket s3:Get*Configuration s3:GetBucket* s3:ListBucket
            s3:ListTagsForResource s3:PutBucketOwnershipControls s3:PutBucketPolicy s3:PutBucketPublicAccessBlock
            s3:PutBucketTagging s3:PutEncryptionConfiguration s3:PutLifecycleConfiguration s3:TagResource
            s3:UntagResource""",
            [place.backups],
        )
    ]
