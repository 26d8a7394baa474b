"""Reads files with values for a stack's parameters, in all formats that are common among deployment tools.

`{"Key": "Value"}`, `[{"ParameterKey": "Key", "ParameterValue": "Value"}]` of the AWS CLI, `["Key=Value"]`, and
`{"Parameters": {...}}` of CodePipeline and rain; in JSON or YAML. Values are read as text, exactly as written: `1.30`
stays `1.30`, and `0123` keeps its zero.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cfngen.bounded_files import NestingError, check_nesting, read_text
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    import yaml


SUPPORTED_FORMATS_HINT = (
    "write `Key: Value`, or a list of `Key=Value`, or the AWS CLI's list of ParameterKey and ParameterValue; "
    "as YAML or JSON."
)
_YAML_NULLS = ("", "~", "null", "Null", "NULL")
# Other keys beside `Parameters` in a file for CodePipeline or rain.
_OTHER_SECTIONS = ("Tags", "StackPolicy")


class ParameterFileError(CfngenError):
    """A parameter file cannot be read or does not contain parameters.

    Attributes:
        file: the file's path as the user gave it.
        problems: one sentence for each problem, with the file's path and, if known, the line.
    """

    code = "invalid-parameter-file"

    def __init__(self, file: str, problems: Sequence[str], *, hint: str = SUPPORTED_FORMATS_HINT) -> None:
        # Each problem begins with what follows the file's path, e.g. `:3: appears twice`.
        self.file = file
        self.problems = tuple(f"{file}{problem}" for problem in problems)
        super().__init__("\n".join(self.problems), hint=hint)


@dataclass(frozen=True)
class ParameterFile:
    """The parameters in a file.

    Attributes:
        name: the file's path as the user gave it.
        kept_parameters: parameters that keep their current value in the stack (`UsePreviousValue`).
    """

    name: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    kept_parameters: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Node:
    """A node of the file's syntax tree.

    Attributes:
        kind: `map`, `list`, `text`, `null`, or `alias` for a YAML node that contains itself.
        text: the text of a `text` node, as written.
        pairs: keys and values of a `map` node in order, including duplicate keys.
        items: items of a `list` node.
        line: its first line; 0 if not known.
    """

    kind: str
    text: str = ""
    pairs: tuple[tuple[str, _Node], ...] = ()
    items: tuple[_Node, ...] = ()
    line: int = 0

    @property
    def line_prefix(self) -> str:
        """The node's line, in the form that follows the file's path in a message, e.g. `:3: `."""
        return f":{self.line}: " if self.line else ": "


def read_file(path: Path) -> ParameterFile:
    """Return the parameters in a file.

    Raises:
        ParameterFileError: the file has problems; it lists all of them.
    """
    root = _parse(path)
    reader = _Reader()
    reader.read(root)
    if reader.problems:
        raise ParameterFileError(str(path), reader.problems)
    values = {key: value for key, value in reader.values.items() if value is not None}
    kept_parameters = frozenset(reader.values.keys() - values.keys())
    return ParameterFile(name=str(path), values=values, kept_parameters=kept_parameters)


class _Reader:
    """Collects the values of a file, and its problems.

    Attributes:
        values: by parameter, its value; None if the parameter keeps its current value in the stack.
        problems: one for each problem, beginning with what follows the file's path, e.g. `:3: appears twice`.
    """

    def __init__(self) -> None:
        self.values: dict[str, str | None] = {}
        self.problems: list[str] = []

    def read(self, node: _Node) -> None:
        """Read the values from a file of any format."""
        if node.kind == "list":
            for item in node.items:
                self._read_item(item)
            return
        if node.kind != "map":
            self.problems.append(f"{node.line_prefix}contains a single value; parameters are keys and values")
            return
        parameters = next(
            (value for key, value in node.pairs if key == "Parameters" and value.kind in ("map", "list")), None
        )
        if parameters is None:
            self._read_mapping(node)
            return
        for key, value in node.pairs:
            if key in _OTHER_SECTIONS and (value.pairs or value.items or value.text):
                message = f"{key} in a parameter file is not supported; remove it (set tags in the cluster file)"
                self.problems.append(f"{value.line_prefix}{message}")
            elif key != "Parameters" and key not in _OTHER_SECTIONS:
                self.problems.append(
                    f"{value.line_prefix}{key} is next to Parameters; move it into Parameters, or remove it"
                )
        self.read(parameters)

    def _read_mapping(self, node: _Node) -> None:
        """Read the parameters from a mapping of keys to values."""
        for key, value in node.pairs:
            self._add_value(key, self._value_text(key, value), value)

    def _read_item(self, node: _Node) -> None:
        """Read an item of a list: `Key=Value`, the AWS CLI's ParameterKey and ParameterValue, or a mapping."""
        if node.kind == "text":
            key, equals, value = node.text.partition("=")
            if not equals or not key:
                self.problems.append(f"{node.line_prefix}an item is not Key=Value; put a = between name and value")
            else:
                self._add_value(key, value, node)
            return
        fields = dict(node.pairs)
        if "ParameterKey" not in fields:
            if fields:  # a list of `- Key: Value`
                self._read_mapping(node)
            else:
                self.problems.append(f"{node.line_prefix}an item of the list is not a parameter")
            return
        key = self._value_text("ParameterKey", fields["ParameterKey"]) or ""
        use_previous = fields.get("UsePreviousValue")
        keeps_previous = use_previous is not None and use_previous.text.lower() == "true"
        # The output of `aws cloudformation describe-stacks` also has ResolvedValue.
        unknown = fields.keys() - {"ParameterKey", "ParameterValue", "UsePreviousValue", "ResolvedValue"}
        for name in sorted(unknown):
            self.problems.append(f"{node.line_prefix}{key}: {name} is not a field of a parameter; remove it")
        # The AWS CLI's skeleton (`--generate-cli-skeleton`) has all fields, including empty ones.
        if keeps_previous and "ParameterValue" in fields and fields["ParameterValue"].text:
            self.problems.append(f"{node.line_prefix}{key}: has a value and UsePreviousValue; remove one of them")
        elif not keeps_previous and "ParameterValue" not in fields:
            self.problems.append(f"{node.line_prefix}{key}: has no ParameterValue; add one, or UsePreviousValue: true")
        elif keeps_previous:
            self._add_value(key, None, node, keeps_previous=True)
        else:
            self._add_value(key, self._value_text(key, fields["ParameterValue"]), node)

    def _add_value(self, key: str, value: str | None, node: _Node, *, keeps_previous: bool = False) -> None:
        """Record the value of a parameter; without `keeps_previous`, None is a value that has a problem."""
        if key in self.values:
            self.problems.append(f"{node.line_prefix}{key}: appears twice; remove one")
        elif value is not None or keeps_previous:
            self.values[key] = value

    def _value_text(self, key: str, node: _Node) -> str | None:
        """Return the value of a parameter as text; the items of a list are joined with commas, as in CloudFormation."""
        if node.kind == "list" and node.items and all(item.kind == "text" for item in node.items):
            return ",".join(item.text for item in node.items)
        if node.kind == "text":
            return node.text
        if node.kind == "null":
            problem = 'has no value; add one, or "" for an empty string'
        else:
            problem = "has a nested value; use a string"
        self.problems.append(f"{node.line_prefix}{key}: {problem}")
        return None


