"""The IAM statements of masters and nodes: what may be done, to what, under which condition.

Three kinds: unconditional (reads, which EC2 and ELB do not scope), only on what carries the cluster's tag, only when
creating with the cluster's tag. The tag is `KubernetesCluster`: the key of an IAM condition cannot be parameterised,
and the cloud controller manager puts this tag on whatever it makes when its own instance bears it.

The cloud controller manager's actions are those of its documentation (cloud-provider-aws, docs/prerequisites.md).
"""

from __future__ import annotations

from typing import Any

from awacs.aws import Action, Allow, Bool, Condition, Statement, StringEquals
from troposphere import Sub

from cfngen.cluster.model import Cluster

MASTER_ROLE_TAG = {"k8s.io/role/master": "1"}


def _allow(sid: str, actions: str, resources: list[Any] | None = None, condition: Condition | None = None) -> Statement:
    """Return an Allow statement.

    Args:
        sid: its name.
        actions: `service:Action` names, separated by white space.
        resources: ARNs; everything when left out.
        condition: the condition, if any.
    """
    named = [Action(*each.split(":")) for each in actions.split()]
    extra = {"Condition": condition} if condition else {}
    return Statement(Sid=sid, Effect=Allow, Action=named, Resource=resources or ["*"], **extra)


def _tagged(cluster: Cluster, **more: str) -> Condition:
    keys = {"aws:ResourceTag/KubernetesCluster": cluster.name}
    return Condition(StringEquals({**keys, **{f"aws:ResourceTag/{key}": value for key, value in more.items()}}))


def _tagging(cluster: Cluster) -> Condition:
    return Condition(StringEquals({"aws:RequestTag/KubernetesCluster": cluster.name}))


def _via(service: str) -> StringEquals:
    # The value of this key ends in amazonaws.com in every partition (AWS KMS Developer Guide, kms:ViaService).
    return StringEquals({"kms:ViaService": Sub(f"{service}.${{AWS::Region}}.amazonaws.com")})


def _ec2(resource: str) -> Sub:
    return Sub(f"arn:${{AWS::Partition}}:ec2:${{AWS::Region}}:${{AWS::AccountId}}:{resource}")


def cloud_controller(cluster: Cluster, route_table: Any) -> list[Statement]:
    """Return the cloud controller manager's statements.

    Args:
        cluster: the cluster.
        route_table: id of the one route table it may write pods' routes to.
    """
    return [
        _allow(
            "CloudControllerRead",
            """autoscaling:DescribeAutoScalingGroups autoscaling:DescribeTags
            ec2:DescribeAvailabilityZones ec2:DescribeInstances ec2:DescribeInstanceTopology ec2:DescribeRegions
            ec2:DescribeRouteTables ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeVpcs
            elasticloadbalancing:DescribeListeners elasticloadbalancing:DescribeLoadBalancerAttributes
            elasticloadbalancing:DescribeLoadBalancerPolicies elasticloadbalancing:DescribeLoadBalancers
            elasticloadbalancing:DescribeTargetGroupAttributes elasticloadbalancing:DescribeTargetGroups
            elasticloadbalancing:DescribeTargetHealth""",
        ),
        _allow(
            "CloudControllerOwnInstancesAndGroups",
            """ec2:AuthorizeSecurityGroupIngress ec2:DeleteSecurityGroup ec2:ModifyInstanceAttribute
            ec2:RevokeSecurityGroupIngress""",
            condition=_tagged(cluster),
        ),
        _allow(
            "CloudControllerPodRoutes",
            "ec2:CreateRoute ec2:DeleteRoute",
            [
                Sub(
                    "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:route-table/${RouteTable}",
                    RouteTable=route_table,
                )
            ],
        ),
        _allow(
            "CloudControllerOwnLoadBalancers",
            """elasticloadbalancing:AddTags elasticloadbalancing:ApplySecurityGroupsToLoadBalancer
            elasticloadbalancing:AttachLoadBalancerToSubnets elasticloadbalancing:ConfigureHealthCheck
            elasticloadbalancing:CreateLoadBalancerListeners elasticloadbalancing:CreateLoadBalancerPolicy
            elasticloadbalancing:DeleteListener elasticloadbalancing:DeleteLoadBalancer
            elasticloadbalancing:DeleteLoadBalancerListeners elasticloadbalancing:DeleteTargetGroup
            elasticloadbalancing:DeregisterInstancesFromLoadBalancer elasticloadbalancing:DeregisterTargets
            elasticloadbalancing:DetachLoadBalancerFromSubnets elasticloadbalancing:ModifyListener
            elasticloadbalancing:ModifyLoadBalancerAttributes elasticloadbalancing:ModifyTargetGroup
            elasticloadbalancing:ModifyTargetGroupAttributes elasticloadbalancing:RegisterInstancesWithLoadBalancer
            elasticloadbalancing:RegisterTargets elasticloadbalancing:SetLoadBalancerPoliciesForBackendServer
            elasticloadbalancing:SetLoadBalancerPoliciesOfListener""",
            condition=_tagged(cluster),
        ),
        # To create with tags is to tag as well, and what is being created has no tag yet ("Grant permission to tag
        # resources during creation", Elastic Load Balancing User Guide).
        _allow(
            "CloudControllerTagNewLoadBalancers",
            "elasticloadbalancing:AddTags",
            condition=Condition(
                StringEquals(
                    {
                        "aws:RequestTag/KubernetesCluster": cluster.name,
                        "elasticloadbalancing:CreateAction": [
                            "CreateListener",
                            "CreateLoadBalancer",
                            "CreateTargetGroup",
                        ],
                    }
                )
            ),
        ),
        _allow(
            "CloudControllerNewLoadBalancers",
            """elasticloadbalancing:CreateListener elasticloadbalancing:CreateLoadBalancer
            elasticloadbalancing:CreateTargetGroup""",
            condition=_tagging(cluster),
        ),
        _allow(
            "CloudControllerNewSecurityGroups",
            "ec2:CreateSecurityGroup",
            [_ec2("security-group/*")],
            _tagging(cluster),
        ),
        # EC2 checks the VPC too, which is not being created and so has no tag in the request.
        _allow("CloudControllerNewSecurityGroupsInVpc", "ec2:CreateSecurityGroup", [_ec2("vpc/*")]),
        _allow(
            "CloudControllerTagNewSecurityGroups",
            "ec2:CreateTags",
            [_ec2("security-group/*")],
            Condition(
                StringEquals(
                    {
                        "aws:RequestTag/KubernetesCluster": cluster.name,
                        "ec2:CreateAction": "CreateSecurityGroup",
                    }
                )
            ),
        ),
        _allow(
            "CloudControllerServiceLinkedRole",
            "iam:CreateServiceLinkedRole",
            [
                Sub(
                    "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/aws-service-role/"
                    "elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing"
                )
            ],
            Condition(StringEquals({"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"})),
        ),
    ]


