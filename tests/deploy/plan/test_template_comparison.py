"""What changes by the deployed and the requested templates, whatever a change set shows or leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recorded import CHANGE_SET, Recorded, RefusedError, change, description, request

from cfngen.deploy.aws.change_sets import ChangeDetail, ChangeSet, ResourceChange, Unshown
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.plan.change_sets import make_plan
from cfngen.deploy.plan.replacement import ReplacementAnalysis
from cfngen.deploy.plan.template_comparison import TemplateComparison
from cfngen.templates.evaluation import evaluate_stacks

NESTED, DATA = "AWS::CloudFormation::Stack", "/Properties/LaunchTemplateData"
LARGE, LATER = Unshown.TRUNCATED, Unshown.KNOWN_LATER
VERSION = {"Fn::GetAtt": ["Template", "LatestVersionNumber"]}


def resources(type_: Any = "a", **more: Any) -> dict[str, Any]:
    """A launch template, and a group that uses its latest version."""
    template = {"Type": "T", "Properties": {"LaunchTemplateData": {"InstanceType": type_}}}
    group = {"Type": "G", "Properties": {"LaunchTemplate": {"Version": VERSION}}, "UpdatePolicy": {"Pause": 1}}
    return {"Template": template, "Group": group, **more}


def thing(value: Any, **attributes: Any) -> dict[str, Any]:
    return {"Thing": {"Type": "X", "Properties": {"A": value}, **attributes}}


def modify(logical_id: str, *details: ChangeDetail, type_: str = "T", **more: Any) -> ResourceChange:
    return ResourceChange("Modify", logical_id, f"{logical_id}-1", type_, details=details, **more)


def properties(name: str, path: str = "", **more: Any) -> ChangeDetail:
    return ChangeDetail("Properties", name, path and f"/Properties/{path}", **more)


def changes_of(
    old: dict[str, Any],
    new: dict[str, Any],
    *listed: ResourceChange,
    nested: bool = True,
    values: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
) -> dict[str, list[Any]]:
    """What really changes in a nested stack, by resource: paths, values, whether it is certain, and who says so."""
    outputs = {"Vpc": {"Value": {"Ref": "Thing"}}}
    parameters = {name: {"Type": "String"} for name in ("P", "Q")}
    bodies = [{"Parameters": parameters, "Resources": body, "Outputs": outputs} for body in (old, new)]
    passed = {name: {"Ref": name} for name in parameters}
    root = {
        "Parameters": parameters,
        "Resources": {"Stack": {"Type": NESTED, "Properties": {"TemplateURL": "x", "Parameters": passed}}},
    }
    evaluated = [evaluate_stacks({"": root, "Stack": body}, known) for body, known in zip(bodies, values, strict=True)]
    child = ChangeSet("child", "", "", "CREATE_COMPLETE", resource_changes={each.logical_id: each for each in listed})
    root_changes = {"Stack": modify("Stack", type_=NESTED)} if nested else {}
    change_set = ChangeSet(
        "root", "", "", "CREATE_COMPLETE", resource_changes=root_changes, children={"Stack": child} if nested else {}
    )
    completed = TemplateComparison(*evaluated).complete(change_set)
    analysis = ReplacementAnalysis(completed, evaluated[1])
    stack = completed.children.get("Stack")
    found: dict[str, list[Any]] = {}
    for each in stack.resource_changes.values() if stack else ():
        for analyzed in analysis.effective_changes(stack, each):
            detail = analyzed.detail
            told = (detail.value_path, detail.before, detail.after, analyzed.certain, detail.only_in)
            found.setdefault(each.logical_id, []).append(told)
    return found


TYPE = (f"{DATA}/InstanceType", "a", "b", True)
ROLLED = ("/Properties/LaunchTemplate/Version", None, LATER, True)
LISTED_TYPE = properties("LaunchTemplateData", "LaunchTemplateData/InstanceType", before="a", after="b")
LISTED_VERSION = properties(
    "LaunchTemplate", evaluation="Dynamic", source="ResourceAttribute", cause="Template.LatestVersionNumber"
)


@pytest.mark.parametrize(
    ("listed", "template_in", "group_in"),
    [
        # With values, CloudFormation leaves out the group; without, it lists the property only.
        ([modify("Template", LISTED_TYPE)], "", "templates"),
        ([modify("Template", LISTED_TYPE), modify("Group", LISTED_VERSION)], "", ""),
        ([modify("Template", properties("LaunchTemplateData")), modify("Group", LISTED_VERSION)], "", ""),
        # A large value is not shown, and is listed as a whole.
        (
            [
                modify("Template", properties("LaunchTemplateData", "LaunchTemplateData", before=LARGE, after=LARGE)),
                modify("Group", LISTED_VERSION),
            ],
            "",
            "",
        ),
        ([], "templates", "templates"),
    ],
)
def test_a_group_rolls_whatever_cloudformation_lists(listed: Any, template_in: str, group_in: str) -> None:
    expected = {"Template": [(*TYPE, template_in)], "Group": [(*ROLLED, group_in)]}
    assert changes_of(resources("a"), resources("b"), *listed) == expected


def test_a_stack_that_is_not_listed_at_all_changes_as_its_template_says() -> None:
    expected = {"Template": [(*TYPE, "templates")], "Group": [(*ROLLED, "templates")]}
    assert changes_of(resources("a"), resources("b"), nested=False) == expected
    assert changes_of(resources("a"), resources("a"), nested=False) == {}


def test_a_value_from_a_parameter_names_it() -> None:
    template = resources({"Ref": "P"})
    found = changes_of(template, template, modify("Template", LISTED_TYPE), values=({"P": "a"}, {"P": "b"}))
    assert found["Template"] == [(*TYPE, "")]


@pytest.mark.parametrize(
    "listed",
    [
        properties("A", "A", before=LARGE, after=LARGE),
        properties("A", "A", before="1", after=LATER, source="ParameterReference", cause="Q"),
        properties("A", evaluation="Dynamic", source="ParameterReference", cause="Q"),
        properties("A", "A", before="1", after="1"),
    ],
)
@pytest.mark.parametrize("old", [1, {"Ref": "P"}, {"Fn::Join": ["", ["1"]]}])
def test_what_is_equal_in_effect_is_no_change(listed: ChangeDetail, old: Any) -> None:
    assert changes_of(thing(old), thing("1"), modify("Thing", listed), values=({"P": "1"}, {"P": "1"})) == {}


TAGS = [{"Key": "b", "Value": {"Ref": "P"}}, {"Key": "a", "Value": "1"}]


@pytest.mark.parametrize(
    "listed",
    [[], [properties("Tags")], [properties("Tags", "Tags/0/Key", before="b", after="a")]],
    ids=["not listed", "as a whole", "with values"],
)
def test_tags_in_another_order_are_no_change(listed: list[ChangeDetail]) -> None:
    old, new = ({"Thing": {"Type": "X", "Properties": {"Tags": tags}}} for tags in (TAGS, TAGS[::-1]))
    changes = [modify("Thing", *listed)] if listed else []
    assert changes_of(old, new, *changes, values=({"P": "1"}, {"P": "1"})) == {}


def test_a_tag_that_changes_among_others_in_another_order_does() -> None:
    old, new = ({"Thing": {"Type": "X", "Properties": {"Tags": tags}}} for tags in (TAGS, TAGS[::-1]))
    found = changes_of(old, new, values=({"P": "1"}, {"P": "2"}))
    assert ("/Properties/Tags/1/Value", "1", "2", True, "templates") in found["Thing"]


@pytest.mark.parametrize(
    ("old", "new", "listed", "expected"),
    [
        # The same id in another way: only CloudFormation knows, and it lists nothing.
        ("vpc-1", {"Ref": "Q"}, [], []),
        ({"Ref": "Q"}, {"Fn::GetAtt": ["Other", "Id"]}, [], []),
        ("vpc-1", {"Ref": "Q"}, [properties("A", "A", before="vpc-1", after="vpc-2")], [("vpc-1", "vpc-2", True, "")]),
        ("vpc-1", {"Ref": "Q"}, [properties("A", "A", before="vpc-1", after=LATER)], [("vpc-1", LATER, False, "")]),
        # Texts around unknown values differ for certain.
        (
            {"Fn::Sub": "a-${Other.Id}"},
            {"Fn::Sub": "b-${Other.Id}"},
            [properties("A")],
            [("a-${Other.Id}", "b-${Other.Id}", True, "")],
        ),
        ("a", {"Fn::Sub": "b-${Other.Id}"}, [], []),
        # What CloudFormation shows although the templates are equal, e.g. after a change outside of CloudFormation.
        ("1", "1", [properties("A", "A", before="0", after="1")], [("0", "1", True, "change set")]),
        ({"Ref": "Q"}, {"Ref": "Q"}, [properties("A", "A", before="0", after="1")], [("0", "1", True, "")]),
    ],
)
def test_what_only_cloudformation_knows(old: Any, new: Any, listed: Any, expected: list[Any]) -> None:
    found = changes_of(thing(old), thing(new), *([modify("Thing", *listed)] if listed else []))
    assert [told[1:] for told in found.get("Thing", [])] == expected


@pytest.mark.parametrize("listed", [{"before": LARGE, "after": LARGE}, {"before": "ami-1", "after": "ami-2"}])
@pytest.mark.parametrize("found", [{"I": "ami-2"}, {}])
def test_another_image_behind_the_same_path_is_a_change(found: dict[str, str], listed: dict[str, Any]) -> None:
    parameters = {"I": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"}}
    template = {"Parameters": parameters, "Resources": thing({"Fn::Sub": "${I}"})}
    old, new = (evaluate_stacks({"": template}, {"I": "/path"}, {"": values}) for values in ({"I": "ami-1"}, found))
    change_ = modify("Thing", properties("A", "A", **listed))
    change_set = ChangeSet("root", "", "", "", resource_changes={"Thing": change_})
    details = TemplateComparison(old, new).complete(change_set).resource_changes["Thing"].details
    is_shown = found or listed["after"] != LARGE
    assert [(detail.before, detail.after, detail.only_in) for detail in details] == (
        [("ami-1", "ami-2", "")] if is_shown else [("ami-1", LATER, ""), (LARGE, LARGE, "")]
    )


def test_tags_of_the_stack_are_not_in_its_template() -> None:
    listed = ChangeDetail("Tags", path="/Properties/Tags/0/Value", before="1", after="2")
    found = changes_of(thing("1"), thing("1"), modify("Thing", listed))
    assert found == {"Thing": [("/Properties/Tags/0/Value", "1", "2", True, "")]}


def test_a_policy_that_only_cloudformation_keeps_is_no_change_of_the_resource() -> None:
    old, new = thing("1", DeletionPolicy="Delete"), thing("1", DeletionPolicy="Retain", DependsOn=["Other"])
    assert changes_of(old, new) == {}
    listed = modify("Thing", ChangeDetail("DeletionPolicy"))
    assert changes_of(old, new, listed) == {"Thing": [("/DeletionPolicy", "Delete", "Retain", True, "")]}


def test_a_secret_parameter_is_compared_by_cloudformation_alone() -> None:
    secret = {"Parameters": {"S": {"Type": "String", "NoEcho": True}}, "Resources": thing({"Ref": "S"})}
    evaluated = evaluate_stacks({"": secret}, {"S": "never shown"})
    listed = properties("A", "A", before=Unshown.MASKED, after=Unshown.MASKED)
    change_set = ChangeSet("root", "", "", "", resource_changes={"Thing": modify("Thing", listed)})
    completed = TemplateComparison(evaluated, evaluated).complete(change_set)
    resource_change = completed.resource_changes["Thing"]
    [analyzed] = ReplacementAnalysis(completed, evaluated).effective_changes(completed, resource_change)
    assert (analyzed.detail.before, analyzed.certain) == (Unshown.MASKED, True)


@pytest.mark.parametrize(
    "answer", [RefusedError("AccessDenied"), {}, {"TemplateBody": "A: yaml"}, {"TemplateBody": json.dumps({})}]
)
def test_without_the_deployed_templates_the_change_set_counts(answer: Any) -> None:
    def template(_: dict[str, Any]) -> dict[str, Any]:
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    api, said = Recorded(), []
    api.answers["GetTemplate"] = template
    api.answers["ListStackResources"] = lambda _: {"StackResourceSummaries": []}
    target = {"Attribute": "Properties", "Name": "A", "BeforeValue": "1", "AfterValue": "2"}
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, change("Thing", "X", {"Target": target}))
    [found] = make_plan(api.account, request(), report=said.append).changes
    [property_] = found.properties
    assert (property_.before, property_.after, property_.only_in) == ("1", "2", "")
    notices = [each.text for each in said if isinstance(each, Notice)]
    assert len(notices) == isinstance(answer, Exception)
