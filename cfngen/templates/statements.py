"""The IAM statements of masters and nodes: what may be done, to what, under which condition.

Three kinds: unconditional (reads, which EC2 and ELB do not scope), only on what carries the cluster's tag, only when
creating with the cluster's tag. The tag is `KubernetesCluster`: the key of an IAM condition cannot be parameterised,
and the cloud controller manager puts this tag on whatever it makes when its own instance bears it.

The cloud controller manager's actions are those of its documentation (cloud-provider-aws, docs/prerequisites.md).
"""

from __future__ import annotations

from typing import Any

from awacs.aws import (
    Action,
    Allow,
    ArnEquals,
    Bool,
    Condition,
    ForAllValuesStringEquals,
    Statement,
    StringEquals,
    StringLike,
    StringNotEquals,
)
from troposphere import Sub

from cfngen.cluster.model import Cluster

MASTER_ROLE_TAG = {"k8s.io/role/master": "1"}


def allow(sid: str, actions: str, resources: list[Any] | None = None, condition: Condition | None = None) -> Statement:
    """Return an Allow statement.

    Args:
        sid: its name.
        actions: `service:Action` names, separated by white space.
        resources: ARNs; everything when left out.
        condition: the condition, if any.
    """
    named = [Action(*action.split(":")) for action in actions.split()]
    extra = {"Condition": condition} if condition else {}
    return Statement(Sid=sid, Effect=Allow, Action=named, Resource=resources or ["*"], **extra)


def tagged(cluster: Cluster, **more: str) -> Condition:
    """Return the condition that what is acted on bears the cluster's tag, and other tags."""
    keys = {"aws:ResourceTag/KubernetesCluster": cluster.name}
    return Condition(StringEquals({**keys, **{f"aws:ResourceTag/{key}": value for key, value in more.items()}}))


def tagging(cluster: Cluster) -> Condition:
    """Return the condition that what is being created gets the cluster's tag."""
    return Condition(StringEquals({"aws:RequestTag/KubernetesCluster": cluster.name}))


def via(service: str) -> StringEquals:
    """Return the operator by which a key of KMS is used through a service only."""
    # The value of this key ends in amazonaws.com in every partition (AWS KMS Developer Guide, kms:ViaService).
    return StringEquals({"kms:ViaService": Sub(f"{service}.${{AWS::Region}}.amazonaws.com")})


def ec2_arn(resource: str) -> Sub:
    """Return the ARN of resources of EC2 in this account and region, e.g. of `volume/*`."""
    return Sub(f"arn:${{AWS::Partition}}:ec2:${{AWS::Region}}:${{AWS::AccountId}}:{resource}")