def _parse(path: Path) -> _Node:
    """Return the syntax tree of a file, which is JSON if it starts with a brace or bracket, and else YAML."""
    name = str(path)
    try:
        text = read_text(path)
        check_nesting(text)
    except UnicodeDecodeError as error:
        problem = f": byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise ParameterFileError(name, [problem], hint="save the file as UTF-8.") from None
    except NestingError as error:
        raise ParameterFileError(name, [f":{error.line}: {error}"]) from None
    except OSError as error:
        problem = f": cannot be read: {(error.strerror or str(error)).lower()}"
        raise ParameterFileError(name, [problem], hint="choose an existing file that you can read.") from None
    if not text.strip():
        raise ParameterFileError(name, [": is empty"])
    return _parse_json(name, text) if text.lstrip().startswith(("{", "[")) else _parse_yaml(name, text)


def _parse_json(name: str, text: str) -> _Node:
    """Return the syntax tree of JSON; `name` is the file's path for messages."""
    try:
        # Numbers are kept as text, exactly as written.
        data = json.loads(
            text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=lambda word: word
        )
    except json.JSONDecodeError as error:
        # YAML also has mappings in braces and lists in brackets, which need not be valid JSON.
        try:
            return _parse_yaml(name, text)
        except ParameterFileError:
            problem = f":{error.lineno}: is not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
            raise ParameterFileError(name, [problem]) from None
    return _json_node(data)


class _Pairs(list[tuple[str, object]]):
    """The pairs of a JSON object, including duplicate keys."""


def _json_node(value: object) -> _Node:
    """Return the node for a value that `json.loads` has returned."""
    if isinstance(value, _Pairs):
        return _Node("map", pairs=tuple((key, _json_node(item)) for key, item in value))
    if isinstance(value, list):
        return _Node("list", items=tuple(_json_node(item) for item in value))
    if value is None:
        return _Node("null")
    if isinstance(value, bool):
        return _Node("text", "true" if value else "false")
    return _Node("text", str(value))


def _parse_yaml(name: str, text: str) -> _Node:
    """Return the syntax tree of YAML; `name` is the file's path for messages."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = f"{line}: is not YAML: {getattr(error, 'problem', None) or error}"
        raise ParameterFileError(name, [problem]) from None
    if root is None:
        raise ParameterFileError(name, [": contains only comments"])
    return _yaml_node(root, ancestor_ids=frozenset())


def _yaml_node(node: yaml.Node, ancestor_ids: frozenset[int]) -> _Node:
    """Return the node for a node of PyYAML.

    Args:
        ancestor_ids: Python's ids of the nodes that contain it, to recognize a node that contains itself.
    """
    import yaml

    line = node.start_mark.line + 1
    if id(node) in ancestor_ids:
        return _Node("alias", line=line)
    own_and_ancestor_ids = ancestor_ids | {id(node)}
    if isinstance(node, yaml.MappingNode):
        pairs = tuple((str(key.value), _yaml_node(value, own_and_ancestor_ids)) for key, value in node.value)
        return _Node("map", pairs=pairs, line=line)
    if isinstance(node, yaml.SequenceNode):
        return _Node("list", items=tuple(_yaml_node(item, own_and_ancestor_ids) for item in node.value), line=line)
    if isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _YAML_NULLS:
        return _Node("null", line=line)
    return _Node("text", node.value, line=line)
