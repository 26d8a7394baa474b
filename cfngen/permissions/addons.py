"""IAM statements that enabled add-ons need, on roles of their own or on the masters' role.

As in `instances`, changes are limited to resources with the cluster's tag. The actions are those that the add-ons call
in the releases that cfngen installs, fewer than their documentation lists: aws-ebs-csi-driver,
docs/example-iam-policy.json; cluster-autoscaler, cloudprovider/aws/README.md; external-dns, docs/tutorials/aws.md;
cert-manager, docs/configuration/acme/dns01/route53.md of its website. Those of the AWS Load Balancer Controller are in
a module of their own.
"""

from __future__ import annotations

from cfngen.cluster.iam.service_accounts import (
    CLUSTER_AUTOSCALER,
    EBS_CSI_DRIVER,
    EXTERNAL_DNS,
    LOAD_BALANCER_CONTROLLER,
    has_role,
)
from cfngen.cluster.model import Cluster
from cfngen.permissions.instance_roles import volume_key_statements
from cfngen.permissions.load_balancer_controller import controller_statements
from cfngen.permissions.references import References, arn, if_creating_tagged, if_request_tagged, if_resource_tagged
from cfngen.permissions.statements import Expression, Statement, allow

# Tag that the EBS CSI driver sets on every volume that it creates.
EBS_CSI_DRIVER_TAG = {"ebs.csi.aws.com/cluster": "true"}
# Tag of the Auto Scaling groups that cluster-autoscaler may scale; `templates.tagging` sets it on the groups of nodes
# only.
AUTOSCALER_TAG = {"k8s.io/cluster-autoscaler/enabled": "true"}


def addon_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return what enabled add-ons without roles of their own need, beyond the statements of the masters themselves."""
    statements: list[Statement] = []
    if cluster.addons.aws_ebs_csi_driver.enabled and not has_role(cluster, EBS_CSI_DRIVER):
        # If the cluster file names a key for the masters' volumes, the statements of masters allow that key only.
        if cluster.control_plane.volume.kms_key:
            statements += volume_key_statements(cluster, references, key=None)
        statements += ebs_csi_driver_statements(cluster, references)
    if cluster.addons.cluster_autoscaler.enabled and not has_role(cluster, CLUSTER_AUTOSCALER):
        statements += cluster_autoscaler_statements(cluster)
    if cluster.addons.aws_load_balancer_controller.enabled and not has_role(cluster, LOAD_BALANCER_CONTROLLER):
        statements += controller_statements(cluster, references)
    if cluster.addons.external_dns.enabled and not has_role(cluster, EXTERNAL_DNS):
        statements += external_dns_statements(cluster, references)
    return statements


def ebs_csi_driver_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements for the EBS CSI driver to create, attach and delete its volumes.

    Only volumes with the driver's tag can be changed, so the masters' data volumes cannot. The driver's volumes are
    encrypted with the account's default KMS key or with a key that a storage class names; that needs
    `volume_key_statements` for all keys in addition.
    """
    return [
        allow(
            sid="EbsRead",
            actions="""
                ec2:DescribeAvailabilityZones ec2:DescribeInstances ec2:DescribeInstanceTypes ec2:DescribeVolumes
                ec2:DescribeVolumesModifications ec2:DescribeVolumeStatus""",
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


def cluster_autoscaler_statements(cluster: Cluster) -> list[Statement]:
    """Return the statements for cluster-autoscaler to change the sizes of node groups."""
    return [
        allow(
            sid="AutoscalerRead",
            actions="""
                autoscaling:DescribeAutoScalingGroups autoscaling:DescribeLaunchConfigurations
                autoscaling:DescribeScalingActivities ec2:DescribeImages ec2:DescribeInstanceTypes
                ec2:DescribeLaunchTemplateVersions ec2:GetInstanceTypesFromInstanceRequirements""",
        ),
        allow(
            sid="AutoscalerOwnGroups",
            actions="autoscaling:SetDesiredCapacity autoscaling:TerminateInstanceInAutoScalingGroup",
            condition=if_resource_tagged(cluster, **AUTOSCALER_TAG),
        ),
    ]


def external_dns_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements for external-dns to change records in the hosted zones of the cluster file.

    It reads tags of zones if its `values` have it choose zones by tags (`--aws-zone-tags`).
    """
    return [
        allow(sid="DnsRead", actions="route53:ListHostedZones"),
        allow(
            sid="DnsRecords",
            actions="route53:ChangeResourceRecordSets route53:ListResourceRecordSets route53:ListTagsForResources",
            resources=_zone_arns(cluster.addons.external_dns.zones, references),
        ),
    ]


def cert_manager_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements for cert-manager to prove names by records (DNS-01) in the zones of the cluster file.

    It may write records of the type TXT only. It asks for the changes that it made, whose ids are random, and for the
    zone of a name unless the Issuer names it (`hostedZoneID`).
    """
    return [
        allow(
            sid="DnsChallenges",
            actions="route53:ChangeResourceRecordSets",
            resources=_zone_arns(cluster.addons.cert_manager.zones, references),
            condition={"ForAllValues:StringEquals": {"route53:ChangeResourceRecordSetsRecordTypes": ["TXT"]}},
        ),
        allow(
            sid="DnsChanges",
            actions="route53:GetChange",
            resources=[arn(references, "route53", "change/*", region="", account="")],
        ),
        allow(sid="DnsFindZones", actions="route53:ListHostedZonesByName"),
    ]


def _zone_arns(zones: tuple[str, ...], references: References) -> list[Expression]:
    return [arn(references, "route53", f"hostedzone/{zone}", region="", account="") for zone in zones]
