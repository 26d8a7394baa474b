"""How much the emulator tells of a change set: what recordings of AWS tell, or everything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.sandbox.cloudformation.change_sets import ResourceChange, ResourceChangeDetail
from cfngen.sandbox.cloudformation.descriptions import Answers
from cfngen.sandbox.cloudformation.intrinsics import UNKNOWN

Told = list[tuple[str, ...]]


def detail(path: str, before: str | None, after: str | None, **more: Any) -> ResourceChangeDetail:
    name = path.split("/")[0]
    attribute = "Tags" if name == "Tags" else "Properties"
    arguments = {"requires_recreation": "Never", "evaluation": "Static", "change_source": "DirectModification", **more}
    return ResourceChangeDetail(
        attribute, "" if name == "Tags" else name, f"/Properties/{path}", before=before, after=after,
        change_type="Modify", **arguments,
    )  # fmt: skip


def change(logical_id: str, *details: ResourceChangeDetail, replacement: str = "False", **after: Any) -> ResourceChange:
    before = {each.path.split("/")[2]: each.before for each in details}
    return ResourceChange(
        "Modify", logical_id, "id", "T", replacement, details=details,
        before_context=json.dumps({"Properties": before}), after_context=json.dumps({"Properties": after}),
    )  # fmt: skip


def attribute_of(name: str, path: str = "Version", **more: Any) -> ResourceChangeDetail:
    return detail(
        path, "1", UNKNOWN, evaluation="Dynamic", change_source="ResourceAttribute", causing_entity=f"{name}.X", **more
    )


def told(changes: list[ResourceChange], answers: Answers, *, with_values: bool) -> dict[str, Told]:
    return {
        each.logical_id: [
            (detail.path or detail.name, detail.change_source, detail.evaluation, str(detail.after))
            for detail in each.details
        ]
        for each in answers.describe(changes, with_values=with_values)
    }


IN_PLACE = change("Template", detail("Type", "a", "b"), Type="b")
REPLACED = change("Template", detail("Type", "a", "b", requires_recreation="Always"), replacement="True", Type="b")
GROUP = change("Group", attribute_of("Template"))
CHAINED = change("Chained", attribute_of("Group"))


def test_what_follows_from_an_update_in_place_is_told_without_values_only() -> None:
    changes = [IN_PLACE, GROUP, CHAINED]
    assert list(told(changes, Answers(), with_values=True)) == ["Template"]
    assert told(changes, Answers(), with_values=False) == {
        "Template": [("Type", "DirectModification", "Static", "None")],
        "Group": [("Version", "ResourceAttribute", "Dynamic", "None")],
        "Chained": [("Version", "ResourceAttribute", "Dynamic", "None")],
    }
    assert Answers("generous").describe(changes, with_values=True) == changes


def test_what_remains_of_a_change_is_told_with_the_old_value_of_the_rest() -> None:
    group = change(
        "Group", attribute_of("Template", requires_recreation="Conditionally"), detail("MaxSize", "1", "2"),
        replacement="Conditional", Version=UNKNOWN, MaxSize="2",
    )  # fmt: skip
    _, described = Answers().describe([IN_PLACE, group], with_values=True)
    assert (described.replacement, [each.name for each in described.details]) == ("False", ["MaxSize"])
    assert json.loads(described.after_context)["Properties"] == {"Version": "1", "MaxSize": "2"}


def test_a_value_that_is_known_later_has_two_details() -> None:
    group = change("Group", attribute_of("Template"))
    assert told([REPLACED, group], Answers(), with_values=True)["Group"] == [
        ("/Properties/Version", "DirectModification", "Dynamic", UNKNOWN),
        ("/Properties/Version", "ResourceAttribute", "Static", UNKNOWN),
    ]
    assert told([REPLACED, group], Answers(), with_values=False)["Group"] == [
        ("Version", "ResourceAttribute", "Static", "None")
    ]


@pytest.mark.parametrize("max_length", [1_024, 65_536])
def test_a_long_value_is_told_as_a_signature_of_the_whole_property(max_length: int) -> None:
    long = {"UserData": "x" * max_length, "Type": "b"}
    listed = change("T", detail("Data/UserData", "a", long["UserData"]), detail("Data/Type", "a", "b"), Data=long)
    [described] = Answers(max_length=max_length).describe([listed], with_values=True)
    [only] = described.details
    assert (only.path, only.evaluation) == ("/Properties/Data", "Static")
    assert str(only.after).startswith("(Truncated-Signature):")
    assert json.loads(described.after_context)["Properties"]["Data"] == only.after
    assert Answers(max_length=2 * max_length).describe([listed], with_values=True)[0].details == listed.details


def test_tags_are_a_property() -> None:
    tagged = change("T", detail("Tags/0/Value", "a", "b"), Tags=[])
    for with_values in (True, False):
        [described] = Answers().describe([tagged], with_values=with_values)
        assert [(each.attribute, each.name) for each in described.details] == [("Properties", "Tags")]
