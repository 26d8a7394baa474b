"""Tags and statements of policies are compared by their keys, and not by their places in the list."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.plan.keyed_lists import find_keyed_list


def statement(sid: str, *actions: str) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": "*"}


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def entry(before: dict[str, Any], after: dict[str, Any]) -> ResourceChange:
    return ResourceChange("Modify", "X", "x", "T", before={"Properties": before}, after={"Properties": after})


READ, WRITE, LIST = statement("Read", "s3:GetObject"), statement("Write", "s3:PutObject"), statement("List", "s3:List*")


def changed(found) -> set[str]:
    keys = found.before.keys() | found.after.keys()
    return {key for key in keys if found.before.get(key) != found.after.get(key)}


@pytest.mark.parametrize("place", ["/Properties/PolicyDocument", "/Properties/PolicyDocument/Statement/1/Action/0"])
def test_a_statement_in_the_middle_changes_no_other(place):
    differences = find_keyed_list(
        entry({"PolicyDocument": document(READ, LIST)}, {"PolicyDocument": document(READ, WRITE, LIST)}), place
    )
    assert differences.path == "/Properties/PolicyDocument"
    assert changed(differences) == {"Write"}
    assert json.loads(differences.after["Write"])["Action"] == ["s3:PutObject"]


def test_statements_of_a_roles_policies_are_known_by_policy_and_sid():
    def policies(*documents: dict[str, Any]) -> dict[str, Any]:
        return {"Policies": [{"PolicyName": f"p{i}", "PolicyDocument": each} for i, each in enumerate(documents)]}

    differences = find_keyed_list(
        entry(policies(document(READ), document(LIST)), policies(document(WRITE, READ), document(LIST))),
        "/Properties/Policies/0/PolicyDocument/Statement/0/Sid",
    )
    assert (differences.path, changed(differences)) == ("/Properties/Policies", {"p0/Write"})


@pytest.mark.parametrize(
    "statements",
    [
        [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
        [READ, statement("Read", "s3:PutObject")],
        ["text"],
    ],
)
def test_statements_without_a_key_of_their_own_are_left_to_their_places(statements):
    two = {"PolicyDocument": {"Statement": statements}}
    assert (
        find_keyed_list(entry(two, {"PolicyDocument": document(READ)}), "/Properties/PolicyDocument/Statement/0")
        is None
    )


def test_what_is_not_told_is_not_compared():
    assert find_keyed_list(ResourceChange("Modify", "X", "x", "T"), "/Properties/PolicyDocument/Statement/0") is None
    assert find_keyed_list(ResourceChange("Modify", "X", "x", "T"), "/Properties/Tags/0") is None


TEAM, COST = {"Key": "team", "Value": "a"}, {"Key": "cost", "Value": "1"}
SPECIFICATIONS = "LaunchTemplateData/TagSpecifications"


def inside(*tags: Any) -> dict[str, Any]:
    """Tags in a list in a list, as launch templates have them."""
    return {"LaunchTemplateData": {"TagSpecifications": [{"Tags": [TEAM]}, {"Tags": list(tags)}]}}


@pytest.mark.parametrize(
    ("before", "after", "place", "of", "items"),
    [
        ({"Tags": [TEAM]}, {"Tags": [COST, TEAM]}, "Tags/0/Value", "Tags", ({"team": "a"}, {"team": "a", "cost": "1"})),
        ({"Tags": [TEAM]}, {"Tags": [{"Key": "team"}]}, "Tags/0", "Tags", ({"team": "a"}, {"team": ""})),
        ({"Other": 1}, {"Tags": [TEAM]}, "Tags", "Tags", ({}, {"team": "a"})),
        ({"Tags": [TEAM]}, {"Other": 1}, "Tags", "Tags", ({"team": "a"}, {})),
        (
            inside(COST),
            inside(COST, TEAM),
            f"{SPECIFICATIONS}/1/Tags/1/Value",
            f"{SPECIFICATIONS}/1/Tags",
            ({"cost": "1"}, {"cost": "1", "team": "a"}),
        ),
        # The list around it is shorter: there is none of this place.
        ({"L": [{"Tags": [TEAM]}]}, {"L": []}, "L/0/Tags/0", "L/0/Tags", ({"team": "a"}, {})),
        ({"L": []}, {"L": [{"Tags": [TEAM]}]}, "L/x/Tags/0", "L/x/Tags", ({}, {})),
    ],
)
def test_tags_are_known_by_their_keys(before: Any, after: Any, place: str, of: str, items: Any) -> None:
    differences = find_keyed_list(entry(before, after), f"/Properties/{place}")
    assert (differences.path, differences.before, differences.after) == (f"/Properties/{of}", *items)


@pytest.mark.parametrize(
    ("tags", "place"),
    [
        ("text", "Tags/0"),
        ({"Key": "team"}, "Tags/0"),
        (["text"], "Tags/0"),
        ([TEAM, {"Value": "a"}], "Tags/0"),
        ([TEAM], "TagsOfMine/0"),
        ([TEAM], "Name"),
    ],
)
def test_what_is_no_list_of_tags_is_left_to_its_place(tags: Any, place: str) -> None:
    assert find_keyed_list(entry({"Tags": tags}, {"Tags": [TEAM]}), f"/Properties/{place}") is None
    assert find_keyed_list(entry({"Tags": [TEAM]}, {"Tags": tags}), f"/Properties/{place}") is None


def test_what_a_function_makes_is_in_no_list() -> None:
    assert find_keyed_list(entry({"A": {"Ref": "Other"}}, {"A": {"Tags": [TEAM]}}), "/Properties/A/Tags/0") is None


@pytest.mark.parametrize("missing", ["before", "after"])
def test_where_one_definition_is_not_told_nothing_is_compared(missing: str) -> None:
    told = {"before": {"Properties": {"Tags": [TEAM]}}, "after": {"Properties": {"Tags": [COST]}}}
    del told[missing]
    assert find_keyed_list(ResourceChange("Modify", "X", "x", "T", **told), "/Properties/Tags/0") is None


@pytest.mark.parametrize("name", ["PolicyDocument", "AssumeRolePolicyDocument", "KeyPolicy"])
def test_documents_of_every_kind_are_known_by_their_statements(name: str) -> None:
    differences = find_keyed_list(
        entry({name: document(READ)}, {name: {"Id": "x", **document(READ, LIST)}}), f"/Properties/{name}"
    )
    assert (differences.path, changed(differences)) == (f"/Properties/{name}", {"List"})
    assert list(differences.before) == ["Read"]


@pytest.mark.parametrize(
    "policies",
    [
        {"PolicyDocument": {**document(READ), "Other": 1}},
        {"PolicyDocument": {"Statement": {"Sid": "Read"}}},
        {"PolicyDocument": {"Statement": [READ, {"Sid": ""}]}},
        {"PolicyDocument": "text"},
    ],
)
def test_documents_with_more_in_them_are_left_to_their_places(policies: Any) -> None:
    assert find_keyed_list(entry(policies, {"PolicyDocument": document(READ)}), "/Properties/PolicyDocument") is None


def named(name: str, body: Any) -> dict[str, Any]:
    return {"PolicyName": name, "PolicyDocument": body}


@pytest.mark.parametrize(
    "policies",
    [
        [named("a", document(READ)), named("a", document(LIST))],
        [named("a", document(READ)), named("b", "text")],
        [named("a", document(READ)), {"PolicyName": "b"}],
    ],
)
def test_policies_that_cannot_be_told_apart_or_read_are_left_to_their_places(policies: Any) -> None:
    readable = {"Policies": [named("a", document(READ))]}
    assert find_keyed_list(entry({"Policies": policies}, readable), "/Properties/Policies/0") is None
    assert find_keyed_list(entry(readable, readable), "/Properties/PoliciesOfMine/0") is None


def test_a_document_without_statements_has_none() -> None:
    differences = find_keyed_list(
        entry({"PolicyDocument": {"Version": "1"}}, {"PolicyDocument": document(READ)}), "/Properties/PolicyDocument"
    )
    assert (differences.before, list(differences.after)) == ({}, ["Read"])


def test_the_same_statement_in_another_order_of_its_parts_is_the_same() -> None:
    turned = dict(reversed(READ.items()))
    differences = find_keyed_list(
        entry({"KeyPolicy": document(READ)}, {"KeyPolicy": document(turned)}), "/Properties/KeyPolicy"
    )
    assert changed(differences) == set()
