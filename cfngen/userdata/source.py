"""The boot program's sources, as written for people and as packed for an instance."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources


@cache
def source(module: str) -> str:
    """Return the text of a module of `cfngen.boot`."""
    return resources.files("cfngen.boot").joinpath(f"{module}.py").read_text(encoding="utf-8")


def required(modules: Iterable[str]) -> tuple[str, ...]:
    """Return modules of `cfngen.boot` and those that they import, by name."""
    found: set[str] = set()
    waiting = set(modules)
    while waiting:
        module = waiting.pop()
        found.add(module)
        waiting |= _imported(module) - found
    return tuple(sorted(found))


@cache
def _imported(module: str) -> frozenset[str]:
    """Return the names of the modules that a module imports from its own package."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source(module))):
        if isinstance(node, ast.ImportFrom) and node.level:
            names |= {node.module} if node.module else {name.name for name in node.names}
    return frozenset(names)


@cache
def packed(module: str) -> str:
    """Return a module of `cfngen.boot` as it is packed."""
    return strip(source(module))


def strip(text: str) -> str:
    """Return the same Python program in fewer characters: no comments, docstrings, annotations or needless white space.

    Names, strings and statements stay as they are. The text follows from the source's tokens, which all Python versions
    agree on, so the result is the same everywhere (`ast.unparse`'s is not).
    """
    dropped = _dropped(ast.parse(text))
    output, level, before, end = [], 0, "\n", (0, 0)
    tokens = _tokens(text)
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == tokenize.INDENT:
            level += 1
        elif token.type == tokenize.DEDENT:
            level -= 1
        if token.type in _INVISIBLE or token.start < end:
            continue
        if token.string in (":", "->") and following.start in dropped:
            end = dropped[following.start][0]
            continue
        string = token.string
        if token.start in dropped:
            end, string = dropped[token.start]
        if not string or before == string == "\n":
            continue
        if before == "\n":
            output.append(" " * level)
        elif _word(before[-1]) and (_word(string[0]) or string[0] in "\"'"):
            output.append(" ")
        output.append(string)
        before = string
    return "".join(output)


# White space is written anew; comments go.
_INVISIBLE = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
Position = tuple[int, int]


def _word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _dropped(tree: ast.Module) -> dict[Position, tuple[Position, str]]:
    """Return where parts begin that an instance does not need, each with its end and what stands for it."""
    found: dict[Position, tuple[Position, str]] = {}
    for node in (tree, *_statements(tree.body)):
        annotations: list[ast.expr | None] = []
        if isinstance(node, ast.AnnAssign):
            annotations = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            given = node.args
            arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            annotations = [node.returns, *(argument.annotation for argument in arguments if argument)]
        elif isinstance(node, ast.ImportFrom) and node.module == "__future__":
            found[node.lineno, node.col_offset] = (_end(node), "")
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            alone = len(node.body) == 1 and not isinstance(node, ast.Module)
            docstring = node.body[0]
            found[docstring.lineno, docstring.col_offset] = (_end(docstring), "pass" if alone else "")
        found.update(
            {
                (annotation.lineno, annotation.col_offset): (_end(annotation), "")
                for annotation in annotations
                if annotation
            }
        )
    return found


def _statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the statements of a body and, below each, those it holds."""
    for node in body:
        yield node
        for field in ("body", "handlers", "orelse", "finalbody"):
            yield from _statements(getattr(node, field, ()))


def _end(node: ast.stmt | ast.expr) -> Position:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of Python source, an f-string being one token as it was before Python 3.12."""
    lines = text.splitlines()
    tokens: list[tokenize.TokenInfo] = []
    opened: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":
            opened.append(token)
        elif kind == "FSTRING_END":
            first = opened.pop()
            if not opened:
                string = lines[first.start[0] - 1][first.start[1] : token.end[1]]
                tokens.append(tokenize.TokenInfo(tokenize.STRING, string, first.start, token.end, token.line))
        elif not opened:
            tokens.append(token)
    return tokens
