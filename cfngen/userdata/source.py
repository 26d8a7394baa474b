"""The boot program's sources, as written for people and as packed for an instance."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from importlib.abc import Traversable

# The oldest Python of the supported distributions: Amazon Linux 2023's.
OLDEST_INSTANCE_PYTHON = (3, 9)
PROGRAM_FOLDER = "boot/"


class BrokenProgramError(CfngenError):
    """A module of the boot program would not run on an instance.

    Attributes:
        module: the module of `cfngen.boot`, e.g. `host.system`.
    """

    code = "broken-program"

    def __init__(self, module: str, reason: str) -> None:
        oldest = ".".join(map(str, OLDEST_INSTANCE_PYTHON))
        super().__init__(
            f"the boot program's module {module} is not valid for Python {oldest}, which instances may have: {reason}",
            hint="instances would never boot with it, so nothing was written; install cfngen again, or report this.",
        )
        self.module = module


@cache
def source_text(module: str) -> str:
    """Return the text of a module of `cfngen.boot`, e.g. `runner` or `host.system`."""
    return _file(module).read_text(encoding="utf-8")


@cache
def summary(function: str) -> str:
    """Return the first sentence of the docstring of a function of `cfngen.boot`, e.g. `host.system.settings`."""
    module, _, name = function.rpartition(".")
    functions = {node.name: node for node in _syntax_tree(module).body if isinstance(node, ast.FunctionDef)}
    return (ast.get_docstring(functions[name]) or "").partition("\n\n")[0]


def program_path(module: str) -> str:
    """Return the path of a module on an instance, below /opt/cfngen."""
    return f"{PROGRAM_FOLDER}{module.replace('.', '/')}.py"


def with_imported_modules(modules: Iterable[str]) -> tuple[str, ...]:
    """Return the given modules of `cfngen.boot` and all modules of it that they import, directly or not; sorted."""
    names: set[str] = set()
    unvisited = set(modules)
    while unvisited:
        module = unvisited.pop()
        names.add(module)
        unvisited |= imported_modules(module) - names
    return tuple(sorted(names))


@cache
def imported_modules(module: str) -> frozenset[str]:
    """Return the names of the modules of `cfngen.boot` that a module imports when it runs."""
    names: set[str] = set()
    for node in _statements(_syntax_tree(module).body):
        if isinstance(node, ast.ImportFrom) and node.level:
            # Each dot of a relative import removes the last part of the importing module's name: for
            # `from ..host import kubelet` in `master.helm` no part is left, and the base is `host`.
            parent = module.split(".")[: -node.level]
            base = ".".join([*parent, node.module] if node.module else parent)
            if _file(base).is_file():
                # `from .machine import BootError` imports a name from a module.
                names.add(base)
            else:
                # `from .host import kubelet` imports a module from a package, `from . import lease` from the parent.
                names |= {f"{base}.{alias.name}".lstrip(".") for alias in node.names}
    return frozenset(names)


@cache
def _syntax_tree(module: str) -> ast.Module:
    """Return the syntax tree of a module of `cfngen.boot`; parsing takes longer than anything else here."""
    try:
        return ast.parse(source_text(module))
    except SyntaxError as error:
        raise BrokenProgramError(module, str(error)) from error


def _file(module: str) -> Traversable:
    """Return the file of a module of `cfngen.boot`; it does not exist if `module` is a package."""
    return resources.files("cfngen.boot").joinpath(f"{module.replace('.', '/')}.py")


@cache
def stripped_source(module: str) -> str:
    """Return the text of a module of `cfngen.boot` as instances get it: stripped, to save space in user data.

    Raises:
        BrokenProgramError: the result is not a program for the oldest Python of the instances, as far as `ast` tells.
    """
    try:
        stripped = strip_source(source_text(module), _syntax_tree(module))
        ast.parse(stripped, feature_version=OLDEST_INSTANCE_PYTHON)
    except SyntaxError as error:
        raise BrokenProgramError(module, str(error)) from error
    return stripped


def strip_source(text: str, tree: ast.Module) -> str:
    """Return the source of a Python program without what its execution does not need.

    Comments, docstrings, annotations and needless white space are removed, and so is what only a type checker reads:
    `if TYPE_CHECKING:` and declarations without a value. Names, strings and other statements are not changed. The
    result is made from the source's tokens and is therefore the same with all Python versions (that of `ast.unparse` is
    not).
    """
    lines = text.split("\n")
    removable = {
        _in_characters(start, lines): (_in_characters(end, lines), replacement)
        for start, (end, replacement) in _removable_parts(tree).items()
    }
    output: list[str] = []
    level = 0  # of indentation
    previous = "\n"  # the string that was copied last
    end: Position = (0, 0)  # where the part ends that is being removed
    tokens = _tokens(text)
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == tokenize.INDENT:
            level += 1
        elif token.type == tokenize.DEDENT:
            level -= 1
        if token.type in _INVISIBLE or token.start < end:
            continue
        if token.string in (":", "->") and following.start in removable:
            # The colon or arrow before an annotation is removed, too.
            end, _ = removable[following.start]
            continue
        string = token.string
        if token.start in removable:
            end, string = removable[token.start]
        if not string or previous == string == "\n":
            continue
        if previous == "\n":
            # At the beginning of a line: one space per level of indentation.
            output.append(" " * level)
        elif _is_word_character(previous[-1]) and (_is_word_character(string[0]) or string[0] in "\"'"):
            output.append(" ")
        output.append(string)
        previous = string
    return "".join(output)


# Tokens that `strip_source` does not copy: comments, and white space, which it writes itself.
_INVISIBLE = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
# A line, counted from 1, and a column, counted from 0: in characters by `tokenize`, in bytes of UTF-8 by `ast`.
Position = tuple[int, int]


def _in_characters(position: Position, lines: Sequence[str]) -> Position:
    line, column = position
    return line, len(lines[line - 1].encode()[:column].decode())


def _is_word_character(character: str) -> bool:
    """Return whether a character may be part of a name, a keyword or a number in Python."""
    return character.isalnum() or character == "_"


def _removable_parts(tree: ast.Module) -> dict[Position, tuple[Position, str]]:
    """Return the docstrings, annotations, and statements that only type checkers need, of a module.

    Returns:
        By the position where each of these parts starts: the position where it ends, and the text to put in its place
        ("", or `pass` for a docstring that is its function's only statement).
    """
    removable: dict[Position, tuple[Position, str]] = {}
    for node in (tree, *_statements(tree.body)):
        annotations: list[ast.expr | None] = []
        if isinstance(node, ast.AnnAssign) and node.value:
            annotations = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            parameters = node.args
            arguments = [
                *parameters.posonlyargs,
                *parameters.args,
                *parameters.kwonlyargs,
                parameters.vararg,
                parameters.kwarg,
            ]
            annotations = [node.returns, *(argument.annotation for argument in arguments if argument)]
        elif _is_for_type_checkers(node) and isinstance(node, ast.stmt):
            removable[node.lineno, node.col_offset] = (_end(node), "")
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            is_only_statement = len(node.body) == 1 and not isinstance(node, ast.Module)
            docstring = node.body[0]
            removable[docstring.lineno, docstring.col_offset] = (_end(docstring), "pass" if is_only_statement else "")
        for annotation in annotations:
            if annotation:
                removable[annotation.lineno, annotation.col_offset] = (_end(annotation), "")
    return removable


def _statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the statements of a body, and those nested in them, except in blocks that only type checkers need."""
    for node in body:
        yield node
        if not _is_for_type_checkers(node):
            for field in ("body", "handlers", "orelse", "finalbody"):
                yield from _statements(getattr(node, field, ()))


def _is_for_type_checkers(node: ast.AST) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or [name.name for name in node.names] == ["TYPE_CHECKING"]
    return False


def _end(node: ast.stmt | ast.expr) -> Position:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of Python source, with each f-string as one token in every version of Python.

    Since Python 3.12 `tokenize` splits f-strings into several tokens (PEP 701), since 3.14 template strings too.

    Raises:
        SyntaxError: an f-string holds what only Python 3.12 and newer understand.
    """
    lines = text.split("\n")
    tokens: list[tokenize.TokenInfo] = []
    parts: list[tokenize.TokenInfo] = []  # of the f-string that is open
    depth = 0  # of f-strings within each other
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        depth += kind in ("FSTRING_START", "TSTRING_START")
        if not depth:
            tokens.append(token)
            continue
        # What stands between the braces of the outermost f-string.
        if parts and not (depth == 1 and kind in _FSTRING_PARTS):
            _check_within_fstring(token, parts[-1], quote=parts[0].string.lstrip(_STRING_PREFIXES))
        parts.append(token)
        depth -= kind in ("FSTRING_END", "TSTRING_END")
        if not depth:
            (first_line, first_column), (last_line, last_column) = parts[0].start, token.end
            string_lines = [*lines[first_line - 1 : last_line - 1], lines[last_line - 1][:last_column]]
            string_lines[0] = string_lines[0][first_column:]
            string = "\n".join(string_lines)
            tokens.append(tokenize.TokenInfo(tokenize.STRING, string, parts[0].start, token.end, parts[0].line))
            parts = []
    return tokens


_FSTRING_PARTS = ("FSTRING_MIDDLE", "FSTRING_END", "TSTRING_MIDDLE", "TSTRING_END")
_STRING_PREFIXES = "fFrRtT"


def _check_within_fstring(token: tokenize.TokenInfo, previous: tokenize.TokenInfo, *, quote: str) -> None:
    """Refuse what Python could not read within an f-string before 3.12 (PEP 701); `ast` does not check it.

    Raises:
        SyntaxError: the token has a quote like those around the f-string, a backslash, a comment or a line break.
    """
    has_line_break = len(quote) == 1 and token.end[0] > previous.end[0]
    if quote in token.string or "\\" in token.string or token.type == tokenize.COMMENT or has_line_break:
        message = f"{token.string!r} within an f-string needs Python 3.12"
        raise SyntaxError(message, ("", *token.start, token.line))
