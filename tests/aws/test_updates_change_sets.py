"""The emulator itself: what change sets say, and their life from creation to execution."""

from __future__ import annotations

import json
from typing import Any

import pytest
from small_stacks import GATEWAY, VOLUME, gateways, nested, statuses, table, tagged, text, vpc, vpcs

from cfngen.sandbox.cloudformation import CloudFormation, Stack, ValidationError
from cfngen.sandbox.cloudformation.change_sets import ChangeSet, ResourceChange
from cfngen.sandbox.cloudformation.errors import (
    AlreadyExistsError,
    ChangeSetNotFoundError,
    InsufficientCapabilitiesError,
    InvalidChangeSetStatusError,
)
from cfngen.sandbox.cloudformation.stack import masked_parameters

KNOWN_LATER = "{{changeSet:KNOWN_AFTER_APPLY}}"


def created(cloud: CloudFormation, resources: dict[str, Any], **arguments: Any) -> Stack:
    sections = arguments.pop("sections", {})
    stack = cloud.wait(cloud.create_stack("s", body=text(resources, **sections), **arguments))
    assert stack.status == "CREATE_COMPLETE", stack.reason
    return stack


def made(cloud: CloudFormation, resources: dict[str, Any], **arguments: Any) -> ChangeSet:
    sections = arguments.pop("sections", {})
    change_set = cloud.create_change_set("s", "c", body=text(resources, **sections), **arguments)
    cloud.advance(60)
    return change_set


def changes(change_set: ChangeSet) -> dict[str, ResourceChange]:
    return {change.logical_id: change for change in change_set.changes}


def details(change: ResourceChange) -> list[tuple[Any, ...]]:
    return [
        (detail.path, detail.before, detail.after, detail.requires_recreation, detail.evaluation, detail.change_source,
         detail.causing_entity)
        for detail in change.details
    ]  # fmt: skip


def test_it_takes_its_time(cloud: CloudFormation) -> None:
    created(cloud, {"G": GATEWAY})
    change_set = cloud.create_change_set("s", "c", body=text({"G": tagged(a="1")}))
    seen = []
    for _ in range(6):
        seen.append((change_set.status, change_set.execution_status))
        cloud.advance(1)
    assert list(dict.fromkeys(seen)) == [
        ("CREATE_PENDING", "UNAVAILABLE"), ("CREATE_IN_PROGRESS", "UNAVAILABLE"), ("CREATE_COMPLETE", "AVAILABLE")
    ]  # fmt: skip


def test_what_is_added_modified_and_removed(cloud: CloudFormation) -> None:
    stack = created(cloud, {"G": tagged(a="1"), "Vpc": vpc(), "Old": {**VOLUME, "DeletionPolicy": "Snapshot"}})
    ids = {key: each.physical_id for key, each in stack.resources.items()}
    found = changes(
        made(
            cloud, {"G": tagged(a="2"), "Vpc": {**vpc("10.1.0.0/16"), "UpdateReplacePolicy": "Retain"}, "New": GATEWAY}
        )
    )
    summary = {key: (each.action, each.physical_id, each.replacement, each.policy_action, each.scope)
               for key, each in found.items()}  # fmt: skip
    assert summary == {
        "G": ("Modify", ids["G"], "False", "", ("Tags",)),
        "Vpc": ("Modify", ids["Vpc"], "True", "ReplaceAndRetain", ("Properties", "UpdateReplacePolicy")),
        "New": ("Add", "", "", "", ()),
        "Old": ("Remove", ids["Old"], "", "Snapshot", ()),
    }
    assert details(found["G"]) == [("/Properties/Tags/0/Value", "1", "2", "Never", "Static", "DirectModification", "")]
    assert details(found["Vpc"])[0] == (
        "/Properties/CidrBlock", "10.0.0.0/16", "10.1.0.0/16", "Always", "Static", "DirectModification", ""
    )  # fmt: skip
    assert json.loads(found["Vpc"].before_context)["Properties"] == {"CidrBlock": "10.0.0.0/16"}
    assert json.loads(found["Vpc"].after_context)["Properties"] == {"CidrBlock": "10.1.0.0/16"}
    assert gateways() == [ids["G"]]


