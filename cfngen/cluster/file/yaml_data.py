"""Builds data from the nodes of a YAML file: scalars as in YAML 1.2, and the line of every key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import yaml

from cfngen.bounded_files import MAX_DEPTH
from cfngen.cluster.paths import Path, is_free_form

# What an unquoted scalar means in YAML 1.2 if it is neither a number nor text.
_CONSTANT_SCALARS: Mapping[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+")
# Limits far above any real cluster file; any file within them is validated within a second or two.
MAX_VALUES = 20_000
# Items of one list, or keys of one mapping.
_MAX_ITEMS = 1_000
TOO_DEEP_MESSAGE = f"lists and mappings are nested more than {MAX_DEPTH} levels deep here, and no key is that deep"


class SizeLimitError(Exception):
    """The file exceeds a limit such as `MAX_DEPTH`; the message says which."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class FoundProblem(NamedTuple):
    """A problem with a node, before the name of the file is known."""

    path: Path
    message: str
    line: int


class DataBuilder:
    """Builds plain data from YAML nodes.

    Attributes:
        lines: line of every key and list item, counted from 1, by path.
        problems: values that are not allowed; the data is incomplete if there are any.
    """

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.problems: list[FoundProblem] = []
        # Nodes whose content is being built: an alias to one of them contains itself.
        self._unfinished: set[int] = set()
        # Number of built nodes. An alias is counted each time it is used, since it multiplies values ("billion
        # laughs").
        self._built_count = 0

    def build(self, node: yaml.Node, path: Path) -> object:
        """Return the data of a node and everything below it; `path` is the node's path in the file.

        Raises:
            SizeLimitError: the data exceeds a limit.
        """
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._built_count += 1
        if id(node) in self._unfinished:
            self._add_problem(path, "an alias (*) that contains itself; write the value out", node)
            return None
        if self._built_count > MAX_VALUES:
            message = f"aliases (*) multiply the file's values to more than {MAX_VALUES:,}; write out what is needed"
            raise SizeLimitError(message, node.start_mark.line + 1)
        if len(path) > MAX_DEPTH:
            raise SizeLimitError(TOO_DEEP_MESSAGE, node.start_mark.line + 1)
        if not isinstance(node, yaml.ScalarNode) and len(node.value) > _MAX_ITEMS and not is_free_form(path):
            noun = "keys" if isinstance(node, yaml.MappingNode) else "items"
            self._add_problem(path, f"holds {len(node.value):,} {noun}; at most {_MAX_ITEMS:,} are read", node)
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self._unfinished.add(id(node))
        data = self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._sequence(node, path)
        self._unfinished.remove(id(node))
        return data

    def _add_problem(self, path: Path, message: str, node: yaml.Node) -> None:
        self.problems.append(FoundProblem(path, message, line=node.start_mark.line + 1))

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> object:
        """Return a scalar's value: text if it is quoted, else by the rules of YAML 1.2 (the module's description)."""
        text: str = node.value
        if node.tag == "plain":
            if text in _CONSTANT_SCALARS:
                return _CONSTANT_SCALARS[text]
            if _INTEGER.fullmatch(text):
                # A number of 20 characters or more may exceed 64 bits; it stays text.
                return int(text) if len(text) < 20 else text
            if is_free_form(path) and _FRACTION.fullmatch(text):
                return float(text)
        elif node.tag not in ("text", "tag:yaml.org,2002:str"):
            self._add_problem(path, f"the YAML tag {_short_tag(node.tag)} has no meaning here; remove it", node)
        return text

    def _sequence(self, node: yaml.Node, path: Path) -> list[object]:
        if node.tag != "tag:yaml.org,2002:seq":
            self._add_problem(path, f"the YAML tag {_short_tag(node.tag)} has no meaning here; remove it", node)
        return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        """Return the dict of a mapping node; keys that are not unique texts are left out and reported."""
        if node.tag != "tag:yaml.org,2002:map":
            self._add_problem(path, f"the YAML tag {_short_tag(node.tag)} has no meaning here; remove it", node)
        data: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._add_problem(path, "a key is a list or a mapping; a key must be text", key_node)
                continue
            key: str = key_node.value
            if key == "<<" and key_node.tag == "plain":
                self._add_problem((*path, key), "merge keys are not part of YAML 1.2; write the keys out", key_node)
                continue
            key_path = (*path, key)
            line = key_node.start_mark.line + 1
            if key in data:
                message = f"the key appears twice, first in line {self.lines[key_path]}; remove one"
                self.problems.append(FoundProblem(key_path, message, line))
                continue
            self.lines[key_path] = line
            data[key] = self.build(value_node, key_path)
        return data


def _short_tag(tag: str) -> str:
    """Return a YAML tag as users write it, e.g. `!!int` for `tag:yaml.org,2002:int`."""
    return "!!" + tag.rpartition(":")[2] if tag.startswith("tag:yaml.org,2002:") else tag
