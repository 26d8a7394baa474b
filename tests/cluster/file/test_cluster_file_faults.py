"""Files that cannot be read as cluster files at all: each gets one clear sentence that names the file."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from cfngen.cli.exit_codes import error_exit_code
from cfngen.cluster.file import yaml_file
from cfngen.cluster.load import load
from cfngen.cluster.problems import ClusterFileError
from cfngen.errors import CfngenError


def refusal(path: Path) -> str:
    with pytest.raises(ClusterFileError) as error:
        load(path, environ={})
    return str(error.value)


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_missing_file() -> None:
    assert refusal(Path("prod.yaml")) == "prod.yaml: there is no such file; `cfngen init` writes one to start from"


def test_a_directory() -> None:
    Path("clusters").mkdir()
    assert refusal(Path("clusters")) == "clusters: this is a directory; name the cluster file in it"


def test_a_file_in_a_file() -> None:
    Path("cluster.yaml").write_text("name: blue\n")
    assert refusal(Path("cluster.yaml/x")) == "cluster.yaml/x: the file cannot be read: Not a directory"


def test_an_unreadable_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    Path("cluster.yaml").write_text("name: blue\n")
    if os.geteuid() == 0:  # nothing is unreadable to root
        monkeypatch.setattr(Path, "open", denied)
    else:
        Path("cluster.yaml").chmod(0)
    message = "cluster.yaml: the file cannot be read; give yourself permission to read it"
    assert refusal(Path("cluster.yaml")) == message


def test_a_file_in_latin_1() -> None:
    Path("cluster.yaml").write_bytes("name: blue\ntags:\n  ort: Zürich\n".encode("latin-1"))
    assert refusal(Path("cluster.yaml")) == "cluster.yaml:3: byte 0xfc is not UTF-8; save the file as UTF-8"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_file_in_utf_16(encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    Path("cluster.yaml").write_bytes(f"{mark}name: blue\n".encode(encoding))
    assert refusal(Path("cluster.yaml")) == "cluster.yaml: the file is UTF-16; save it as UTF-8"


def test_a_broken_link() -> None:
    Path("cluster.yaml").symlink_to("gone.yaml")
    message = "cluster.yaml: there is no such file; `cfngen init` writes one to start from"
    assert refusal(Path("cluster.yaml")) == message


def test_aliases_that_multiply_without_end_are_stopped() -> None:
    lines = ["tags:", "  - &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  - &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 9)]
    Path("cluster.yaml").write_text("\n".join(lines))
    message = "cluster.yaml:2: aliases (*) multiply the file's values to more than 20,000; write out what is needed"
    assert refusal(Path("cluster.yaml")) == message


def test_aliases_of_free_form_sections_are_counted_too() -> None:
    """Five levels of ten are 100,000 values, from eight short lines."""
    lines = ["kubernetes:", "  kubeletConfiguration:", "    a0: &a0 {x: 1}"]
    lines += [
        f"    a{level}: &a{level} {{{', '.join(f'k{n}: *a{level - 1}' for n in range(10))}}}" for level in range(1, 6)
    ]
    Path("cluster.yaml").write_text("\n".join(lines))
    assert "aliases (*) multiply the file's values to more than 20,000" in refusal(Path("cluster.yaml"))


NESTED = {
    "lists": "tags: " + "[" * 300 + "]" * 300,
    "mappings": "kubernetes: {kubeletConfiguration: " + "{a: " * 300 + "1" + "}" * 301,
    "lines": "".join(f"{' ' * depth}a{depth}:\n" for depth in range(300)),
    "endless": "tags: " + "[" * 100_000,
    "aliases": "kubernetes:\n  kubeletConfiguration:\n    a0: &a0 [x]\n"
    + "".join(f"    a{level}: &a{level} [*a{level - 1}]\n" for level in range(1, 300)),
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_nesting_that_is_too_deep(text: str) -> None:
    Path("cluster.yaml").write_text(text)
    message = "lists and mappings are nested more than 100 levels deep here, and no key is that deep"
    assert refusal(Path("cluster.yaml")).partition(": ")[2] == message


def test_a_value_of_a_flag_that_is_nested_too_deep() -> None:
    with pytest.raises(ClusterFileError, match="nested more than 100 levels deep"):
        load(None, environ={}, overrides=["tags=" + "[" * 300 + "]" * 300])


def test_nesting_that_is_deep_enough_for_anybody() -> None:
    Path("cluster.yaml").write_text("addons: {prometheus: {values: " + "{a: " * 50 + "1" + "}" * 52)
    assert load(Path("cluster.yaml"), environ={})


@pytest.mark.parametrize("section", ["", "tags:\n", "addons:\n"])
def test_fifty_thousand_keys_are_one_problem(section: str) -> None:
    """It takes milliseconds to say something useful about an unknown key: so many are not looked at."""
    indentation = "  " if section else ""
    Path("cluster.yaml").write_text(section + "".join(f"{indentation}key{index}: x\n" for index in range(50_000)))
    message = "the file goes on beyond 20,000 values, and no cluster needs as many; shorten it"
    assert refusal(Path("cluster.yaml")).partition(": ")[2] == message


def test_a_section_of_more_keys_than_are_read() -> None:
    Path("cluster.yaml").write_text("tags:\n" + "".join(f"  key{index}: x\n" for index in range(1001)))
    assert refusal(Path("cluster.yaml")) == "cluster.yaml:2: tags: holds 1,001 keys; at most 1,000 are read"


def test_a_file_of_more_bytes_than_are_read() -> None:
    Path("cluster.yaml").write_text("# " + "x" * 2**20)
    message = "cluster.yaml: the file has more than 1,048,576 bytes, and no cluster file has as many; shorten it"
    assert refusal(Path("cluster.yaml")) == message


def test_a_comment_that_hides_what_follows() -> None:
    Path("cluster.yaml").write_text("region: us-west-2\n# \u202e the name is\u2066\nname: blue\n", encoding="utf-8")
    assert refusal(Path("cluster.yaml")) == (
        "cluster.yaml:2: U+202E (right-to-left override) stands in this line, which makes it read otherwise than it "
        "is; remove it"
    )


def test_the_error_is_one_of_cfngens_with_every_problem_as_data() -> None:
    Path("cluster.yaml").write_text("name: Blue\napi: {port: x}\n")
    with pytest.raises(CfngenError) as error:
        load(Path("cluster.yaml"), environ={})
    assert isinstance(error.value, ClusterFileError)
    assert [problem.path for problem in error.value.problems] == [("name",), ("api", "port")]
    assert [problem.source and problem.source.line for problem in error.value.problems] == [1, 2]
    assert error_exit_code(error.value.code) == 1


@pytest.fixture
def pure_python_reader(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The reader as it is where PyYAML was built without libyaml."""
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    spec = importlib.util.spec_from_file_location("pure_python_yaml_file", yaml_file.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "text",
    [
        "a:\n\tb: 1\n",
        "a: [1, 2\nb: 3\n",
        "a: {b: 1\n",
        "a: 1\n b: 2\n",
        "a: 1\n---\nb: 2\n",
        "a: *b\n",
        'a: "b\n',
        "a: \0\n",
        "a: !Ref b\n",
        "a:\n  - b\n c: d\n",
        "",
        "# nothing\n",
        "- a\n",
    ],
)
def test_both_of_pyyamls_parsers_give_the_same_message(text: str, pure_python_reader: ModuleType) -> None:
    Path("cluster.yaml").write_text(text)
    with pytest.raises(ClusterFileError) as fast:
        yaml_file.read(Path("cluster.yaml"))
    with pytest.raises(ClusterFileError) as slow:
        pure_python_reader.read(Path("cluster.yaml"))
    assert str(fast.value) == str(slow.value)
    assert "\n" not in str(fast.value)


def test_both_of_pyyamls_parsers_read_the_same(pure_python_reader: ModuleType) -> None:
    text = "a: 1.30\nb: '5'\nc: 010\nd: yes\ne: ~\nf: [true, -3, 2024-01-01, 1e3]\n\"g\": !!str 7\nh: 0x1F\n"
    Path("cluster.yaml").write_text(text)
    expected = {
        "a": "1.30",
        "b": "5",
        "c": "010",
        "d": "yes",
        "e": None,
        "f": [True, -3, "2024-01-01", "1e3"],
        "g": "7",
        "h": "0x1F",
    }
    for module in (yaml_file, pure_python_reader):
        found = module.read(Path("cluster.yaml"))
        assert found.data == expected
        assert found.lines["f", 1] == 6
