"""What the table of AWS's actions finds in policies, and that no policy of any golden cluster has such a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from service_authorization import faults

from cfngen.cluster.load import load
from cfngen.permissions.grants import grants, scope_of

CASES = sorted(path.parent.name for path in (Path(__file__).parent / "golden" / "cases").glob("*/cluster.yaml"))
EC2 = "arn:aws:ec2:us-west-2:123456789012"
GROUPS, VPCS, VOLUME = f"{EC2}:security-group/*", f"{EC2}:vpc/*", f"{EC2}:volume/vol-1"


def allow(actions: Any, resources: Any, **condition: Any) -> dict[str, Any]:
    return {"Sid": "It", "Effect": "Allow", "Action": actions, "Resource": resources, "Condition": condition}


OWN = {"aws:ResourceTag/KubernetesCluster": "kubernetes"}


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        ([allow("ec2:DeleteVolume", VOLUME)], []),
        ([allow("EC2:deletevolume", VOLUME)], ["EC2:deletevolume is no action"]),
        ([allow("ec2:deletevolume", VOLUME)], []),
        ([allow("ec2:RemoveVolume", VOLUME)], ["ec2:RemoveVolume is no action"]),
        ([allow("ec3:DeleteVolume", "*")], ["ec3:DeleteVolume is no action"]),
        ([allow("ec2:Remove*", "*")], ["ec2:Remove* is no action"]),
        ([allow("ec2:Describe*", "*")], []),
        ([allow("ec2:DescribeVolumes", VOLUME)],
         [f"ec2:DescribeVolumes takes none of {VOLUME}", f"no action of It takes {VOLUME}"]),
        ([allow("ec2:DeleteVolume", [VOLUME, VPCS])], [f"no action of It takes {VPCS}"]),
        ([allow(["ec2:DeleteVolume", "ec2:DeleteVpc"], VOLUME)],
         [f"ec2:DeleteVpc takes none of {VOLUME}", "ec2:DeleteVpc has no vpc"]),
        ([allow("ec2:AttachVolume", VOLUME)], ["ec2:AttachVolume has no instance"]),
        ([allow("ec2:AttachVolume", VOLUME), allow("ec2:AttachVolume", f"{EC2}:instance/*", StringEquals=OWN)], []),
        ([allow("ec2:CreateSecurityGroup", [GROUPS, VPCS])], []),
        ([allow("ec2:DeleteVolume", VOLUME, StringEquals=OWN)], []),
        ([allow("ec2:CreateVpc", VPCS, StringEquals=OWN)],
         [f"ec2:CreateVpc on {VPCS} has no aws:resourcetag/kubernetescluster"]),
        ([allow("ec2:DeleteVolume", VOLUME, Bool={"ec2:IsRed": "true"})],
         [f"ec2:DeleteVolume on {VOLUME} has no ec2:isred"]),
        ([allow("ec2:DeleteVolume", VOLUME, Bool={"aws:SecureTransport": "true"})], []),
        ([allow(["ec2:CreateVpc", "ec2:DeleteVpc"], VPCS, StringEqualsIfExists=OWN)], []),
        ([allow("kms:Decrypt", "*", StringLike={"kms:EncryptionContext:SecretARN": "*"})], []),
        ([allow("elasticloadbalancing:DeleteListener", "arn:aws:elasticloadbalancing:*:*:listener/net/k/*/*")], []),
    ],
)  # fmt: skip
def test_what_never_comes_true_is_found(statements: list[dict[str, Any]], found: list[str]) -> None:
    assert faults({"Statement": statements}) == found


@pytest.mark.parametrize("case", CASES)
def test_every_policy_of_a_cluster_can_come_true(case: str) -> None:
    cluster = load(Path(__file__).parent / "golden" / "cases" / case / "cluster.yaml", environ={}).cluster
    for grant in grants(cluster, scope_of(cluster, account="123456789012")):
        assert faults({"Statement": [dict(statement) for statement in grant.statements]}) == [], grant.name
