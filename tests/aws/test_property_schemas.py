"""What the emulator takes as properties, held against the resource schemas of CloudFormation's registry.

The right properties are those of every golden case. Each of them is then spoilt in every way that its schema forbids:
the emulator must refuse all of that, and none of the originals.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import regex
from clusters import CASES, golden, templates_of
from small_stacks import REGION

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers import HANDLERS
from cfngen.sandbox.cloudformation.intrinsics import UNKNOWN
from cfngen.sandbox.cloudformation.property_schemas import schema, tag_property, validate_and_convert

NESTED = "AWS::CloudFormation::Stack"
TYPES = sorted(HANDLERS)
Properties = dict[str, Any]
Schema = Mapping[str, Any]


def names(resource_type: str, keyword: str) -> set[str]:
    """Properties that a schema lists under a keyword as a whole."""
    paths = (path.split("/")[2:] for path in schema(REGION, resource_type).get(keyword, []))
    return {path[0] for path in paths if len(path) == 1}


@pytest.mark.parametrize("kind", TYPES)
def test_what_a_handler_takes_can_be_given(kind: str) -> None:
    supported = HANDLERS[kind].supported_properties
    published, taken = schema(REGION, kind), {name.partition("=")[0].partition(".")[0] for name in supported}
    assert set(published.get("required", ())) <= taken <= set(published["properties"])
    assert not taken & names(kind, "readOnlyProperties")
    assert (tag_property(REGION, kind) or "").partition("/")[0] in {"", *taken}


@functools.cache
def originals(kind: str) -> list[Properties]:
    """Properties of the golden cases' resources of a type, one set for each shape; expressions are unknown values."""
    shapes: dict[str, Properties] = {}
    for resource in resources_of_golden_cases():
        if resource["Type"] == kind:
            properties = without_expressions(resource.get("Properties", {}))
            shapes.setdefault(json.dumps(shape(properties), sort_keys=True), properties)
    return list(shapes.values())


@functools.cache
def resources_of_golden_cases() -> list[dict[str, Any]]:
    documents = [document for path in sorted(CASES.iterdir()) for document in templates_of(golden(path.name))]
    return [
        resource
        for document in documents
        if document.name in ("standalone", "cluster")
        for resource in document.body["Resources"].values()
    ]


def without_expressions(value: Any) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref")):
            return UNKNOWN
        return {key: without_expressions(item) for key, item in value.items()}
    return [without_expressions(item) for item in value] if isinstance(value, list) else value


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__


def spoilt(kind: str, properties: Properties) -> Iterator[tuple[str, Properties]]:
    """Properties with one fault each, and what the fault is."""
    root = schema(REGION, kind)
    for name in names(kind, "readOnlyProperties") - set(properties):
        yield f"read-only {name}", {**properties, name: "x"}
    for path, fault, value in faults(root, {**root, "type": "object"}, properties, ()):
        whole = {"": copy.deepcopy(properties)}
        holder: Any = whole
        *parents, last = ("", *path)
        for part in parents:
            holder = holder[part]
        holder[last] = value
        yield f"{'/'.join(str(part) for part in path)}: {fault}", whole[""]


def faults(root: Schema, part: Schema, value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[Any, str, Any]]:
    """Where a value can be spoilt, how, and what then stands there."""
    while "$ref" in part:
        target: Any = root
        for step in part["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        part = {**{key: item for key, item in part.items() if key != "$ref"}, **target}
    if isinstance(value, dict) and "properties" in part:
        for key in set(part.get("required", [])) & set(value):
            yield path, f"without {key}", {name: item for name, item in value.items() if name != key}
        yield path, "unknown key", {**value, "NoSuchProperty": "x"}
        for key, item in value.items():
            yield from faults(root, part["properties"].get(key, {}), item, (*path, key))
    elif isinstance(value, list) and part.get("type") == "array":
        if "maxItems" in part and value:
            yield path, "too many items", [*value, *([value[0]] * part["maxItems"])]
        if part.get("minItems"):
            yield path, "too few items", []
        if part.get("uniqueItems") and value and UNKNOWN not in json.dumps(value[0]):
            yield path, "an item twice", [*value, value[0]]
        for index, item in enumerate(value):
            yield from faults(root, part.get("items", {}), item, (*path, index))
    elif not isinstance(value, (dict, list)) and not part.get("anyOf") and not part.get("oneOf"):
        yield from ((path, fault, wrong) for fault, wrong in _scalar_faults(part))


def _scalar_faults(part: Schema) -> Iterator[tuple[str, Any]]:
    kind = part.get("type")
    if "enum" in part and kind == "string":
        yield "another value", "no-such-value"
    if kind in ("integer", "number", "boolean"):
        yield "a word", "many"
    if kind == "string":
        yield "an object", {"a": "b"}
        if part.get("minLength"):
            yield "too short", ""
        if "pattern" in part:
            yield from (("another form", text) for text in ("\x00", "") if not regex.search(part["pattern"], text))
        if "maxLength" in part and part["maxLength"] < 100_000:
            yield "too long", "x" * (part["maxLength"] + 1)
    if "minimum" in part:
        yield "too small", part["minimum"] - 1
    if "maximum" in part:
        yield "too large", part["maximum"] + 1


# A group's schema has hundreds of nested properties, and each is spoilt in several ways.
GROUP = "AWS::AutoScaling::AutoScalingGroup"


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.drill) if kind == GROUP else kind for kind in (*TYPES, NESTED)]
)
def test_it_refuses_what_the_schema_refuses(kind: str) -> None:
    tried, accepted = set(), []
    for properties in originals(kind):
        validate_and_convert(REGION, kind, copy.deepcopy(properties))
        for fault, wrong in spoilt(kind, properties):
            if fault in tried:
                continue
            tried.add(fault)
            try:
                validate_and_convert(REGION, kind, wrong)
            except ResourceError:
                continue
            accepted.append(fault)
    assert accepted == []


def test_every_type_of_the_golden_cases_is_held_against_its_schema() -> None:
    used = {resource["Type"] for resource in resources_of_golden_cases()}
    assert NESTED in used
    assert used <= {*TYPES, NESTED}


@pytest.mark.parametrize(
    ("kind", "properties", "says"),
    [
        ("AWS::EC2::Volume", {"AvailabilityZone": "us-west-2a"}, "no subschema matched"),
        ("AWS::EC2::VPC", {}, "exactly one of"),
        ("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16", "Ipv4IpamPoolId": "x", "Ipv4NetmaskLength": 16}, "exactly one"),
        ("AWS::EC2::Subnet", {"VpcId": "vpc-1"}, "one of"),
        (
            "AWS::EC2::Subnet",
            {"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/24", "AvailabilityZone": "a", "AvailabilityZoneId": "b"},
            "cannot be given together",
        ),
        ("AWS::EC2::EIP", {"Domain": "classic"}, "not a valid enum value"),
    ],
)
def test_keys_that_need_or_exclude_each_other(kind: str, properties: Properties, says: str) -> None:
    with pytest.raises(ResourceError, match=says):
        validate_and_convert(REGION, kind, properties)