def test_a_parameter_is_named_as_the_cause(cloud: CloudFormation) -> None:
    sections = {"Parameters": {"Block": {"Type": "String"}}}
    resources = {"Vpc": vpc({"Ref": "Block"})}
    created(cloud, resources, sections=sections, parameters={"Block": "10.0.0.0/16"})
    change = changes(made(cloud, resources, sections=sections, parameters={"Block": "10.1.0.0/16"}))["Vpc"]
    values = ("/Properties/CidrBlock", "10.0.0.0/16", "10.1.0.0/16", "Always")
    assert details(change) == [
        (*values, "Static", "ParameterReference", "Block"),
        (*values, "Dynamic", "DirectModification", ""),
    ]
    assert change.replacement == "True"


def test_what_depends_on_a_replacement_is_not_certain(cloud: CloudFormation) -> None:
    resources = {"Vpc": vpc(), "Table": table({"Ref": "Vpc"}), "Other": table({"Fn::GetAtt": ["Vpc", "VpcId"]})}
    stack = created(cloud, resources)
    before = stack.resources["Vpc"].physical_id
    found = changes(made(cloud, {**resources, "Vpc": vpc("10.1.0.0/16")}))
    for key, source, cause in (("Table", "ResourceReference", "Vpc"), ("Other", "ResourceAttribute", "Vpc.VpcId")):
        assert details(found[key]) == [("/Properties/VpcId", before, KNOWN_LATER, "Always", "Dynamic", source, cause)]
        assert (found[key].replacement, found[key].policy_action) == ("Conditional", "ReplaceAndDelete")


def test_secrets_are_masked(cloud: CloudFormation) -> None:
    sections = {"Parameters": {"Secret": {"Type": "String", "NoEcho": True}}}
    resources = {"G": {**GATEWAY, "Properties": {"Tags": [{"Key": "a", "Value": {"Fn::Sub": "is ${Secret}"}}]}}}
    created(cloud, resources, sections=sections, parameters={"Secret": "old one"})
    change_set = made(cloud, resources, sections=sections, parameters={"Secret": "new one"})
    change = changes(change_set)["G"]
    assert {(detail.before, detail.after) for detail in change.details} == {("is ****", "is ****")}
    assert "one" not in change.before_context + change.after_context
    assert change_set.revision
    assert masked_parameters(change_set.revision) == {"Secret": "****"}
    stack = cloud.wait(cloud.execute_change_set("c", "s"))
    assert "one" not in "".join(event.properties for event in stack.events)
    assert masked_parameters(stack.revision) == {"Secret": "****"}


@pytest.mark.parametrize(
    ("attributes", "sections"),
    [
        ({}, {}),
        ({}, {"Description": "new"}),
        ({}, {"Parameters": {"Unused": {"Type": "String", "Default": "x"}}}),
        ({"DeletionPolicy": "Retain"}, {}),
    ],
    ids=["nothing", "a description", "an unused parameter", "a deletion policy"],
)
def test_no_changes_fail_the_change_set(
    cloud: CloudFormation, attributes: dict[str, Any], sections: dict[str, Any]
) -> None:
    says = "The submitted information didn't contain changes. Submit different information to create a change set."
    created(cloud, {"G": GATEWAY})
    change_set = made(cloud, {"G": {**GATEWAY, **attributes}}, sections=sections)
    assert (change_set.status, change_set.execution_status, change_set.reason) == ("FAILED", "UNAVAILABLE", says)
    with pytest.raises(InvalidChangeSetStatusError, match=r"current status of \[FAILED\]"):
        cloud.execute_change_set("c", "s")


def test_outputs_alone_are_a_change_set_without_changes(cloud: CloudFormation) -> None:
    created(cloud, {"G": GATEWAY})
    change_set = made(cloud, {"G": GATEWAY}, sections={"Outputs": {"It": {"Value": "x"}}})
    assert (change_set.status, change_set.changes) == ("CREATE_COMPLETE", [])
    assert cloud.wait(cloud.execute_change_set("c", "s")).outputs == {"It": "x"}


