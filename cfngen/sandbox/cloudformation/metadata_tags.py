"""Tags in instance metadata: where they are the account's default, instances with some tags are not launched.

EC2 user guide, "View tags for your EC2 instances using instance metadata" and "Configure instance metadata options for
new instances": what a launch template leaves out is taken from the account (ModifyInstanceMetadataDefaults).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers import client
from cfngen.text_limits import METADATA_TAG_KEY

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region


def check_launches(service: Region, group: Mapping[str, Any]) -> None:
    """Refuse a group whose instances cannot be launched for their tags.

    Args:
        service: the region, which knows the account's default.
        group: properties of an Auto Scaling group.

    Raises:
        ResourceError: as the group's last scaling activity tells it (eksctl-io/eksctl#8383)
    """
    if not int(group.get("DesiredCapacity", group.get("MinSize", 0))) or "LaunchTemplate" not in group:
        return
    data = _launch_template(service, group["LaunchTemplate"])
    options = data.get("MetadataOptions", {})
    shown = options.get("InstanceMetadataTags", "enabled" if service.metadata_tags else "disabled") == "enabled"
    if not shown or options.get("HttpEndpoint") == "disabled":
        return
    for key in _keys(group, data):
        if METADATA_TAG_KEY.fault(key):
            activity = METADATA_TAG_KEY.refused(key)
            raise ResourceError(f"Group did not stabilize. Last scaling activity: {activity}")


def _launch_template(service: Region, specification: Mapping[str, Any]) -> Mapping[str, Any]:
    version = str(specification["Version"])
    try:
        versions = client("ec2", service.region).describe_launch_template_versions(
            LaunchTemplateId=specification.get("LaunchTemplateId", ""), Versions=[version]
        )["LaunchTemplateVersions"]
    except ClientError:  # the group is refused for that
        return {}
    data: Mapping[str, Any] = versions[0]["LaunchTemplateData"] if versions else {}
    return data


def _keys(group: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[str]:
    for specification in data.get("TagSpecifications", []):
        if specification["ResourceType"] == "instance":
            yield from (tag["Key"] for tag in specification["Tags"])
    yield from (tag["Key"] for tag in group.get("Tags", []) if tag["PropagateAtLaunch"])
