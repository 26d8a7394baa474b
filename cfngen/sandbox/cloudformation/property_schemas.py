"""Validates resource properties against the published resource schemas, which cfn-lint bundles.

Like CloudFormation, it converts values to the property's type: "20" becomes a number, and true becomes "true" for a
property of type string. It checks names, required and mutually exclusive properties, types, enumerations, patterns,
lengths and item counts. It does not check formats such as "id of a VPC": the service refuses ids that do not exist.
"""

from __future__ import annotations

import contextlib
import functools
import json

import regex  # ECMA patterns use classes such as \p{L}, which re lacks
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER, ResourceNotFoundError

from cfngen.sandbox.cloudformation.errors import PropertyError, ResourceError
from cfngen.sandbox.cloudformation.intrinsics import UNKNOWN
from cfngen.sandbox.untyped import Expression, JsonDict, JsonObject, Properties

Schema = JsonObject  # a JSON schema of a resource type, or of a value in it


def type_exists(region: str, resource_type: str) -> bool:
    """Whether CloudFormation supports this resource type in this region."""
    try:
        schema(region, resource_type)
    except ResourceNotFoundError:
        return False
    return True


def schema(region: str, resource_type: str) -> Schema:
    """The published schema of a resource type."""
    resource_schema: Schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, resource_type).schema
    return resource_schema


@functools.cache
def has_attribute(region: str, resource_type: str, attribute: str) -> bool:
    """Whether a resource type has this attribute for GetAtt."""
    names = list(PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, resource_type).get_atts)
    # Some of cfn-lint's names are regular expressions, such as `Outputs\..*` for a nested stack.
    patterns = [name for name in names if "\\" in name]
    return attribute in names or any(regex.fullmatch(pattern, attribute) for pattern in patterns)


def tag_property(region: str, resource_type: str) -> str | None:
    """The property that holds the tags of a type; None if CloudFormation does not propagate stack tags to the type."""
    tagging = schema(region, resource_type).get("tagging", {})
    if not tagging.get("taggable", False):
        return None
    return str(tagging.get("tagProperty", "/properties/Tags")).removeprefix("/properties/")


def requires_recreation(region: str, resource_type: str, path: str) -> str:
    """Whether a change at a path such as `/LaunchTemplateData/InstanceType` replaces the resource.

    Returns:
        Always, Conditionally or Never, as in the API's RequiresRecreation
    """
    resource_schema = schema(region, resource_type)
    for schema_path in resource_schema.get("createOnlyProperties", []):
        if _overlap(schema_path.removeprefix("/properties"), path):
            return "Always"
    for schema_path in resource_schema.get("conditionalCreateOnlyProperties", []):
        if _overlap(schema_path.removeprefix("/properties"), path):
            return "Conditionally"
    return "Never"


def _overlap(schema_path: str, path: str) -> bool:
    """Whether two paths are the same, or one lies below the other; in the schema's, `*` stands for any part."""
    # zip stops at the end of the shorter path.
    part_pairs = zip(schema_path.split("/"), path.split("/"), strict=False)
    return all(schema_part in ("*", part) for schema_part, part in part_pairs)


def validate_and_convert(region: str, resource_type: str, properties: Properties) -> JsonDict:
    """Validate properties, and convert their values to the types of the schema.

    Raises:
        ResourceError: a property is unknown, missing, read-only or malformed
    """
    resource_schema = schema(region, resource_type)
    read_only = {path.removeprefix("/properties/") for path in resource_schema.get("readOnlyProperties", [])}
    if set(properties) & read_only:
        raise PropertyError("#", f"Encountered read-only properties {sorted(set(properties) & read_only)}")
    converter = _Converter(resource_schema)
    converted: JsonDict = converter.convert({**resource_schema, "type": "object"}, dict(properties), "#")
    return converted


