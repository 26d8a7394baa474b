"""Checks that the target groups in the cluster file exist, are in the cluster's VPC, and take instances as targets."""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError

from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import dotted
from cfngen.deploy.account import Account


def find_problems(account: Account, cluster: Cluster, vpc_id: str) -> Iterator[str]:
    """Yield a problem for each target group with which Auto Scaling could not register nodes.

    Args:
        account: the account and region.
        cluster: the cluster.
        vpc_id: id of the cluster's VPC.

    Yields:
        One sentence for each; it starts with the target group's key in the cluster file.

    Raises:
        ClientError: the target groups cannot be described.
    """
    for key, arn in _target_groups(cluster):
        try:
            [description] = account.client("elbv2").describe_target_groups(TargetGroupArns=[arn])["TargetGroups"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "TargetGroupNotFound":
                raise
            yield f"{key}: there is no target group {arn} in {account.region}"
            continue
        target_type = description["TargetType"]
        if target_type != "instance":
            yield f"{key}: {arn} takes targets of the type {target_type}; Auto Scaling registers instances only"
        elif description.get("VpcId") != vpc_id:
            yield f"{key}: {arn} belongs to {description.get('VpcId')}, and the cluster is in {vpc_id}"


def find_older_than_vpc(cluster: Cluster) -> Iterator[str]:
    """Yield a problem for each target group in the cluster file, since the stack has yet to create the VPC."""
    for key, arn in _target_groups(cluster):
        yield (
            f"{key}: {arn} belongs to another VPC than the one that the stack will create; remove it, deploy, and then "
            "add a target group of the new VPC, or set network.vpc.id to an existing VPC"
        )


def _target_groups(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield the key and the ARN of each target group."""
    for index, group in enumerate(cluster.node_groups):
        for position, arn in enumerate(group.target_groups):
            yield dotted(("nodeGroups", index, "targetGroups", position)), arn
