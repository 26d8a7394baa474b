"""Strategies for the values of a cluster file, read off the types of the model.

A type that no strategy is known for is an error, so that whoever adds one to the model adds a strategy here.
"""

from __future__ import annotations

import re
import string
import types
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic.fields import FieldInfo

from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.base import Model
from cfngen.cluster.sections.field_validation import TextPattern

# What a person may write and see: `cfngen.cluster.checks.naming` refuses everything else.
VISIBLE = st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp"))
TEXTS = st.text(VISIBLE | st.sampled_from("\n\t"), max_size=40)
# Keys of two kinds with numbers that are keys indeed: EC2 and moto read them.
PUBLIC_KEYS = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKLrKYbCL5pvJKB6YvNfYSWXh1nNEGJV0jQhu8FAjzEV operator@example.com",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGkEQ0x4xx1mDMb9J0JZ3aBGCmzM1m1yB5T0UjU5nCLc",
)
_URLS = st.builds(
    "https://{}.example.com/{}".format,
    st.sampled_from(("mirror", "charts")),
    st.text(string.ascii_lowercase + string.digits + "-._/", max_size=20),
)
_SCALARS = st.booleans() | st.integers(-(2**31), 2**31) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
_NAMES = st.text(string.ascii_letters + string.digits + "-_.", min_size=1, max_size=12)
OBJECTS = st.dictionaries(
    _NAMES,
    st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=2),
        max_leaves=3,
    ),
    max_size=3,
)
"""What a key that is handed on may hold: YAML of any shape, without nulls, which leave a key out."""


def _pattern(kind: Any) -> TextPattern:
    """The pattern of a type of `cfngen.cluster.sections.field_types`."""
    return next(annotation for annotation in kind.__metadata__ if isinstance(annotation, TextPattern))


# Where a pattern says less than what AWS, or an account, takes.
_BY_PATTERN: Mapping[TextPattern, SearchStrategy[str]] = {
    _pattern(field_types.PublicKey): st.sampled_from(PUBLIC_KEYS),
    _pattern(field_types.HttpUrl): _URLS,
    _pattern(field_types.Command): st.text(VISIBLE, min_size=1, max_size=30).filter(lambda text: bool(text.strip())),
    _pattern(field_types.BucketName): st.from_regex(r"backups-[a-z0-9]{1,50}", fullmatch=True),
    _pattern(field_types.Price): st.decimals("0.000001", "9999", places=6).map(str),
    _pattern(field_types.KeyName): st.from_regex(r"[\x21-\x7e]([\x20-\x7e]{0,40}[\x21-\x7e])?", fullmatch=True),
}


class Leaf(NamedTuple):
    """A key of the cluster file that holds a value and no section.

    Attributes:
        path: its place, e.g. `nodeGroups[].labels`.
        annotation: its type.
        metadata: what its type is annotated with.
    """

    path: str
    annotation: Any
    metadata: tuple[Any, ...]


def leaves(model: type[Model], prefix: str = "") -> Iterator[Leaf]:
    """Every key of the model, those of lists' items among them."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        section, is_list = _section(field)
        if section:
            yield from leaves(section, f"{path}{'[]' if is_list else ''}.")
        else:
            yield Leaf(path, field.annotation, tuple(field.metadata))


def section_of(model: type[Model], path: str) -> tuple[Any, tuple[Any, ...]]:
    """The type of a key that may be a list of sections, e.g. `addons.charts`."""
    here: Any = model
    *parents, last = path.replace("[]", "").split(".")
    for part in parents:
        here = _section(_field(here, part))[0]
    field = _field(here, last)
    return field.annotation, tuple(field.metadata)


def _field(model: type[Model], key: str) -> FieldInfo:
    return next(field for name, field in model.model_fields.items() if (field.alias or name) == key)


def _section(field: FieldInfo) -> tuple[type[Model] | None, bool]:
    """The section that a field holds, and whether it is a list of them."""
    for each in (field.annotation, *get_args(field.annotation)):
        if isinstance(each, type) and issubclass(each, Model):
            return each, get_origin(field.annotation) is tuple
    return None, False


def of(annotation: Any, metadata: tuple[Any, ...] = ()) -> SearchStrategy[Any]:
    """A strategy for a type of the model.

    Raises:
        NotImplementedError: no strategy is known for it
    """
    if text := next((annotation for annotation in metadata if isinstance(annotation, TextPattern)), None):
        return _text(text)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = tuple(
            item for each in arguments[1:] for item in (each.metadata if isinstance(each, FieldInfo) else [each])
        )
        return of(arguments[0], inner)
    if origin in (Union, types.UnionType):  # what may be null may be left out, and is null then
        [kind] = [each for each in arguments if each is not type(None)]
        return of(kind, metadata)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        least = next((each.min_length for each in metadata if isinstance(each, MinLen)), 0)
        return st.lists(of(arguments[0]), min_size=least, max_size=3, unique_by=str)
    if annotation == dict[str, Any]:
        return OBJECTS
    if origin is dict:
        return st.dictionaries(of(arguments[0]), of(arguments[1]), max_size=3)
    return _plain(annotation, metadata)


def _plain(annotation: Any, metadata: tuple[Any, ...]) -> SearchStrategy[Any]:
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        least = next(each.ge for each in metadata if isinstance(each, Ge))
        most = next(each.le for each in metadata if isinstance(each, Le))
        return st.sampled_from((least, most)) | st.integers(int(str(least)), int(str(most)))
    if annotation is str:
        shortest = next((each.min_length for each in metadata if isinstance(each, MinLen)), 0)
        longest = next((each.max_length for each in metadata if isinstance(each, MaxLen)), 40)
        return st.text(VISIBLE, min_size=shortest, max_size=longest)
    if annotation is IPv4Network:
        return st.builds(_network, st.ip_addresses(v=4), st.integers(8, 32))
    if annotation is IPv4Address:
        return st.ip_addresses(v=4).map(str)
    if isinstance(annotation, type) and issubclass(annotation, Model):
        fields = {field.alias or name: field for name, field in annotation.model_fields.items()}
        drawn = {key: of(field.annotation, tuple(field.metadata)) for key, field in fields.items()}
        needed = {key: drawn[key] for key, field in fields.items() if field.is_required()}
        return st.fixed_dictionaries(needed, optional={key: drawn[key] for key in drawn if key not in needed})
    raise NotImplementedError(f"no strategy for values of the type {annotation} ({metadata})")


def _text(text: TextPattern) -> SearchStrategy[str]:
    if text in _BY_PATTERN:
        return _BY_PATTERN[text]
    drawn = st.from_regex(re.compile(text.pattern), fullmatch=True, alphabet=VISIBLE)
    limit = text.limit
    return drawn.filter(lambda value: not limit.fault(value)) if limit else drawn


def _network(address: IPv4Address, prefix: int) -> str:
    return str(IPv4Network((int(address), prefix), strict=False))