def test_executing_does_what_was_said(cloud: CloudFormation) -> None:
    stack = created(cloud, {"G": GATEWAY})
    change_set = made(cloud, {"G": GATEWAY, "H": GATEWAY})
    other = cloud.create_change_set("s", "other", body=text({"G": tagged(a="1")}))
    assert cloud.change_sets("s") == [change_set, other]
    assert cloud.execute_change_set(change_set.id) is stack
    assert (cloud.wait(stack).status, len(gateways())) == ("UPDATE_COMPLETE", 2)
    assert (change_set.execution_status, stack.change_set_id) == ("EXECUTE_COMPLETE", change_set.id)
    with pytest.raises(ChangeSetNotFoundError):
        cloud.change_set("other", "s")
    with pytest.raises(InvalidChangeSetStatusError, match=r"execution status of \[EXECUTE_COMPLETE\]"):
        cloud.execute_change_set(change_set.id)
    assert made(cloud, {"G": GATEWAY}).status == "CREATE_COMPLETE"


def test_another_update_makes_it_obsolete(cloud: CloudFormation) -> None:
    created(cloud, {"G": GATEWAY})
    change_set = made(cloud, {"G": GATEWAY, "H": GATEWAY})
    cloud.update_stack("s", body=text({"G": tagged(a="1")}))
    assert change_set.execution_status == "OBSOLETE"
    with pytest.raises(InvalidChangeSetStatusError, match="OBSOLETE"):
        cloud.execute_change_set("c", "s")


def test_names_are_unique_until_deleted(cloud: CloudFormation) -> None:
    created(cloud, {"G": GATEWAY})
    made(cloud, {"G": GATEWAY, "H": GATEWAY})
    with pytest.raises(AlreadyExistsError, match="ChangeSet c already exists"):
        made(cloud, {"G": GATEWAY})
    cloud.delete_change_set("c", "s")
    assert cloud.change_sets("s") == []
    assert made(cloud, {"G": tagged(a="1")}).status == "CREATE_COMPLETE"


def test_a_change_set_can_create_a_stack(cloud: CloudFormation) -> None:
    change_set = made(cloud, {"G": GATEWAY}, kind="CREATE", tags={"owner": "me"})
    stack = cloud.stack("s")
    assert (stack.status, gateways(), change_set.status) == ("REVIEW_IN_PROGRESS", [], "CREATE_COMPLETE")
    assert [(change.action, change.logical_id) for change in change_set.changes] == [("Add", "G")]
    with pytest.raises(ValidationError, match="REVIEW_IN_PROGRESS state and can not be updated"):
        cloud.create_change_set("s", "d", body=text({"G": GATEWAY}))
    cloud.delete_change_set("c", "s")
    assert stack.status == "REVIEW_IN_PROGRESS"
    made(cloud, {"G": GATEWAY, "H": GATEWAY}, kind="CREATE")
    assert cloud.wait(cloud.execute_change_set("c", "s")).status == "CREATE_COMPLETE"
    assert len(gateways()) == 2
    with pytest.raises(ValidationError, match="already exists and cannot be created again with the changeSet"):
        made(cloud, {"G": GATEWAY}, kind="CREATE")


def test_an_empty_stack_in_review_can_be_deleted(cloud: CloudFormation) -> None:
    made(cloud, {"G": GATEWAY}, kind="CREATE")
    stack = cloud.delete_stack("s")
    assert stack.status == "DELETE_COMPLETE"
    with pytest.raises(ValidationError, match="does not exist"):
        cloud.stack("s")


@pytest.mark.parametrize(
    ("on_failure", "status", "left"), [("ROLLBACK", "ROLLBACK_COMPLETE", 0), ("DELETE", "DELETE_COMPLETE", 0),
                                       ("DO_NOTHING", "CREATE_FAILED", 1), ("", "ROLLBACK_COMPLETE", 0)]
)  # fmt: skip
def test_what_becomes_of_a_creation_that_fails(cloud: CloudFormation, on_failure: str, status: str, left: int) -> None:
    change_set = made(cloud, {"G": GATEWAY, "H": {**GATEWAY, "DependsOn": "G"}}, kind="CREATE", on_failure=on_failure)
    cloud.fail("H", "not now")
    stack = cloud.wait(cloud.execute_change_set("c", "s"))
    assert (stack.status, len(gateways()), change_set.execution_status) == (status, left, "EXECUTE_FAILED")


