"""Expressions of templates: what they refer to, the text that they make, and how references are replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfngen.templates.expressions import (
    Reference,
    branches,
    function_call,
    is_function,
    known_ending,
    reference,
    references,
    sub_parts,
    substitute,
    text_parts,
)

CASES = Path(__file__).parents[1] / "golden" / "cases"
VPC, ARN = {"Ref": "Vpc"}, {"Fn::GetAtt": ["Key", "Arn"]}

names = st.from_regex(r"[A-Z][A-Za-z0-9]{0,5}", fullmatch=True)
texts = st.text("ab ./-${}!", max_size=12)
refs = names.map(lambda name: {"Ref": name})
attributes = st.tuples(names, names).map(lambda pair: {"Fn::GetAtt": list(pair)})
expressions = st.recursive(
    texts | st.integers() | st.booleans() | refs | attributes,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(names, inner, max_size=3),
        st.tuples(texts, st.lists(inner, max_size=3)).map(lambda pair: {"Fn::Join": list(pair)}),
        st.tuples(texts, st.dictionaries(names, inner, max_size=2)).map(lambda pair: {"Fn::Sub": list(pair)}),
        texts.map(lambda text: {"Fn::Sub": text}),
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "function"),
    [
        (VPC, "Ref"),
        (ARN, "Fn::GetAtt"),
        ({"Fn::Sub": "x"}, "Fn::Sub"),
        ({"Reference": "x"}, ""),
        ({"Ref": "x", "Other": 1}, ""),
        ({}, ""),
        ([VPC], ""),
        ("Ref", ""),
        (None, ""),
    ],
)
def test_a_function_is_a_mapping_with_its_name_alone(value: object, function: str) -> None:
    assert function_call(value)[0] == function
    assert is_function(value) == bool(function)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (VPC, ("Vpc", "")),
        (ARN, ("Key", "Arn")),
        ({"Fn::GetAtt": "Key.Arn"}, ("Key", "Arn")),
        ({"Fn::GetAtt": ["VpcStack", "Outputs.VpcId"]}, ("VpcStack", "Outputs.VpcId")),
        ({"Fn::GetAtt": "VpcStack.Outputs.VpcId"}, ("VpcStack", "Outputs.VpcId")),
        ({"Fn::GetAtt": []}, None),
        ({"Fn::GetAtt": ["Key", VPC]}, None),
        ({"Ref": ["Vpc"]}, None),
        ({"Fn::Sub": "${Vpc}"}, None),
        ("Vpc", None),
    ],
)
def test_a_reference_is_a_ref_or_an_attribute(value: object, expected: tuple[str, str] | None) -> None:
    assert reference(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"A": [VPC, {"B": ARN}], "C": 1}, [("Vpc", ""), ("Key", "Arn")]),
        ({"Fn::Sub": "${Vpc}-${Key.Arn}-${!Literal}-${ Spaced }"}, [("Vpc", ""), ("Key", "Arn"), ("Spaced", "")]),
        ({"Fn::Sub": ["${Mine}-${Other}", {"Mine": VPC}]}, [("Other", ""), ("Vpc", "")]),
        ({"Fn::Sub": "${Stack.Outputs.VpcId}"}, [("Stack", "Outputs.VpcId")]),
        ({"Fn::Join": [",", [VPC, "x"]]}, [("Vpc", "")]),
        ({"Fn::GetAtt": ["Key", VPC]}, [("Vpc", "")]),
        ({"Fn::Sub": ["${Vpc}"]}, []),
        ({"Fn::Sub": [VPC, {}]}, [("Vpc", "")]),
        ("${Vpc}", []),
    ],
)
def test_references_are_found_wherever_they_stand(value: object, expected: list[tuple[str, str]]) -> None:
    assert list(references(value)) == expected


@pytest.mark.parametrize(
    ("argument", "parts"),
    [
        ("a-${Vpc}-${Key.Arn}", ["a-", VPC, "-", ARN, ""]),
        ("${!Vpc}", ["", "${Vpc}", ""]),
        ("${ Vpc }", ["", VPC, ""]),
        ("${}", ["${}"]),
        (["${A}${B}", {"A": "x", "B": VPC}], ["", "x", "", VPC, ""]),
        (["${A}"], []),
        (VPC, []),
    ],
)
def test_a_substitution_is_text_and_expressions(argument: object, parts: list[object]) -> None:
    assert sub_parts(argument) == parts


@pytest.mark.parametrize(
    ("value", "parts", "ending"),
    [
        ("${Vpc}", ["${Vpc}"], "${Vpc}"),
        (True, ["true"], "true"),
        (3, ["3"], "3"),
        (VPC, [None], ""),
        ({"Fn::Sub": "https://${Bucket}/vpc.json"}, ["https://", None, "/vpc.json"], "/vpc.json"),
        ({"Fn::Join": ["/", ["a", VPC, "b"]]}, ["a", "/", None, "/", "b"], "/b"),
        ({"Fn::Join": ["", ["a", {"Fn::Sub": ["${B}", {"B": "b"}]}]]}, ["a", "", "", "b", ""], "ab"),
        ({"Fn::Join": ["", VPC]}, [None], ""),
        ({"Fn::Join": VPC}, [None], ""),
        ({"Fn::Sub": VPC}, [None], ""),
        ({"Fn::If": ["Condition", "a", "b"]}, [None], ""),
        ({"Key": "value", "Other": "value"}, [None], ""),
    ],
)
def test_the_known_text_of_an_expression(value: object, parts: list[str | None], ending: str) -> None:
    assert text_parts(value) == parts
    assert known_ending(value) == ending


def test_a_condition_has_the_branches_of_its_branches() -> None:
    inner = {"Fn::If": ["Inner", "b", {"Ref": "AWS::NoValue"}]}
    assert list(branches({"Fn::If": ["Outer", "a", inner]}, ["x"])) == [
        (["x", "Fn::If", 1], "a"),
        (["x", "Fn::If", 2, "Fn::If", 1], "b"),
    ]
    assert list(branches({"Key": VPC}, [])) == [([], {"Key": VPC})]
    assert list(branches({"Ref": "AWS::NoValue"}, [])) == []


def text_of(value: object) -> str:
    """The text that an expression makes; what is known only at deployment is a question mark."""
    return "".join("?" if part is None else part for part in text_parts(value))


@given(expressions)
def test_nothing_is_replaced_without_replacements(value: object) -> None:
    if is_function(value):
        assert text_of(substitute(value, {})) == text_of(value)
    assert set(references(substitute(value, {}))) <= set(references(value))


@given(expressions, st.dictionaries(names, refs | attributes | st.text("ab"), max_size=3))
def test_replaced_references_are_gone(value: object, replacements: dict[str, object]) -> None:
    new = set(references(list(replacements.values())))
    remaining = set(references(substitute(value, replacements))) - new
    assert not {referenced for referenced in remaining if not referenced.attribute and referenced.name in replacements}


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_every_reference_of_a_golden_case_is_to_something_in_its_template(case: str) -> None:
    for file in (CASES / case / "expected").glob("*.json"):
        template = json.loads(file.read_text())
        if "Resources" in template:
            known = {*template["Resources"], *template.get("Parameters", {})}
            used = {referenced.name for section in ("Resources", "Outputs") for referenced in _in(template, section)}
            assert {name for name in used if not name.startswith("AWS::")} <= known


def _in(template: dict[str, object], section: str) -> list[Reference]:
    return list(references(template.get(section, {})))
