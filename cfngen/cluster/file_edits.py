"""Sets a key in the text of a cluster file, and keeps its comments and everything else."""

from __future__ import annotations

from typing import Any

import yaml


def set_key(text: str, path: tuple[str | int, ...], value: object) -> str:
    """Return the text of a cluster file with another value at a path; what is missing on the way is added.

    Args:
        text: a valid cluster file, whose sections on the way to the key are in block style.
        path: keys, and positions in lists that have such an item.
        value: plain data; a list or mapping is written on one line.
    """
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    flow = (
        yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1_000_000).removesuffix("...\n").strip()
    )
    position, depth = len(text), 0
    for part in path:
        if isinstance(node, yaml.SequenceNode):
            node = node.value[int(part)]
        elif isinstance(node, yaml.MappingNode):
            # At the top, comments may follow that belong to the last section.
            depth = node.start_mark.column
            position = text.find("\n", _end(node)) + 1 if depth else len(text)
            pair = next((pair for pair in node.value if pair[0].value == part), None)
            if pair is None:
                break
            position, node = text.index(":", pair[0].end_mark.index) + 1, pair[1]
        path = path[1:]
    if path:
        lines = [f"{' ' * (depth + 2 * level)}{key}:" for level, key in enumerate(path)]
        return text[:position] + "\n".join(lines) + f" {flow}\n" + text[position:]
    is_block = not isinstance(node, yaml.ScalarNode) and not node.flow_style
    end = text.find("\n", _end(node)) if is_block else max(position, _end(node))
    return f"{text[:position]} {flow}{text[end:]}"


def _end(node: Any) -> int:
    """Return the position behind the last character of a node; a block ends for YAML before the next key."""
    while not isinstance(node, yaml.ScalarNode) and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.index)
