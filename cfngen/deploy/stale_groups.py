"""Auto Scaling groups that CloudFormation believes to be other than they are.

A rollback that is continued without a group (`rollback --force`, or ResourcesToSkip in the console) leaves the group on
the launch template version of the update that failed. CloudFormation notes it as rolled back, plans nothing for it, and
removes the boot program that this version names: the next instance of the group finds none. Neither a change set nor
the stack shows that; the group itself does. docs/architecture.md, "The boot program", says what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import error_code, translate_aws_errors
from cfngen.deploy.stacks import GROUP, ResourceView
from cfngen.userdata.first_stage import unpacked

_TEMPLATE = "AWS::EC2::LaunchTemplate"
_AT_ONCE = 50  # names in one DescribeAutoScalingGroups


@dataclass(frozen=True)
class StaleGroup:
    """A group that does not launch from what its stack has.

    Attributes:
        group: logical id of the group.
        id: name of the Auto Scaling group.
        launch_template: id of the launch template that it launches from.
        version: version of it.
        newest: the version that the stack's template stands for; empty if the launch template is not the stack's.
        program: logical id of the resource with the boot program that its instances ask for; empty if it is not known.
        sha256: digest of that program.
        unbootable: whether the stack has no such resource, so that no new instance boots.
    """

    group: str
    id: str
    launch_template: str
    version: str
    newest: str = ""
    program: str = ""
    sha256: str = ""
    unbootable: bool = False

    @property
    def text(self) -> str:
        """What is wrong, in one sentence."""
        of = f"version {self.version} of the launch template {self.launch_template}"
        newest = f"where the stack has version {self.newest}" if self.newest else "which is not its stack's"
        gone = f"; the boot program of that version, {self.program}, is gone, and new instances do not boot"
        stale = self.version != self.newest
        return f"{self.group} launches from {of}{f', {newest}' if stale else ''}{gone if self.unbootable else ''}"


def stale_groups(account: Account, resources: Iterable[ResourceView]) -> tuple[StaleGroup, ...]:
    """Return the groups of a cluster's stacks that launch from another version than the stack's, or cannot boot.

    Args:
        account: where they are.
        resources: of all the cluster's stacks; their logical ids are unique.

    Raises:
        AwsError: a call failed.
    """
    existing = [resource for resource in resources if resource.physical_id and resource.status != "DELETE_COMPLETE"]
    there = frozenset(each.logical_id for each in existing)
    groups = {each.physical_id: each.logical_id for each in existing if each.type == GROUP}
    own = [each.physical_id for each in existing if each.type == _TEMPLATE]
    with translate_aws_errors():
        newest = _newest(account, own) if groups else {}
        found = [
            _examined(account, groups[group["AutoScalingGroupName"]], group, newest, there)
            for group in _described(account, tuple(groups))
        ]
    return tuple(sorted((each for each in found if each), key=lambda each: each.group))


def _examined(
    account: Account, logical_id: str, group: Mapping[str, Any], newest: Mapping[str, str], there: frozenset[str]
) -> StaleGroup | None:
    mixed = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {}).get("LaunchTemplateSpecification")
    source = group.get("LaunchTemplate") or mixed or {}
    template, version = str(source.get("LaunchTemplateId", "")), str(source.get("Version", ""))
    latest = newest.get(template, "")
    data = _data(account, template, version)
    stage = unpacked(str(data.get("UserData", ""))) if data else None
    unbootable = stage is not None and stage.program not in there
    # A rollback makes a third version, with what the first one had; groups that it need not touch keep the first.
    current = version == latest or (bool(data) and bool(latest) and data == _data(account, template, latest))
    if current and not unbootable:
        return None
    return StaleGroup(
        logical_id,
        str(group["AutoScalingGroupName"]),
        template,
        version,
        version if current else latest,
        stage.program if stage else "",
        stage.sha256 if stage else "",
        unbootable,
    )


def _described(account: Account, names: tuple[str, ...]) -> Iterable[Mapping[str, Any]]:
    client = account.client("autoscaling")
    for start in range(0, len(names), _AT_ONCE):
        some = list(names[start : start + _AT_ONCE])
        yield from client.describe_auto_scaling_groups(AutoScalingGroupNames=some, MaxRecords=100)["AutoScalingGroups"]


def _newest(account: Account, ids: list[str]) -> dict[str, str]:
    """Return the newest version of each launch template; those that somebody has deleted are left out."""
    from botocore.exceptions import ClientError

    client = account.client("ec2")
    try:
        pages = client.get_paginator("describe_launch_templates").paginate(LaunchTemplateIds=ids) if ids else ()
        found = [launch_template for page in pages for launch_template in page["LaunchTemplates"]]
    except ClientError as error:
        if not error_code(error).startswith("InvalidLaunchTemplateId"):
            raise
        return {key: value for id_ in ids for key, value in _newest(account, [id_]).items()} if len(ids) > 1 else {}
    return {each["LaunchTemplateId"]: str(each["LatestVersionNumber"]) for each in found}


def _data(account: Account, template: str, version: str) -> Mapping[str, Any]:
    """Return what a version of a launch template holds; nothing if there is no such version any more."""
    from botocore.exceptions import ClientError

    if not (template and version):
        return {}
    try:
        answer = account.client("ec2").describe_launch_template_versions(LaunchTemplateId=template, Versions=[version])
    except ClientError as error:
        if error_code(error).startswith("InvalidLaunchTemplate"):
            return {}
        raise
    return next(
        (
            dict(launch_template_version["LaunchTemplateData"])
            for launch_template_version in answer["LaunchTemplateVersions"]
        ),
        {},
    )
