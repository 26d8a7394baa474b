"""What all forms of logical ids have in common: words in PascalCase, which a regular expression takes apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar, Self


class IdForm:
    """A form of logical ids, with a field for each part; `str()` makes the id, of `_TEXT` unless a form has its own.

    The groups of `_PATTERN` are named after the fields. `_PARSERS` has what makes a field's value of the text of its
    group, which is empty if the group is not in the id; of the other fields the text is the value.
    """

    _TEXT: ClassVar[str]
    _PATTERN: ClassVar[re.Pattern[str]]
    _PARSERS: ClassVar[Mapping[str, Callable[[str], object]]] = {}

    def __str__(self) -> str:
        return self._TEXT.format_map(vars(self))

    @classmethod
    def parse(cls, logical_id: str) -> Self | None:
        """Return the parts of an id of this form, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        if match is None:
            return None
        return cls(**{name: cls._PARSERS.get(name, str)(text) for name, text in match.groupdict("").items()})


def pascal(text: str) -> str:
    """Return `text` as one PascalCase word, e.g. `gpu-a` as `GpuA`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", text) if part)