def cloud_controller(cluster: Cluster) -> list[Statement]:
    """Return the cloud controller manager's statements, except those of the pods' routes.

    Four of its reads are not its own calls. Elastic Load Balancing makes them with the rights of who creates a load
    balancer: accounts, addresses and internet gateways while the account has no role of that service yet
    (terraform-aws-eks#900, #1226), security groups whenever some are given (aws-load-balancer-controller#3917).
    """
    return [
        allow(
            "CloudControllerRead",
            """autoscaling:DescribeAutoScalingGroups autoscaling:DescribeTags
            ec2:DescribeAccountAttributes ec2:DescribeAddresses
            ec2:DescribeAvailabilityZones ec2:DescribeInstances ec2:DescribeInstanceTopology
            ec2:DescribeInternetGateways ec2:DescribeRegions
            ec2:DescribeRouteTables ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeVpcs
            ec2:GetSecurityGroupsForVpc
            elasticloadbalancing:DescribeListeners elasticloadbalancing:DescribeLoadBalancerAttributes
            elasticloadbalancing:DescribeLoadBalancerPolicies elasticloadbalancing:DescribeLoadBalancers
            elasticloadbalancing:DescribeTargetGroupAttributes elasticloadbalancing:DescribeTargetGroups
            elasticloadbalancing:DescribeTargetHealth""",
        ),
        allow(
            "CloudControllerOwnGroups",
            "ec2:AuthorizeSecurityGroupIngress ec2:DeleteSecurityGroup ec2:RevokeSecurityGroupIngress",
            condition=tagged(cluster),
        ),
        allow(
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
            condition=tagged(cluster),
        ),
        # To create with tags is to tag as well, and what is being created has no tag yet ("Grant permission to tag
        # resources during creation", Elastic Load Balancing User Guide).
        allow(
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
        allow(
            "CloudControllerNewLoadBalancers",
            """elasticloadbalancing:CreateListener elasticloadbalancing:CreateLoadBalancer
            elasticloadbalancing:CreateTargetGroup""",
            condition=tagging(cluster),
        ),
        allow(
            "CloudControllerNewSecurityGroups",
            "ec2:CreateSecurityGroup",
            [ec2_arn("security-group/*")],
            tagging(cluster),
        ),
        # EC2 checks the VPC too, which is not being created and so has no tag in the request.
        allow("CloudControllerNewSecurityGroupsInVpc", "ec2:CreateSecurityGroup", [ec2_arn("vpc/*")]),
        allow(
            "CloudControllerTagNewSecurityGroups",
            "ec2:CreateTags",
            [ec2_arn("security-group/*")],
            Condition(
                StringEquals(
                    {
                        "aws:RequestTag/KubernetesCluster": cluster.name,
                        "ec2:CreateAction": "CreateSecurityGroup",
                    }
                )
            ),
        ),
        allow(
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


def pod_routes(cluster: Cluster, route_table: Any) -> list[Statement]:
    """Return what the cloud controller manager needs to lead pods' packets to their nodes.

    It also switches off the check that an instance sends and receives packets of its own addresses only.

    Args:
        cluster: the cluster.
        route_table: id of the one route table it may write to.
    """
    table = "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:route-table/${RouteTable}"
    return [
        allow("PodRoutes", "ec2:CreateRoute ec2:DeleteRoute", [Sub(table, RouteTable=route_table)]),
        allow("PodRoutesOwnInstances", "ec2:ModifyInstanceAttribute", [ec2_arn("instance/*")], tagged(cluster)),
    ]


def pod_addresses(cluster: Cluster, vpc: Any, *, master: bool) -> list[Statement]:
    """Return what the Amazon VPC plug-in needs to give pods addresses of network interfaces.

    AmazonEKS_CNI_Policy allows it all on every interface of the account. Here interfaces bear the cluster's tag, which
    the plug-in gives to those that it makes; those that masters boot with are no node's business. Source: "Scope-down
    IAM policy" of the plug-in's docs/iam-policy.md.

    Args:
        cluster: the cluster.
        vpc: id of its VPC.
        master: whether the statements are for masters.
    """
    interfaces, instances, groups = ec2_arn("network-interface/*"), ec2_arn("instance/*"), ec2_arn("security-group/*")
    not_masters = StringNotEquals({f"aws:ResourceTag/{key}": value for key, value in MASTER_ROLE_TAG.items()})
    same = StringEquals({"aws:ResourceTag/KubernetesCluster": cluster.name})
    own = Condition([same] if master else [same, not_masters])
    in_vpc = Condition(
        ArnEquals({"ec2:Vpc": Sub("arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:vpc/${Vpc}", Vpc=vpc)})
    )
    # Tags that the plug-in gives to interfaces which it finds; no role's tag is among them.
    keys = ["KubernetesCluster", f"kubernetes.io/cluster/{cluster.name}", "node.k8s.amazonaws.com/createdAt"]
    marks = ForAllValuesStringEquals({"aws:TagKeys": [*keys, "node.k8s.amazonaws.com/instance_id"]})
    return [
        allow("PodAddressesRead", "ec2:DescribeInstanceTypes ec2:DescribeInstances ec2:DescribeNetworkInterfaces"),
        allow(
            "PodAddressesOwnInterfaces",
            "ec2:AssignPrivateIpAddresses ec2:DeleteNetworkInterface ec2:UnassignPrivateIpAddresses",
            [interfaces],
            own,
        ),
        allow(
            "PodAddressesOwnInstances",
            "ec2:AttachNetworkInterface ec2:DetachNetworkInterface ec2:ModifyNetworkInterfaceAttribute",
            [interfaces, instances],
            own,
        ),
        allow("PodAddressesNewInterfaces", "ec2:CreateNetworkInterface", [interfaces], tagging(cluster)),
        # EC2 checks the subnet and the security groups too, which are not being created.
        allow("PodAddressesNewInterfacesInVpc", "ec2:CreateNetworkInterface", [ec2_arn("subnet/*"), groups], in_vpc),
        allow("PodAddressesGroupsInVpc", "ec2:ModifyNetworkInterfaceAttribute", [groups], in_vpc),
        allow(
            "PodAddressesTagNewInterfaces",
            "ec2:CreateTags",
            [interfaces],
            Condition(
                StringEquals(
                    {
                        "aws:RequestTag/KubernetesCluster": cluster.name,
                        "ec2:CreateAction": "CreateNetworkInterface",
                    }
                )
            ),
        ),
        allow("PodAddressesMarkOwnInterfaces", "ec2:CreateTags", [interfaces], Condition([same, marks])),
    ]


def data_volume(cluster: Cluster) -> list[Statement]:
    """Return what a master needs to attach its data volume: EC2 checks the volume and the instance, both tagged.

    It takes the volume off an instance of its slot that has ended, which it looks at before.
    """
    return [
        allow("DataVolumeRead", "ec2:DescribeInstances ec2:DescribeVolumes"),
        allow(
            "DataVolumeAttach",
            "ec2:AttachVolume ec2:DetachVolume",
            [ec2_arn("volume/*"), ec2_arn("instance/*")],
            tagged(cluster, **MASTER_ROLE_TAG),
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
        allow(
            "DataVolumeKey",
            "kms:Decrypt kms:DescribeKey kms:GenerateDataKeyWithoutPlaintext",
            keys,
            Condition(via("ec2")),
        ),
        allow(
            "DataVolumeKeyGrant",
            "kms:CreateGrant",
            keys,
            Condition([Bool({"kms:GrantIsForAWSResource": "true"}), via("ec2")]),
        ),
    ]


def read_secrets(sid: str, secrets: list[Any]) -> Statement:
    """Return the right to read secrets."""
    return allow(sid, "secretsmanager:GetSecretValue", secrets)


def write_secrets(sid: str, secrets: list[Any]) -> Statement:
    """Return the right to read and write secrets."""
    return allow(sid, "secretsmanager:GetSecretValue secretsmanager:PutSecretValue", secrets)


def secrets_key(key: Any, *, write: bool) -> Statement:
    """Return the use of the secrets' KMS key, through Secrets Manager only."""
    return allow(
        "SecretsKey",
        "kms:Decrypt kms:GenerateDataKey" if write else "kms:Decrypt",
        [key],
        Condition(via("secretsmanager")),
    )


def own_authority(secret: str | None) -> list[Statement]:
    """Return the right to read the secret of the user's own certificate authority, whatever key encrypts it.

    Source of the encryption context: "Secret encryption and decryption", AWS Secrets Manager User Guide.
    """
    if not secret:
        return []
    service = Sub("secretsmanager.${AWS::Region}.amazonaws.com")
    through = StringEquals({"kms:ViaService": service, "kms:EncryptionContext:SecretARN": secret})
    keys = [Sub("arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*")]
    return [
        allow("OwnAuthority", "secretsmanager:GetSecretValue", [secret]),
        allow("OwnAuthorityKey", "kms:Decrypt", keys, Condition(through)),
    ]


def backups(cluster: Cluster, bucket: Any) -> list[Statement]:
    """Return what a master may do with etcd's snapshots: read, add, list, and never delete.

    It reads what an operator asks of the masters there, too, and does not write it.

    Args:
        cluster: the cluster.
        bucket: name of the bucket.
    """
    cluster_keys = f"{cluster.name}/etcd/*"
    arn = "arn:${AWS::Partition}:s3:::${Bucket}"
    objects = Sub(f"{arn}/{cluster_keys}", Bucket=bucket)
    listing = Condition(StringLike({"s3:prefix": cluster_keys}))
    statements = [
        allow("Backups", "s3:GetObject", [objects]),
        allow(
            "BackupsNew",
            "s3:PutObject",
            [Sub(f"{arn}/{cluster.name}/etcd/{kind}/*", Bucket=bucket) for kind in ("hourly", "daily")],
        ),
        allow("BackupsList", "s3:ListBucket", [Sub(arn, Bucket=bucket)], listing),
    ]
    if cluster.etcd.backups.bucket:
        # A bucket of somebody's own may encrypt with a KMS key. The context names the object, or, where the bucket has
        # a key of its own, the bucket ("Reducing the cost of SSE-KMS", Amazon S3 User Guide).
        context = StringLike({"kms:EncryptionContext:aws:s3:arn": [Sub(arn, Bucket=bucket), objects]})
        keys = [Sub("arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*")]
        statements.append(allow("BackupsKey", "kms:Decrypt kms:GenerateDataKey", keys, Condition([via("s3"), context])))
    return statements


def signal(stack_name: Any, nested: str) -> Statement:
    """Return the right to signal the cluster's stack and some nested in it, and to read the boot program there.

    Args:
        stack_name: name of the root stack, which the standalone template makes everything in. CloudFormation names
            nested stacks `<root>-<logical id>-<random>`; `<root>-*` would mean those of a cluster `<root>-eu` as well.
        nested: logical ids of the nested stacks, with wildcards.
    """
    arn = "arn:${AWS::Partition}:cloudformation:${AWS::Region}:${AWS::AccountId}:stack/${Name}"
    return allow(
        "OwnStack",
        "cloudformation:DescribeStackResource cloudformation:SignalResource",
        [Sub(f"{arn}/*", Name=stack_name), Sub(f"{arn}-{nested}-*/*", Name=stack_name)],
    )


def drain(cluster: Cluster) -> Statement:
    """Return what a node needs to tell Auto Scaling that its pods have moved: in groups of the cluster's nodes."""
    groups = "arn:${AWS::Partition}:autoscaling:${AWS::Region}:${AWS::AccountId}:autoScalingGroup:*"
    not_masters = StringNotEquals({f"aws:ResourceTag/{key}": value for key, value in MASTER_ROLE_TAG.items()})
    return allow(
        "Drain",
        "autoscaling:CompleteLifecycleAction autoscaling:RecordLifecycleActionHeartbeat",
        [Sub(f"{groups}:autoScalingGroupName/*")],
        Condition([StringEquals({"aws:ResourceTag/KubernetesCluster": cluster.name}), not_masters]),
    )


def pull_images() -> list[Statement]:
    """Return the right to pull container images from ECR, in any account that lets this one."""
    return [
        allow("EcrToken", "ecr:GetAuthorizationToken"),
        allow(
            "EcrPull",
            "ecr:BatchCheckLayerAvailability ecr:BatchGetImage ecr:GetDownloadUrlForLayer",
            [Sub("arn:${AWS::Partition}:ecr:*:*:repository/*")],
        ),
    ]


def session_manager() -> list[Statement]:
    """Return what the SSM agent needs for Session Manager, and no more.

    The managed policy AmazonSSMManagedInstanceCore would also let an instance read every SSM parameter of the account.
    Source: "Add Session Manager permissions to an existing IAM role", AWS Systems Manager User Guide.
    """
    managed = Sub("arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:managed-instance/*")
    return [
        allow("SessionManagerInstances", "ssm:UpdateInstanceInformation", [ec2_arn("instance/*"), managed]),
        allow(
            "SessionManager",
            """ssmmessages:CreateControlChannel ssmmessages:CreateDataChannel
            ssmmessages:OpenControlChannel ssmmessages:OpenDataChannel""",
        ),
    ]
