"""The cluster file as a stack keeps it, so that it can be had back, and the keys in which two such files differ.

It is the file byte for byte. What the file that it extends, environment variables and `--set` change is put into it,
and a comment says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

import yaml

from cfngen.cluster.file import edit, yaml_file
from cfngen.cluster.file.layers import MergedValues, without_nulls
from cfngen.cluster.file.yaml_file import YamlFile
from cfngen.cluster.paths import Path, dotted, lookup, within
from cfngen.cluster.problems import ClusterFileError

MAX_BYTES = 200_000
"""A larger file is not kept: what is not ASCII takes three characters a byte in a template, which may have 1 MB."""


@dataclass(frozen=True)
class KeptFile:
    """What a stack keeps of the cluster file, of environment variables and of `--set`.

    Attributes:
        file: the cluster file; None for the built-in default cluster.
        merged: its values, with those of variables and `--set`.
        cluster_name: the cluster's name, for a file that has none.
    """

    file: YamlFile | None
    merged: MergedValues
    cluster_name: str

    @cached_property
    def content(self) -> bytes:
        """The bytes of a cluster file that stands for all of it; none if that is too large to be kept."""
        content = self.file.content if self.file and self.merged.data == self._file_data else self._edited()
        return content if len(content) <= MAX_BYTES else b""

    @cached_property
    def _file_data(self) -> dict[str, object]:
        return without_nulls(self.file.data) if self.file else {}

    def _edited(self) -> bytes:
        """Return the file with the values of variables and `--set`; without its comments if it cannot be edited."""
        data = dict(self.merged.data)
        if not self.file or "name" in self._file_data:
            data.setdefault("name", self.cluster_name)
        text = self.file.content.decode("utf-8-sig") if self.file else ""
        what = "the cluster file" if self.file else "the built-in default cluster"
        try:
            for path in _changed_paths(self._file_data, data):
                text = edit.set_key(text, path, lookup(data, path))
        except edit.NotEditableError:
            text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
            what += ", written anew without its comments"
        heading = [f"# cfngen: {what}, as deployed", *self._origins()]
        return "\n".join([*heading, text]).encode()

    def _origins(self) -> Iterator[str]:
        """Yield comments that say which keys come from the file that this one extends, from variables and `--set`."""
        lines = self.file.lines if self.file else {}
        paths_by_source: dict[str, list[Path]] = {}
        for path, source in self.merged.sources.items():
            if source.kind != "file" or path not in lines:
                name = {"flag": "--set", "file": source.name}.get(source.kind, str(source))
                paths_by_source.setdefault(name, []).append(path)
        for name, paths in paths_by_source.items():
            keys = [dotted(path) for path in paths if not any(path != other and within(other, path) for other in paths)]
            yield f"# {name}: {', '.join(keys)}"


@dataclass(frozen=True)
class KeyChange:
    """A key of the cluster file with another value than in the deployed one.

    Attributes:
        key: the key, e.g. `nodeGroups[gpu].maxSize`; items of lists have their names, or else their positions.
        before: its value in the deployed file, as text or JSON; null if it is not there.
        after: its value now, likewise.
    """

    key: str
    before: str | None
    after: str | None


def key_changes(before: bytes, after: bytes) -> tuple[KeyChange, ...]:
    """Return the keys in which two cluster files differ; none if only comments and layout do."""
    return tuple(_differences(_data(before), _data(after)))


def _data(content: bytes) -> dict[str, object]:
    """Return the values in a cluster file; none if somebody has made another text of it."""
    try:
        return without_nulls(yaml_file.parse_text(content.decode("utf-8-sig"), "").data)
    except (ClusterFileError, UnicodeDecodeError):
        return {}


def _differences(before: object, after: object, key: str = "") -> Iterator[KeyChange]:
    old, new = _items(before), _items(after)
    if old is not None and new is not None:
        for name in {**old, **new}:
            item_key = f"{key}{name}" if name.startswith("[") else f"{key}.{name}".removeprefix(".")
            yield from _differences(old.get(name), new.get(name), item_key)
    elif before != after:
        texts = (
            value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for value in (before, after)
        )
        yield KeyChange(key, *texts)


def _items(value: object) -> Mapping[str, object] | None:
    """Return the values in a mapping by their keys, those in a list of mappings by their names; None for others."""
    if isinstance(value, Mapping):
        return {dotted((key,)): item for key, item in value.items()}
    if not _has_sections(value):
        return None
    names = [str(item.get("name", item.get("zone", index))) for index, item in enumerate(value)]
    keys = names if len(set(names)) == len(names) else range(len(value))
    return {f"[{key}]": item for key, item in zip(keys, value, strict=True)}


def _changed_paths(before: object, after: object, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of keys, in mappings and in their lists, whose values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            old, new = before.get(key), after.get(key)
            yield from _changed_paths({} if old is None and new and isinstance(new, dict) else old, new, (*path, key))
    elif _has_sections(before) and _has_sections(after) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changed_paths(old, new, (*path, index))
    elif before != after:
        yield path


def _has_sections(value: object) -> TypeGuard[list[dict[str, object]]]:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
