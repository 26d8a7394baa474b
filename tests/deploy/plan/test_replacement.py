"""Whether an announced change will, might or will not come: followed back to its cause, step by step."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.deploy.aws.change_sets import ChangeDetail, ChangeSet, ResourceChange, Unshown
from cfngen.deploy.plan.plan import Replacement
from cfngen.deploy.plan.replacement import ReplacementAnalysis
from cfngen.templates.document import Document

NESTED, ASG = "AWS::CloudFormation::Stack", "AWS::AutoScaling::AutoScalingGroup"
LATER = Unshown.KNOWN_LATER
WILL, MIGHT, NO = Replacement.WILL, Replacement.MIGHT, Replacement.NO


def entry(
    name: str, *details: ChangeDetail, type_: str = "AWS::X::Y", action: str = "Modify", replacement: str = "True"
) -> ResourceChange:
    return ResourceChange(action, name, name, type_, replacement, details=details)


def described(
    name: str, *entries: ResourceChange, parameters: tuple[str, ...] = (), **children: ChangeSet
) -> ChangeSet:
    given = dict.fromkeys(parameters, "x")
    found = {entry.logical_id: entry for entry in entries}
    return ChangeSet(name, name, name, "CREATE_COMPLETE", parameters=given, resource_changes=found, children=children)


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
    certainty = ReplacementAnalysis(root, ())
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
        [judged] = ReplacementAnalysis(root, ()).effective_changes(root, change)
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
    assert ReplacementAnalysis(root, ()).replacement(root, change) is expected


def test_resources_that_refer_to_each_other_end_somewhere() -> None:
    one, two = (entry(name, because(other, "ResourceReference")) for name, other in (("A", "B"), ("B", "A")))
    root = described("root", one, two)
    assert ReplacementAnalysis(root, ()).replacement(root, one) is NO


REF = {"Ref": "P"}
CHILD = Document("child", {"Resources": {}, "Outputs": {"Id": {"Value": {"Ref": "Thing"}}, "Own": {"Value": REF}}}, "m")


def root_document(handed: Any) -> Document:
    user = {"Type": NESTED, "Properties": {"Parameters": {"P": handed}}}
    return Document("cluster", {"Resources": {"UserStack": user}}, "m", ("child",))


FROM_OUTPUT = {"Fn::GetAtt": ["SupplierStack", "Outputs.Id"]}
CHANGED = entry("Thing", prop(before="1", after="2", **ALWAYS))
TAGGED = entry("Thing", ChangeDetail("Tags", before="1", after="2"))


@pytest.mark.parametrize(
    ("handed", "supplier", "details", "expected"),
    [
        (FROM_OUTPUT, [CHANGED], [], WILL),
        (FROM_OUTPUT, [TAGGED], [], NO),
        (FROM_OUTPUT, [], [], NO),
        ({"Ref": "X"}, [CHANGED], [], NO),
        ({"Fn::GetAtt": ["NoSuchStack", "Outputs.Id"]}, [CHANGED], [], NO),
        # Of an output that no template has, any resource may be what it is made of.
        (
            {"Fn::GetAtt": ["SupplierStack", "Outputs.Other"]},
            [entry("Any", prop(before="1", after="2", **ALWAYS))],
            [],
            WILL,
        ),
        ({"Fn::GetAtt": ["SupplierStack", "Outputs.Other"]}, [TAGGED], [], NO),
        # What the root is given is known already.
        ({"Ref": "X"}, [], [prop("Parameters/P", "1", "2")], WILL),
        ({"Ref": "X"}, [], [prop("Parameters/P", "1", "1")], NO),
        ({"Ref": "X"}, [], [prop("Parameters/Q", "1", "2")], NO),
        ({"Ref": "X"}, [], [prop("Parameters/P", source="ParameterReference", cause="X")], WILL),
        ({"Ref": "X"}, [], [prop("Parameters/P", source="ParameterReference", cause="X", evaluation="Dynamic")], MIGHT),
        ({"Ref": "X"}, [], [prop("Parameters/P", source="ResourceReference", cause="X")], NO),
        # A parameter of which the templates say nothing.
        (None, [], [], MIGHT),
        (None, [CHANGED], [because("SupplierStack.Outputs.Id", "ResourceAttribute", "Parameters/P")], WILL),
        (None, [TAGGED], [because("SupplierStack.Outputs.Id", "ResourceAttribute", "Parameters/P")], NO),
        (None, [], [because("SupplierStack", "Automatic", "Parameters/P")], MIGHT),
    ],
)
def test_what_a_nested_stack_is_handed(
    handed: Any, supplier: list[ResourceChange], details: list[ChangeDetail], expected: Replacement
) -> None:
    change = entry("T", because("P", "ParameterReference"))
    user = described("user", change, parameters=("P",))
    stacks = (entry("SupplierStack", type_=NESTED), entry("UserStack", *details, type_=NESTED))
    root = described("root", *stacks, SupplierStack=described("supplier", *supplier), UserStack=user)
    documents = (CHILD, root_document(handed)) if handed is not None else (CHILD,)
    assert ReplacementAnalysis(root, documents).replacement(user, change) is expected


def test_an_output_may_be_a_parameter_that_is_handed_on() -> None:
    change = entry("T", because("SupplierStack.Outputs.Own", "ResourceAttribute"))
    supplier = described("supplier", parameters=("P",))
    body = {"Resources": {"SupplierStack": {"Type": NESTED, "Properties": {"Parameters": {"P": {"Ref": "X"}}}}}}
    for after, expected in (("2", WILL), ("1", NO)):
        stack = entry("SupplierStack", prop("Parameters/P", "1", after), type_=NESTED)
        root = described("root", stack, change, SupplierStack=supplier)
        documents = (CHILD, Document("cluster", body, "m", ("child",)))
        assert ReplacementAnalysis(root, documents).replacement(root, change) is expected


@pytest.mark.parametrize(("action", "expected"), [("Add", MIGHT), ("Remove", MIGHT)])
def test_an_output_of_a_stack_that_comes_or_goes(action: str, expected: Replacement) -> None:
    change = entry("T", because("SupplierStack.Outputs.Id", "ResourceAttribute"))
    stack = entry("SupplierStack", type_=NESTED, action=action)
    root = described("root", stack, change, SupplierStack=described("supplier", TAGGED))
    assert ReplacementAnalysis(root, (CHILD,)).replacement(root, change) is expected


ROLLING, REPLACING = {"AutoScalingRollingUpdate": {}}, {"AutoScalingReplacingUpdate": {}}


@pytest.mark.parametrize(
    ("policy", "expected"), [(ROLLING, NO), ({**ROLLING, **REPLACING}, MIGHT), (REPLACING, MIGHT), (None, MIGHT)]
)
def test_groups_that_roll_their_instances_stay(policy: Any, expected: Replacement) -> None:
    group = {"Type": ASG, **({"UpdatePolicy": policy} if policy is not None else {})}
    change = entry("G", prop(before="1", after="2", recreation="Conditionally"), type_=ASG)
    root = described("root", change)
    assert (
        ReplacementAnalysis(root, (Document("x", {"Resources": {"G": group}}, "m"),)).replacement(root, change)
        is expected
    )


def test_outputs_are_those_of_nested_stacks() -> None:
    """The flat template has the same outputs, made of other things."""
    flat = Document("standalone", {"Resources": {}, "Outputs": {"Id": {"Value": "fixed"}}}, "m")
    top = Document("cluster", {"Resources": {}, "Outputs": {"Id": {"Value": "fixed"}}}, "m", ("child",))
    change = entry("T", because("SupplierStack.Outputs.Id", "ResourceAttribute"))
    root = described("root", entry("SupplierStack", type_=NESTED), change, SupplierStack=described("supplier", CHANGED))
    assert ReplacementAnalysis(root, (CHILD, flat, top)).replacement(root, change) is WILL


def test_each_attribute_of_each_resource_is_judged_for_itself() -> None:
    names = (("A.Id", NO), ("A.LatestVersionNumber", WILL), ("B.Id", WILL), ("A.Id", NO))
    found = [entry(f"T{place}", because(cause, "ResourceAttribute")) for place, (cause, _) in enumerate(names)]
    others = (entry("A", prop(before="1", after="2")), entry("B", prop(before="1", after="2", **ALWAYS)))
    child = described("child", entry("A", prop(before="1", after="2", **ALWAYS)), found[0])
    root = described("root", *found, *others, ChildStack=child)
    certainty = ReplacementAnalysis(root, ())
    assert [certainty.replacement(root, each) for each in found] == [expected for _, expected in names]
    assert certainty.replacement(child, found[0]) is WILL


URL = "https://{}/k8s/{}/vpc.json"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (prop("TemplateURL", URL.format("one", "0a"), URL.format("two", "0a")), NO),
        (prop("TemplateURL", URL.format("one", "0a"), URL.format("one", "0b")), MIGHT),
        (prop("TemplateURL", URL.format("one", "0a"), LATER), MIGHT),
        (prop("TemplateURL"), MIGHT),
        (prop("Tags", URL.format("one", "0a"), URL.format("two", "0a")), MIGHT),
        (because("Other.Id", "ResourceAttribute", "Parameters/A"), NO),
        (because("Other.Id", "ResourceAttribute", "Tags"), MIGHT),
        (because("Other.Id", "DirectModification", "Parameters/A"), MIGHT),
        (because("", "ResourceAttribute", "Parameters/A"), MIGHT),
    ],
)
def test_an_output_of_a_stack_without_a_change_set_follows_what_it_is_handed(
    told: ChangeDetail, expected: Replacement
) -> None:
    change = entry("T", because("SupplierStack.Outputs.Id", "ResourceAttribute"))
    root = described("root", entry("SupplierStack", told, type_=NESTED), change)
    assert ReplacementAnalysis(root, (CHILD,)).replacement(root, change) is expected
