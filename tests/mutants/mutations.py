"""Small faults that can be put into a module: where, which, and the module with one of them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
FUNCTIONS = {"any": "all", "all": "any", "min": "max", "max": "min", "sorted": "list", "reversed": "list"}


@dataclass(frozen=True)
class Mutation:
    """A fault at a place of a module.

    Attributes:
        path: the module, from the top of the checkout.
        line: its line, from 1.
        function: qualified name of the innermost function that the place is in, or `<module>`.
        block: the innermost block of the function that the place is in, as tests note that they come there.
        number: which node of the module it is, in `ast.walk`'s order.
        kind: which of the node's faults it is.
        change: the fault for people: before and after, shortened.
    """

    path: str
    line: int
    function: str
    block: str
    number: int
    kind: str
    change: str


# What may be done to a node, by name; each returns the node that takes its place.
Faults = dict[str, Callable[[], ast.AST]]


def mutations(path: Path, root: Path) -> list[Mutation]:
    """Return every fault that can be put into a module, in the order of its nodes."""
    tree = ast.parse(path.read_text("utf-8"))
    blocks, left_out = _blocks(tree), _left_out(tree)
    found = []
    for number, node in enumerate(ast.walk(tree)):
        if node in left_out:
            continue
        for kind, fault in _faults(node).items():
            before, after = _short(node), _short(fault())
            line = getattr(node, "lineno", 0)
            name = str(path.relative_to(root))
            block = blocks.get(node, "<module>")
            function = block.partition("@")[0]
            found.append(Mutation(name, line, function, block, number, kind, f"{before} -> {after}"))
    return found


def mutated(source: str, mutation: Mutation) -> str:
    """Return a module's source with a fault; comments are lost, what it does otherwise is not."""
    tree = ast.parse(source)
    target = list(ast.walk(tree))[mutation.number]
    replacement = _faults(target)[mutation.kind]()

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return ast.copy_location(replacement, node) if node is target else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Replace().visit(tree))) + "\n"


def _faults(node: ast.AST) -> Faults:
    faults: Faults = {}
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        faults["comparison"] = lambda: _with(node, ops=[COMPARISONS[type(node.ops[0])]()])
    elif isinstance(node, ast.BoolOp):
        faults["and/or"] = lambda: _with(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
        for place in range(len(node.values)):
            rest = node.values[:place] + node.values[place + 1 :]
            faults[f"without operand {place}"] = lambda rest=rest: (  # type: ignore[misc]
                rest[0] if len(rest) == 1 else _with(node, values=rest)
            )
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        faults["without not"] = lambda: node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        faults["arithmetic"] = lambda: _with(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.Constant):
        faults |= _constants(node)
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)) and not isinstance(node.test, ast.Constant):
        faults["condition turned round"] = lambda: _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        faults["call left out"] = ast.Pass
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        faults["returns None"] = lambda: _with(node, value=ast.Constant(None))
    elif isinstance(node, (ast.Break, ast.Continue)):
        faults["break/continue"] = ast.Continue if isinstance(node, ast.Break) else ast.Break
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            name = FUNCTIONS[node.func.id]
            if name != "list" or not node.keywords:
                faults[f"{node.func.id} -> {name}"] = lambda: _with(node, func=ast.Name(name))
        for place, keyword in enumerate(node.keywords):
            if keyword.arg and not _is_zip(node):
                rest_of = [*node.keywords[:place], *node.keywords[place + 1 :]]
                faults[f"without {keyword.arg}"] = lambda rest=rest_of: _with(node, keywords=rest)  # type: ignore[misc]
    elif isinstance(node, ast.Dict):
        for place in range(len(node.keys)):
            keys, values = list(node.keys), list(node.values)
            del keys[place], values[place]
            faults[f"without item {place}"] = lambda k=keys, v=values: _with(node, keys=k, values=v)  # type: ignore[misc]
    elif isinstance(node, (ast.List, ast.Set, ast.Tuple)) and isinstance(
        getattr(node, "ctx", None), (ast.Load, type(None))
    ):
        for place in range(len(node.elts)):
            if isinstance(node, ast.Set) and len(node.elts) == 1:
                continue
            elements = [*node.elts[:place], *node.elts[place + 1 :]]
            faults[f"without item {place}"] = lambda e=elements: _with(node, elts=e)  # type: ignore[misc]
    return faults