@pytest.mark.parametrize(
    ("on_failure", "status"), [("DO_NOTHING", "UPDATE_FAILED"), ("ROLLBACK", "UPDATE_ROLLBACK_COMPLETE")]
)
def test_what_becomes_of_an_update_that_fails(cloud: CloudFormation, on_failure: str, status: str) -> None:
    created(cloud, {"G": GATEWAY})
    made(cloud, {"G": tagged(a="1")}, on_failure=on_failure)
    cloud.fail("G", "not now", during="UPDATE")
    with pytest.raises(ValidationError, match="OnStackFailure"):
        cloud.execute_change_set("c", "s", disable_rollback=True)
    assert cloud.wait(cloud.execute_change_set("c", "s")).status == status
    with pytest.raises(ValidationError, match="OnStackFailure DELETE"):
        cloud.create_change_set("s", "d", body=text({"G": GATEWAY}), on_failure="DELETE")


def test_what_rolled_back_its_creation_can_only_be_deleted(cloud: CloudFormation) -> None:
    cloud.fail("G", "not now")
    stack = cloud.create_stack("s", body=text({"G": GATEWAY}))
    for kind in ("UPDATE", "CREATE"):
        with pytest.raises(ValidationError):
            cloud.create_change_set("s", "c", body=text({"G": GATEWAY}), kind=kind)
    with pytest.raises(ValidationError, match="is in ROLLBACK_COMPLETE state and can not be updated"):
        cloud.update_stack("s", body=text({"G": GATEWAY}))
    assert cloud.delete_stack("s") is stack
    assert stack.status == "DELETE_COMPLETE"


def test_an_invalid_property_fails_it_early(cloud: CloudFormation) -> None:
    created(cloud, {"G": GATEWAY})
    change_set = made(
        cloud,
        {
            "G": {**GATEWAY, "Properties": {"Color": "red"}},
            "V": {**VOLUME, "Properties": {"AvailabilityZone": "us-west-2a", "Size": "big"}},
        },
    )
    assert change_set.status == "FAILED"
    assert "[AWS::EarlyValidation::PropertyValidation]" in change_set.reason
    assert change_set.revision is not None
    refused = change_set.revision.invalid_properties
    assert {logical_id: error.path for logical_id, error in refused.items()} == {"G": "#", "V": "#/Size"}
    assert "Color" in refused["G"].message


def test_what_cannot_be_accepted_is_refused_at_once(cloud: CloudFormation) -> None:
    created(cloud, {"G": GATEWAY})
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {}}}
    with pytest.raises(InsufficientCapabilitiesError):
        made(cloud, {"G": GATEWAY, "Role": role})
    with pytest.raises(ValidationError, match="JSON"):
        cloud.create_change_set("s", "c", body="{")
    with pytest.raises(ValidationError, match="does not exist"):
        cloud.create_change_set("t", "c", body=text({"G": GATEWAY}))
    with pytest.raises(ChangeSetNotFoundError, match=r"ChangeSet \[c\] does not exist"):
        cloud.change_set("c", "s")


def family(word: str, **third: str) -> dict[str, Any]:
    """Three nested stacks: one says a word, one hears it, the third has nothing to do with it."""
    hears = {"Parameters": {"Word": {"Type": "String"}}, "Outputs": {"Said": {"Value": {"Fn::Sub": "${Vpc}"}}}}
    tags = [{"Key": "word", "Value": {"Ref": "Word"}}]
    said = text({"Vpc": vpc(Tags=tags)}, **hears)
    heard = text({"Table": table({"Ref": "Word"})}, Parameters={"Word": {"Type": "String"}})
    return {
        "First": nested("first", said, Parameters={"Word": word}),
        "Second": nested("second", heard, Parameters={"Word": {"Fn::GetAtt": "First.Outputs.Said"}}),
        "Third": nested(f"third{len(third)}", text({"G": tagged(**third)})),
    }


def test_nested_stacks_that_change_have_change_sets_of_their_own(cloud: CloudFormation) -> None:
    stack = created(cloud, family("hello"))
    root = made(cloud, family("bye"), nested=True)
    found = changes(root)
    assert (root.status, list(found)) == ("CREATE_COMPLETE", ["First", "Second"])
    first, second = (found[key].child for key in ("First", "Second"))
    assert first is not None
    assert second is not None
    assert (first.parent, first.root, first.stack) == (root, root, stack.children["First"])
    assert details(changes(first)["Vpc"])[0][:4] == ("/Properties/Tags/0/Value", "hello", "bye", "Never")
    assert details(found["Second"]) == [
        ("/Properties/Parameters/Word", vpcs()[0], KNOWN_LATER, "Never", "Dynamic", "ResourceAttribute",
         "First.Outputs.Said")
    ]  # fmt: skip
    table_change = changes(second)["Table"]
    assert (table_change.replacement, details(table_change)[0][4:]) == (
        "Conditional", ("Dynamic", "ParameterReference", "Word")
    )  # fmt: skip
    with pytest.raises(ValidationError, match="execute its root"):
        cloud.execute_change_set(first.id)
    assert cloud.wait(cloud.execute_change_set("c", "s")).status == "UPDATE_COMPLETE"
    assert (first.execution_status, second.stack.status) == ("EXECUTE_COMPLETE", "CREATE_COMPLETE")


