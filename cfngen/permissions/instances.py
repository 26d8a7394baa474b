"""The IAM statements of masters and nodes.

There are three kinds: unconditional reads, which EC2 and ELB cannot restrict to resources; changes of resources that
have the cluster's tag; and creation of resources with the cluster's tag. The tag is `KubernetesCluster`: the key of an
IAM condition cannot contain the cluster's name, and the cloud controller manager copies this tag from its instance to
what it creates.

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
        resources: ARNs; `*` if left out.
        condition: the condition, if any.
    """
    named = [Action(*action.split(":")) for action in actions.split()]
    extra = {"Condition": condition} if condition else {}
    return Statement(Sid=sid, Effect=Allow, Action=named, Resource=resources or ["*"], **extra)


def if_resource_tagged(cluster: Cluster, **more: str) -> Condition:
    """Return the condition that the resource has the cluster's tag, and further tags."""
    keys = {"aws:ResourceTag/KubernetesCluster": cluster.name}
    return Condition(StringEquals({**keys, **{f"aws:ResourceTag/{key}": value for key, value in more.items()}}))


def if_request_tagged(cluster: Cluster) -> Condition:
    """Return the condition that the request creates a resource with the cluster's tag."""
    return Condition(StringEquals({"aws:RequestTag/KubernetesCluster": cluster.name}))


def via(service: str) -> StringEquals:
    """Return the condition operator that allows a KMS key to be used through one service only."""
    # The value of this key ends in amazonaws.com in every partition (AWS KMS Developer Guide, kms:ViaService).
    return StringEquals({"kms:ViaService": Sub(f"{service}.${{AWS::Region}}.amazonaws.com")})


def ec2_arn(resource: str) -> Sub:
    """Return the ARN of EC2 resources in this account and region, e.g. `volume/*`."""
    return Sub(f"arn:${{AWS::Partition}}:ec2:${{AWS::Region}}:${{AWS::AccountId}}:{resource}")


def cloud_controller(cluster: Cluster) -> list[Statement]:
    """Return the cloud controller manager's statements, except those for pods' routes.

    Four of the reads are calls of Elastic Load Balancing, made with the permissions of whoever creates a load balancer:
    accounts, addresses and internet gateways while the account has no service-linked role (terraform-aws-eks#900,
    #1226), security groups whenever the request names some (aws-load-balancer-controller#3917).
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
            condition=if_resource_tagged(cluster),
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
            condition=if_resource_tagged(cluster),
        ),
        # Creating with tags needs the permission to add tags, to a resource that has none yet ("Grant permission to tag
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
            condition=if_request_tagged(cluster),
        ),
        allow(
            "CloudControllerNewSecurityGroups",
            "ec2:CreateSecurityGroup",
            [ec2_arn("security-group/*")],
            if_request_tagged(cluster),
        ),
        # EC2 checks the VPC too, for which the request has no tags.
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
    """Return what the cloud controller manager needs to write pods' routes.

    It also disables the source/destination check of its instances.

    Args:
        cluster: the cluster.
        route_table: id of the only route table it may change.
    """
    table = "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:route-table/${RouteTable}"
    return [
        allow("PodRoutes", "ec2:CreateRoute ec2:DeleteRoute", [Sub(table, RouteTable=route_table)]),
        allow(
            "PodRoutesOwnInstances", "ec2:ModifyInstanceAttribute", [ec2_arn("instance/*")], if_resource_tagged(cluster)
        ),
    ]


def pod_addresses(cluster: Cluster, vpc: Any, *, master: bool) -> list[Statement]:
    """Return what the Amazon VPC plug-in needs to give pods addresses of network interfaces.

    AmazonEKS_CNI_Policy allows this on every interface of the account. Here interfaces must have the cluster's tag,
    which the plug-in puts on those it creates, and nodes may not change the interfaces that masters boot with. Source:
    "Scope-down IAM policy" of the plug-in's docs/iam-policy.md.

    Args:
        cluster: the cluster.
        vpc: id of its VPC.
        master: whether the statements are for masters.
    """
    interfaces, instances, groups = ec2_arn("network-interface/*"), ec2_arn("instance/*"), ec2_arn("security-group/*")
    not_masters = StringNotEquals({f"aws:ResourceTag/{key}": value for key, value in MASTER_ROLE_TAG.items()})
    same_cluster = StringEquals({"aws:ResourceTag/KubernetesCluster": cluster.name})
    own = Condition([same_cluster] if master else [same_cluster, not_masters])
    in_vpc = Condition(
        ArnEquals({"ec2:Vpc": Sub("arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:vpc/${Vpc}", Vpc=vpc)})
    )
    # Tags that the plug-in adds to existing interfaces; role tags are not among them.
    keys = ["KubernetesCluster", f"kubernetes.io/cluster/{cluster.name}", "node.k8s.amazonaws.com/createdAt"]
    allowed_tag_keys = ForAllValuesStringEquals({"aws:TagKeys": [*keys, "node.k8s.amazonaws.com/instance_id"]})
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
        allow("PodAddressesNewInterfaces", "ec2:CreateNetworkInterface", [interfaces], if_request_tagged(cluster)),
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
        allow(
            "PodAddressesMarkOwnInterfaces", "ec2:CreateTags", [interfaces], Condition([same_cluster, allowed_tag_keys])
        ),
    ]


def data_volume(cluster: Cluster) -> list[Statement]:
    """Return what a master needs to attach its data volume: EC2 checks the tags of both volume and instance.

    It detaches the volume from the slot's previous instance once that is terminated, so it may describe instances.
    """
    return [
        allow("DataVolumeRead", "ec2:DescribeInstances ec2:DescribeVolumes"),
        allow(
            "DataVolumeAttach",
            "ec2:AttachVolume ec2:DetachVolume",
            [ec2_arn("volume/*"), ec2_arn("instance/*")],
            if_resource_tagged(cluster, **MASTER_ROLE_TAG),
        ),
    ]


def volume_key(key: str | None) -> list[Statement]:
    """Return what is needed to attach a volume that is encrypted with a customer managed key.

    Volumes may have such a key even if the cluster file names none: an account can make one its default for EBS.
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
    """Return the right to use the KMS key of the secrets, through Secrets Manager only."""
    return allow(
        "SecretsKey",
        "kms:Decrypt kms:GenerateDataKey" if write else "kms:Decrypt",
        [key],
        Condition(via("secretsmanager")),
    )


