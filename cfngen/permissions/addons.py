"""IAM statements that enabled add-ons need on the masters' role.

As in `instances`, changes are limited to resources with the cluster's tag. The actions are those of the add-ons' own
documentation: aws-ebs-csi-driver,
docs/example-iam-policy.json; cluster-autoscaler, cloudprovider/aws/README.md; aws-load-balancer-controller,
docs/install/iam_policy.json; external-dns, docs/tutorials/aws.md.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.permissions.references import References, arn, if_creating_tagged, if_request_tagged, if_resource_tagged
from cfngen.permissions.statements import Statement, allow
from cfngen.permissions.volumes import volume_key_statements

# Tag that the EBS CSI driver sets on every volume that it creates.
EBS_CSI_DRIVER_TAG = {"ebs.csi.aws.com/cluster": "true"}
# Tag of the Auto Scaling groups that cluster-autoscaler may scale; `templates.tagging` sets it on the groups of nodes
# only.
AUTOSCALER_TAG = {"k8s.io/cluster-autoscaler/enabled": "true"}


def addon_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements that the enabled add-ons need in addition to the statements of the masters themselves."""
    statements: list[Statement] = []
    if cluster.addons.aws_ebs_csi_driver.enabled:
        statements += _ebs_csi_driver_statements(cluster, references)
    if cluster.addons.cluster_autoscaler.enabled:
        statements += _cluster_autoscaler_statements(cluster)
    if cluster.addons.aws_load_balancer_controller.enabled:
        statements += _load_balancer_controller_statements(cluster, references)
    if cluster.addons.external_dns.enabled:
        statements += _external_dns_statements(cluster, references)
    return statements


