"""The keys of the cluster file, read from the model: their names, types and descriptions."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from functools import cache

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path


def fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a section by the key a user writes, in the model's order."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def section_of(annotation: object) -> type[BaseModel] | None:
    """Return the section class that a field's type is or contains (as list or optional); None for a plain value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType, tuple, typing.Annotated):
        for argument in typing.get_args(annotation):
            section = section_of(argument)
            if section:
                return section
    return None


def is_list(field: FieldInfo) -> bool:
    """Return whether a field is a list."""
    return typing.get_origin(field.annotation) is tuple


def section_at(path: Path) -> type[BaseModel] | None:
    """Return the section class at a path, or None if there is a plain value or no such key."""
    section: type[BaseModel] | None = Cluster
    for part in path:
        if isinstance(part, str):
            field = fields(section).get(part) if section else None
            section = section_of(field.annotation) if field else None
    return section


def sections_with(key: str) -> tuple[Path, ...]:
    """Return the paths, without list positions, at which a section has this key."""
    return tuple(path for path in _all_paths() if path[-1] == key)


@cache
def _all_paths() -> tuple[Path, ...]:
    return tuple(_paths_below(Cluster, ()))


def _paths_below(section: type[BaseModel], path: Path) -> Iterator[Path]:
    for key, field in fields(section).items():
        yield (*path, key)
        inner_section = section_of(field.annotation)
        if inner_section:
            yield from _paths_below(inner_section, (*path, key))
