"""Reads a cluster file: scalars as in YAML 1.2, and the line of every key.

PyYAML parses the file; the types of scalars are decided here. `yes`, `010`, `12:30` and numbers with a dot are text
(1.30 is a version, not 1.3), and a duplicate key is an error.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from cfngen.cluster.paths import Path, is_free_form
from cfngen.cluster.problems import ClusterFileError, Problem, Source

_CONSTANTS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+")
# Limits far above any real cluster file; any file within them is validated within a second or two. Kubernetes' own
# objects are some ten levels deep; pydantic serialises at most 255.
_MAX_BYTES = 1 << 20
_MAX_VALUES = 20_000
_MAX_ITEMS = 1_000
_MAX_DEPTH = 100
# Parts of error messages that both of PyYAML's parsers have, and their usual causes.
_LIKELY_CAUSES: Mapping[str, str] = {
    "mapping values are not allowed": "a second `:` or a wrong indentation; align the key with its neighbours or quote "
    "the text",
    "expected ',' or ']'": "a bracket [ is not closed; close it with ]",
    "expected ',' or '}'": "a brace { is not closed; close it with }",
    "found undefined alias": "an alias (*) names an anchor (&) that is not there; write the value out",
    "unexpected end of stream": "a quotation mark is not closed; close it",
    "did not find expected key": "a wrong indentation; align the key with its neighbours",
    "expected <block end>": "a wrong indentation; align the key with its neighbours",
}
_TOO_DEEP = f"lists and mappings are nested more than {_MAX_DEPTH} levels deep here, and no key is that deep"
# Marks, embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX #9). They are refused because they
# make a line look different from what is parsed (CVE-2021-42574, "Trojan Source").
_BIDI_CONTROL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _BoundsError(Exception):
    """The file exceeds a limit, which the message names.

    Attributes:
        line: line where the file exceeds the limit, counted from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class _Composer(_Parser):  # type: ignore[misc]  # the parser is libyaml's where PyYAML was built with it
    """Composes nodes, with the tag `plain` on plain scalars and `text` on quoted ones."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool] | bool) -> str:
        if kind is yaml.ScalarNode:
            is_plain = implicit[0] if isinstance(implicit, tuple) else implicit
            return "plain" if is_plain else "text"
        tag: str = super().resolve(kind, value, implicit)
        return tag


@dataclass
class YamlFile:
    """The content of a cluster file.

    Attributes:
        data: mappings, lists, text, whole numbers, booleans and None.
        lines: line of every key and list item, counted from 1, by path.
    """

    data: dict[str, object]
    lines: dict[Path, int] = field(default_factory=dict)


def read(file: FilePath) -> YamlFile:
    """Read a cluster file.

    Raises:
        ClusterFileError: it does not exist, is a directory, cannot be read, is not UTF-8, is empty, is not YAML, or is
            not a single mapping with unique keys.
    """
    name = str(file)
    text = _read_text(file, name)
    node = _root_node(text, name)
    if node is None:
        content = "holds nothing but comments" if text.strip() else "is empty"
        message = f"the file {content}; write a cluster into it (`cfngen init` makes one to start from)"
        raise ClusterFileError([Problem((), message, source=Source("file", name))])
    builder = _Builder()
    try:
        data = builder.build(node, ())
    except _BoundsError as error:
        raise ClusterFileError([Problem((), str(error), source=Source("file", name, error.line))]) from None
    problems = [Problem(path, text, source=Source("file", name, line)) for path, text, line in builder.faults]
    if not isinstance(data, dict):
        kind = {"SequenceNode": "a list"}.get(type(node).__name__, "a single value")
        message = f"the file holds {kind}; a cluster file is keys and values such as `name: kubernetes`"
        problems.append(Problem((), message, source=Source("file", name, node.start_mark.line + 1)))
    if problems or not isinstance(data, dict):
        raise ClusterFileError(problems)
    return YamlFile(data, builder.lines)


def value(text: str, path: Path) -> object:
    """Return the value that `text` has for a key, e.g. `6` is a number and `1.30` is text.

    Args:
        text: a scalar or a flow collection such as `[10.0.0.0/8]`.
        path: the key that gets the value; free-form sections may have fractions.

    Raises:
        ValueError: it is not YAML; the message says why.
    """
    # Text of several lines, and a plain scalar with `: `, would not be valid YAML here, but are valid as text.
    is_plain = not text.lstrip().startswith(("{", "[", '"', "'"))
    if "\n" in text.strip() or (is_plain and ": " in text):
        return text
    try:
        _check_bounds(text)
        node = yaml.compose(text, Loader=_Composer)
        if node is None:
            return None
        builder = _Builder()
        data = builder.build(node, path)
    except yaml.YAMLError as error:
        raise ValueError(_reason(error, text)) from None
    except _BoundsError as error:
        raise ValueError(str(error)) from None
    if builder.faults:
        raise ValueError(builder.faults[0][1])
    return data


def _read_text(file: FilePath, name: str) -> str:
    """Return the text of a file; an error that prevents this is raised as a ClusterFileError."""

    def error_of(message: str, line: int = 0) -> ClusterFileError:
        return ClusterFileError([Problem((), message, source=Source("file", name, line))])

    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise error_of("there is no such file; `cfngen init` writes one to start from") from None
    except IsADirectoryError:
        raise error_of("this is a directory; name the cluster file in it") from None
    except PermissionError:
        raise error_of("the file cannot be read; give yourself permission to read it") from None
    except OSError as error:
        raise error_of(f"the file cannot be read: {error.strerror or error}") from None
    if len(content) > _MAX_BYTES:
        raise error_of(f"the file has {len(content):,} bytes; a cluster file has at most {_MAX_BYTES:,}")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise error_of("the file is UTF-16; save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise error_of(f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8", line) from None
    # Refused in comments as well: such a character can make the line after a comment look like a part of the comment.
    if match := _BIDI_CONTROL.search(text):
        character = match.group()
        message = (
            f"U+{ord(character):04X} ({unicodedata.name(character).lower()}) stands in this line, which makes it read "
            "otherwise than it is; remove it"
        )
        raise error_of(message, text.count("\n", 0, match.start()) + 1)
    return text


def _root_node(text: str, name: str) -> yaml.Node | None:
    """Return the node of the only YAML document in a file, or None if the file has comments only."""
    try:
        _check_bounds(text)
        nodes: list[yaml.Node] = list(yaml.compose_all(text, Loader=_Composer))
    except _BoundsError as error:
        raise ClusterFileError([Problem((), str(error), source=Source("file", name, error.line))]) from None
    except yaml.reader.ReaderError as error:
        position = error.position
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 0
        message = "a control character stands in the file, which YAML does not allow; remove it"
        raise ClusterFileError([Problem((), message, source=Source("file", name, line))]) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if "is not closed" in _reason(error, text):
            mark = getattr(error, "context_mark", None) or mark
        source = Source("file", name, mark.line + 1 if mark else 0)
        raise ClusterFileError([Problem((), _reason(error, text), source=source)]) from None
    if len(nodes) > 1:
        source = Source("file", name, nodes[1].start_mark.line + 1)
        message = "a second document begins here; a cluster file holds one (remove the line `---`)"
        raise ClusterFileError([Problem((), message, source=source)])
    return nodes[0] if nodes else None


def _check_bounds(text: str) -> None:
    """Raise an error if a text is nested too deeply or has too many values, before nodes are composed.

    Events are read one by one, while composing nodes is recursive and would exceed Python's recursion limit.

    Raises:
        _BoundsError: it exceeds a limit.
        yaml.YAMLError: it is not YAML.
    """
    depth = 0
    node_count = 0
    for event in yaml.parse(text, Loader=_Parser):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if isinstance(event, yaml.NodeEvent):
            node_count += 1
        if depth > _MAX_DEPTH:
            raise _BoundsError(_TOO_DEEP, _line(event))
        # A key is a node, too.
        if node_count > 2 * _MAX_VALUES:
            message = f"the file goes on beyond {_MAX_VALUES:,} values, and no cluster needs as many; shorten it"
            raise _BoundsError(message, _line(event))


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _reason(error: yaml.YAMLError, text: str) -> str:
    """Return what is wrong with the YAML, with the usual cause where it is known."""
    mark = getattr(error, "problem_mark", None)
    lines = text.split("\n")
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    indentation = line[: len(line) - len(line.lstrip())]
    if "\t" in indentation or (mark and line[mark.column : mark.column + 1] == "\t"):
        return "a tab stands where YAML wants spaces; indent with spaces"
    problem = str(getattr(error, "problem", None) or error)
    for message_part, likely_cause in _LIKELY_CAUSES.items():
        if message_part in problem:
            return likely_cause
    context = getattr(error, "context", None)
    return "not valid YAML: " + (f"{context}: {problem}" if context else problem)


class _Builder:
    """Builds data from nodes, and records the line of every key and all faults."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.faults: list[tuple[Path, str, int]] = []
        # Nodes whose content is being built: an alias to one of them contains itself.
        self._unfinished: set[int] = set()
        # An alias is counted each time it is used, since it multiplies values ("billion laughs").
        self._built_count = 0

    def build(self, node: yaml.Node, path: Path) -> object:
        """Return the data of `node`, whose path is `path`."""
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._built_count += 1
        if id(node) in self._unfinished:
            self._fault(path, "an alias (*) that contains itself; write the value out", node)
            return None
        if self._built_count > _MAX_VALUES:
            message = f"aliases (*) multiply the file's values to more than {_MAX_VALUES:,}; write out what is needed"
            raise _BoundsError(message, node.start_mark.line + 1)
        if len(path) > _MAX_DEPTH:
            raise _BoundsError(_TOO_DEEP, node.start_mark.line + 1)
        if not isinstance(node, yaml.ScalarNode) and len(node.value) > _MAX_ITEMS and not is_free_form(path):
            noun = "keys" if isinstance(node, yaml.MappingNode) else "items"
            self._fault(path, f"holds {len(node.value):,} {noun}; at most {_MAX_ITEMS:,} are read", node)
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self._unfinished.add(id(node))
        build: Callable[[Any, Path], object] = self._mapping if isinstance(node, yaml.MappingNode) else self._sequence
        data = build(node, path)
        self._unfinished.remove(id(node))
        return data

    def _fault(self, path: Path, message: str, node: yaml.Node) -> None:
        self.faults.append((path, message, node.start_mark.line + 1))

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> object:
        text: str = node.value
        if node.tag == "plain":
            if text in _CONSTANTS:
                return _CONSTANTS[text]
            if _INTEGER.fullmatch(text):
                # A number of 20 characters or more may exceed 64 bits; it stays text.
                return int(text) if len(text) < 20 else text
            if is_free_form(path) and _FRACTION.fullmatch(text):
                return float(text)
        elif node.tag not in ("text", "tag:yaml.org,2002:str"):
            self._fault(path, f"the YAML tag {_short(node.tag)} has no meaning here; remove it", node)
        return text

    def _sequence(self, node: yaml.SequenceNode, path: Path) -> list[object]:
        if node.tag != "tag:yaml.org,2002:seq":
            self._fault(path, f"the YAML tag {_short(node.tag)} has no meaning here; remove it", node)
        return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        if node.tag != "tag:yaml.org,2002:map":
            self._fault(path, f"the YAML tag {_short(node.tag)} has no meaning here; remove it", node)
        data: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._fault(path, "a key is a list or a mapping; a key must be text", key_node)
                continue
            key: str = key_node.value
            if key == "<<" and key_node.tag == "plain":
                self._fault((*path, key), "merge keys are not part of YAML 1.2; write the keys out", key_node)
                continue
            key_path = (*path, key)
            line = key_node.start_mark.line + 1
            if key in data:
                message = f"the key appears twice, first in line {self.lines[key_path]}; remove one"
                self.faults.append((key_path, message, line))
                continue
            self.lines[key_path] = line
            data[key] = self.build(value_node, key_path)
        return data


def _short(tag: str) -> str:
    return "!!" + tag.rpartition(":")[2] if tag.startswith("tag:yaml.org,2002:") else tag