def own_authority(secret: str | None) -> list[Statement]:
    """Return the right to read the secret of the user's own certificate authority, and to use the key it has.

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
    """Return what a master may do with etcd's snapshots: read, add and list them, but not delete them.

    It may also read, but not write, the requests that operators put there.

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
        # The user's own bucket may be encrypted with a KMS key. The encryption context is the object's ARN or, with an
        # S3 Bucket Key, the bucket's ("Reducing the cost of SSE-KMS", Amazon S3 User Guide).
        context = StringLike({"kms:EncryptionContext:aws:s3:arn": [Sub(arn, Bucket=bucket), objects]})
        keys = [Sub("arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*")]
        statements.append(allow("BackupsKey", "kms:Decrypt kms:GenerateDataKey", keys, Condition([via("s3"), context])))
    return statements


def signal(stack_name: Any, nested: str) -> Statement:
    """Return the right to signal the root stack and some nested stacks, and to read the boot program from them.

    Args:
        stack_name: name of the root stack, which in the standalone template holds everything. Nested stacks are named
            `<root>-<logical id>-<random>`; `<root>-*` would also match those of a cluster called `<root>-eu`.
        nested: logical ids of the nested stacks, with wildcards.
    """
    arn = "arn:${AWS::Partition}:cloudformation:${AWS::Region}:${AWS::AccountId}:stack/${Name}"
    return allow(
        "OwnStack",
        "cloudformation:DescribeStackResource cloudformation:SignalResource",
        [Sub(f"{arn}/*", Name=stack_name), Sub(f"{arn}-{nested}-*/*", Name=stack_name)],
    )


def drain(cluster: Cluster) -> Statement:
    """Return the right to complete lifecycle actions, and send heartbeats, in the groups of the cluster's nodes."""
    groups = "arn:${AWS::Partition}:autoscaling:${AWS::Region}:${AWS::AccountId}:autoScalingGroup:*"
    not_masters = StringNotEquals({f"aws:ResourceTag/{key}": value for key, value in MASTER_ROLE_TAG.items()})
    return allow(
        "Drain",
        "autoscaling:CompleteLifecycleAction autoscaling:RecordLifecycleActionHeartbeat",
        [Sub(f"{groups}:autoScalingGroupName/*")],
        Condition([StringEquals({"aws:ResourceTag/KubernetesCluster": cluster.name}), not_masters]),
    )


def pull_images() -> list[Statement]:
    """Return the right to pull container images from ECR, including repositories shared by other accounts."""
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
