"""Reads a cluster file: scalars as in YAML 1.2, and the line of every key.

PyYAML parses the file; the types of scalars are decided here. `yes`, `010`, `12:30` and numbers with a dot are text
(1.30 is a version, not 1.3), and a duplicate key is an error.
"""

from __future__ import annotations

import errno
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path as FilePath
from typing import Any

import yaml

from cfngen.bounded_files import NestingError, read_bytes, yaml_events
from cfngen.cluster.file.yaml_data import MAX_VALUES, TOO_DEEP_MESSAGE, DataBuilder, SizeLimitError
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import NO_KEY, ClusterFileError, Problem, Source

# Far above any real cluster file.
_MAX_BYTES = 1 << 20
# The usual cause of a syntax error, by a part of the error's message that both of PyYAML's parsers have.
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
# Marks, embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX #9). They are refused because they
# make a line look different from what is parsed (CVE-2021-42574, "Trojan Source").
_BIDI_CONTROL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# libyaml's fast parser, if PyYAML was built with it.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _NodeComposer(_Parser):  # type: ignore[misc]  # mypy does not know which of the two parsers it is
    """Composes YAML nodes, but leaves the types of scalars open.

    The tag of a scalar only says whether it is unquoted (`plain`) or quoted (`text`); `DataBuilder` decides its type.
    """

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool] | bool) -> str:
        """Return the tag of a node that has no tag in the file; PyYAML calls this method."""
        if kind is yaml.ScalarNode:
            # PyYAML passes whether the scalar is unquoted, as the first item of a pair or alone.
            is_plain = implicit[0] if isinstance(implicit, tuple) else implicit
            return "plain" if is_plain else "text"
        tag: str = super().resolve(kind, value, implicit)
        return tag


@dataclass
class YamlFile:
    """The content of a cluster file.

    Attributes:
        data: the file's mapping, of plain data: mappings, lists, text, whole numbers, booleans and None; sections of
            free form may have fractions.
        lines: line of every key and list item, counted from 1, by path.
        content: the file's bytes; empty if it was not read from a file.
    """

    data: dict[str, object]
    lines: dict[Path, int] = field(default_factory=dict)
    content: bytes = b""

    @property
    def digest(self) -> str:
        """SHA-256 of the file's bytes."""
        return sha256(self.content).hexdigest()


def read(file: FilePath) -> YamlFile:
    """Read a cluster file.

    Raises:
        ClusterFileError: it does not exist, is a directory, cannot be read or is not UTF-8, or `parse_text` refuses it.
    """
    file_name = str(file)
    content = _content(file, file_name)
    return replace(parse_text(_decoded(content, file_name), file_name), content=content)


def parse_text(text: str, file_name: str) -> YamlFile:
    """Return the content of a cluster file's text.

    Raises:
        ClusterFileError: the text is empty, is not YAML, or is not a single mapping with unique keys.
    """
    node = root_node(text, file_name)
    if node is None:
        content = "holds nothing but comments" if text.strip() else "is empty"
        message = f"the file {content}; write a cluster into it (`cfngen init` makes one to start from)"
        raise _file_error(message, file_name)
    builder = DataBuilder()
    try:
        data = builder.build(node, path=())
    except SizeLimitError as error:
        raise _file_error(str(error), file_name, error.line) from None
    problems = [
        Problem(found.path, found.message, source=Source(kind="file", name=file_name, line=found.line))
        for found in builder.problems
    ]
    if not isinstance(data, dict):
        kind = "a list" if isinstance(node, yaml.SequenceNode) else "a single value"
        message = f"the file holds {kind}; a cluster file is keys and values such as `name: kubernetes`"
        problems.append(
            Problem(NO_KEY, message, source=Source(kind="file", name=file_name, line=node.start_mark.line + 1))
        )
    if problems or not isinstance(data, dict):
        raise ClusterFileError(problems)
    return YamlFile(data, builder.lines)


