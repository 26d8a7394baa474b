"""IAM statements for the EBS volumes of masters and the KMS keys of these volumes."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.permissions.references import MASTER_ROLE_TAG, References, arn, if_resource_tagged, via_service
from cfngen.permissions.statements import Statement, allow


def data_volume_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements that let a master attach its data volume.

    EC2 requires permission for both volume and instance. A master first detaches the volume from the slot's previous
    instance. It waits until that instance is terminated, so it may describe instances.
    """
    return [
        allow(sid="DataVolumeRead", actions="ec2:DescribeInstances ec2:DescribeVolumes"),
        allow(
            sid="DataVolumeAttach",
            actions="ec2:AttachVolume ec2:DetachVolume",
            resources=[arn(references, "ec2", "volume/*"), arn(references, "ec2", "instance/*")],
            condition=if_resource_tagged(cluster, **MASTER_ROLE_TAG),
        ),
    ]


def volume_key_statements(
    references: References, key: str | None, *, sid_prefix: str = "DataVolume"
) -> list[Statement]:
    """Return the statements for attaching a volume that is encrypted with a customer managed KMS key.

    Volumes may have a customer managed key even if the cluster file names none, because an account can set a default
    key for EBS. The grant that the caller creates lets EBS use the key. Source: "Required permissions", Amazon EBS User
    Guide, encryption.

    Args:
        key: ARN of the key, or None for any key, since the account's default key is not known.
    """
    keys = [key or arn(references, "kms", "key/*")]
    via_ec2 = {"StringEquals": via_service(references, "ec2")}
    return [
        allow(
            sid=f"{sid_prefix}Key",
            actions="kms:Decrypt kms:DescribeKey kms:GenerateDataKeyWithoutPlaintext",
            resources=keys,
            condition=via_ec2,
        ),
        allow(
            sid=f"{sid_prefix}KeyGrant",
            actions="kms:CreateGrant",
            resources=keys,
            condition={"Bool": {"kms:GrantIsForAWSResource": "true"}, **via_ec2},
        ),
    ]
