"""Tags and statements of policies are compared by their keys, and not by their places in the list."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.deploy.preview.change_set_reading import Entry
from cfngen.deploy.preview.keyed_lists import keyed_list


def statement(sid: str, *actions: str) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": "*"}


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def entry(before: dict[str, Any], after: dict[str, Any]) -> Entry:
    return Entry("Modify", "X", "x", "T", before={"Properties": before}, after={"Properties": after})


READ, WRITE, LIST = statement("Read", "s3:GetObject"), statement("Write", "s3:PutObject"), statement("List", "s3:List*")


def changed(found) -> set[str]:
    keys = found.before.keys() | found.after.keys()
    return {key for key in keys if found.before.get(key) != found.after.get(key)}


@pytest.mark.parametrize("place", ["/Properties/PolicyDocument", "/Properties/PolicyDocument/Statement/1/Action/0"])
def test_a_statement_in_the_middle_changes_no_other(place):
    found = keyed_list(
        entry({"PolicyDocument": document(READ, LIST)}, {"PolicyDocument": document(READ, WRITE, LIST)}), place
    )
    assert found.place == "/Properties/PolicyDocument"
    assert changed(found) == {"Write"}
    assert json.loads(found.after["Write"])["Action"] == ["s3:PutObject"]


def test_statements_of_a_roles_policies_are_known_by_policy_and_sid():
    def policies(*documents: dict[str, Any]) -> dict[str, Any]:
        return {"Policies": [{"PolicyName": f"p{i}", "PolicyDocument": each} for i, each in enumerate(documents)]}

    found = keyed_list(
        entry(policies(document(READ), document(LIST)), policies(document(WRITE, READ), document(LIST))),
        "/Properties/Policies/0/PolicyDocument/Statement/0/Sid",
    )
    assert (found.place, changed(found)) == ("/Properties/Policies", {"p0/Write"})


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
    assert keyed_list(entry(two, {"PolicyDocument": document(READ)}), "/Properties/PolicyDocument/Statement/0") is None


def test_what_is_not_told_is_not_compared():
    assert keyed_list(Entry("Modify", "X", "x", "T"), "/Properties/PolicyDocument/Statement/0") is None
    assert keyed_list(Entry("Modify", "X", "x", "T"), "/Properties/Tags/0") is None
