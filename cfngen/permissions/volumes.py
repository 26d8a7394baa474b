"""Statements for the EBS volumes of masters and their KMS keys."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.permissions.references import MASTER_ROLE_TAG, References, arn, if_resource_tagged, via
from cfngen.permissions.statements import Statement, allow


def data_volume(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements that let a master attach its data volume.

    EC2 requires permission for both volume and instance. A master first detaches the volume from the slot's previous
    instance. It waits until that instance is terminated, so it may describe instances.
    """
    return [
        allow("DataVolumeRead", "ec2:DescribeInstances ec2:DescribeVolumes"),
        allow(
            "DataVolumeAttach",
            "ec2:AttachVolume ec2:DetachVolume",
            [arn(references, "ec2", "volume/*"), arn(references, "ec2", "instance/*")],
            if_resource_tagged(cluster, **MASTER_ROLE_TAG),
        ),
    ]


def volume_key(references: References, key: str | None) -> list[Statement]:
    """Return the statements for attaching a volume that is encrypted with a customer managed KMS key.

    Volumes may have a customer managed key even if the cluster file names none, because an account can set a default
    key for EBS. The grant that the caller creates lets EBS use the key. Source: "Required permissions", Amazon EBS User
    Guide, encryption.

    Args:
        references: resources that the statements refer to.
        key: ARN of the key, or None for any key, since the account's default key is not known.
    """
    keys = [key or arn(references, "kms", "key/*")]
    via_ec2 = {"StringEquals": via(references, "ec2")}
    return [
        allow("DataVolumeKey", "kms:Decrypt kms:DescribeKey kms:GenerateDataKeyWithoutPlaintext", keys, via_ec2),
        allow(
            "DataVolumeKeyGrant", "kms:CreateGrant", keys, {"Bool": {"kms:GrantIsForAWSResource": "true"}, **via_ec2}
        ),
    ]
