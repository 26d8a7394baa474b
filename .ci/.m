#!/usr/bin/env python3
"""Measures the package: how many modules, lines and long functions each room has, and how much prose to how much code.

    .ci/measure

`prose` is the ratio of prose to code: the lines of docstrings, with the blank ones in them, and lines that are nothing
but a comment, over the other lines that are not blank. `> 60` and `> 40` count functions that are longer. `Any` counts
where that type is named.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "cfngen"
COLUMNS = ("modules", "lines", "prose", "> 60", "> 40", "> 400", "Any")


def prose_lines(source: str, tree: ast.AST) -> set[int]:
    """Return the numbers of the lines that belong to a docstring or are nothing but a comment."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if ast.get_docstring(node):
            docstring = node.body[0]
            lines.update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
            lines.add(token.start[0])
    return lines


def function_lengths(tree: ast.AST) -> dict[str, int]:
    """Return the lines of each function, nested ones and methods too, by its name and first line."""
    return {
        f"{node.name}:{node.lineno}": (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def measure(path: Path) -> Counter[str]:
    """Return the counts of one module."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    lines = source.splitlines()
    prose = prose_lines(source, tree)
    lengths = function_lengths(tree).values()
    return Counter(
        {
            "modules": 1,
            "lines": len(lines),
            "prose lines": len(prose),
            "code lines": sum(1 for number, line in enumerate(lines, 1) if line.strip() and number not in prose),
            "> 60": sum(length > 60 for length in lengths),
            "> 40": sum(length > 40 for length in lengths),
            "> 400": int(len(lines) > 400),
            "Any": sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree)),
        }
    )


def room_of(path: Path) -> str:
    """Return the room of a module; within `deploy`, which has rooms of its own, those."""
    folders = path.relative_to(PACKAGE).parts[:-1]
    return "/".join(folders[: 2 if folders[:1] == ("deploy",) else 1])


def main() -> None:
    """Print a row for each room and one for the whole package."""
    counts: dict[str, Counter[str]] = {}
    # `examples` is a link to the cluster files.
    for path in sorted(PACKAGE.rglob("*.py")):
        module = measure(path)
        for room in {"", room_of(path), path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else ""}:
            counts.setdefault(room, Counter()).update(module)
    sys.stdout.write(f"{'':24}" + "".join(f"{column:>9}" for column in COLUMNS) + "\n")
    for room in sorted(counts):
        count = counts[room]
        ratio = f"{count['prose lines'] / max(count['code lines'], 1):.3f}"
        cells = [ratio if column == "prose" else str(count[column]) for column in COLUMNS]
        sys.stdout.write(f"{room or 'cfngen':24}" + "".join(f"{cell:>9}" for cell in cells) + "\n")


if __name__ == "__main__":
    main()