def data_volume(cluster: Cluster) -> list[Statement]:
    """Return what a master needs to attach its data volume: EC2 checks the volume and the instance, both tagged."""
    return [
        _allow("DataVolumeRead", "ec2:DescribeVolumes"),
        _allow(
            "DataVolumeAttach",
            "ec2:AttachVolume",
            [_ec2("volume/*"), _ec2("instance/*")],
            _tagged(cluster, **MASTER_ROLE_TAG),
        ),
    ]


def volume_key(key: str | None) -> list[Statement]:
    """Return what attaching a volume takes that is encrypted with a customer managed key.

    Without a key of the cluster file it may still be one: an account can make such a key its default for EBS.
    Source: "Required permissions", Amazon EBS User Guide, encryption: the caller's grant lets EBS use the key.

    Args:
        key: ARN of the key, or None for the account's default.
    """
    keys = [key or Sub("arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*")]
    return [
        _allow(
            "DataVolumeKey",
            "kms:Decrypt kms:DescribeKey kms:GenerateDataKeyWithoutPlaintext",
            keys,
            Condition(_via("ec2")),
        ),
        _allow(
            "DataVolumeKeyGrant",
            "kms:CreateGrant",
            keys,
            Condition([Bool({"kms:GrantIsForAWSResource": "true"}), _via("ec2")]),
        ),
    ]


def read_secrets(sid: str, secrets: list[Any]) -> Statement:
    """Return the right to read secrets."""
    return _allow(sid, "secretsmanager:DescribeSecret secretsmanager:GetSecretValue", secrets)


def write_secrets(sid: str, secrets: list[Any]) -> Statement:
    """Return the right to read and write secrets."""
    return _allow(
        sid,
        "secretsmanager:DescribeSecret secretsmanager:GetSecretValue secretsmanager:PutSecretValue",
        secrets,
    )


def secrets_key(key: Any, *, write: bool) -> Statement:
    """Return the use of the secrets' KMS key, through Secrets Manager only."""
    return _allow(
        "SecretsKey",
        "kms:Decrypt kms:GenerateDataKey" if write else "kms:Decrypt",
        [key],
        Condition(_via("secretsmanager")),
    )


def signal(stack_name: Any) -> Statement:
    """Return the right to signal the cluster's stack and the stacks nested in it, and to read the boot program there.

    Args:
        stack_name: name of the root stack; CloudFormation names nested stacks `<root>-<logical id>-<random>`.
    """
    arn = "arn:${AWS::Partition}:cloudformation:${AWS::Region}:${AWS::AccountId}:stack/${Name}"
    return _allow(
        "OwnStack",
        "cloudformation:DescribeStackResource cloudformation:SignalResource",
        [Sub(f"{arn}/*", Name=stack_name), Sub(f"{arn}-*/*", Name=stack_name)],
    )


def pull_images() -> list[Statement]:
    """Return the right to pull container images from ECR, in any account that lets this one."""
    return [
        _allow("EcrToken", "ecr:GetAuthorizationToken"),
        _allow(
            "EcrPull",
            "ecr:BatchCheckLayerAvailability ecr:BatchGetImage ecr:GetDownloadUrlForLayer",
            [Sub("arn:${AWS::Partition}:ecr:*:*:repository/*")],
        ),
    ]


def session_manager() -> Statement:
    """Return what the SSM agent needs for Session Manager, and no more.

    The managed policy AmazonSSMManagedInstanceCore would also let an instance read every SSM parameter of the account.
    Source: "Add Session Manager permissions to an existing IAM role", AWS Systems Manager User Guide.
    """
    return _allow(
        "SessionManager",
        """ssm:UpdateInstanceInformation
        ssmmessages:CreateControlChannel ssmmessages:CreateDataChannel
        ssmmessages:OpenControlChannel ssmmessages:OpenDataChannel""",
    )
