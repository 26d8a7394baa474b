"""Tags of EC2's resources, and tags in instance metadata, where EC2 allows fewer characters in keys.

EC2 user guide, "Tag your Amazon EC2 resources": fifty for each resource; `string_checks` has the limits of keys and
values. "View tags for your EC2 instances using instance metadata" and "Configure instance
metadata options for new instances": options that a launch template omits default to the account's
(ModifyInstanceMetadataDefaults).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule
from cfngen.sandbox.untyped import JsonObject, MotoBackend
from cfngen.text_limits import METADATA_TAG_KEY

MAX_TAGS = 50
MALFORMED = "InvalidTagSpecification.Malformed"
TAGGING_OPERATIONS = (
    "AllocateAddress", "CreateCapacityReservation", "CreateDhcpOptions", "CreateInternetGateway",
    "CreateLaunchTemplate", "CreateNetworkInterface", "CreateRouteTable", "CreateSecurityGroup", "CreateSnapshot",
    "CreateSubnet", "CreateVolume", "CreateVpc", "ImportKeyPair", "RunInstances",
)  # fmt: skip
_REGIONS_WITH_METADATA_TAGS: set[str] = set()  # regions whose default is that tags are in instance metadata


@rule("ec2", *TAGGING_OPERATIONS)
def check_tags_on_create(call: PendingCall) -> None:
    """Refuse to create a resource with invalid tags."""
    for specification in call.get("TagSpecifications", []):
        check_specification(specification)


@rule("ec2", "CreateTags")
def check_tags_to_add(call: PendingCall) -> None:
    """Refuse to add invalid tags, or more tags than a resource can have."""
    for resource in call.get("Resources", []):
        _check_exists(call.backend, resource)
        tags = call.backend.describe_tags(filters={"resource-id": [resource]})
        check_tags(call.get("Tags", []), {tag["key"] for tag in tags if not tag["key"].startswith("aws:")})


def _check_exists(backend: MotoBackend, resource: str) -> None:
    """Refuse what is deleted, of the types of which moto does not see that."""
    if resource.startswith("vpce-") and resource not in backend.vpc_end_points:
        raise Refused("InvalidVpcEndpointId.NotFound", f"The Vpc Endpoint Id '{resource}' does not exist")
    if resource.startswith("eipalloc-") and resource not in {address.allocation_id for address in backend.addresses}:
        raise Refused("InvalidAllocationID.NotFound", f"The allocation ID '{resource}' does not exist")


def check_specification(specification: JsonObject) -> None:
    """Refuse invalid tags, and tags for no type of resource (aws-cloudformation/cfn-lint#975)."""
    if not specification.get("ResourceType"):
        raise Refused(MALFORMED, "The resource type cannot be null or empty.")
    check_tags(specification.get("Tags") or [])


def check_tags(tags: Iterable[Mapping[str, str]], existing_keys: Set[str] = frozenset()) -> None:
    """Refuse too many tags for a resource, and two tags with the same key.

    Args:
        existing_keys: keys of the resource's current tags, without those that AWS has added.
    """
    keys = []
    for tag in tags:
        key = tag.get("Key", "")
        if key in keys:
            raise invalid_value(f"Duplicate tag key '{key}' specified.")
        keys.append(key)
    if len({*keys, *existing_keys}) > MAX_TAGS:
        raise Refused("TagLimitExceeded", f"More than {MAX_TAGS} tags specified")


def set_tags_in_metadata(region: str, enabled: bool) -> None:
    """Set the account's default in a region: whether tags are in instance metadata."""
    if enabled:
        _REGIONS_WITH_METADATA_TAGS.add(region)
    else:
        _REGIONS_WITH_METADATA_TAGS.discard(region)


def check_tags_in_metadata(region: str, data: JsonObject, further_keys: Iterable[str]) -> None:
    """Refuse instances with tag keys that instance metadata does not allow.

    A group's scaling activity has the same message (eksctl-io/eksctl#8383).

    Args:
        data: as in RequestLaunchTemplateData.
        further_keys: keys of tags that the instances get besides those in the launch template.
    """
    options = data.get("MetadataOptions") or {}
    default = "enabled" if region in _REGIONS_WITH_METADATA_TAGS else "disabled"
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