def parse_value(text: str, path: Path) -> object:
    """Return what `text` would be as the value of a key in the file, e.g. `6` is a number and `1.30` is text.

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
        _check_size_limits(text)
        node = yaml.compose(text, Loader=_NodeComposer)
        if node is None:
            return None
        builder = DataBuilder()
        data = builder.build(node, path)
    except yaml.reader.ReaderError:
        raise ValueError("it has a control character, which YAML does not allow; remove it") from None
    except yaml.MarkedYAMLError as error:
        raise ValueError(_describe_yaml_error(error, text)) from None
    except SizeLimitError as error:
        raise ValueError(str(error)) from None
    if builder.problems:
        raise ValueError(builder.problems[0].message)
    return data


def _file_error(message: str, file_name: str, line: int = 0) -> ClusterFileError:
    return ClusterFileError([Problem(NO_KEY, message, source=Source(kind="file", name=file_name, line=line))])


def _content(file: FilePath, file_name: str) -> bytes:
    """Return the bytes of a file.

    Raises:
        ClusterFileError: the file cannot be read, or is too large.
    """
    try:
        return read_bytes(file, _MAX_BYTES)
    except FileNotFoundError:
        raise _file_error("there is no such file; `cfngen init` writes one to start from", file_name) from None
    except IsADirectoryError:
        raise _file_error("this is a directory; name the cluster file in it", file_name) from None
    except PermissionError:
        raise _file_error("the file cannot be read; give yourself permission to read it", file_name) from None
    except OSError as error:
        if error.errno == errno.EFBIG:
            message = f"the file has more than {_MAX_BYTES:,} bytes, and no cluster file has as many; shorten it"
            raise _file_error(message, file_name) from None
        raise _file_error(f"the file cannot be read: {error.strerror or error}", file_name) from None


def _decoded(content: bytes, file_name: str) -> str:
    """Return the text of a file's bytes.

    Raises:
        ClusterFileError: they are not UTF-8, or the text has characters that hide its meaning.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _file_error("the file is UTF-16; save it as UTF-8", file_name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _file_error(
            f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8", file_name, line
        ) from None
    # Refused in comments as well: such a character can make the line after a comment look like a part of the comment.
    if match := _BIDI_CONTROL.search(text):
        character = match.group()
        message = (
            f"U+{ord(character):04X} ({unicodedata.name(character).lower()}) stands in this line, which makes it read "
            "otherwise than it is; remove it"
        )
        line = text.count("\n", 0, match.start()) + 1
        raise _file_error(message, file_name, line)
    return text


def root_node(text: str, file_name: str) -> yaml.Node | None:
    """Return the node of the only YAML document in a file, or None if the file has comments only.

    Raises:
        ClusterFileError: the text is not YAML, exceeds a limit, or has several documents.
    """
    try:
        _check_size_limits(text)
        nodes: list[yaml.Node] = list(yaml.compose_all(text, Loader=_NodeComposer))
    except SizeLimitError as error:
        raise _file_error(str(error), file_name, error.line) from None
    except yaml.reader.ReaderError as error:
        position = error.position
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 0
        message = "a control character stands in the file, which YAML does not allow; remove it"
        raise _file_error(message, file_name, line) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        if "is not closed" in _describe_yaml_error(error, text):
            # The context is where the bracket or brace was opened; the error is noticed later.
            mark = error.context_mark or mark
        line = mark.line + 1 if mark else 0
        raise _file_error(_describe_yaml_error(error, text), file_name, line) from None
    if len(nodes) > 1:
        message = "a second document begins here; a cluster file holds one (remove the line `---`)"
        raise _file_error(message, file_name, nodes[1].start_mark.line + 1)
    return nodes[0] if nodes else None


def _check_size_limits(text: str) -> None:
    """Check that a text is not nested too deeply and has not too many values, before its nodes are composed.

    Raises:
        SizeLimitError: the text exceeds a limit.
        yaml.YAMLError: the text is not YAML.
    """
    node_count = 0
    try:
        for event in yaml_events(text):
            node_count += isinstance(event, yaml.NodeEvent)
            # Twice, since each key of a mapping is a node, too.
            if node_count > 2 * MAX_VALUES:
                message = f"the file goes on beyond {MAX_VALUES:,} values, and no cluster needs as many; shorten it"
                raise SizeLimitError(message, event.start_mark.line + 1 if event.start_mark else 1)
    except NestingError as error:
        raise SizeLimitError(TOO_DEEP_MESSAGE, error.line) from None


def _describe_yaml_error(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return a message about a syntax error: its usual cause and what to do, or else PyYAML's own words."""
    mark = error.problem_mark
    lines = text.split("\n")
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    indentation = line[: len(line) - len(line.lstrip())]
    if "\t" in indentation or (mark and line[mark.column : mark.column + 1] == "\t"):
        return "there is a tab here, and YAML allows only spaces; write spaces in its place"
    problem = str(error.problem)
    for message_part, likely_cause in _LIKELY_CAUSES.items():
        if message_part in problem:
            return likely_cause
    return "not valid YAML: " + (f"{error.context}: {problem}" if error.context else problem)
