"""Texts that a service does not take, refused when a resource is made or changed, in the service's words where known.

CloudFormation itself looks at what the schemas of the registry say (`property_schemas`), and at the texts of a template
that are its own: logical ids, descriptions, names of exports. Everything else is found by the service, halfway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cfngen.sandbox.cloudformation.errors import ResourceError, ValidationError
from cfngen.text_limits import (
    LOGICAL_ID,
    OF_TEMPLATE,
    REPEATED_TAG_KEY,
    SECTIONS_OF_LOGICAL_IDS,
    TextLimit,
    of_property,
    same_but_for_case,
)


def check_properties(resource_type: str, properties: Mapping[str, Any]) -> None:
    """Refuse what the service refuses in the texts of a resource.

    Args:
        resource_type: the resource's type.
        properties: its properties, resolved.

    Raises:
        ResourceError: a text holds another character or is longer than the service takes, or IAM takes two tags for the
            same.
    """
    for path, text in _texts(properties, ()):
        limit = of_property(resource_type, path)
        if limit and (fault := limit.fault(text)):
            raise ResourceError(_refusal(limit, text, fault))
    keys = [tag["Key"] for tag in properties.get("Tags", [])] if resource_type.startswith("AWS::IAM::") else []
    if same_but_for_case(keys):
        raise ResourceError(REPEATED_TAG_KEY)


def check_template(body: Mapping[str, Any]) -> None:
    """Refuse a template for its own texts.

    Raises:
        ValidationError: a logical id or a description is none that CloudFormation takes
    """
    for section in SECTIONS_OF_LOGICAL_IDS:
        for name in body.get(section, {}):
            if fault := LOGICAL_ID.fault(name):
                raise ValidationError(f"Template format error: {_refusal(LOGICAL_ID, name, fault)}")
    for general, limit in OF_TEMPLATE.items():
        for text in _at(body, general):
            if isinstance(text, str) and (fault := limit.fault(text)):
                raise ValidationError(f"Template format error: {_refusal(limit, text, fault)}")


def _refusal(limit: TextLimit, text: str, fault: str) -> str:
    return limit.refused(text) or f"Invalid {limit.what}: it {fault}"


def _texts(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    else:
        items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            yield from _texts(item, (*path, key))


def _at(value: Any, general: tuple[str, ...]) -> Iterator[Any]:
    if not general:
        yield value
    elif isinstance(value, Mapping):
        for key in value if general[0] == "*" else [general[0]]:
            if key in value:
                yield from _at(value[key], general[1:])
