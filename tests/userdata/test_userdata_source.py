"""The boot program as it is packed: the same program in fewer characters."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import cfngen
from cfngen.userdata import source
from cfngen.userdata.source import (
    BrokenProgramError,
    imported_modules,
    source_text,
    strip_source,
    stripped_source,
    with_imported_modules,
)

BOOT = Path(cfngen.__file__).parent / "boot"
# All but the types, which only mypy reads.
ALL = sorted(
    ".".join(path.relative_to(BOOT).with_suffix("").parts) for path in BOOT.rglob("*.py") if path.stem != "contract"
)


class Bare(ast.NodeTransformer):
    """Removes from a syntax tree what packing removes from the text."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._without_docstring(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return ast.Assign(targets=[node.target], value=self.visit(node.value), type_comment=None)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        needless = node.module == "__future__" or [each.name for each in node.names] == ["TYPE_CHECKING"]
        return None if needless else node

    def _without_docstring(self, node: ast.Module | ast.ClassDef | ast.FunctionDef) -> ast.AST:
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
        return self.generic_visit(node)


@pytest.mark.parametrize("module", ALL)
def test_packed_module_is_the_same_program(module: str) -> None:
    expected = Bare().visit(ast.parse(source_text(module)))
    assert ast.dump(ast.parse(stripped_source(module))) == ast.dump(expected)


@pytest.mark.parametrize("module", ALL)
def test_packed_module_compiles(module: str) -> None:
    compile(stripped_source(module), module, "exec")


@pytest.mark.parametrize("module", ALL)
def test_packed_module_has_no_comment_and_no_blank_line(module: str) -> None:
    lines = stripped_source(module).splitlines()
    assert [line for line in lines if not line.strip() or line.lstrip().startswith("#")] == []


def test_module_comes_with_all_that_it_imports_and_no_more() -> None:
    assert with_imported_modules(["runner"]) == ("machine", "reasons", "runner", "state")
    assert with_imported_modules(["program", "__main__"]) == (
        "__main__",
        "machine",
        "program",
        "reasons",
        "runner",
        "state",
    )


@pytest.mark.parametrize("module", ALL)
def test_everything_is_imported_from_modules_that_are_packed(module: str) -> None:
    packed_with_it = with_imported_modules([module])
    for node in ast.walk(ast.parse(stripped_source(module))):
        if isinstance(node, ast.ImportFrom) and node.level:
            package = [*module.split(".")[: -node.level], *([node.module] if node.module else [])]
            wanted = {".".join(package)} & set(ALL) or {".".join([*package, alias.name]) for alias in node.names}
            assert wanted <= set(packed_with_it)
            assert wanted <= set(ALL)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1  # why\n", "x=1\n"),
        ('x = "# no comment"\n', 'x="# no comment"\n'),
        ("x = f\"{a + b} # {c['d']!r:>{w}}\" # e\n", "x=f\"{a + b} # {c['d']!r:>{w}}\"\n"),
        ('"""Module."""\n\nx = 1\n', "x=1\n"),
        ('def f():\n    """Docstring."""\n', "def f():\n pass\n"),
        ('class A:\n    """Docstring.\n\n    More.\n    """\n\n    x = 1\n', "class A:\n x=1\n"),
        ("def f(a: int, *b: str, c: int = 1, **d: dict[str, int]) -> list[str]: ...\n", "def f(a,*b,c=1,**d):...\n"),
        ("x: dict[str, int] = {}\n", "x={}\n"),
        ("x = {\n    'a': 1,\n    # b\n    'b': 2,\n}\n", "x={'a':1,'b':2,}\n"),
        ("from __future__ import annotations\nimport os\n", "import os\n"),
        ("class A:\n    x: int\n    y: int = 1\n", "class A:\n y=1\n"),
        ("from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from .contract import Config\n\nx = 1\n", "x=1\n"),
        ("if a:\n    if b:\n        c()\nd()\n", "if a:\n if b:\n  c()\nd()\n"),
        ('x = """one\n    # two\n\n  three"""\n', 'x="""one\n    # two\n\n  three"""\n'),
        ("x = a if not b else lambda *c, d=1: c[1:] or -1\n", "x=a if not b else lambda*c,d=1:c[1:]or-1\n"),
        ("raise E('x') from e\n", "raise E('x')from e\n"),
        ("x = 1 if y else 0\n", "x=1 if y else 0\n"),
        ("from . import a\n", "from.import a\n"),
        ("x = r'a' u'c' in v\n", "x=r'a'u'c'in v\n"),
        ('x = f"""a\n  # {b}\n"""  # c\ny: int = 1\n', 'x=f"""a\n  # {b}\n"""\ny=1\n'),
        ("x = f'{{}} {a:>{w}}' rf\"\\d{f'{b}'}\"\n", "x=f'{{}} {a:>{w}}'rf\"\\d{f'{b}'}\"\n"),
        ("é = f'é{a}'; y: 'é' = 3\ndef f(ä: 'ü') -> 'é': 'dé'; return 1\n", "é=f'é{a}';y=3\ndef f(ä);return 1\n"),
    ],
)
def test_strip(text: str, expected: str) -> None:
    assert strip_source(text, ast.parse(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "match x:\n    case 1:\n        pass\n",
        "def f[T](x: T): ...\n",
        "x = f'{a['b']}'\n",
        "x = f'{\"\\n\".join(a)}'\n",
        "x = f'{\n    a\n}'\n",
        "x = f'''{\n    a  # b\n}'''\n",
        "x = f'{f\"it's\"}'\n",
        "x = = 1\n",
    ],
)
def test_a_module_that_the_oldest_python_of_instances_cannot_read_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "source_text", lambda module: text)
    monkeypatch.setattr(source, "_syntax_tree", inspect.unwrap(source._syntax_tree))
    with pytest.raises(BrokenProgramError, match=r"module host.new is not valid for Python 3\.9"):
        inspect.unwrap(stripped_source)("host.new")


@pytest.mark.parametrize("module", ALL)
def test_wings_import_nothing_of_each_other_and_what_both_roles_have_imports_no_wing(module: str) -> None:
    wing = module.partition(".")[0] if "." in module else ""
    wings = {name.partition(".")[0] if "." in name else "" for name in imported_modules(module)}
    assert wings <= {"": {""}, "host": {"", "host"}}.get(wing, {"", "host", wing})