def _constants(node: ast.Constant) -> Faults:
    value = node.value
    if isinstance(value, bool):
        return {"constant": lambda: ast.Constant(not value)}
    if isinstance(value, (int, float)):
        return {"constant": lambda: ast.Constant(value + 1)}
    if isinstance(value, str):
        # Words for people have spaces; which words those are is no question of right or wrong.
        if not value.strip() or " " in value.strip():
            return {}
        return {"constant": lambda: ast.Constant(value + "X")}
    return {}


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _short(node: ast.AST) -> str:
    if isinstance(node, (ast.If, ast.While)):
        text = f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    else:
        text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    text = " ".join(text.split())
    return text if len(text) <= 70 else text[:40] + " … " + text[-27:]


def block_names(node: ast.AST, function: str) -> Iterator[tuple[list[ast.stmt], str]]:
    """Yield the statements of a function that are run, or not, together, with a name: those of a branch or a loop."""
    if isinstance(node, (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.match_case)):
        for statements in (node.body, getattr(node, "orelse", [])):
            if statements:
                yield statements, f"{function}@{statements[0].lineno}"


def _blocks(tree: ast.Module) -> dict[ast.AST, str]:
    """Return the innermost block of each node in a function; what a `def` is decorated with runs outside of it."""
    found: dict[ast.AST, str] = {}

    def enter(node: ast.AST, names: tuple[str, ...], block: str) -> None:
        if block:
            found[node] = block
        of_statements = {
            id(statements): name for statements, name in block_names(node, block.partition("@")[0]) if block
        }
        for field, value in ast.iter_fields(node):
            inner_block = of_statements.get(id(value), block)
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST):
                    continue
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and field == "body":
                    inner = (*names, node.name)
                    enter(child, inner, ".".join(inner) if isinstance(node, ast.FunctionDef) else block)
                else:
                    enter(child, names, inner_block)

    enter(tree, (), "")
    return found


def _is_zip(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "zip"


def _left_out(tree: ast.Module) -> set[ast.AST]:
    """Return nodes that do nothing when the program runs, or only word a message."""
    out: set[ast.AST] = set()

    def leave(node: ast.AST | None) -> None:
        if node is not None:
            out.update(ast.walk(node))

    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
                leave(node)
            case ast.AnnAssign():
                leave(node.annotation)
            case ast.arg():
                leave(node.annotation)
            case ast.FunctionDef():
                leave(node.returns)
                for decorator in node.decorator_list:
                    leave(decorator)
            case ast.ClassDef():
                for part in (*node.decorator_list, *node.bases, *node.keywords):
                    leave(part)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                leave(node)
            case ast.Subscript(
                value=ast.Name(id="Callable" | "Literal" | "Mapping" | "dict" | "frozenset" | "list" | "tuple")
            ):
                leave(node.slice)  # an alias, or an empty collection that says what it is for
            case ast.keyword(arg="sid" | "sid_suffix"):
                leave(node)  # the name of a statement, for people: IAM decides nothing by it
            case ast.Call(func=ast.Name(id="cast" | "TypeVar")):
                leave(node)
            case ast.Call() if _is_zip(node):
                for keyword in node.keywords:
                    leave(keyword)  # `strict` says that lengths are the same: where they are not, the program is wrong
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                leave(node)
    return out


def modules(root: Path, parts: list[str]) -> Iterator[Path]:
    """Yield the modules of some folders, in order."""
    for part in parts:
        top = root / part
        yield from [top] if top.is_file() else sorted(top.rglob("*.py"))
