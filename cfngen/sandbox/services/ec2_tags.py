"""Tags of EC2's resources.

EC2 user guide, "Tag your Amazon EC2 resources": fifty for each resource, keys of up to 128 characters and values of up
to 256, no key that begins with aws:.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule

MAX_TAGS = 50
MAX_KEY_LENGTH, MAX_VALUE_LENGTH = 128, 256  # characters
TAGGING_OPERATIONS = (
    "AllocateAddress",
    "CreateCapacityReservation",
    "CreateDhcpOptions",
    "CreateInternetGateway",
    "CreateLaunchTemplate",
    "CreateNetworkInterface",
    "CreateRouteTable",
    "CreateSecurityGroup",
    "CreateSnapshot",
    "CreateSubnet",
    "CreateVolume",
    "CreateVpc",
    "ImportKeyPair",
    "RunInstances",
)


@rule("ec2", *TAGGING_OPERATIONS)
def check_tags_on_create(call: PendingCall) -> None:
    """Refuse to create a resource with invalid tags."""
    for specification in call.get("TagSpecifications", []):
        check(specification.get("Tags") or [])


@rule("ec2", "CreateTags")
def check_tags_to_add(call: PendingCall) -> None:
    """Refuse to add invalid tags, or more tags than a resource can have."""
    for resource in call.get("Resources", []):
        tags = call.backend.describe_tags(filters={"resource-id": [resource]})
        check(call.get("Tags", []), {tag["key"] for tag in tags if not tag["key"].startswith("aws:")})


def check(tags: Iterable[Mapping[str, str]], existing_keys: Set[str] = frozenset()) -> None:
    """Refuse too many tags for a resource, too long ones, keys that begin with `aws:`, and two tags with the same key.

    Args:
        existing_keys: keys of the resource's current tags, without those that AWS has added.
    """
    keys = []
    for tag in tags:
        key, value = tag.get("Key", ""), tag.get("Value", "")
        if key in keys:
            raise invalid_value(f"Duplicate tag key '{key}' specified.")
        if key.lower().startswith("aws:"):
            raise invalid_value("Tag keys starting with 'aws:' are reserved for internal use")
        if not 1 <= len(key) <= MAX_KEY_LENGTH:
            raise invalid_value(f"Tag key exceeds the maximum length of {MAX_KEY_LENGTH} characters")
        if len(value) > MAX_VALUE_LENGTH:
            raise invalid_value(f"Tag value exceeds the maximum length of {MAX_VALUE_LENGTH} characters")
        keys.append(key)
    if len({*keys, *existing_keys}) > MAX_TAGS:
        raise Refused("TagLimitExceeded", f"More than {MAX_TAGS} tags specified")
