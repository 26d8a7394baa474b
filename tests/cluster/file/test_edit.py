"""A key is set in the text of a cluster file, of which everything else stays as it is."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from cfngen.cluster.documents import examples
from cfngen.cluster.file.edit import NotEditableError, lines, set_key
from cfngen.cluster.file.yaml_file import parse_text as parse
from cfngen.cluster.paths import lookup

KUBE_UP = examples.text_of("kube-up")

ROOT = Path(__file__).parents[3]
KEY = ("api", "allowedCidrs")
VALUE = ["203.0.113.7/32"]
VALUES: dict[tuple[str | int, ...], object] = {
    KEY: VALUE,
    ("name",): "other",
    ("region",): "us-east-2",
    ("nodeGroups", 0, "maxSize"): 99,
    ("nodeGroups", 0, "rootVolume", "size"): 77,
    ("network", "vpc", "name"): "it's: a [name]",
    ("kubernetesVersion",): "1.30",
    ("tags",): {"team": "yes", "owner": None, "checked": True},
}
FILES = {
    "init": KUBE_UP,
    **{path.stem: path.read_text() for path in sorted(ROOT.glob("examples/**/*.yaml"))},
    **{path.parent.name: path.read_text() for path in ROOT.glob("tests/golden/cases/*private*/cluster.yaml")},
}


def difference(before: str, after: str) -> list[str]:
    """Return the lines that a change removes and adds."""
    changes = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in changes if not line.startswith(("---", "+++", "@@"))]


def test_a_commented_section_of_the_starter_file_is_uncommented() -> None:
    assert difference(KUBE_UP, set_key(KUBE_UP, KEY, VALUE)) == [
        "-#api:",
        "+api:",
        "-#  allowedCidrs: []",
        "+  allowedCidrs: [203.0.113.7/32]",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", "api:\n  allowedCidrs: [203.0.113.7/32]\n", id="empty"),
        pytest.param("# nothing", "# nothing\napi:\n  allowedCidrs: [203.0.113.7/32]\n", id="comments only"),
        pytest.param("---\n", "---\napi:\n  allowedCidrs: [203.0.113.7/32]\n", id="marker only"),
        pytest.param("name: a", "name: a\napi:\n  allowedCidrs: [203.0.113.7/32]\n", id="no newline at the end"),
        pytest.param(
            "name: a\r\n", "name: a\r\napi:\r\n  allowedCidrs: [203.0.113.7/32]\r\n", id="lines end as in Windows"
        ),
        pytest.param(
            "name: a # why\n\n# the end\n",
            "name: a # why\n\n# the end\napi:\n  allowedCidrs: [203.0.113.7/32]\n",
            id="comments at the end",
        ),
        pytest.param(
            "nodeGroups:\n-   name:   'x' # first\n    # more\n",
            "nodeGroups:\n-   name:   'x' # first\n    # more\napi:\n  allowedCidrs: [203.0.113.7/32]\n",
            id="odd indentation",
        ),
        pytest.param(
            "  name: a\n  tags: {}\n",
            "  name: a\n  tags: {}\n  api:\n    allowedCidrs: [203.0.113.7/32]\n",
            id="all indented",
        ),
        pytest.param("name: a\n...\n", "name: a\napi:\n  allowedCidrs: [203.0.113.7/32]\n...\n", id="end marker"),
        pytest.param("{name: a}\n", "{name: a, api: {allowedCidrs: [203.0.113.7/32]}}\n", id="flow style"),
        pytest.param(
            "api: {port: 8443} # why\n",
            "api: {port: 8443, allowedCidrs: [203.0.113.7/32]} # why\n",
            id="section in flow style",
        ),
        pytest.param(
            "api: { port: 8443, # why\n }\n",
            "api: { port: 8443, allowedCidrs: [203.0.113.7/32], # why\n }\n",
            id="flow style over several lines",
        ),
        pytest.param("api: {}\n", "api: {allowedCidrs: [203.0.113.7/32]}\n", id="section without keys"),
        pytest.param("api: null # why\n", "api: {allowedCidrs: [203.0.113.7/32]} # why\n", id="section that is null"),
        pytest.param(
            "api: # why\n#  port: 443\nname: a\n",
            "api: # why\n  allowedCidrs: [203.0.113.7/32]\n#  port: 443\nname: a\n",
            id="section with comments only",
        ),
        pytest.param("api:", "api:\n  allowedCidrs: [203.0.113.7/32]", id="section at the end"),
        pytest.param(
            "api:\n    # the port\n    port: 8443\n    # more\nname: a\n",
            "api:\n    allowedCidrs: [203.0.113.7/32]\n    # the port\n    port: 8443\n    # more\nname: a\n",
            id="section with keys",
        ),
        pytest.param(
            "api: &api\n  port: 443\n", "api: &api\n  allowedCidrs: [203.0.113.7/32]\n  port: 443\n", id="anchor"
        ),
        pytest.param(
            "'api':\n  allowedCidrs: [] # nobody\n",
            "'api':\n  allowedCidrs: [203.0.113.7/32] # nobody\n",
            id="empty list",
        ),
        pytest.param(
            "api:\n  allowedCidrs: # why\n  port: 443\n",
            "api:\n  allowedCidrs: [203.0.113.7/32] # why\n  port: 443\n",
            id="key without a value",
        ),
        pytest.param(
            "api:\n  allowedCidrs:\n    - 10.0.0.0/8\n    - 192.0.2.0/24\n  # the port\n  port: 443\n",
            "api:\n  allowedCidrs:\n    [203.0.113.7/32]\n  # the port\n  port: 443\n",
            id="list",
        ),
        pytest.param(
            "#api: # who\n#  port: 443\r\nname: a\r\n",
            "api: # who\r\n  allowedCidrs: [203.0.113.7/32]\n#  port: 443\r\nname: a\r\n",
            id="commented section without the key",
        ),
        pytest.param(
            "tags:\n  note: |\n    x\n#api:\nname: a\n",
            "tags:\n  note: |\n    x\napi:\n  allowedCidrs: [203.0.113.7/32]\nname: a\n",
            id="commented section below text",
        ),
    ],
)
def test_everything_else_stays(before: str, after: str) -> None:
    assert set_key(before, KEY, VALUE) == after


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("api:\n  allowedCidrs:\n    - 10.0.0.0/8 # the VPN\n", id="comment in the list"),
        pytest.param("ssh: &a\n  allowedCidrs: []\napi: *a\n", id="alias"),
        pytest.param("api:\n\tport: 443\n", id="tab"),
        pytest.param("api: [\n", id="not YAML"),
        pytest.param("api: 443\n", id="a number"),
        pytest.param("- api\n", id="a list"),
        pytest.param("name: a\n---\nname: b\n", id="two documents"),
    ],
)
def test_what_cannot_be_kept_is_not_changed(text: str) -> None:
    with pytest.raises(NotEditableError):
        set_key(text, KEY, VALUE)


@pytest.mark.parametrize("name", FILES)
def test_a_key_of_any_file_is_set(name: str) -> None:
    before = FILES[name]
    has_groups = "nodeGroups" in parse(before, name).data
    for path, value in VALUES.items():
        if path[0] == "nodeGroups" and not has_groups:
            with pytest.raises(NotEditableError):
                set_key(before, path, value)
            continue
        after = set_key(before, path, value)
        assert lookup(parse(after, name).data, path) == value
        assert set_key(after, path, value) == after
        # What goes is the old value, or the sign that made a comment of its line.
        removed = [line.removeprefix("-") for line in difference(before, after) if line.startswith("-")]
        sections = [line for line in removed if not line.startswith("#")]
        assert len(removed) <= 2
        assert [line for line in sections if line.partition("#")[2] not in after] == []


def test_lines_to_add_by_hand() -> None:
    assert lines(KEY, VALUE) == ["api:", "  allowedCidrs: [203.0.113.7/32]"]
