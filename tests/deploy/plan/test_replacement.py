"""Whether an announced change will, might or will not come: followed back to its cause, step by step."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.deploy.aws.change_sets import ChangeDetail, ChangeSet, ResourceChange, Unshown
from cfngen.deploy.plan.plan import Replacement
from cfngen.deploy.plan.replacement import ReplacementAnalysis
from cfngen.templates.evaluation import EvaluatedTemplate, evaluate_stacks

NESTED, ASG = "AWS::CloudFormation::Stack", "AWS::AutoScaling::AutoScalingGroup"
LATER = Unshown.KNOWN_LATER
WILL, MIGHT, NO = Replacement.WILL, Replacement.MIGHT, Replacement.NO


def entry(
    name: str, *details: ChangeDetail, type_: str = "AWS::X::Y", action: str = "Modify", replacement: str = "True"
) -> ResourceChange:
    return ResourceChange(action, name, name, type_, replacement, details=details)


def described(name: str, *entries: ResourceChange, **children: ChangeSet) -> ChangeSet:
    found = {entry.logical_id: entry for entry in entries}
    return ChangeSet(name, name, name, "CREATE_COMPLETE", resource_changes=found, children=children)


def prop(name: str = "A", before: Any = None, after: Any = None, **more: Any) -> ChangeDetail:
    return ChangeDetail("Properties", name, f"/Properties/{name}", before=before, after=after, **more)


def because(cause: str, source: str, name: str = "A", **more: Any) -> ChangeDetail:
    return prop(name, "old", LATER, cause=cause, source=source, recreation=more.pop("recreation", "Always"), **more)


ALWAYS = {"recreation": "Always"}


@pytest.mark.parametrize(
    ("found", "replaced", "changes"),
    [
        (entry("T", replacement="True"), WILL, True),
        (entry("T", replacement="Conditional"), MIGHT, True),
        (entry("T", replacement="False"), NO, True),
        (entry("T", action="Add"), NO, True),
        (entry("T", prop(before="1", after="1", **ALWAYS)), NO, False),
        (entry("T", prop(before="1", after="2")), NO, True),
        (entry("T", prop(before="1", after="2", **ALWAYS)), WILL, True),
        (entry("T", prop(before="1", after="2", **ALWAYS), replacement="False"), NO, True),
        (entry("T", prop(before="1", after="2", recreation="Conditionally")), MIGHT, True),
        (entry("T", prop(before="1", after=LATER, **ALWAYS)), MIGHT, True),
        (entry("T", prop(evaluation="Static", **ALWAYS)), WILL, True),
        (entry("T", prop(evaluation="Dynamic", **ALWAYS)), MIGHT, True),
        (entry("T", prop(before="1", after="2"), prop("B", "1", "2", **ALWAYS)), WILL, True),
        (
            entry("T", prop(before="1", after="2", recreation="Conditionally"), prop("B", "1", "2", **ALWAYS)),
            WILL,
            True,
        ),
        (entry("T", prop(before="1", after="2"), prop("B", before="1", after=LATER, **ALWAYS)), MIGHT, True),
        (entry("T", prop(before="1", after="1"), prop("B", before="1", after="2", **ALWAYS)), WILL, True),
        (entry("T", prop(before="1", after="1"), action="Remove"), NO, True),
        # One that names its cause speaks for all at its place.
        (entry("T", prop(evaluation="Dynamic", **ALWAYS), because("Gone.Id", "ResourceAttribute")), NO, False),
        (entry("T", prop("B", evaluation="Dynamic", **ALWAYS), because("Gone.Id", "ResourceAttribute")), MIGHT, True),
        # What the template itself changes has no cause, whatever is named as one.
        (entry("T", because("Gone.Id", "DirectModification")), MIGHT, True),
        (entry("T", because("", "ResourceAttribute")), MIGHT, True),
        (entry("S", ChangeDetail("Properties", source="Automatic", evaluation="Dynamic"), type_=NESTED), NO, False),
        (
            entry("T", ChangeDetail("Properties", source="Automatic", evaluation="Dynamic", recreation="Always")),
            MIGHT,
            True,
        ),
        (entry("S", prop("Parameters/A", "1", "2"), type_=NESTED), NO, False),
        (entry("S", prop("TemplateURL", "1", "2"), type_=NESTED), NO, False),
        (entry("S", prop("Tags/0", "1", "2"), type_=NESTED), NO, True),
        (entry("T", prop("Parameters/A", "1", "2")), NO, True),
    ],
)
def test_what_comes_of_a_resource(found: ResourceChange, replaced: Replacement, changes: bool) -> None:
    root = described("root", found)
    certainty = ReplacementAnalysis(root, {})
    assert (certainty.replacement(root, found), certainty.has_effect(root, found)) == (replaced, changes)


def test_of_reasons_at_one_place_the_most_certain_counts_and_then_the_one_with_a_cause() -> None:
    other = entry("Other", prop(before="1", after="2", **ALWAYS))
    unsure = prop(before="1", after=LATER, cause="Other", source="DirectModification")
    sure, caused = prop(before="1", after="2"), prop(before="1", after="2", cause="Other", source="ResourceReference")
    for details, best in (
        ((unsure, sure), sure),
        ((sure, unsure), sure),
        ((sure, caused), caused),
        ((caused, sure), caused),
    ):
        change = entry("T", *details)
        root = described("root", change, other)
        [judged] = ReplacementAnalysis(root, {}).effective_changes(root, change)
        assert judged.detail is best
        assert judged.certain


@pytest.mark.parametrize(
    ("others", "attribute", "expected"),
    [
        ([], "Id", NO),
        ([entry("Other", action="Add")], "Id", WILL),
        ([entry("Other", action="Remove")], "", WILL),
        ([entry("Other", prop(before="1", after="2", **ALWAYS))], "Id", WILL),
        ([entry("Other", prop(before="1", after=LATER, **ALWAYS))], "", MIGHT),
        ([entry("Other", prop(before="1", after="2"))], "Id", NO),
        # Versions change though the launch template stays; tags make none.
        ([entry("Other", prop(before="1", after="2"))], "LatestVersionNumber", WILL),
        ([entry("Other", prop(before="1", after="2"))], "DefaultVersionNumber", WILL),
        ([entry("Other", prop(before="1", after=LATER))], "LatestVersionNumber", MIGHT),
        ([entry("Other", ChangeDetail("Tags", before="1", after="2"))], "LatestVersionNumber", NO),
        ([entry("Other", prop(before="1", after="2", **ALWAYS))], "LatestVersionNumber", WILL),
        ([entry("Other", replacement="True")], "LatestVersionNumber", WILL),
        (
            [entry("Other", prop(before="1", after=LATER, **ALWAYS), prop("B", "1", "2"))],
            "LatestVersionNumber",
            WILL,
        ),
    ],
)
def test_what_refers_to_another_resource_follows_it(
    others: list[ResourceChange], attribute: str, expected: Replacement
) -> None:
    source = "ResourceAttribute" if attribute else "ResourceReference"
    change = entry("T", because(f"Other.{attribute}" if attribute else "Other", source))
    root = described("root", change, *others)
    assert ReplacementAnalysis(root, {}).replacement(root, change) is expected


def test_resources_that_refer_to_each_other_end_somewhere() -> None:
    one, two = (entry(name, because(other, "ResourceReference")) for name, other in (("A", "B"), ("B", "A")))
    root = described("root", one, two)
    assert ReplacementAnalysis(root, {}).replacement(root, one) is NO


OUTPUTS = {"Id": {"Value": {"Ref": "Thing"}}, "Version": {"Value": {"Fn::GetAtt": ["Thing", "LatestVersionNumber"]}}}
SUPPLIER = {"Resources": {"Thing": {"Type": "X"}}, "Outputs": OUTPUTS}
CHANGED = entry("Thing", prop(before="1", after="2", **ALWAYS))
TAGGED = entry("Thing", ChangeDetail("Tags", before="1", after="2"))


def templates(passed: Any = None, supplier: Any = SUPPLIER) -> dict[str, EvaluatedTemplate]:
    """A root that passes a value to the parameter P of UserStack."""
    parameters = {"P": passed} if passed is not None else {}
    stacks = {
        "SupplierStack": {"Type": NESTED},
        "UserStack": {"Type": NESTED, "Properties": {"Parameters": parameters}},
    }
    user = {"Parameters": {"P": {"Type": "String"}}, "Resources": {"T": {"Type": "X"}}}
    return evaluate_stacks({"": {"Resources": stacks}, "SupplierStack": supplier, "UserStack": user}, {})


def output(name: str, stack: str = "SupplierStack") -> dict[str, Any]:
    return {"Fn::GetAtt": [stack, f"Outputs.{name}"]}


STATIC = because("P", "ParameterReference")
DYNAMIC = because("P", "ParameterReference", evaluation="Dynamic")


@pytest.mark.parametrize(
    ("passed", "supplier", "detail", "expected"),
    [
        (output("Id"), [CHANGED], DYNAMIC, WILL),
        (output("Id"), [TAGGED], STATIC, NO),
        (output("Id"), [], STATIC, NO),
        (output("Version"), [entry("Thing", prop(before="1", after="2"))], DYNAMIC, WILL),
        (output("Version"), [TAGGED], STATIC, NO),
        ({"Fn::Sub": "x-${SupplierStack.Outputs.Id}"}, [CHANGED], DYNAMIC, WILL),
        # What the templates do not say is as certain as CloudFormation's evaluation.
        (output("Other"), [CHANGED], DYNAMIC, MIGHT),
        (output("Id", "NoSuchStack"), [CHANGED], DYNAMIC, MIGHT),
        ("fixed", [CHANGED], DYNAMIC, MIGHT),
        ("fixed", [CHANGED], STATIC, WILL),
        (None, [], STATIC, WILL),
        (None, [], DYNAMIC, MIGHT),
    ],
)
def test_what_a_nested_stack_is_passed(
    passed: Any, supplier: list[ResourceChange], detail: ChangeDetail, expected: Replacement
) -> None:
    change = entry("T", detail)
    stacks = (entry("SupplierStack", type_=NESTED), entry("UserStack", type_=NESTED))
    user = described("user", change)
    root = described("root", *stacks, SupplierStack=described("supplier", *supplier), UserStack=user)
    assert ReplacementAnalysis(root, templates(passed)).replacement(user, change) is expected


@pytest.mark.parametrize("action", ["Add", "Remove"])
def test_an_output_of_a_stack_that_comes_or_goes_is_another_value(action: str) -> None:
    change = entry("T", because("SupplierStack.Outputs.Id", "ResourceAttribute"))
    stack = entry("SupplierStack", type_=NESTED, action=action)
    thing = entry("Thing", action=action)
    root = described("root", stack, change, SupplierStack=described("supplier", thing))
    assert ReplacementAnalysis(root, templates()).replacement(root, change) is WILL


@pytest.mark.parametrize("name", ["Id", "Other"])
def test_an_output_of_a_stack_of_which_nothing_is_known_might_change(name: str) -> None:
    change = entry("T", because(f"SupplierStack.Outputs.{name}", "ResourceAttribute"))
    root = described("root", entry("SupplierStack", type_=NESTED), change)
    assert ReplacementAnalysis(root, templates()).replacement(root, change) is MIGHT


ROLLING, REPLACING = {"AutoScalingRollingUpdate": {}}, {"AutoScalingReplacingUpdate": {}}


@pytest.mark.parametrize(
    ("policy", "expected"), [(ROLLING, NO), ({**ROLLING, **REPLACING}, MIGHT), (REPLACING, MIGHT), (None, MIGHT)]
)
def test_groups_that_roll_their_instances_stay(policy: Any, expected: Replacement) -> None:
    group = {"Type": ASG, **({"UpdatePolicy": policy} if policy is not None else {})}
    change = entry("G", prop(before="1", after="2", recreation="Conditionally"), type_=ASG)
    root = described("root", change)
    requested = evaluate_stacks({"": {"Resources": {"G": group}}}, {})
    assert ReplacementAnalysis(root, requested).replacement(root, change) is expected


def test_each_attribute_of_each_resource_is_judged_for_itself() -> None:
    names = (("A.Id", NO), ("A.LatestVersionNumber", WILL), ("B.Id", WILL), ("A.Id", NO))
    found = [entry(f"T{place}", because(cause, "ResourceAttribute")) for place, (cause, _) in enumerate(names)]
    others = (entry("A", prop(before="1", after="2")), entry("B", prop(before="1", after="2", **ALWAYS)))
    child = described("child", entry("A", prop(before="1", after="2", **ALWAYS)), found[0])
    root = described("root", *found, *others, ChildStack=child)
    certainty = ReplacementAnalysis(root, {})
    assert [certainty.replacement(root, each) for each in found] == [expected for _, expected in names]
    assert certainty.replacement(child, found[0]) is WILL
