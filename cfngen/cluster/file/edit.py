"""Sets one key in the text of a cluster file; comments, layout and everything else stay as they are.

PyYAML's nodes say where keys and values stand, and the text between them is not written anew. (ruamel.yaml changes the
indentation of lists, the spaces of flow style and the columns of comments.)
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from cfngen.cluster.file import yaml_file
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import ClusterFileError
from cfngen.errors import CfngenError


class NotEditableError(CfngenError):
    """A key cannot be set in a cluster file without a change of something else."""

    code = "file-not-editable"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{dotted(path)} cannot be set in this file without a change of something else",
            hint="write it into the file with an editor.",
        )


def set_key(text: str, path: Path, value: object) -> str:
    """Return the text of a cluster file in which a key has a value.

    A key that stands there commented out, as `cfngen init` writes its defaults, is uncommented.

    Args:
        text: the whole file; it may be empty.
        path: path of the key. Its last part is a key; lists on the way have the item.
        value: plain data: text, whole numbers, booleans, None, and lists and mappings of these.

    Raises:
        NotEditableError: the file is not valid, the key is in a part that an alias repeats, the value that would be
            replaced has comments in it, …
    """
    try:
        root = yaml_file.root_node(text, "")
        has_content = root is not None and not _is_empty(root)
        expected_data = _with_value(yaml_file.parse_text(text, "").data if has_content else {}, path, value)
    except (ClusterFileError, LookupError, TypeError):
        raise NotEditableError(path) from None
    for edited_text in _edited_texts(text, root, path, value):
        if _data(edited_text) == expected_data:
            return edited_text
    raise NotEditableError(path)


def _data(text: str) -> dict[str, object] | None:
    try:
        return yaml_file.parse_text(text, "").data
    except ClusterFileError:
        return None


def lines(path: Path, value: object, indentation: str = "") -> list[str]:
    """Return lines of a cluster file that set a key, with the sections that the key is in."""
    *sections, key = (_flow(part) for part in path)
    texts = [*(f"{section}:" for section in sections), f"{key}: {_flow(value)}"]
    return [f"{indentation}{'  ' * depth}{line}" for depth, line in enumerate(texts)]


def _flow(value: object) -> str:
    return yaml.safe_dump([value], default_flow_style=True, width=sys.maxsize, allow_unicode=True).strip()[1:-1]


def _with_value(data: dict[str, object], path: Path, value: object) -> dict[str, object]:
    """Return a file's data with a key set.

    Raises:
        LookupError: a list on the way to the key does not have the item.
        TypeError: a value on the way is neither a mapping nor a list.
    """
    changed_data = copy.deepcopy(data)
    parent: Any = changed_data
    for part in path[:-1]:
        if isinstance(parent, dict) and parent.get(part) is None:
            parent[part] = {}
        parent = parent[part]
    parent[path[-1]] = value
    return changed_data


def _edited_texts(text: str, root: yaml.Node | None, path: Path, value: object) -> Iterator[str]:
    """Yield texts in which the key may be set, the best first; in an unusual file, some of them are wrong."""
    key_node: yaml.Node | None = None
    node = root
    missing_path = path
    while missing_path and (child := _child(node, missing_path[0])):
        key_node, node = child
        missing_path = missing_path[1:]
    if not missing_path:
        if node is not None and not _has_comments(text, node):
            space = " " if _is_empty(node) else ""
            yield text[: node.start_mark.index] + space + _flow(value) + text[_end(text, node) :]
            # A list may be indented no further than its key, and what takes its place may not.
            if key_node is not None:
                colon = text.index(":", key_node.end_mark.index)
                yield f"{text[: colon + 1]} {_flow(value)}{text[_end(text, node) :]}"
        return
    nested_value = value
    for part in reversed(missing_path[1:]):
        nested_value = {part: nested_value}
    entry = f"{_flow(missing_path[0])}: {_flow(nested_value)}"
    if missing_path == path:
        yield from _with_commented_key(text, path, value)
    if node is None or (key_node is None and _is_empty(node)):
        yield _with_lines_at_end(text, lines(path, value))
    elif not isinstance(node, yaml.MappingNode):
        # A section without a key is null.
        if key_node is not None and _is_empty(node):
            indentation = " " * (key_node.start_mark.column + 2)
            yield _with_lines_below(text, key_node.end_mark.index, lines(missing_path, value, indentation))
        yield f"{text[: node.start_mark.index]}{' ' if _is_empty(node) else ''}{{{entry}}}{text[_end(text, node) :]}"
    elif node.flow_style:
        place = _end(text, node.value[-1][1]) if node.value else node.start_mark.index + 1
        yield text[:place] + (", " if node.value else "") + entry + text[place:]
    else:
        yield from _with_key_in_block(text, node, key_node, missing_path, value)


def _with_key_in_block(
    text: str, node: yaml.MappingNode, key_node: yaml.Node | None, path: Path, value: object
) -> Iterator[str]:
    """Yield texts with a new key in a mapping in block style; `key_node` is the key of the mapping, if it has one."""
    first_key, first_value = node.value[0]
    key_lines = lines(path, value, " " * first_key.start_mark.column)
    if key_node is None:
        yield _with_lines_at_end(text, key_lines)
    elif isinstance(key_node, yaml.ScalarNode):
        # Not below the last key, whose comments may go on there.
        yield _with_lines_below(text, key_node.end_mark.index, key_lines)
    yield _with_lines_below(text, _end(text, first_value), key_lines)


def _with_commented_key(text: str, path: Path, value: object) -> Iterator[str]:
    """Yield texts in which the lines of the section and of the key are uncommented; see examples/kube-up.yaml."""
    section, *keys = path
    old_value = r"[^#\r\n]*?(?=[ ]*(?:#.*)?\r?$)"
    if not keys:
        yield re.sub(rf"(?m)^#{re.escape(str(section))}:{old_value}", lambda _: lines(path, value)[0], text, count=1)
        return
    header = re.search(rf"(?m)^#{re.escape(str(section))}:(?=[ ]*(?:#.*)?\r?$)", text)
    if not header:
        return
    start, end = header.span()
    uncommented_text = text[:start] + text[start + 1 :]
    section_line, *key_lines = lines(path, value)
    if key := re.compile(rf"(?m)(?:\n#.*)*?\n#  {re.escape(str(keys[0]))}:{old_value}").match(
        text, text.find("\n", end)
    ):
        first = text.rfind("\n", 0, key.end()) + 1
        if len(keys) == 1:
            yield text[:start] + section_line + text[end:first] + key_lines[0] + text[key.end() :]
    yield _with_lines_below(uncommented_text, end - 1, key_lines)


def _child(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the nodes of a key and its value in a mapping, or of a list's item as both; None if there is none."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
        return node.value[part], node.value[part]
    return None


def _is_empty(node: yaml.Node) -> bool:
    """Return whether a node is the value of a key behind which nothing is written."""
    return node.start_mark.index == node.end_mark.index


def _has_comments(text: str, node: yaml.Node) -> bool:
    """Return whether comments stand between the items of a list or mapping, or behind them in block style."""
    if not isinstance(node, yaml.CollectionNode):
        return False
    end = _end(text, node)
    return "#" in text[node.start_mark.index : end if node.flow_style else _end_of_line(text, end)]


def _end(text: str, node: yaml.Node) -> int:
    """Return the place where a node ends, without the comments and empty lines behind it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last_item = node.value[-1]
        return _end(text, last_item[1] if isinstance(node, yaml.MappingNode) else last_item)
    end = int(node.end_mark.index)
    is_block_scalar = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    return len(text[:end].rstrip()) if is_block_scalar else end


def _end_of_line(text: str, place: int) -> int:
    end = text.find("\n", place)
    end = len(text) if end < 0 else end
    return end - 1 if text[place:end].endswith("\r") else end


def _with_lines_below(text: str, place: int, new_lines: Sequence[str]) -> str:
    split = _end_of_line(text, place)
    newline = _newline(text)
    return text[:split] + "".join(newline + line for line in new_lines) + text[split:]


def _with_lines_at_end(text: str, new_lines: Sequence[str]) -> str:
    newline = _newline(text)
    return text + (newline if text and not text.endswith("\n") else "") + newline.join((*new_lines, ""))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