def test_without_nested_ones_every_nested_stack_may_change(cloud: CloudFormation) -> None:
    created(cloud, family("hello"))
    found = changes(made(cloud, family("hello")))
    assert list(found) == ["First", "Second", "Third"]
    assert details(found["Third"]) == [("", None, None, "Never", "Dynamic", "Automatic", "")]
    assert {each.child for each in found.values()} == {None}


def test_nested_stacks_of_a_creation_are_in_review(cloud: CloudFormation) -> None:
    root = made(cloud, family("hello"), nested=True, kind="CREATE")
    children = [change.child for change in root.changes if change.child]
    assert [(each.kind, each.stack.status) for each in children] == [("CREATE", "REVIEW_IN_PROGRESS")] * 3
    assert cloud.wait(cloud.execute_change_set("c", "s")).status == "CREATE_COMPLETE"
    assert {each.id for each in cloud.stack("s").children.values()} == {each.stack.id for each in children}
    assert len(cloud.stacks()) == 4


def test_deleting_the_change_set_of_a_creation_deletes_its_nested_stacks(cloud: CloudFormation) -> None:
    made(cloud, family("hello"), nested=True, kind="CREATE")
    cloud.delete_change_set("c", "s")
    assert [stack.status for stack in cloud.stacks()] == ["REVIEW_IN_PROGRESS"] + ["DELETE_COMPLETE"] * 3


def test_a_nested_change_set_that_fails_fails_its_root(cloud: CloudFormation) -> None:
    created(cloud, family("hello"))
    resources = family("hello")
    resources["Third"] = nested("bad", text({"G": {**GATEWAY, "Properties": {"Color": "red"}}}))
    root = made(cloud, resources, nested=True)
    child = changes(root)["Third"].child
    assert child is not None
    assert root.reason == f"Nested change set {child.id} was not successfully created: Currently in FAILED."
    assert child.status == "FAILED"
    assert child.revision is not None
    assert child.revision.invalid_properties["G"].path == "#"
    assert statuses(child.stack)[-1] == (child.stack.name, "CREATE_COMPLETE")


def handing_on(definition: dict[str, Any], value: Any) -> dict[str, Any]:
    """A VPC stack, and one that takes the VPC's id by a parameter and uses it in a route table."""
    first = text({"Vpc": vpc()}, Outputs={"Id": {"Value": {"Ref": "Vpc"}}})
    second = text({"Table": table(value)}, Parameters={"Id": definition})
    passed = {"Id": {"Fn::GetAtt": ["First", "Outputs.Id"]}}
    return {"First": nested("one", first), "Second": nested("two", second, Parameters=passed)}


@pytest.mark.parametrize(
    ("definition", "value", "works"),
    [
        ({"Type": "String"}, {"Ref": "Id"}, True),
        ({"Type": "AWS::EC2::VPC::Id"}, {"Ref": "Id"}, False),
        ({"Type": "String", "AllowedPattern": "vpc-.*"}, {"Ref": "Id"}, False),
        ({"Type": "String"}, {"Fn::Select": [0, {"Fn::Split": [",", {"Ref": "Id"}]}]}, False),
        ({"Type": "CommaDelimitedList"}, {"Fn::Select": [0, {"Ref": "Id"}]}, False),
    ],
)
def test_a_nested_change_set_cannot_look_into_what_does_not_exist(
    cloud: CloudFormation, definition: dict[str, Any], value: Any, works: bool
) -> None:
    resources = handing_on(definition, value)
    root = made(cloud, resources, nested=True, kind="CREATE")
    assert root.status == ("CREATE_COMPLETE" if works else "FAILED"), root.reason
    cloud.delete_change_set("c", "s")
    # Without a change set the first stack exists by then.
    assert cloud.wait(cloud.create_stack("t", body=text(resources))).status == "CREATE_COMPLETE"
