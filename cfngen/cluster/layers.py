"""Merges cluster file, environment and flags, and records where each value was written."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cfngen.cluster.paths import EVERY, Path, dotted, is_free_form, leaves, lookup, parse_path, within
from cfngen.cluster.problems import Problem, Source
from cfngen.cluster.yaml_file import YamlFile, value
from cfngen.text import pluralize


@dataclass(frozen=True)
class Named:
    """In a path: the item with this name in a list of `{name: …, value: …}`; the item is added if it is missing."""

    name: str


@dataclass(frozen=True)
class Assignment:
    """One value from the environment or a flag.

    Attributes:
        path: the path to set; may contain `EVERY` and `Named`.
        value: plain data.
        source: where it was written.
    """

    path: tuple[str | int | Named, ...]
    value: object
    source: Source


# Lists that get one item with default values if the cluster file does not set them.
_LISTS_WITH_ONE_DEFAULT_ITEM: tuple[Path, ...] = (("nodeGroups",), ("network", "subnets"))


class MergedValues:
    """The values merged so far and their sources.

    Attributes:
        data: the merged values, without keys whose value is null.
        sources: source of every leaf, and of every mapping and list in the file, by path.
        unused: assignments to all items of a list (`nodeGroups[*].…`) that has no items; they have no effect.
        replaced: values of the file that an environment variable replaced: the path, the variable, and the line where
            the file sets the value.
    """

    def __init__(self, file: YamlFile | None, name: str) -> None:
        self.data: dict[str, object] = without_nulls(copy.deepcopy(file.data)) if file else {}
        self.sources: dict[Path, Source] = {}
        self.unused: list[Assignment] = []
        self.replaced: list[tuple[Path, Source, Source]] = []
        if file:
            self.sources = {
                path: Source(kind="file", name=name, line=line) for path, line in file.lines.items() if path
            }

    def apply(self, assignments: Iterable[Assignment]) -> list[Problem]:
        """Set values, replacing earlier ones; return a problem for each that cannot be set."""
        return [problem for assignment in assignments if (problem := self._assign(assignment))]

    def _assign(self, assignment: Assignment) -> Problem | None:
        try:
            for path in self._expand(assignment):
                self._set(path, assignment.value, assignment.source)
        except IndexError as error:
            return Problem((), str(error), source=assignment.source)
        return None

    def _expand(self, assignment: Assignment) -> list[Path]:
        """Return the paths that an assignment sets: one for each item where its path has `EVERY`."""
        paths: list[Path] = [()]
        for part in assignment.path:
            if isinstance(part, Named):
                paths = [(*path, self._index_of_named(path, part.name, assignment.source)) for path in paths]
            elif part == EVERY:
                paths = [(*path, index) for path in paths for index in self._section_indexes(path)]
                if not paths:
                    self.unused.append(assignment)
            else:
                paths = [(*path, part) for path in paths]
        return paths

    def _section_indexes(self, path: Path) -> list[int]:
        """Return the positions of the sections in the list at `path`; a missing list is created with one section."""
        items = self._get_or_create(path, [{}])
        if not isinstance(items, list):
            return []
        return [index for index, item in enumerate(items) if isinstance(item, dict)]

    def _index_of_named(self, path: Path, name: str, source: Source) -> int:
        """Return the position of the item with a name in the list at `path`; a missing item is appended."""
        items = self._get_or_create(path, [])
        if not isinstance(items, list):
            # `_set` then ignores the assignment, and validation reports the value that is no list.
            return 0
        for index, item in enumerate(items):
            if isinstance(item, dict) and item.get("name") == name:
                return index
        self._set((*path, len(items)), {"name": name}, source)
        return len(items) - 1

    def _get_or_create(self, path: Path, default: object) -> object:
        """Return the value at `path`, set to `default` if missing; None if a value on the way has another type."""
        current: object = self.data
        for depth, part in enumerate(path):
            is_last = depth + 1 == len(path)
            container: object = [] if not is_last and isinstance(path[depth + 1], int) else {}
            new = copy.deepcopy(default) if is_last else container
            if new == [] and path[: depth + 1] in _LISTS_WITH_ONE_DEFAULT_ITEM:
                new = [{}]
            if isinstance(current, dict) and isinstance(part, str):
                current = current.setdefault(part, new)
            elif isinstance(current, list) and isinstance(part, int):
                if part > len(current):
                    count = pluralize(len(current), "item")
                    message = (
                        f"{dotted(path[:depth])} has {count}, so [{part}] names none; the next is [{len(current)}]"
                    )
                    raise IndexError(message)
                if part == len(current):
                    current.append(new)
                current = current[part]
            else:
                return None
        return current

    def _set(self, path: Path, new: object, source: Source) -> None:
        """Set the value at `path`, or remove the key if the new value is None, and record the source.

        If the parent is neither a mapping nor a list as the path expects, nothing is set: validation reports it.
        """
        old_source = self.sources.get(path)
        is_in_file = old_source is not None and old_source.kind == "file"
        if old_source and is_in_file and source.kind == "environment" and lookup(self.data, path) != new:
            self.replaced.append((path, source, old_source))
        parent: object = self.data
        if len(path) > 1:
            parent = self._get_or_create(path[:-1], [] if isinstance(path[-1], int) else {})
        last = path[-1]
        if isinstance(parent, dict) and isinstance(last, str):
            parent.pop(last, None)
            if new is not None:
                parent[last] = copy.deepcopy(new)
        elif isinstance(parent, list) and isinstance(last, int):
            # Appends an item if the list ends before it.
            self._get_or_create(path, None)
            parent[last] = copy.deepcopy(new)
        else:
            return
        for replaced_path in [old_path for old_path in self.sources if within(old_path, path)]:
            del self.sources[replaced_path]
        leaf_paths = [leaf_path for leaf_path, _ in leaves(new, path)]
        self.sources.update(dict.fromkeys([path, *leaf_paths], source))


def parse_overrides(texts: Sequence[str]) -> tuple[list[Assignment], list[Problem]]:
    """Return the assignments of `--set` arguments such as `nodeGroups[0].maxSize=6`, and the problems with them.

    The value is read like YAML in the file; an empty one resets the key to its default.
    """
    assignments: list[Assignment] = []
    problems: list[Problem] = []
    for text in texts:
        source = Source(kind="flag", name=text)
        key, equals, raw_value = _split_assignment(text)
        try:
            path = parse_path(key.strip())
        except ValueError:
            equals = ""
            path = ()
        if not equals:
            message = (
                "this is not KEY=VALUE with a key such as nodeGroups[0].maxSize; write --set nodeGroups[0].maxSize=6"
            )
            problems.append(Problem((), message, source=source))
            continue
        try:
            assignments.append(Assignment(path, value(raw_value, path), source))
        except ValueError as error:
            message = f"the value cannot be read: {error}; put it in quotes if it is text"
            problems.append(Problem(path, message, source=source))
    return assignments, problems


def _split_assignment(text: str) -> tuple[str, str, str]:
    """Split a text at the first `=` outside double quotes; the last two parts are empty if there is none."""
    quoted = False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == "=" and not quoted:
            return text[:position], "=", text[position + 1 :]
    return text, "", ""


def without_nulls(data: Mapping[str, object], path: Path = ()) -> dict[str, object]:
    """Return `data` without keys whose value is null, such as a section with comments only."""
    if is_free_form(path):
        return dict(data)
    return {key: _value_without_nulls(value, (*path, key)) for key, value in data.items() if value is not None}


def _value_without_nulls(value: object, path: Path) -> object:
    if isinstance(value, Mapping):
        return without_nulls(value, path)
    if isinstance(value, list):
        return [_value_without_nulls(item, (*path, index)) for index, item in enumerate(value)]
    return value
