"""The rows of `test_requests`: requests of masters, nodes and what runs on them, with what permits each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

REGION, ACCOUNT = "us-west-2", "123456789012"
KMS_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd"
AUTHORITY = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:ca-AbCdEf"
GROUP_OF_MASTERS, GROUP_OF_NODES = "sg-0123456789abcdef0", "sg-0123456789abcdef1"
CLUSTERS: dict[str, dict[str, Any]] = {
    "default": {"name": "blue"},
    "keyed": {
        "name": "blue",
        "controlPlane": {"volume": {"kmsKey": KMS_KEY}},
        "addons": {"awsEbsCsiDriver": {"enabled": False}},
    },
    "full": {
        "name": "blue",
        "network": {"plugin": "amazon-vpc"},
        "controlPlane": {"volume": {"kmsKey": KMS_KEY}, "additionalSecurityGroups": [GROUP_OF_MASTERS]},
        "nodeGroups": [{"name": "nodes", "additionalSecurityGroups": [GROUP_OF_NODES]}],
        "certificateAuthority": {"secret": AUTHORITY},
        "etcd": {"backups": {"bucket": "my-backups", "objectLock": {"mode": "governance", "days": 7}}},
        "addons": {
            "clusterAutoscaler": {"enabled": True},
            "awsLoadBalancerController": {"enabled": True},
            "externalDns": {"enabled": True, "zones": ["Z0123456789"]},
        },
    },
}


class Request(NamedTuple):
    """A request and the statement that lets it through.

    Attributes:
        role: who makes it: `MasterRole` or `NodeRole`, with the managed policies of the cluster on it.
        sid: the statement.
        action: the action.
        resource: ARN of what it is about; its part after the account where it is EC2's.
        context: condition keys that it carries and that the permission rests on; a tag's key alone means the cluster's.
        others: resources of the kind that the statement says nothing of.
    """

    role: str
    sid: str
    action: str
    resource: str = "*"
    context: Mapping[str, Any] = {}
    others: tuple[str, ...] = ()


M, N = "MasterRole", "NodeRole"
OURS = {"aws:ResourceTag/KubernetesCluster": "blue"}
NEW = {"aws:RequestTag/KubernetesCluster": "blue"}
MASTERS = {"aws:ResourceTag/k8s.io/role/master": "1"}
ELB = f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}:loadbalancer/net/a/0"
EBS_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/default"
THROUGH_EC2 = {"kms:ViaService": f"ec2.{REGION}.amazonaws.com"}
THROUGH_SECRETS = {"kms:ViaService": f"secretsmanager.{REGION}.amazonaws.com"}
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack"
GROUP = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:0:autoScalingGroupName/a"
SLR = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role"
IN_VPC = {"ec2:Vpc": f"arn:aws:ec2:{REGION}:{ACCOUNT}:vpc/Vpc"}


def created(action: str, service: str = "ec2") -> dict[str, str]:
    """What a request to tag carries while something is created (`CreateAction` of both services' references)."""
    return {**NEW, f"{service}:CreateAction": action}


DEFAULT = [
    # The cloud controller manager: cloud-provider-aws, docs/prerequisites.md, bound to the cluster's tag.
    Request(M, "CloudControllerRead", "elasticloadbalancing:DescribeTargetHealth"),
    Request(M, "CloudControllerOwnLoadBalancers", "ec2:AuthorizeSecurityGroupIngress", "security-group/sg-0", OURS),
    Request(M, "CloudControllerOwnLoadBalancers", "ec2:DeleteSecurityGroup", "security-group/sg-0", OURS),
    Request(M, "CloudControllerOwnLoadBalancers", "elasticloadbalancing:DeleteLoadBalancer", ELB, OURS),
    Request(M, "CloudControllerOwnLoadBalancers", "elasticloadbalancing:RegisterTargets", ELB, OURS),
    # When the groups of a network load balancer change: docs/nlb_security_groups.md of cloud-provider-aws.
    Request(M, "CloudControllerOwnLoadBalancers", "elasticloadbalancing:SetSecurityGroups", ELB, OURS),
    *(
        Request(
            M,
            "CloudControllerTagNewLoadBalancers",
            "elasticloadbalancing:AddTags",
            ELB,
            created(action, "elasticloadbalancing"),
        )
        for action in ("CreateListener", "CreateLoadBalancer", "CreateTargetGroup")
    ),
    Request(M, "CloudControllerNewLoadBalancers", "elasticloadbalancing:CreateLoadBalancer", ELB, NEW),
    Request(M, "CloudControllerNewSecurityGroups", "ec2:CreateSecurityGroup", "security-group/*", NEW),
    *(
        Request(M, "CloudControllerNewSecurityGroupsInVpc", f"ec2:{action}", "vpc/vpc-0", OURS, ("subnet/subnet-0",))
        for action in ("CreateSecurityGroup", "GetSecurityGroupsForVpc")
    ),
    Request(
        M,
        "CloudControllerTagNewSecurityGroups",
        "ec2:CreateTags",
        "security-group/sg-0",
        created("CreateSecurityGroup"),
        ("instance/i-0", "subnet/subnet-0", "network-interface/eni-0"),
    ),
    # The first load balancer of an account needs the service's own role.
    Request(
        M,
        "CloudControllerServiceLinkedRole",
        "iam:CreateServiceLinkedRole",
        f"{SLR}/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing",
        {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"},
        (f"{SLR}/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",),
    ),
    Request(M, "PodRoutes", "ec2:CreateRoute", "route-table/RouteTable", OURS, ("route-table/rtb-0",)),
    Request(M, "PodRoutes", "ec2:DeleteRoute", "route-table/RouteTable", OURS, ("route-table/rtb-0",)),
    Request(
        M,
        "PodRoutesOwnInstances",
        "ec2:ModifyInstanceAttribute",
        "instance/i-0",
        {**OURS, "ec2:Attribute/SourceDestCheck": "false"},
        ("volume/vol-0",),
    ),
    # A master: its volume, the secrets, etcd's snapshots.
    Request(M, "DataVolumeRead", "ec2:DescribeVolumes"),
    Request(M, "DataVolumeAttach", "ec2:AttachVolume", "volume/vol-0", {**OURS, **MASTERS}),
    Request(M, "DataVolumeAttach", "ec2:DetachVolume", "volume/vol-0", {**OURS, **MASTERS}),
    Request(M, "DataVolumeKey", "kms:Decrypt", EBS_KEY, THROUGH_EC2),
    Request(M, "DataVolumeKeyGrant", "kms:CreateGrant", EBS_KEY, {**THROUGH_EC2, "kms:GrantIsForAWSResource": "true"}),
    Request(M, "Secrets", "secretsmanager:GetSecretValue", "CaSecret", OURS, ("OtherSecret",)),
    Request(M, "Secrets", "secretsmanager:PutSecretValue", "JoinSecret", OURS, ("OtherSecret",)),
    Request(
        M,
        "SecretsKey",
        "kms:GenerateDataKey",
        "SecretsKey.Arn",
        {**THROUGH_SECRETS, "kms:EncryptionContext:SecretARN": "CaSecret"},
        (EBS_KEY,),
    ),
    Request(
        M,
        "Backups",
        "s3:GetObject",
        "arn:aws:s3:::BackupBucket/blue/etcd/requests/a",
        others=("arn:aws:s3:::BackupBucket/green/etcd/hourly/a", "arn:aws:s3:::BackupBucket/blue/a"),
    ),
    *(
        Request(
            M,
            "BackupsNew",
            "s3:PutObject",
            f"arn:aws:s3:::BackupBucket/blue/etcd/{kind}/a",
            {"s3:if-none-match": "*"},
            others=("arn:aws:s3:::BackupBucket/blue/etcd/requests/a",),
        )
        for kind in ("hourly", "daily")
    ),
    Request(
        M,
        "BackupsList",
        "s3:ListBucket",
        "arn:aws:s3:::BackupBucket",
        {"s3:prefix": "blue/etcd/hourly/"},
        ("arn:aws:s3:::b",),
    ),
    # Signals, with one stack; for stacks in the root see `test_policies`. Not those of a cluster blue-eu.
    Request(
        M,
        "OwnStack",
        "cloudformation:SignalResource",
        f"{STACK}/blue/0",
        others=(f"{STACK}/blue-eu/0", f"{STACK}/blue-NodeGroupNodesStack-A/0", f"{STACK}/blue-eu-MasterStack-A/0"),
    ),
    Request(M, "OwnStack", "cloudformation:DescribeStackResource", f"{STACK}/blue-MasterStack-A/0"),
    *(
        Request(
            N,
            "OwnStack",
            f"cloudformation:{action}",
            f"{STACK}/blue/0",
            others=(f"{STACK}/blue-MasterStack-A/0", f"{STACK}/blue-eu/0"),
        )
        for action in ("SignalResource", "DescribeStackResource")
    ),
    # A node: what it needs to join, and the word that its pods have moved.
    Request(N, "JoinSecret", "secretsmanager:GetSecretValue", "JoinSecret", OURS, ("CaSecret",)),
    Request(
        N,
        "SecretsKey",
        "kms:Decrypt",
        "SecretsKey.Arn",
        {**THROUGH_SECRETS, "kms:EncryptionContext:SecretARN": "JoinSecret"},
        (EBS_KEY,),
    ),
    Request(N, "Drain", "autoscaling:CompleteLifecycleAction", GROUP, OURS),
    Request(N, "Drain", "autoscaling:RecordLifecycleActionHeartbeat", GROUP, OURS),
    # Both: images of ECR, shells of Session Manager.
    *(
        request
        for role in (M, N)
        for request in (
            Request(role, "EcrToken", "ecr:GetAuthorizationToken"),
            Request(
                role, "EcrPull", "ecr:BatchGetImage", "arn:aws:ecr:eu-west-1:210987654321:repository/a", others=("*",)
            ),
            Request(
                role,
                "SessionManagerInstances",
                "ssm:UpdateInstanceInformation",
                "instance/i-0",
                others=("volume/vol-0",),
            ),
            Request(
                role,
                "SessionManagerInstances",
                "ssm:UpdateInstanceInformation",
                f"arn:aws:ssm:{REGION}:{ACCOUNT}:managed-instance/mi-0",
            ),
            Request(role, "SessionManager", "ssmmessages:OpenDataChannel"),
        )
    ),
    # The EBS CSI driver, on masters: volumes that bear its tag, never the masters' own.
    Request(M, "EbsRead", "ec2:DescribeVolumesModifications"),
    Request(M, "EbsNewVolumes", "ec2:CreateVolume", "volume/*", NEW),
    Request(M, "EbsTagNewVolumes", "ec2:CreateTags", "volume/vol-0", created("CreateVolume"), ("instance/i-0",)),
    Request(
        M,
        "EbsOwnVolumes",
        "ec2:DeleteVolume",
        "volume/vol-0",
        {**OURS, "aws:ResourceTag/ebs.csi.aws.com/cluster": "true"},
    ),
    Request(M, "EbsOwnInstances", "ec2:AttachVolume", "instance/i-0", OURS),
]
FULL = [
    # The Amazon VPC plug-in: docs/iam-policy.md, "Scope-down IAM policy"; of masters the same in a policy beside.
    *(
        request
        for role, instances, groups, group in (
            (M, "Masters", {**OURS, **MASTERS}, GROUP_OF_MASTERS),
            (N, "Nodes", {**OURS, "aws:ResourceTag/k8s.io/role/node": "1"}, GROUP_OF_NODES),
        )
        for request in (
            Request(role, "PodAddressesRead", "ec2:DescribeNetworkInterfaces"),
            Request(role, "PodAddressesOwnInterfaces", "ec2:AssignPrivateIpAddresses", "network-interface/eni-0", OURS),
            Request(role, "PodAddressesOwnInstances", "ec2:AttachNetworkInterface", "network-interface/eni-0", OURS),
            Request(role, "PodAddressesOwnInstances", "ec2:AttachNetworkInterface", "instance/i-0", OURS, ("vpc/v",)),
            Request(role, "PodAddressesNewInterfaces", "ec2:CreateNetworkInterface", "network-interface/*", NEW),
            Request(
                role,
                "PodAddressesNewInterfacesInVpc",
                "ec2:CreateNetworkInterface",
                "subnet/subnet-0",
                IN_VPC,
                ("instance/i-0",),
            ),
            *(
                Request(role, f"PodAddressesGroupsOf{instances}", f"ec2:{action}", "security-group/sg-0", groups)
                for action in ("CreateNetworkInterface", "ModifyNetworkInterfaceAttribute")
            ),
            *(
                Request(
                    role,
                    "PodAddressesExistingGroups",
                    f"ec2:{action}",
                    f"security-group/{group}",
                    others=("security-group/sg-other",),
                )
                for action in ("CreateNetworkInterface", "ModifyNetworkInterfaceAttribute")
            ),
            Request(
                role,
                "PodAddressesTagNewInterfaces",
                "ec2:CreateTags",
                "network-interface/eni-0",
                created("CreateNetworkInterface"),
                ("instance/i-0",),
            ),
            Request(
                role,
                "PodAddressesMarkOwnInterfaces",
                "ec2:CreateTags",
                "network-interface/eni-0",
                {**OURS, "aws:TagKeys": ["node.k8s.amazonaws.com/createdAt", "node.k8s.amazonaws.com/instance_id"]},
            ),
            Request(
                role,
                "PodAddressesMarkOwnInterfaces",
                "ec2:CreateTags",
                "network-interface/eni-0",
                {**OURS, **NEW, "aws:TagKeys": ["KubernetesCluster", "kubernetes.io/cluster/blue"]},
            ),
        )
    ),
    # A key of one's own for the masters' volumes; claims' volumes have the account's.
    Request(M, "DataVolumeKey", "kms:GenerateDataKeyWithoutPlaintext", KMS_KEY, THROUGH_EC2),
    Request(M, "DataVolumeKeyGrant", "kms:CreateGrant", KMS_KEY, {**THROUGH_EC2, "kms:GrantIsForAWSResource": "true"}),
    Request(M, "DataVolumeKey", "kms:Decrypt", EBS_KEY, THROUGH_EC2),
    # An authority of one's own, whatever key encrypts it.
    Request(M, "OwnAuthority", "secretsmanager:GetSecretValue", AUTHORITY, others=("OtherSecret",)),
    Request(
        M,
        "OwnAuthorityKey",
        "kms:Decrypt",
        EBS_KEY,
        {**THROUGH_SECRETS, "kms:EncryptionContext:SecretARN": AUTHORITY},
    ),
    # A bucket of one's own that encrypts with a key.
    *(
        Request(
            M,
            "BackupsKey",
            action,
            EBS_KEY,
            {
                "kms:ViaService": f"s3.{REGION}.amazonaws.com",
                "kms:EncryptionContext:aws:s3:arn": f"arn:aws:s3:::my-backups{place}",
            },
        )
        for action, place in (("kms:Decrypt", ""), ("kms:GenerateDataKey", "/blue/etcd/hourly/a"))
    ),
    # Its lock; tests/sandbox/test_sandbox_backups.py has the bounds, which are of requests with such keys only.
    Request(
        M,
        "BackupsLock",
        "s3:PutObjectRetention",
        "arn:aws:s3:::my-backups/blue/etcd/daily/a",
        others=("arn:aws:s3:::my-backups/blue/etcd/restore.json", "arn:aws:s3:::my-backups/green/etcd/daily/a"),
    ),
    # cluster-autoscaler: groups that are marked for it.
    Request(M, "AutoscalerRead", "ec2:DescribeLaunchTemplateVersions"),
    Request(
        M,
        "AutoscalerOwnGroups",
        "autoscaling:SetDesiredCapacity",
        GROUP,
        {**OURS, "aws:ResourceTag/k8s.io/cluster-autoscaler/enabled": "true"},
    ),
    # The load balancer controller: docs/install/iam_policy.json of the controller, bound to the cluster's tag.
    Request(M, "LoadBalancersRead", "elasticloadbalancing:DescribeRules"),
    Request(M, "LoadBalancersNamed", "acm:DescribeCertificate", f"arn:aws:acm:{REGION}:{ACCOUNT}:certificate/a"),
    Request(
        M,
        "LoadBalancersNamed",
        "cognito-idp:DescribeUserPoolClient",
        f"arn:aws:cognito-idp:{REGION}:{ACCOUNT}:userpool/a",
    ),
    Request(M, "LoadBalancersNamed", "iam:GetServerCertificate", f"arn:aws:iam::{ACCOUNT}:server-certificate/a"),
    Request(M, "LoadBalancersNewRules", "elasticloadbalancing:CreateRule", ELB, NEW),
    Request(
        M,
        "LoadBalancersTagNewRules",
        "elasticloadbalancing:AddTags",
        ELB,
        created("CreateRule", "elasticloadbalancing"),
    ),
    Request(M, "LoadBalancersOwn", "elasticloadbalancing:ModifyRule", ELB, OURS),
    *(
        Request(
            M,
            "LoadBalancersOrderRules",
            "elasticloadbalancing:SetRulePriorities",
            f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}:listener-rule/{kind}/a",
            others=(ELB,),
        )
        for kind in ("app", "net")
    ),
    Request(M, "LoadBalancersTagOwnGroups", "ec2:DeleteTags", "security-group/sg-0", OURS, ("instance/i-0",)),
    # external-dns: the zones that the cluster file names.
    Request(M, "DnsRead", "route53:ListHostedZones"),
    *(
        Request(
            M,
            "DnsRecords",
            f"route53:{action}",
            "arn:aws:route53:::hostedzone/Z0123456789",
            others=("arn:aws:route53:::hostedzone/Z9",),
        )
        for action in ("ChangeResourceRecordSets", "ListTagsForResources")
    ),
]
# Without the driver, which makes volumes of claims, the masters' key is the only one.
KEYED = [
    Request(M, "DataVolumeKey", "kms:Decrypt", KMS_KEY, THROUGH_EC2, (EBS_KEY,)),
    Request(
        M,
        "DataVolumeKeyGrant",
        "kms:CreateGrant",
        KMS_KEY,
        {**THROUGH_EC2, "kms:GrantIsForAWSResource": "true"},
        (EBS_KEY,),
    ),
]
ROWS = [("default", request) for request in DEFAULT] + [("full", request) for request in FULL]
ROWS += [("keyed", request) for request in KEYED]
