"""Clusters by chance: a few of them, the same in every run; `make soak` lives as many as there is time for."""

from __future__ import annotations

import contextlib
import functools
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chance import tried
from clusters import templates_of
from drawn_files import CAPACITY, DESIGNED, OPTIONAL, Design, File, designs, files, put, strategies_of
from drawn_lives import lives
from drawn_values import leaves
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from jsonschema import Draft7Validator
from living import live

from cfngen import lint
from cfngen.cluster.documents.schema import json_schema
from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.templates import iam, secrets, security_groups, vpc

# Nobody waits for a smaller example here: `make soak` looks for one.
SAME = settings(database=None, phases=(Phase.generate,))
LIVED = (17, 7)
LINTED = (2,)
# Keys of the stacks that all instances share.
SHARED = tuple(key for key in OPTIONAL if not key.startswith(("addons.", "controlPlane.", "kubernetes", "nodeGroups")))
ALONE = [
    key if key in ("iam", "serviceAccountIssuer") else pytest.param(key, marks=pytest.mark.drill) for key in SHARED
]
"""Numbers of what is tried: more would take minutes."""
KEYS = frozenset(leaf.path for leaf in leaves(Cluster))
EDITOR = Draft7Validator(json_schema())
_NEW = Design(
    False, "us-west-2", "a", "172.20.0.0/16", ("172.20.0.0/24",), False, "no", "vpc-routes", "10.244.0.0/16",
    "10.0.0.0/16", 1, ("amd64",), ("nodes",),
)  # fmt: skip
# Together they allow every key.
DESIGNS = (
    _NEW,
    replace(_NEW, plugin="cilium"),
    *(replace(_NEW, existing=each, written=True) for each in ("vpc", "subnets")),
    replace(_NEW, topology="private", nat="none"),
    replace(_NEW, topology="private", existing="vpc", written=True),
    replace(_NEW, topology="private", nat="none", existing="vpc", written=True, count=3),
    replace(_NEW, topology="private", plugin="cilium", existing="vpc", written=True, shared=True),
    replace(_NEW, plugin="cilium", existing="vpc", written=True, shared=True),
)


def keys_of(value: Any, path: str = "") -> set[str]:
    """The keys of the model that a part of a file has."""
    if path in KEYS:
        return {path}
    if isinstance(value, dict):
        return set().union(*(keys_of(item, f"{path}.{key}".lstrip(".")) for key, item in value.items()))
    if isinstance(value, list):
        return set().union(*(keys_of(item, f"{path}[]") for item in value))
    return {path}


def below(key: str) -> frozenset[str]:
    """The keys of the model that are drawn together with one of `OPTIONAL` or `DESIGNED`."""
    return frozenset(each for each in KEYS if each == key or each.startswith((f"{key}.", f"{key}[]")))


@functools.cache
def strategies() -> dict[str, st.SearchStrategy[Any]]:
    """A strategy for each key, of a design that allows it."""
    return {key: strategy for each in DESIGNS for key, strategy in strategies_of(each).items()}


def test_a_key_without_a_strategy_is_noticed() -> None:
    assert KEYS - frozenset().union(*map(below, (*OPTIONAL, *DESIGNED, *CAPACITY))) == set()
    assert set(OPTIONAL) - set(strategies()) == set()


@pytest.mark.parametrize("key", sorted(OPTIONAL))
def test_every_key_is_drawn(key: str) -> None:
    missing = set(below(key))

    def complete(value: Any) -> bool:
        file: File = {}
        put(file, key, value)
        content = {"nodeGroups": [file["nodeGroups[]"]]} if "nodeGroups[]" in file else file
        assert [error.message for error in EDITOR.iter_errors(content)] == []
        missing.difference_update(keys_of(file))
        return not missing

    with contextlib.suppress(NoSuchExample):
        find(strategies()[key], complete, settings=settings(SAME, max_examples=1000))
    assert missing == set()


def test_every_key_of_a_design_is_drawn() -> None:
    drawn: set[str] = set()

    @settings(SAME, max_examples=10)
    @given(st.tuples(*(files(design, most=0) for design in DESIGNS)))
    def draw(found: tuple[File, ...]) -> None:
        drawn.update(*map(keys_of, found))

    draw()
    assert frozenset().union(*map(below, DESIGNED)) - drawn == set()


def unused_parameters(body: Mapping[str, Any]) -> set[str]:
    """The parameters of a template to which nothing in it refers: lint refuses them, and nobody gets the cluster."""
    text = json.dumps({key: value for key, value in body.items() if key not in ("Parameters", "Metadata")})
    names = body.get("Parameters", {})
    return {name for name in names if f'{{"Ref": "{name}"}}' not in text and f"${{{name}}}" not in text}


@pytest.mark.parametrize("key", ALONE)
def test_a_key_alone_leaves_no_parameter_unused(key: str) -> None:
    """Some code adds a parameter before something needs it, which beside other keys something does."""

    @settings(SAME, max_examples=8)
    @given(st.sampled_from(DESIGNS).flatmap(lambda design: files(design, including=(key,), most=0)))
    def generated(file: File) -> None:
        cluster = parse(file)
        # The stacks without UserData, which takes most of the time.
        stacks = (vpc.build(cluster), security_groups.build(cluster), secrets.build(cluster), iam.build(cluster))
        assert [unused for stack in stacks if stack and (unused := unused_parameters(stack.document().body))] == []

    generated()


@pytest.mark.parametrize("number", range(6))
def test_drawn_files_are_valid_and_give_templates_that_lint_accepts(number: int, tmp_path: Path) -> None:
    def generated(file: File) -> None:
        cluster = parse(file)
        templates = templates_of(cluster)
        assert [unused for each in templates if (unused := unused_parameters(each.body))] == []
        if number in LINTED:
            assert lint.lint(templates, region=cluster.region, cache=tmp_path) == ()

    tried(number, designs().flatmap(files), generated, shrink=False)


@pytest.mark.parametrize("number", LIVED)
def test_a_life_goes_as_planned(number: int) -> None:
    tried(number, lives(most=1), lambda life: live(life, Counter()), shrink=False)
