"""The launch templates of Auto Scaling groups, and their versions."""

from __future__ import annotations

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import error_code
from cfngen.deploy.aws_types import AwsObject


def launch_template_specification(group: AwsObject) -> AwsObject:
    """Return the launch template and version that a group uses, as `LaunchTemplateId` and `Version`; may be empty.

    Args:
        group: the group as Auto Scaling describes it; a mixed instances policy names the launch template itself.
    """
    mixed: AwsObject = (group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    return group.get("LaunchTemplate") or mixed.get("LaunchTemplateSpecification") or {}


def read_version(account: Account, template_id: str, version: str) -> AwsObject:
    """Return a launch template version as EC2 describes it; empty if it does not exist."""
    from botocore.exceptions import ClientError

    if not (template_id and version):
        return {}
    try:
        response = account.client("ec2").describe_launch_template_versions(
            LaunchTemplateId=template_id, Versions=[version]
        )
    except ClientError as error:
        if error_code(error).startswith("InvalidLaunchTemplate"):
            return {}
        raise
    versions = response["LaunchTemplateVersions"]
    return dict(versions[0]) if versions else {}
