"""Reads files that somebody names, with bounds: whatever is behind a name, no more is read than any such file holds.

A device has no end, and parsers recurse: beyond some depth that is a RecursionError, and in libyaml's binding a crash.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

# Far above any real file.
_MAX_BYTES = 16 << 20
_MAX_VALUES = 1_000_000
# Levels of nested lists and mappings. Kubernetes' own objects have some ten; pydantic serialises at most 255.
MAX_DEPTH = 100
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]', re.DOTALL)


class NestingError(ValueError):
    """A text is nested too deeply, or grows too much by its aliases.

    Attributes:
        line: where, counted from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def read_bytes(path: Path, max_bytes: int = _MAX_BYTES) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read, or has more bytes (EFBIG).
    """
    with path.open("rb") as file:
        content: bytes = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes", str(path))
    return content


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, without a byte order mark.

    Raises:
        OSError: it cannot be read, or is too large.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_bytes(path).decode("utf-8-sig")


def parse_json(text: str, **hooks: Any) -> Any:
    """Return the value of a text in JSON, with the hooks of `json.loads`.

    Raises:
        NestingError: it is nested too deeply.
        ValueError: it is not JSON.
    """
    _check_brackets(text)
    return json.loads(text, **hooks)


def check_nesting(text: str) -> None:
    """Check a text in YAML or JSON before it is given to a parser that recurses; what is neither is left to the parser.

    Raises:
        NestingError: it is nested too deeply, or its aliases multiply its values.
    """
    import yaml

    if text.lstrip().startswith(("{", "[")):
        _check_brackets(text)
    # The anchors of the open collections; with aliases written out, how many values and levels each has so far.
    anchors: list[str | None] = [None]
    extents = [(0, 0)]
    extents_by_anchor: dict[str | None, tuple[int, int]] = {}
    try:
        for event in yaml_events(text):
            if isinstance(event, yaml.CollectionStartEvent):
                anchors.append(event.anchor)
                extents.append((1, 1))
                continue
            if isinstance(event, yaml.CollectionEndEvent):
                size, height = extents_by_anchor[anchors.pop()] = extents.pop()
            elif isinstance(event, yaml.NodeEvent):
                is_alias = isinstance(event, yaml.AliasEvent)
                size, height = extents_by_anchor.get(event.anchor, (1, 0)) if is_alias else (1, 0)
            else:
                continue
            outer_size, outer_height = extents[-1]
            extents[-1] = (outer_size + size, max(outer_height, height + 1))
            if outer_size + size > _MAX_VALUES:
                raise NestingError(f"it has more than {_MAX_VALUES:,} values", _line_number(event))
            if len(extents) + height > MAX_DEPTH + 1:
                raise _too_deep(_line_number(event))
    except yaml.YAMLError:
        return


def yaml_events(text: str) -> Iterator[yaml.Event]:
    """Yield PyYAML's events for a text; they come without recursion, unlike its nodes.

    Raises:
        NestingError: the text is nested too deeply.
        yaml.YAMLError: the text is not YAML.
    """
    import yaml

    depth = 0
    try:
        # libyaml's fast parser, if PyYAML was built with it.
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise _too_deep(_line_number(event))
            yield event
    except yaml.MarkedYAMLError as error:
        # libyaml in PyYAML 6.0.4 looks ahead over up to 1,000 brackets, and refuses more before the first event.
        if error.problem_mark and "nesting depth" in str(error.problem):
            raise _too_deep(error.problem_mark.line + 1) from None
        raise


def _check_brackets(text: str) -> None:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        depth += match[0] in "[{"
        depth -= match[0] in "]}"
        if depth > MAX_DEPTH:
            raise _too_deep(text.count("\n", 0, match.start()) + 1)


def _too_deep(line: int) -> NestingError:
    return NestingError(f"lists and mappings are nested more than {MAX_DEPTH} levels deep here", line)


def _line_number(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
