"""The emulator itself: what an update changes, replaces and removes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from small_stacks import (
    GATEWAY,
    REGION,
    VOLUME,
    created,
    family,
    gateways,
    reasons,
    since,
    snapshots,
    statuses,
    table,
    tagged,
    tags_of,
    text,
    updated,
    vpc,
    vpcs,
)

from cfngen.sandbox.cloudformation import CloudFormation, NotModelledError, ValidationError, client
from cfngen.sandbox.cloudformation.handlers import HANDLERS
from cfngen.sandbox.cloudformation.scopes import importing_stacks
from cfngen.sandbox.cloudformation.stack import masked_parameters

PUBLIC_KEYS = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIE5dw6ofRdfVqNUZsNMfszLjYqRtO43ol32D1uPybOU",
)


def test_what_changes_in_place_keeps_its_id(cloud: CloudFormation) -> None:
    stack = created(cloud, {"G": tagged(a="1", b="1"), "Other": GATEWAY})
    before = stack.resources["G"].physical_id
    updated(cloud, {"G": tagged(a="2", c="1"), "Other": GATEWAY})
    assert since(stack, "UPDATE_STACK") == [
        ("s", "UPDATE_IN_PROGRESS"),
        ("G", "UPDATE_IN_PROGRESS"),
        ("G", "UPDATE_COMPLETE"),
        ("s", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"),
        ("s", "UPDATE_COMPLETE"),
    ]
    assert stack.resources["G"].physical_id == before
    assert tags_of(stack, "G") == {"a": "2", "c": "1"}


def test_what_is_replaced_is_made_first_and_removed_in_the_cleanup(cloud: CloudFormation) -> None:
    stack = created(cloud, {"Vpc": vpc(), "Table": table({"Ref": "Vpc"})})
    old = stack.resources["Vpc"].physical_id
    updated(cloud, {"Vpc": vpc("10.1.0.0/16"), "Table": table({"Ref": "Vpc"})})
    assert since(stack, "UPDATE_STACK") == [
        ("s", "UPDATE_IN_PROGRESS"),
        *[(key, each) for key in ("Vpc", "Table")
          for each in ("UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE")],
        ("s", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"),
        *[(key, each) for key in ("Table", "Vpc") for each in ("DELETE_IN_PROGRESS", "DELETE_COMPLETE")],
        ("s", "UPDATE_COMPLETE"),
    ]  # fmt: skip
    assert reasons(stack, "Vpc", "UPDATE_IN_PROGRESS") == [
        "Requested update requires the creation of a new physical resource; hence creating one.",
        "Resource creation Initiated",
    ]
    assert stack.resources["Vpc"].physical_id != old
    assert vpcs() == [stack.resources["Vpc"].physical_id]
    assert stack.resources["Table"].properties["VpcId"] == vpcs()[0]


@pytest.mark.parametrize(("policy", "volumes"), [("Delete", 1), ("Retain", 2)])
def test_what_is_replaced_goes_as_its_policy_says(cloud: CloudFormation, policy: str, volumes: int) -> None:
    kept = {**vpc(), "UpdateReplacePolicy": policy}
    created(cloud, {"Vpc": kept})
    stack = updated(cloud, {"Vpc": {**kept, "Properties": {"CidrBlock": "10.1.0.0/16"}}})
    assert stack.status == "UPDATE_COMPLETE"
    assert len(vpcs()) == volumes


@pytest.mark.parametrize(
    ("policy", "left", "taken"),
    [("Delete", 0, 0), ("Retain", 1, 0), ("RetainExceptOnCreate", 1, 0), ("Snapshot", 0, 1)],
)
def test_what_the_template_no_longer_has_is_removed(cloud: CloudFormation, policy: str, left: int, taken: int) -> None:
    created(cloud, {"G": GATEWAY, "Volume": {**VOLUME, "DeletionPolicy": policy}})
    stack = updated(cloud, {"G": GATEWAY})
    assert stack.status == "UPDATE_COMPLETE"
    assert list(stack.resources) == ["G"]
    assert len(client("ec2", REGION).describe_volumes()["Volumes"]) == left
    assert len(snapshots()) == taken
    assert statuses(stack, "Volume")[-1][1] == ("DELETE_SKIPPED" if left else "DELETE_COMPLETE")


def test_what_cannot_be_removed_is_left_behind(cloud: CloudFormation) -> None:
    created(cloud, {"G": GATEWAY, "H": GATEWAY})
    cloud.fail("H", "is attached", during="DELETE")
    stack = updated(cloud, {"G": GATEWAY})
    assert (stack.status, stack.reason) == (
        "UPDATE_COMPLETE",
        "Update successful. One or more resources could not be deleted.",
    )
    assert reasons(stack, "H", "DELETE_FAILED") == ["is attached"]
    assert len(gateways()) == 2


def test_what_is_added_is_created(cloud: CloudFormation) -> None:
    created(cloud, {"G": GATEWAY})
    stack = updated(cloud, {"G": GATEWAY, "H": GATEWAY})
    assert ("H", "CREATE_COMPLETE") in since(stack, "UPDATE_STACK")
    assert stack.status == "UPDATE_COMPLETE"


def test_tags_of_the_stack_are_changed_on_every_resource(cloud: CloudFormation) -> None:
    cloud.create_stack("s", body=text({"G": GATEWAY, "Vpc": vpc()}), tags={"owner": "one"})
    stack = cloud.update_stack("s", previous_template=True, tags={"owner": "two"})
    assert [tags_of(stack, key) for key in ("G", "Vpc")] == [{"owner": "two"}] * 2
    cloud.update_stack("s", body=text({"G": tagged(own="1"), "Vpc": vpc()}))
    assert tags_of(stack, "G") == {"own": "1", "owner": "two"}
    cloud.update_stack("s", previous_template=True, tags={})
    assert [tags_of(stack, key) for key in ("G", "Vpc")] == [{"own": "1"}, {}]


@pytest.mark.parametrize("section", ["Description", "Metadata", "Parameters"])
def test_nothing_to_update_is_refused(cloud: CloudFormation, section: str) -> None:
    more = {"Description": "x", "Metadata": {"a": 1}, "Parameters": {"P": {"Type": "String", "Default": "x"}}}
    created(cloud, {"G": GATEWAY})
    with pytest.raises(ValidationError, match=r"^No updates are to be performed\.$"):
        cloud.update_stack("s", previous_template=True)
    with pytest.raises(ValidationError, match=r"^No updates are to be performed\.$"):
        cloud.update_stack("s", body=text({"G": GATEWAY}, **{section: more[section]}))


def test_outputs_alone_are_an_update(cloud: CloudFormation) -> None:
    created(cloud, {"G": GATEWAY})
    stack = updated(cloud, {"G": GATEWAY}, sections={"Outputs": {"It": {"Value": {"Ref": "G"}}}})
    assert stack.outputs == {"It": stack.resources["G"].physical_id}


def test_previous_values_of_parameters(cloud: CloudFormation) -> None:
    sections = {"Parameters": {"A": {"Type": "String"}, "B": {"Type": "String", "Default": "b"}}}
    body = text({"G": tagged(a="x"), "H": {**GATEWAY, "Metadata": {"A": {"Ref": "A"}}}}, **sections)
    stack = cloud.create_stack("s", body=body, parameters={"A": "1", "B": "2"})
    with pytest.raises(ValidationError, match=r"Parameters: \[A\] must have values"):
        cloud.update_stack("s", previous_template=True)
    cloud.update_stack(
        "s", previous_template=True, previous_parameters=["A"], tags={"t": "1"}
    )  # what is neither given nor kept has its default again
    assert masked_parameters(stack.revision) == {"A": "1", "B": "b"}
    with pytest.raises(ValidationError, match="usePreviousValue"):
        cloud.update_stack("s", previous_template=True, previous_parameters=["C"])


def test_a_property_the_double_cannot_change_stops_the_test(cloud: CloudFormation) -> None:
    created(cloud, {"Vpc": vpc()})
    with pytest.raises(NotModelledError, match="InstanceTenancy"):
        updated(cloud, {"Vpc": vpc(InstanceTenancy="dedicated")})


def test_in_a_server_whatever_an_operation_raises_fails_its_resource(
    cloud: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.resource_errors = (Exception,)
    gateway = HANDLERS["AWS::EC2::InternetGateway"]
    update = gateway.update

    def not_modelled(call: Any, old: Any) -> Any:
        if call.properties["Tags"] == [{"Key": "a", "Value": "2"}]:
            raise NotModelledError("tags")
        return update(call, old)

    stack = created(cloud, {"G": tagged(a="1")})
    monkeypatch.setattr(gateway, "update", not_modelled)
    updated(cloud, {"G": tagged(a="2")})
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert reasons(stack, "G", "UPDATE_FAILED") == ["the sandbox does not support this: tags"]
    monkeypatch.setattr(gateway, "create", lambda call: {}["InternetGatewayId"])
    other = cloud.create_stack("other", body=text({"G": GATEWAY}))
    assert other.status == "ROLLBACK_COMPLETE"
    assert reasons(other, "G", "CREATE_FAILED") == ["internal error of the sandbox: KeyError: 'InternetGatewayId'"]
    monkeypatch.setattr(gateway, "delete", lambda call: {}["InternetGatewayId"])
    cloud.delete_stack("s")
    assert stack.status == "DELETE_FAILED"


def test_a_resource_with_a_name_of_its_own_is_not_replaced(cloud: CloudFormation) -> None:
    def key(material: str) -> dict[str, Any]:
        return {"K": {"Type": "AWS::EC2::KeyPair", "Properties": {"KeyName": "laptop", "PublicKeyMaterial": material}}}

    first, second = PUBLIC_KEYS
    stack = cloud.create_stack("s", body=text(key(first)))
    assert stack.status == "CREATE_COMPLETE", stack.resources["K"].reason
    cloud.update_stack("s", body=text(key(second)))
    assert "Rename laptop and update the stack again." in reasons(stack, "K", "UPDATE_FAILED")[0]


def test_nested_stacks_are_updated_only_where_something_changes(cloud: CloudFormation) -> None:
    stack = created(cloud, family("hello"))
    ids = {key: each.id for key, each in stack.children.items()}
    updated(cloud, family("bye"))
    assert stack.status == "UPDATE_COMPLETE"
    assert {key: each.id for key, each in stack.children.items()} == ids
    assert {key: each.status for key, each in stack.children.items()} == {
        "First": "UPDATE_COMPLETE", "Second": "UPDATE_COMPLETE", "Third": "CREATE_COMPLETE"
    }  # fmt: skip
    for key in ("First", "Second"):
        assert tags_of(stack.children[key], "G")["word"].startswith("bye")
        assert since(stack.children[key], "UPDATE_STACK") == [
            (stack.children[key].name, "UPDATE_IN_PROGRESS"),
            ("G", "UPDATE_IN_PROGRESS"),
            ("G", "UPDATE_COMPLETE"),
            (stack.children[key].name, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"),
            (stack.children[key].name, "UPDATE_COMPLETE"),
        ]


def test_nested_stacks_come_and_go(cloud: CloudFormation) -> None:
    stack = created(cloud, family("hello"))
    third = stack.children["Third"]
    resources = family("hello")
    resources["Fourth"] = resources.pop("Third")
    updated(cloud, resources)
    assert (stack.status, third.status) == ("UPDATE_COMPLETE", "DELETE_COMPLETE")
    assert list(stack.children) == ["First", "Second", "Fourth"]
    assert len(gateways()) == 3
    order = since(stack, "UPDATE_STACK")
    cleanup = order.index(("s", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"))
    assert order.index(("Fourth", "CREATE_COMPLETE")) < cleanup < order.index(("Third", "DELETE_IN_PROGRESS"))


def test_exports_and_imports(cloud: CloudFormation) -> None:
    exporting = {"Outputs": {"It": {"Value": {"Ref": "G"}, "Export": {"Name": {"Fn::Sub": "${AWS::StackName}-it"}}}}}
    stack = created(cloud, {"G": GATEWAY}, **exporting)
    user = cloud.create_stack(
        "user", body=text({"G": tagged(x="1")}, Outputs={"Got": {"Value": {"Fn::ImportValue": "s-it"}}})
    )
    assert user.outputs == {"Got": stack.resources["G"].physical_id}
    assert cloud.exports() == [(stack.id, "s-it", stack.outputs["It"])]
    assert importing_stacks(cloud, "s-it") == ["user"]
    assert cloud.delete_stack("s").reason == "Export s-it cannot be deleted as it is in use by user"
    assert stack.status == "CREATE_COMPLETE"
    cloud.delete_stack("user")
    assert cloud.delete_stack("s").status == "DELETE_COMPLETE"


def test_an_export_in_use_does_not_change(cloud: CloudFormation) -> None:
    exporting = {"Outputs": {"It": {"Value": {"Ref": "Vpc"}, "Export": {"Name": "it"}}}}
    stack = created(cloud, {"Vpc": vpc()}, **exporting)
    cloud.create_stack("user", body=text({"G": GATEWAY}, Outputs={"Got": {"Value": {"Fn::ImportValue": "it"}}}))
    updated(cloud, {"Vpc": vpc("10.1.0.0/16")}, sections=exporting)
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert reasons(stack, "s", "UPDATE_ROLLBACK_IN_PROGRESS") == ["Export it cannot be updated as it is in use by user"]
    other = cloud.create_stack(
        "other", body=text({"G": GATEWAY}, **json.loads(json.dumps(exporting).replace("Vpc", "G")))
    )
    assert other.status == "ROLLBACK_COMPLETE"
    assert "already exported by stack s" in reasons(other, "other", "ROLLBACK_IN_PROGRESS")[0]
