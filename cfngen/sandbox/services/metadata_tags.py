"""Tags in instance metadata: where they are enabled, EC2 does not launch instances with certain tag keys.

EC2 user guide, "View tags for your EC2 instances using instance metadata" and "Configure instance metadata options for
new instances": options that a launch template omits default to the account's (ModifyInstanceMetadataDefaults).
"""

from __future__ import annotations

from collections.abc import Iterable

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.services.rules import invalid_value
from cfngen.text_limits import METADATA_TAG_KEY

_REGIONS_WITH_METADATA_TAGS: set[str] = set()  # regions whose default is that tags are in instance metadata


def set_default(region: str, enabled: bool) -> None:
    """Set the account's default in a region: whether tags are in instance metadata."""
    if enabled:
        _REGIONS_WITH_METADATA_TAGS.add(region)
    else:
        _REGIONS_WITH_METADATA_TAGS.discard(region)


def enabled_by_default(region: str) -> bool:
    """Return the account's default in a region: whether tags are in instance metadata."""
    return region in _REGIONS_WITH_METADATA_TAGS


def check(region: str, data: JsonObject, further_keys: Iterable[str]) -> None:
    """Refuse instances with tag keys that instance metadata does not allow.

    The message is that of a group's scaling activity (eksctl-io/eksctl#8383).

    Args:
        data: as in RequestLaunchTemplateData.
        further_keys: keys of tags that the instances get besides those in the launch template.
    """
    options = data.get("MetadataOptions") or {}
    default = "enabled" if enabled_by_default(region) else "disabled"
    if options.get("InstanceMetadataTags", default) != "enabled" or options.get("HttpEndpoint") == "disabled":
        return
    template_keys = [
        tag["Key"]
        for specification in data.get("TagSpecifications") or []
        if specification["ResourceType"] == "instance"
        for tag in specification["Tags"]
    ]
    for key in (*template_keys, *further_keys):
        if METADATA_TAG_KEY.fault(key):
            raise invalid_value(METADATA_TAG_KEY.refused(key))
