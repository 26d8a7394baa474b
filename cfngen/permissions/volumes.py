"""Statements for the EBS volumes of masters and their KMS keys."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.permissions.references import MASTER_ROLE_TAG, References, arn, if_resource_tagged, via
from cfngen.permissions.statements import Statement, allow


def data_volume(cluster: Cluster, references: References) -> list[Statement]:
    """Return what a master needs to attach its data volume: EC2 checks the tags of both volume and instance.

    It detaches the volume from the slot's previous instance once that is terminated, so it may describe instances.
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
    """Return what is needed to attach a volume that is encrypted with a customer managed key.

    Volumes may have such a key even if the cluster file names none: an account can make one its default for EBS.
    Source: "Required permissions", Amazon EBS User Guide, encryption: the caller's grant lets EBS use the key.

    Args:
        references: what the statements refer to.
        key: ARN of the key, or None for the account's default.
    """
    keys = [key or arn(references, "kms", "key/*")]
    via_ec2 = {"StringEquals": via(references, "ec2")}
    return [
        allow("DataVolumeKey", "kms:Decrypt kms:DescribeKey kms:GenerateDataKeyWithoutPlaintext", keys, via_ec2),
        allow(
            "DataVolumeKeyGrant", "kms:CreateGrant", keys, {"Bool": {"kms:GrantIsForAWSResource": "true"}, **via_ec2}
        ),
    ]
