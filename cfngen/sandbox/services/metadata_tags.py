"""Tags in instance metadata: where they are the account's default, instances with some tags are not launched.

EC2 user guide, "View tags for your EC2 instances using instance metadata" and "Configure instance metadata options for
new instances": what a launch template leaves out is taken from the account (ModifyInstanceMetadataDefaults).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cfngen.sandbox.services.rules import Refused
from cfngen.text_limits import METADATA_TAG_KEY

_REGIONS_WITH_METADATA_TAGS: set[str] = set()


def show(region: str, enabled: bool) -> None:
    """Set the account's default in a region: whether instances read their tags from their metadata."""
    (_REGIONS_WITH_METADATA_TAGS.add if enabled else _REGIONS_WITH_METADATA_TAGS.discard)(region)


def shown(region: str) -> bool:
    """Return the account's default in a region."""
    return region in _REGIONS_WITH_METADATA_TAGS


def check(region: str, data: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Refuse instances whose tags cannot be read from their metadata.

    Args:
        region: where.
        data: what they are launched from, as in RequestLaunchTemplateData.
        keys: of the tags that they get beside those in it.

    Raises:
        Refused: as the scaling activity of a group tells it (eksctl-io/eksctl#8383)
    """
    options = data.get("MetadataOptions") or {}
    default = "enabled" if shown(region) else "disabled"
    if options.get("InstanceMetadataTags", default) != "enabled" or options.get("HttpEndpoint") == "disabled":
        return
    own = [
        tag["Key"]
        for specification in data.get("TagSpecifications") or []
        if specification["ResourceType"] == "instance"
        for tag in specification["Tags"]
    ]
    for key in (*own, *keys):
        if METADATA_TAG_KEY.fault(key):
            raise Refused("InvalidParameterValue", METADATA_TAG_KEY.refused(key))
