"""What a stack keeps of a cluster file, of variables and of `--set`; and the keys in which two files differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cfngen.cluster.file.kept_file import MAX_BYTES, KeyChange, key_changes
from cfngen.cluster.load import Loaded, load

FILE = """\
name: staging  # not prod
# sizes are agreed with the team
nodeGroups:
- {name: a, minSize: 2, maxSize: 2}   # small
- name: b
  minSize: 1
  maxSize: 3
"""


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(content: bytes | str, *overrides: str, environ: Mapping[str, str] | None = None) -> Loaded:
    Path("cluster.yaml").write_bytes(content.encode() if isinstance(content, str) else content)
    return load(Path("cluster.yaml"), environ=environ or {}, overrides=overrides)


def kept(content: bytes | str, *overrides: str, environ: Mapping[str, str] | None = None) -> bytes:
    return loaded(content, *overrides, environ=environ).kept_file.content


@pytest.mark.parametrize(
    "content",
    [
        b"name: staging",
        b"\xef\xbb\xbfname: staging\r\n# gr\xc3\xb6\xc3\x9fer\r\n",
        b"--- # 100%\nname: staging\n\n\n",
        b"name: staging\nbastion:\napi: {}\n",
    ],
)
def test_the_file_is_kept_byte_for_byte(content: bytes) -> None:
    assert kept(content) == content


def test_it_is_so_if_a_variable_says_the_same() -> None:
    assert kept(FILE, "nodeGroups[1].maxSize=3") == FILE.encode()


def test_what_stands_in_the_file_that_it_extends_is_put_into_it() -> None:
    Path("common.yaml").write_text("region: eu-central-1\nssh: {keyName: laptop}\n")
    assert kept("extends: common.yaml  # of all\nname: staging\nssh:\n  sessionManager: true\n").decode() == (
        "# cfngen: the cluster file, as deployed\n"
        "# common.yaml: region, ssh.keyName\n"
        "extends: null  # of all\nname: staging\nssh:\n  keyName: laptop\n  sessionManager: true\n"
        "region: eu-central-1\n"
    )


def test_what_set_and_variables_change_is_put_into_the_file_and_a_comment_says_so() -> None:
    environ = {"KUBE_AWS_ZONE": "eu-central-1b"}
    assert kept(FILE, "nodeGroups[1].maxSize=6", "api.port=6443", environ=environ).decode() == (
        "# cfngen: the cluster file, as deployed\n"
        "# environment variable KUBE_AWS_ZONE: network.subnets[0].zone, region\n"
        "# --set: nodeGroups[1].maxSize, api.port\n"
        + FILE.replace("maxSize: 3", "maxSize: 6")
        + "network:\n  subnets: [{zone: eu-central-1b}]\nregion: eu-central-1\napi:\n  port: 6443\n"
    )


def test_a_key_that_is_reset_gets_its_default() -> None:
    text = kept(FILE, "nodeGroups[1].minSize=").decode()
    assert "  minSize: null\n" in text
    assert "--set: nodeGroups[1].minSize\n" in text


def test_the_name_stays_if_it_is_reset() -> None:
    assert "\nname: kubernetes  # not prod\n" in kept(FILE, "name=").decode()


def test_a_file_that_cannot_be_edited_is_written_anew() -> None:
    commented = "name: staging\napi:\n  allowedCidrs:\n  # office\n  - 192.0.2.0/24\n  # home\n  - 198.51.100.0/24\n"
    text = kept(commented, "api.allowedCidrs=[203.0.113.7/32]").decode()
    assert text.startswith("# cfngen: the cluster file, written anew without its comments, as deployed\n# --set: ")
    assert "# office" not in text
    assert [str(cidr) for cidr in loaded(text).cluster.api.allowed_cidrs] == ["203.0.113.7/32"]


def test_without_a_file_it_is_the_default_cluster_by_its_name() -> None:
    text = load(None, environ={}).kept_file.content.decode()
    assert text == "# cfngen: the built-in default cluster, as deployed\nname: kubernetes\n"


def test_a_file_that_is_too_large_is_not_kept_and_a_warning_says_so() -> None:
    large = "name: staging\n" + "# comment\n" * (MAX_BYTES // 10)
    too_large = loaded(large)
    assert too_large.kept_file.content == b""
    assert [text for text in too_large.warnings if "will not keep it" in text] == [
        "cluster.yaml: has more than 200,000 bytes, so the stack will not keep it; shorten it, or keep a copy"
    ]


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("a: 1 # one\n", "a:   1\n", []),
        ("a: 1\n", "a: 2\n", [("a", "1", "2")]),
        ("a: 1\n", "b: text\n", [("a", "1", None), ("b", None, "text")]),
        ("a: {b: 1, c: [x]}\n", "a: {b: 1, c: [x, y]}\n", [("a.c", '["x"]', '["x", "y"]')]),
        # Another order of named items is none of values.
        ("g: [{name: a, n: 1}, {name: b, n: 1}]\n", "g: [{name: b, n: 1}, {name: a, n: 1}]\n", []),
        ("g: [{name: a, n: 1}]\n", "g: [{name: c}, {name: a, n: 2}]\n", [
            ("g[a].n", "1", "2"), ("g[c]", None, '{"name": "c"}'),
        ]),
        ("g: [{zone: z1, n: 1}]\n", "g: [{zone: z1, n: 2}]\n", [("g[z1].n", "1", "2")]),
        ("g: [{n: 1}, {n: 2}]\n", "g: [{n: 1}]\n", [("g[1]", '{"n": 2}', None)]),
        ("a:\n", "a: null\n", []),
    ],
)  # fmt: skip
def test_the_keys_that_differ(before: str, after: str, changes: list[tuple[str, str | None, str | None]]) -> None:
    assert key_changes(before.encode(), after.encode()) == tuple(KeyChange(*change) for change in changes)
