"""Checks the characters and lengths of strings that services refuse when a resource is created or updated.

CloudFormation itself checks only the resource schemas (`property_schemas`) and the template's own strings: logical ids,
descriptions and export names. All other strings are refused by the service, in the middle of an operation. Error
messages are the service's own where they are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.sandbox.cloudformation.errors import ResourceError, ValidationError
from cfngen.sandbox.untyped import Properties, TemplateBody
from cfngen.text_limits import (
    LOGICAL_ID,
    REPEATED_TAG_KEY,
    SECTIONS_OF_LOGICAL_IDS,
    TEMPLATE_LIMITS,
    TextLimit,
    of_service,
    same_but_for_case,
)


def check_properties(resource_type: str, properties: Properties) -> None:
    """Check the strings in a resource's properties as its service does.

    Raises:
        ResourceError: a string is too long or has a character that the service does not allow, or two tag keys of an
            IAM resource differ only in case.
    """
    for path, text in _strings(properties):
        limit = of_service(resource_type, path)
        if limit and (fault := limit.fault(text)):
            raise ResourceError(_error_message(limit, text, fault))
    if resource_type.startswith("AWS::IAM::"):
        tag_keys = [tag["Key"] for tag in properties.get("Tags", [])]
        if same_but_for_case(tag_keys):
            raise ResourceError(REPEATED_TAG_KEY)


def check_template(body: TemplateBody) -> None:
    """Check a template's logical ids, descriptions and export names.

    Raises:
        ValidationError: CloudFormation does not allow one of them
    """
    for section in SECTIONS_OF_LOGICAL_IDS:
        for name in body.get(section, {}):
            if fault := LOGICAL_ID.fault(name):
                raise ValidationError(f"Template format error: {_error_message(LOGICAL_ID, name, fault)}")
    for path_pattern, limit in TEMPLATE_LIMITS.items():
        for text in _values_at(body, path_pattern):
            if path_pattern[-1] == "Description" and not isinstance(text, str):
                raise ValidationError("Template format error: Every Description member must be a string.")
            if isinstance(text, str) and (fault := limit.fault(text)):
                raise ValidationError(f"Template format error: {_error_message(limit, text, fault)}")


def _error_message(limit: TextLimit, text: str, fault: str) -> str:
    """The service's error message for a string; a general message if the service's own is unknown."""
    return limit.refused(text) or f"Invalid {limit.what}: it {fault}"


def _strings(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield (path, string) for each string in a value; a path is a tuple of keys and of indexes of lists."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, index))


def _values_at(value: object, path_pattern: tuple[str, ...]) -> Iterator[object]:
    """Yield the values at a path, which is a tuple of keys; `*` stands for any key."""
    if not path_pattern:
        yield value
    elif isinstance(value, Mapping):
        first, *rest = path_pattern
        for key in value if first == "*" else [first]:
            if key in value:
                yield from _values_at(value[key], tuple(rest))
