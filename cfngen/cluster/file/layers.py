"""Merges cluster file, environment and flags, and records where each value was written."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cfngen.cluster.file.yaml_file import YamlFile, parse_value
from cfngen.cluster.paths import EVERY_ITEM, Path, dotted, is_free_form, leaves, lookup, parse_path, within
from cfngen.cluster.problems import NO_KEY, Problem, Source
from cfngen.text import pluralize


@dataclass(frozen=True)
class ItemNamed:
    """A part of a path: the item of a list whose key `name` is this name; the item is added if it is missing."""

    name: str


@dataclass(frozen=True)
class Assignment:
    """One value that the environment or a flag gives to a key, or to the same key of several list items.

    Attributes:
        path: the path to set; may contain `EVERY_ITEM` (all items of a list) and `ItemNamed`.
        value: plain data; None resets the key to its default.
        source: where the value was written.
        is_default: whether a value that is there already stays.
    """

    path: tuple[str | int | ItemNamed, ...]
    value: object
    source: Source
    is_default: bool = False


# Lists that have one item with default values if the cluster file does not set them.
_LISTS_WITH_ONE_DEFAULT_ITEM: tuple[Path, ...] = (("nodeGroups",), ("network", "subnets"))


class Replacement(NamedTuple):
    """A value of the cluster file that an environment variable replaced by another."""

    path: Path
    variable: Source
    file_line: Source


class MergedValues:
    """The values of the cluster file, merged with the assignments that were applied so far, and their sources.

    Attributes:
        data: the merged values, without keys whose value is null.
        sources: source of every leaf, and of every mapping and list in the file, by path.
        assignments_without_effect: assignments to all items of a list (`nodeGroups[*].…`) that has no items.
        replacements: values of the file that an environment variable replaced.
    """

    def __init__(self, file: YamlFile | None, file_name: str) -> None:
        self.data: dict[str, object] = without_nulls(copy.deepcopy(file.data)) if file else {}
        self.sources: dict[Path, Source] = _sources(file, file_name) if file else {}
        self.assignments_without_effect: list[Assignment] = []
        self.replacements: list[Replacement] = []

    def extend(self, file: YamlFile, file_name: str) -> None:
        """Add the values of another file where there are none; sections that both have are merged."""
        sources = _sources(file, file_name)
        added = _add_missing(self.data, without_nulls(copy.deepcopy(file.data)))
        for path, source in sources.items():
            if any(within(path, added_path) for added_path in added):
                self.sources[path] = source

    def apply(self, assignments: Iterable[Assignment]) -> list[Problem]:
        """Set values, replacing earlier ones; return a problem for each assignment that is impossible."""
        problems = [self._assign(assignment) for assignment in assignments]
        return [problem for problem in problems if problem]

    def _assign(self, assignment: Assignment) -> Problem | None:
        """Set the value at each path of the assignment; return a problem if its path has an index beyond a list."""
        try:
            for path in self._expand(assignment):
                if not assignment.is_default or lookup(self.data, path) is None:
                    self._set_value(path, assignment.value, assignment.source)
        except IndexError as error:
            return Problem(NO_KEY, str(error), source=assignment.source)
        return None

    def _expand(self, assignment: Assignment) -> list[Path]:
        """Return the paths that an assignment sets: several if its path has `EVERY_ITEM`, one for each item."""
        # The paths of the parts so far.
        paths: list[Path] = [()]
        for part in assignment.path:
            if isinstance(part, ItemNamed):
                paths = [(*path, self._index_of_named(path, part.name, assignment.source)) for path in paths]
            elif part == EVERY_ITEM:
                paths = [(*path, index) for path in paths for index in self._indexes_of_sections(path)]
                if not paths:
                    self.assignments_without_effect.append(assignment)
            else:
                paths = [(*path, part) for path in paths]
        return paths

    def _indexes_of_sections(self, path: Path) -> list[int]:
        """Return the positions of the sections in the list at `path`; a missing list is created with one section."""
        items = self._get_or_create(path, default=[{}])
        if not isinstance(items, list):
            return []
        return [index for index, item in enumerate(items) if isinstance(item, dict)]

    def _index_of_named(self, path: Path, name: str, source: Source) -> int:
        """Return the position of the item with a name in the list at `path`; a missing item is appended."""
        items = self._get_or_create(path, default=[])
        if not isinstance(items, list):
            # A value of the wrong type: `_set_value` will ignore the assignment, and validation will report the value.
            return 0
        for index, item in enumerate(items):
            if isinstance(item, dict) and item.get("name") == name:
                return index
        self._set_value((*path, len(items)), {"name": name}, source)
        return len(items) - 1

    def _get_or_create(self, path: Path, default: object) -> object:
        """Return the value at `path`; a missing value is set to `default`, and missing parents are created.

        Returns None if a value on the way is neither a mapping nor a list, as its part of the path requires.

        Raises:
            IndexError: the path has an index beyond the end of a list.
        """
        current: object = self.data
        for depth, part in enumerate(path):
            new: object
            if depth + 1 == len(path):
                new = copy.deepcopy(default)
            elif isinstance(path[depth + 1], int):
                new = []
            else:
                new = {}
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
                # The index after the last item appends one.
                if part == len(current):
                    current.append(new)
                current = current[part]
            else:
                return None
        return current

    def _set_value(self, path: Path, new: object, source: Source) -> None:
        """Set the value at `path` to `new`, or remove the key if `new` is None, and record the source.

        If the parent is neither a mapping nor a list, as the path of a variable requires, nothing is set: validation
        reports the parent.

        Raises:
            IndexError: the parent is not what the path of a flag requires, or ends before an index of the path.
        """
        old_source = self.sources.get(path)
        if old_source and old_source.kind == "file" and source.kind == "environment" and lookup(self.data, path) != new:
            self.replacements.append(Replacement(path, variable=source, file_line=old_source))
        parent: object = self.data
        if len(path) > 1:
            parent = self._get_or_create(path[:-1], default=[] if isinstance(path[-1], int) else {})
        last_part = path[-1]
        if isinstance(parent, dict) and isinstance(last_part, str):
            parent.pop(last_part, None)
            if new is not None:
                parent[last_part] = copy.deepcopy(new)
        elif isinstance(parent, list) and isinstance(last_part, int):
            # Append an item if the list ends before it.
            self._get_or_create(path, default=None)
            parent[last_part] = copy.deepcopy(new)
        elif source.kind == "flag":
            raise IndexError(_why_unreachable(self.data, path))
        else:
            return
        outdated_paths = [old_path for old_path in self.sources if within(old_path, path)]
        for outdated_path in outdated_paths:
            del self.sources[outdated_path]
        leaf_paths = [leaf_path for leaf_path, _ in leaves(new, path)]
        self.sources.update(dict.fromkeys([path, *leaf_paths], source))


def _sources(file: YamlFile, file_name: str) -> dict[Path, Source]:
    return {path: Source(kind="file", name=file_name, line=line) for path, line in file.lines.items() if path}


def _add_missing(data: dict[str, object], other: Mapping[str, object], path: Path = ()) -> list[Path]:
    """Add the values of another mapping for keys that a mapping lacks; return the paths of these values."""
    added: list[Path] = []
    for key, value in other.items():
        own = data.get(key)
        if key not in data:
            data[key] = value
            added.append((*path, key))
        elif isinstance(own, dict) and isinstance(value, Mapping):
            added += _add_missing(own, value, (*path, key))
    return added


def _why_unreachable(data: object, path: Path) -> str:
    """Return the message for a path on which a value is neither a mapping nor a list, as the next part requires."""
    value = data
    for depth, part in enumerate(path):
        name = dotted(path[:depth])
        if isinstance(value, list) and not isinstance(part, int):
            return f"{name} is a list; name one of its items, such as {name}[0].{part}"
        if isinstance(value, dict) and isinstance(part, int):
            return f"{name} is not a list; leave out [{part}]"
        if not isinstance(value, dict | list):
            return (
                f"{name} is a single value, and has no {f'item [{part}]' if isinstance(part, int) else f'key {part}'}"
            )
        value = lookup(data, path[: depth + 1])
    return f"there is no {dotted(path)}"


def parse_overrides(texts: Sequence[str]) -> tuple[list[Assignment], list[Problem]]:
    """Return the assignments of `--set` arguments such as `nodeGroups[0].maxSize=6`, and the problems with them.

    The value is read like YAML in the file; an empty one resets the key to its default.
    """
    assignments: list[Assignment] = []
    problems: list[Problem] = []
    for text in texts:
        source = Source(kind="flag", name=text)
        key, equals, value_text = _split_at_equals(text)
        path: Path = ()
        if equals:
            with contextlib.suppress(ValueError):
                path = parse_path(key.strip())
        if not path:
            message = (
                "this is not KEY=VALUE with a key such as nodeGroups[0].maxSize; write --set nodeGroups[0].maxSize=6"
            )
            problems.append(Problem(NO_KEY, message, source=source))
            continue
        try:
            assignments.append(Assignment(path=path, value=parse_value(value_text, path), source=source))
        except ValueError as error:
            message = f"the value cannot be read: {error}; put it in quotes if it is text"
            problems.append(Problem(path, message, source=source))
    return assignments, problems


def _split_at_equals(text: str) -> tuple[str, str, str]:
    """Split a text at the first `=` outside double quotes, like `str.partition`.

    Returns the part before, `=` and the part after; without such a `=`, the whole text and two empty strings.
    """
    is_quoted = False
    for position, character in enumerate(text):
        if character == '"':
            is_quoted = not is_quoted
        elif character == "=" and not is_quoted:
            return text[:position], "=", text[position + 1 :]
    return text, "", ""


def without_nulls(data: Mapping[str, object], path: Path = ()) -> dict[str, object]:
    """Return `data`, whose path is `path`, without keys whose value is null, such as a section with comments only.

    In sections of free form, null is a value of its own and stays.
    """
    if is_free_form(path):
        return dict(data)
    return {key: _value_without_nulls(value, (*path, key)) for key, value in data.items() if value is not None}


def _value_without_nulls(value: object, path: Path) -> object:
    if isinstance(value, Mapping):
        return without_nulls(value, path)
    if isinstance(value, list):
        return [_value_without_nulls(item, (*path, index)) for index, item in enumerate(value)]
    return value