class _Converter:
    """Validates the properties of one resource type, and converts their values to the types of the schema.

    In its methods, `schema` is the schema of a value, and `path` is the value's path for error messages, such as
    `#/Tags/0/Key`.
    """

    def __init__(self, resource_schema: Schema) -> None:
        self._resource_schema = resource_schema

    def convert(self, schema: Schema, value: Expression, path: str) -> Expression:
        """Check a value at any depth, and convert it to the type of its schema."""
        if value == UNKNOWN:
            return value
        schema = self._resolve_ref(schema)
        alternatives = schema.get("oneOf") or schema.get("anyOf")
        if alternatives and "type" not in schema and "properties" not in schema:
            return self._convert_by_alternatives(alternatives, value, path)
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        if isinstance(value, dict):
            return self._convert_object(schema, types, value, path)
        if isinstance(value, list):
            if types and "array" not in types:
                raise PropertyError(path, f"expected type: {types}, found: array")
            items = schema.get("items", {})
            converted = [self.convert(items, item, f"{path}/{index}") for index, item in enumerate(value)]
            _check_items(schema, converted, path)
            return converted
        return self._convert_scalar(schema, types, value, path)

    def _resolve_ref(self, schema: Schema) -> Schema:
        """The schema that a `$ref` leads to, with the other keywords beside it."""
        while "$ref" in schema:
            target: Expression = self._resource_schema
            for part in schema["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            other_keywords = {keyword: item for keyword, item in schema.items() if keyword != "$ref"}
            schema = {**other_keywords, **target}
        return schema

    def _convert_by_alternatives(self, alternatives: list[Schema], value: Expression, path: str) -> Expression:
        """Convert a value by the first of several alternative schemas that it fits."""
        for alternative in alternatives:
            with contextlib.suppress(ResourceError):
                return self.convert(alternative, value, path)
        raise PropertyError(path, "fits none of the allowed shapes")

    def _convert_object(self, schema: Schema, types: list[str], value: JsonDict, path: str) -> Expression:
        if types and "object" not in types:
            raise PropertyError(path, f"expected type: {types}, found: object")
        properties, key_patterns = schema.get("properties"), schema.get("patternProperties", {})
        if properties is None and not key_patterns:
            return value
        properties = properties or {}
        unknown_keys = sorted(
            key
            for key in set(value) - set(properties)
            if not any(regex.search(pattern, key) for pattern in key_patterns)
        )
        if unknown_keys and not schema.get("additionalProperties"):
            raise PropertyError(path, f"extraneous key [{', '.join(unknown_keys)}] is not permitted")
        if missing := sorted(set(schema.get("required", [])) - set(value)):
            raise PropertyError(path, f"required key [{', '.join(missing)}] not found")
        _check_key_groups(schema, set(value), path)
        converted = {key: self.convert(properties.get(key, {}), item, f"{path}/{key}") for key, item in value.items()}
        self._check_required_alternatives(schema, converted, path)
        return converted

    def _check_required_alternatives(self, schema: Schema, value: JsonObject, path: str) -> None:
        """Check `anyOf` and `oneOf` whose alternatives only list required keys."""
        for keyword in ("anyOf", "oneOf"):
            alternatives = [self._resolve_ref(subschema) for subschema in schema.get(keyword, [])]
            if not all("required" in alternative for alternative in alternatives):
                continue
            matching = [alternative for alternative in alternatives if set(alternative["required"]) <= set(value)]
            if alternatives and not matching:
                raise PropertyError(path, f"no subschema matched out of the total {len(alternatives)} subschemas")
            if keyword == "oneOf" and len(matching) > 1:
                raise PropertyError(path, f"{len(matching)} subschemas matched instead of one")

    def _convert_scalar(self, schema: Schema, types: list[str], value: Expression, path: str) -> Expression:
        try:
            value = _convert_to_type(types, value)
        except ValueError:
            raise PropertyError(path, f"expected type: {types}, found: {value!r}") from None
        if "const" in schema and value != schema["const"]:
            raise PropertyError(path, f"{value!r} is not {schema['const']!r}")
        if "enum" in schema and value not in schema["enum"]:
            raise PropertyError(path, f"{value!r} is not a valid enum value {schema['enum']}")
        if (allowed := schema.get("enumCaseInsensitive")) and str(value).lower() not in map(str.lower, allowed):
            raise PropertyError(path, f"{value!r} is not a valid enum value {allowed}")
        if isinstance(value, str):
            if "pattern" in schema and not regex.search(schema["pattern"], value):
                raise PropertyError(path, f"{value!r} does not match pattern {schema['pattern']}")
            if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
                raise PropertyError(path, f"a text of {len(value)} characters is too short or too long")
        elif not schema.get("minimum", value) <= value <= schema.get("maximum", value):  # a number or a boolean
            raise PropertyError(path, f"{value} is too small or too large")
        return value


def _check_items(schema: Schema, items: list[Expression], path: str) -> None:
    minimum, maximum = schema.get("minItems", 0), schema.get("maxItems", len(items))
    if len(items) < minimum:
        raise PropertyError(path, f"expected minimum item count: {minimum}, found: {len(items)}")
    if len(items) > maximum:
        raise PropertyError(path, f"expected maximum item count: {maximum}, found: {len(items)}")
    texts = [text for text in (json.dumps(item, sort_keys=True) for item in items) if UNKNOWN not in text]
    if schema.get("uniqueItems") and len(set(texts)) < len(texts):
        raise PropertyError(path, "array items are not unique")


def _check_key_groups(schema: Schema, keys: set[str], path: str) -> None:
    """Check required and exclusive groups of keys, which cfn-lint adds to the schemas from AWS documentation."""
    for key_group in _normalize_key_groups(schema.get("requiredXor", [])):
        if len(keys & set(key_group)) != 1:
            raise PropertyError(path, f"exactly one of {sorted(key_group)} is required")
    for key_group in _normalize_key_groups(schema.get("requiredOr", [])):
        if not keys & set(key_group):
            raise PropertyError(path, f"one of {sorted(key_group)} is required")
    for keyword in ("dependentRequired", "dependencies"):
        for key, other_keys in schema.get(keyword, {}).items():
            if key in keys and isinstance(other_keys, list) and (missing := sorted(set(other_keys) - keys)):
                raise PropertyError(path, f"property [{key}] requires {missing}")
    for key, other_keys in schema.get("dependentExcluded", {}).items():
        if key in keys and (excluded := sorted(set(other_keys) & keys)):
            raise PropertyError(path, f"property [{key}] cannot be given together with {excluded}")


def _normalize_key_groups(value: list[Expression]) -> list[list[str]]:
    """Return a list of groups of keys; the keyword of the schema holds one group, or a list of several."""
    is_single_group = bool(value) and isinstance(value[0], str)
    return [value] if is_single_group else value


def _convert_to_type(types: list[str], value: Expression) -> Expression:
    """Convert a scalar to one of the types of the schema.

    Raises:
        ValueError: it fits none of them
    """
    if not types:
        return value
    if "string" in types:
        return str(value).lower() if isinstance(value, bool) else str(value)
    if "boolean" in types and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if "integer" in types and not isinstance(value, bool):
        return int(value)
    if "number" in types and not isinstance(value, bool):
        return float(value)
    raise ValueError(value)