def _ebs_csi_driver_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements with which the EBS CSI driver creates, attaches and deletes its volumes.

    Only volumes with the driver's tag can be changed, so the masters' data volumes cannot. The driver's volumes are
    encrypted with the account's default KMS key or with a key that a storage class names. If the cluster file names a
    key for the masters' volumes, the statements of masters allow that key only, so all keys are allowed here.
    """
    return [
        *(volume_key_statements(references, key=None) if cluster.control_plane.volume.kms_key else []),
        allow(
            sid="EbsRead",
            actions="""
                ec2:DescribeAvailabilityZones ec2:DescribeInstances ec2:DescribeInstanceTypes ec2:DescribeSnapshots
                ec2:DescribeTags ec2:DescribeVolumes ec2:DescribeVolumesModifications ec2:DescribeVolumeStatus""",
        ),
        allow(
            sid="EbsNewVolumes",
            actions="ec2:CreateVolume",
            resources=[arn(references, "ec2", "volume/*")],
            condition=if_request_tagged(cluster),
        ),
        allow(
            sid="EbsTagNewVolumes",
            actions="ec2:CreateTags",
            resources=[arn(references, "ec2", "volume/*")],
            condition=if_creating_tagged(cluster, "ec2", "CreateVolume"),
        ),
        allow(
            sid="EbsOwnVolumes",
            actions="ec2:AttachVolume ec2:DeleteVolume ec2:DetachVolume ec2:ModifyVolume",
            resources=[arn(references, "ec2", "volume/*")],
            condition=if_resource_tagged(cluster, **EBS_CSI_DRIVER_TAG),
        ),
        # To attach a volume, EC2 requires permission for the instance as well as for the volume.
        allow(
            sid="EbsOwnInstances",
            actions="ec2:AttachVolume ec2:DetachVolume",
            resources=[arn(references, "ec2", "instance/*")],
            condition=if_resource_tagged(cluster),
        ),
    ]


def _cluster_autoscaler_statements(cluster: Cluster) -> list[Statement]:
    """Return the statements with which cluster-autoscaler changes the sizes of node groups."""
    return [
        allow(
            sid="AutoscalerRead",
            actions="""
                autoscaling:DescribeAutoScalingGroups autoscaling:DescribeAutoScalingInstances
                autoscaling:DescribeLaunchConfigurations autoscaling:DescribeScalingActivities
                ec2:DescribeImages ec2:DescribeInstanceTypes ec2:DescribeLaunchTemplateVersions
                ec2:GetInstanceTypesFromInstanceRequirements""",
        ),
        allow(
            sid="AutoscalerOwnGroups",
            actions="autoscaling:SetDesiredCapacity autoscaling:TerminateInstanceInAutoScalingGroup",
            condition=if_resource_tagged(cluster, **AUTOSCALER_TAG),
        ),
    ]


def _load_balancer_controller_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements that the AWS Load Balancer Controller needs in addition to the cloud controller manager's.

    They are for rules, certificates, addresses and capacity of load balancers; the masters' role has the statements of
    the cloud controller manager already. Permissions for AWS WAF and Shield, which the controller's documentation lists
    too, are omitted, since the controller's Helm values disable both integrations.
    """
    return [
        allow(
            sid="LoadBalancersRead",
            actions="""
                acm:ListCertificates ec2:DescribeCoipPools ec2:DescribeIpamPools
                ec2:DescribeNetworkInterfaces ec2:DescribeTags ec2:DescribeVpcPeeringConnections
                ec2:GetCoipPoolUsage
                elasticloadbalancing:DescribeCapacityReservation elasticloadbalancing:DescribeListenerAttributes
                elasticloadbalancing:DescribeListenerCertificates elasticloadbalancing:DescribeRules
                elasticloadbalancing:DescribeSSLPolicies elasticloadbalancing:DescribeTags
                elasticloadbalancing:DescribeTrustStores iam:ListServerCertificates""",
        ),
        # An ingress can name certificates of ACM or IAM, and a Cognito user pool for logins.
        allow(
            sid="LoadBalancersNamed",
            actions="acm:DescribeCertificate cognito-idp:DescribeUserPoolClient iam:GetServerCertificate",
            resources=[
                arn(references, "acm", "certificate/*"),
                arn(references, "cognito-idp", "userpool/*"),
                arn(references, "iam", "server-certificate/*", region=""),
            ],
        ),
        allow(
            sid="LoadBalancersNewRules", actions="elasticloadbalancing:CreateRule", condition=if_request_tagged(cluster)
        ),
        allow(
            sid="LoadBalancersTagNewRules",
            actions="elasticloadbalancing:AddTags",
            condition=if_creating_tagged(cluster, "elasticloadbalancing", "CreateRule"),
        ),
        allow(
            sid="LoadBalancersOwn",
            actions="""
                elasticloadbalancing:AddListenerCertificates elasticloadbalancing:DeleteRule
                elasticloadbalancing:ModifyCapacityReservation elasticloadbalancing:ModifyIpPools
                elasticloadbalancing:ModifyListenerAttributes elasticloadbalancing:ModifyRule
                elasticloadbalancing:RemoveListenerCertificates elasticloadbalancing:RemoveTags
                elasticloadbalancing:SetIpAddressType
                elasticloadbalancing:SetSecurityGroups elasticloadbalancing:SetSubnets""",
            condition=if_resource_tagged(cluster),
        ),
        # This is the only action on rules whose requests contain no tags ("Actions, resources, and condition keys for
        # AWS Elastic Load Balancing V2", Service Authorization Reference).
        allow(
            sid="LoadBalancersOrderRules",
            actions="elasticloadbalancing:SetRulePriorities",
            resources=[arn(references, "elasticloadbalancing", f"listener-rule/{kind}/*") for kind in ("app", "net")],
        ),
        # The controller changes the tags of its security groups, but must not change the cluster's tag, by which this
        # condition recognizes the groups.
        allow(
            sid="LoadBalancersTagOwnGroups",
            actions="ec2:CreateTags ec2:DeleteTags",
            resources=[arn(references, "ec2", "security-group/*")],
            condition={**if_resource_tagged(cluster), "Null": {"aws:RequestTag/KubernetesCluster": "true"}},
        ),
    ]


def _external_dns_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements with which external-dns changes records in the hosted zones of the cluster file."""
    return [
        allow(sid="DnsRead", actions="route53:ListHostedZones"),
        allow(
            sid="DnsRecords",
            actions="route53:ChangeResourceRecordSets route53:ListResourceRecordSets",
            resources=[
                arn(references, "route53", f"hostedzone/{zone}", region="", account="")
                for zone in cluster.addons.external_dns.zones
            ],
        ),
    ]
