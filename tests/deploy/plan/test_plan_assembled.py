"""From the answers of CloudFormation to the plan: each field of it, in order, as a person is shown it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from recorded import (
    CHANGE_SET,
    NESTED,
    NOW,
    STACK_ID,
    UNKNOWN_VALUE,
    Recorded,
    RefusedError,
    change,
    description,
    detail,
    nested,
    nested_arn,
    request,
)
from troposphere import Ref

from cfngen.cluster.load import parse
from cfngen.deploy.messages.message import Danger, Impact, Notice
from cfngen.deploy.plan.change_sets import make_plan
from cfngen.deploy.plan.costs.costs import Cost
from cfngen.deploy.plan.plan import Change, Counts, Plan, PropertyChange, Replacement
from cfngen.templates.document import Document
from cfngen.userdata import node, user_data_diff

ASG, ENI, TEMPLATE = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::NetworkInterface", "AWS::EC2::LaunchTemplate"
WILL, MIGHT, NO = Replacement.WILL, Replacement.MIGHT, Replacement.NO
GROUP = "NodeGroupNodesAutoScalingGroup"
OLD = STACK_ID.replace("stack/kubernetes/", "stack/kubernetes-OldStack-1/")


def planned(*root: dict[str, Any], api: Recorded | None = None, said: list[Any] | None = None, **more: Any) -> Plan:
    """The plan of a change set of the root, with those of nested stacks by their logical ids."""
    api = api or Recorded()
    children = {name: more.pop(name) for name in list(more) if name.endswith("Stack")}
    compare = more.pop("compare", None)
    api.change_sets[CHANGE_SET] = description(CHANGE_SET, *root)
    for name, changes in children.items():
        api.change_sets[nested_arn(name)] = description(nested_arn(name), *changes)
    report = said.append if said is not None else lambda _: None
    with pytest.MonkeyPatch.context() as patch:
        if compare is not None:
            patch.setattr(user_data_diff, "difference", compare)
        return make_plan(api.account, request(**more), report=report)


def shown(plan: Plan) -> list[Any]:
    return [
        ("/".join(stack.path), stack.name, stack.action, [f"{each.action} {each.logical_id}" for each in stack.changes])
        for stack in plan.stacks
    ]


def one(*details: dict[str, Any], **more: Any) -> Change:
    [found] = planned(change("Thing", "AWS::X::Y", *details, **more)).changes
    return found


def test_what_was_asked_for_is_in_the_plan() -> None:
    hurts = Impact("Kubernetes changes", Danger.DANGEROUS)
    cost = Cost(1, "key", "KMS")
    asked: dict[str, Any] = {
        "costs": (cost,),
        "predicted": (hurts,),
        "on_failure": "DO_NOTHING",
        "quotas_ignored": True,
    }
    plan = planned(change("Thing", "AWS::X::Y", detail("A", "1", "2")), **asked)
    assert plan == Plan(
        "kubernetes",
        STACK_ID,
        "update",
        CHANGE_SET,
        NOW,
        plan.stacks,
        Counts(update=1),
        Danger.DANGEROUS,
        quotas_ignored=True,
        costs=(cost,),
        on_failure="DO_NOTHING",
        predicted=(hurts,),
    )
    assert planned(change("Thing", "AWS::X::Y", detail("A", "1", "2")), express=True).express


@pytest.mark.parametrize(
    ("predicted", "worst"), [((), Danger.DISRUPTIVE), ((Impact("x", Danger.DANGEROUS),), Danger.DANGEROUS)]
)
def test_the_worst_of_all_is_the_plans_danger(predicted: Any, worst: Danger) -> None:
    calm = change("MasterAVolume", "AWS::EC2::Volume", detail("Size", "20", "40"))
    moved = change("ApiLoadBalancer", "AWS::ElasticLoadBalancingV2::LoadBalancer", detail("Subnets/0", "a", "b"))
    assert planned(calm, moved, predicted=predicted).danger is worst
    assert planned(calm).danger is Danger.NONE


def test_a_new_cluster_is_told_by_what_it_consists_of_and_not_by_what_may_hurt() -> None:
    api = Recorded(exists=False)
    plan = planned(
        nested("VpcStack", action="Add"), nested("IamStack", action="Add"), api=api,
        VpcStack=(change("Vpc", "AWS::EC2::VPC", action="Add"),), IamStack=(),
    )  # fmt: skip
    assert (plan.operation, plan.shell, plan.templates_only) == ("create", True, False)
    assert plan.creation is not None
    assert {each.what for each in plan.creation.items} >= {"master", "node", "VPC"}
    assert shown(plan) == [
        ("VpcStack", "kubernetes-VpcStack-XYZ", "create", ["add Vpc"]),
        ("", "kubernetes", "create", []),
        ("IamStack", "kubernetes-IamStack-XYZ", "create", []),
    ]
    assert {(each.impact, each.danger) for each in plan.changes} == {(None, Danger.NONE)}
    assert [each.impact for each in plan.stacks] == [None, None, None]
    assert planned(change("Thing", "AWS::X::Y", detail("A", "1", "2"))).creation is None


def test_nested_stacks_that_come_stay_and_go() -> None:
    api = Recorded()
    api.answers["ListStackResources"] = lambda _: {"StackResourceSummaries": []}
    plan = planned(
        change("Root", "AWS::X::Y", action="Import"),
        nested("VpcStack"),
        nested("NodeGroupNodesStack", action="Add"),
        change("NodeGroupOldStack", NESTED, action="Remove", PhysicalResourceId=OLD),
        change("NodeGroupLateStack", NESTED, action="Add"),
        api=api,
        VpcStack=(change("Vpc", "AWS::EC2::VPC", detail("EnableDnsSupport", "a", "b")),),
        NodeGroupNodesStack=(change(GROUP, ASG, action="Add"),),
    )
    assert shown(plan) == [
        ("NodeGroupOldStack", "kubernetes-OldStack-1", "delete", []),
        ("VpcStack", "kubernetes-VpcStack-XYZ", "update", ["update Vpc"]),
        ("", "kubernetes", "update", ["import Root"]),
        ("NodeGroupNodesStack", "kubernetes-NodeGroupNodesStack-XYZ", "create", [f"add {GROUP}"]),
        ("NodeGroupLateStack", "", "create", []),
    ]
    meanings = {stack.path[-1]: stack.impact.text for stack in plan.stacks if stack.impact}
    assert sorted(meanings) == ["NodeGroupLateStack", "NodeGroupNodesStack", "NodeGroupOldStack"]
    assert meanings["NodeGroupLateStack"] == "new node group `late`"
    # What is in a stack that comes needs no words of its own.
    assert [each.impact for each in plan.changes if each.logical_id == GROUP] == [None]
    assert plan.counts == Counts(add=2, update=1)


def test_a_nested_stack_that_only_gets_tags_changes_itself_and_is_not_counted() -> None:
    plan = planned(nested("VpcStack", detail("Tags/0/Value", "a", "b")), VpcStack=())
    assert shown(plan) == [("", "kubernetes", "update", ["update VpcStack"])]
    assert plan.counts == Counts()


def resource(logical_id: str, type_: str, status: str = "CREATE_COMPLETE") -> dict[str, Any]:
    return {
        "LogicalResourceId": logical_id,
        "PhysicalResourceId": f"physical-{logical_id}",
        "ResourceType": type_,
        "ResourceStatus": status,
        "LastUpdatedTimestamp": NOW,
    }


def test_what_is_in_a_stack_that_goes_is_read_and_only_told_where_it_is_worse() -> None:
    api = Recorded()
    api.answers["ListStackResources"] = lambda sent: {
        "StackResourceSummaries": [
            resource(GROUP, ASG),
            resource("NodeGroupNodesVolume", "AWS::EC2::Volume"),
            resource("NodeGroupNodesGone", "AWS::EC2::Volume", "DELETE_COMPLETE"),
        ]
        if sent["StackName"] == OLD
        else [{**resource("NodeGroupNodesStack", NESTED), "PhysicalResourceId": OLD}]
    }
    going = change("NodeGroupNodesStack", NESTED, action="Remove", PhysicalResourceId=OLD)
    [stack] = planned(going, api=api).stacks
    assert (stack.action, stack.danger) == ("delete", Danger.DANGEROUS)
    told = [(each.logical_id, each.physical_id, each.action, each.impact is None) for each in stack.changes]
    assert told == [
        ("NodeGroupNodesVolume", "physical-NodeGroupNodesVolume", "remove", False),
        (GROUP, f"physical-{GROUP}", "remove", True),
    ]


def test_a_stack_that_goes_is_told_by_its_change_set_where_that_says_it() -> None:
    going = change("VpcStack", NESTED, action="Remove", ChangeSetId=nested_arn("VpcStack"))
    [stack] = planned(going, VpcStack=(change("Vpc", "AWS::EC2::VPC", action="Remove", policy="Retain"),)).stacks
    assert (stack.name, stack.action) == ("kubernetes-VpcStack-XYZ", "delete")
    [vpc] = stack.changes
    assert (vpc.action, vpc.policy, vpc.danger) == ("remove", "retain", Danger.DANGEROUS)


def test_where_what_goes_cannot_be_listed_that_is_said() -> None:
    def denied(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError("AccessDenied")

    api, said = Recorded(), []
    api.answers["ListStackResources"] = denied
    [stack] = planned(nested("NodeGroupOldStack", action="Remove"), api=api, said=said).stacks
    assert stack.changes == ()
    texts = [each.text for each in said if isinstance(each, Notice)]
    assert [text for text in texts if text.startswith("the deployed templates cannot be read, so the plan relies on ")]


@pytest.mark.parametrize(
    ("entry", "action", "replacement", "policy"),
    [
        (change("T", "X", action="Add"), "add", NO, ""),
        (change("T", "X", action="Remove", policy="Delete"), "remove", NO, "delete"),
        (change("T", "X", action="Remove", policy="Snapshot"), "remove", NO, "snapshot"),
        (change("T", "X", action="Import"), "import", NO, ""),
        (change("T", "X", action="Dynamic"), "update", NO, ""),
        (change("T", "X", replacement="True", policy="ReplaceAndRetain"), "update", WILL, "retain"),
        (change("T", "X", replacement="Conditional", policy="ReplaceAndSnapshot"), "update", MIGHT, "snapshot"),
        (change("T", "X", detail("A", "1", "2"), policy="Delete"), "update", NO, ""),
        (change("T", "X", replacement="True", policy="Other"), "update", WILL, ""),
    ],
)
def test_what_happens_to_a_resource(entry: dict[str, Any], action: str, replacement: Replacement, policy: str) -> None:
    [found] = planned(entry).changes
    assert (found.action, found.replacement, found.policy) == (action, replacement, policy)
    assert (found.logical_id, found.type) == ("T", "X")
    assert found.physical_id == ("" if action == "add" else "physical-T")


def test_counts_are_by_what_happens() -> None:
    entries = [
        *(change(f"A{n}", "X", action="Add") for n in range(1)),
        *(change(f"U{n}", "X", detail("A", "1", "2")) for n in range(2)),
        *(change(f"W{n}", "X", replacement="True") for n in range(3)),
        *(change(f"M{n}", "X", replacement="Conditional") for n in range(4)),
        *(change(f"R{n}", "X", action="Remove") for n in range(5)),
    ]
    # Nobody would call these a resource of an account.
    in_templates = [
        change("P1", "AWS::CloudFormation::WaitConditionHandle", action="Add"),
        change("P2", "AWS::CloudFormation::WaitConditionHandle", action="Remove"),
        change("C", "AWS::CloudFormation::WaitCondition", action="Add"),
    ]
    assert planned(*in_templates).counts == Counts()
    assert planned(*entries, *in_templates).counts == Counts(1, 2, 3, 4, 5)
    plan = planned(*entries)
    assert plan.counts.total == 15
    kinds = [each.logical_id[0] for each in plan.changes]
    assert kinds == [*"WWW", *"MMMM", *"RRRRR", *"UU", "A"]
    assert [each.logical_id for each in plan.changes if each.logical_id[0] == "R"] == [f"R{n}" for n in range(5)]


def test_of_one_kind_what_may_hurt_comes_first() -> None:
    calm = change("Alias", "AWS::X::Y", action="Remove")
    hurts = change("Vpc", "AWS::EC2::VPC", action="Remove")
    assert [each.logical_id for each in planned(calm, hurts).changes] == ["Vpc", "Alias"]


KUBELET = {"kubernetes": {"kubeletConfiguration": {"maxPods": 50}}}
SECRETS = {"Pass": {"NoEcho": True}, "Word": {"NoEcho": "true"}, "No": {"NoEcho": False}}
VERSION = {"cause": "attribute T.LatestVersionNumber", "note": "the new version of its launch template"}
UNTOLD = {"known": False, "certain": False}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (detail("A", "1", "2"), {"before": "1", "after": "2"}),
        (detail("A", "1", None), {"before": "1"}),
        (detail("A", None, "2"), {"after": "2"}),
        (detail("A"), {"known": False}),
        (detail("A", "1", UNKNOWN_VALUE), {"before": "1", **UNTOLD}),
        (detail("A", "1", f"x-{UNKNOWN_VALUE}", cause="P"), {"before": "1", "known": False, "cause": "parameter P"}),
        (detail("A", "1", "2", cause="No"), {"before": "1", "after": "2", "cause": "parameter No"}),
        (detail("A", "1", "2", cause="Pass"), {"sensitive": True, "cause": "parameter Pass"}),
        (detail("A", "1", "2", cause="Word"), {"sensitive": True, "cause": "parameter Word"}),
        # A resource of that name is no parameter.
        (
            detail("A", "1", "2", cause="Pass", source="ResourceReference"),
            {"before": "1", "after": "2", "cause": "resource Pass"},
        ),
        (detail("A", "1", "2", cause="R.Arn"), {"before": "1", "after": "2", "cause": "attribute R.Arn"}),
        (detail("A", "1", "2", cause="R", source="DirectModification"), {"before": "1", "after": "2"}),
        (detail("A", "1", "****"), {"sensitive": True}),
        (detail("A", "****", "2"), {"sensitive": True}),
        (detail("A", "1", "***"), {"before": "1", "after": "***"}),
        (detail("A", "a****", "a****"), {"sensitive": True}),
        (detail("A", "1", "2", cause="T.LatestVersionNumber"), VERSION),
        (detail("A", "1", "2", recreation="Always"), {"before": "1", "after": "2", "replaces": WILL}),
    ],
)
def test_what_changes_in_a_resource(told: dict[str, Any], expected: dict[str, Any]) -> None:
    documents = (Document("x", {"Parameters": SECRETS, "Resources": {}}, "m"),)
    [found] = planned(change("Thing", "AWS::X::Y", told, replacement="Conditional"), documents=documents).changes
    assert found.properties == (PropertyChange("/Properties/A", **expected),)


def test_what_changes_in_a_resource_is_in_the_order_of_its_places() -> None:
    [found] = planned(change("Thing", "AWS::X::Y", *(detail(name, "1", "2") for name in "BCA"))).changes
    assert [each.path for each in found.properties] == ["/Properties/A", "/Properties/B", "/Properties/C"]


@pytest.mark.parametrize(
    ("before", "after", "compare", "note"),
    [
        ("a", "b", lambda old, new, programs: f"{old} to {new}", "a to b"),
        ("a", "b", lambda old, new, programs: "", "the boot program or its configuration changes"),
        ("a", "b", None, "the boot program or its configuration changes"),
        (
            "a",
            f"b{UNKNOWN_VALUE}",
            lambda old, new, programs: "compared",
            "the boot program or its configuration changes",
        ),
        (None, "b", lambda old, new, programs: "compared", "the boot program or its configuration changes"),
        ("a", None, lambda old, new, programs: "compared", "the boot program or its configuration changes"),
    ],
)
def test_user_data_is_compared_in_words_and_told_all_the_same(before: Any, after: Any, compare: Any, note: str) -> None:
    launch = change("T", TEMPLATE, detail("LaunchTemplateData/UserData", before, after))
    [found] = planned(launch, compare=compare).changes[0].properties
    told = None if after is None or UNKNOWN_VALUE in after else after
    assert (found.note, found.before, found.after) == (note, before, told)


def with_user_data(changed: str, **file: Any) -> dict[str, Any]:
    """A template with the launch template of the default node group, and its boot program.

    Args:
        changed: the resource from which the user data has the secret's ARN.
    """
    cluster = parse(file)
    given = {"stack": "k8s", "resource": GROUP, "joinSecretArn": Ref(changed)}
    made = node(cluster, cluster.node_groups[0], given)
    launch = {"LaunchTemplateData": {"UserData": made.value.to_dict()}}
    return {
        "Resources": {
            changed: {"Type": "AWS::SecretsManager::Secret", "Properties": {"Name": "a"}},
            made.resource: {"Type": "X", "Metadata": {"cfngen": {"program": made.program}}},
            "T": {"Type": TEMPLATE, "Properties": launch},
        }
    }


@pytest.mark.parametrize(
    ("secret", "file", "note", "certain"),
    [
        # CloudFormation shows nothing of what refers to a resource; the templates show the text around it.
        ("Secret", KUBELET, "the kubelet's configuration: maxPods (none) -> 50", True),
        ("Other", KUBELET, "the kubelet's configuration: maxPods (none) -> 50; the secret that nodes join with changes",
         True),
        ("Secret", {}, "the secret that nodes join with", False),
    ],
)  # fmt: skip
def test_user_data_is_compared_by_the_templates(secret: str, file: Any, note: str, certain: bool) -> None:
    api = Recorded()
    api.answers["GetTemplate"] = lambda _: {"TemplateBody": json.dumps(with_user_data("Secret"))}
    api.answers["ListStackResources"] = lambda _: {"StackResourceSummaries": []}
    listed = detail("LaunchTemplateData/UserData", cause=secret, source="ResourceReference", evaluation="Dynamic")
    [plan] = planned(
        change("T", TEMPLATE, listed),
        change(secret, "AWS::SecretsManager::Secret", detail("Name", "a", UNKNOWN_VALUE, recreation="Always"),
               replacement="Conditional"),
        api=api, documents=(Document("cluster", with_user_data(secret, **file), "m", ("vpc",)),),
    ).stacks  # fmt: skip
    [found] = next(each for each in plan.changes if each.logical_id == "T").properties
    assert (found.note, found.certain) == (note, certain)
    assert found.known is certain


def test_items_of_a_list_with_keys_are_told_one_by_one() -> None:
    def tags(**values: Any) -> dict[str, Any]:
        return {"Tags": [{"Key": key, "Value": value} for key, value in values.items()]}

    def template(a: str, **values: Any) -> dict[str, Any]:
        return {"Resources": {"Thing": {"Type": "AWS::X::Y", "Properties": {"A": a, **tags(**values)}}}}

    api = Recorded()
    deployed = template("1", stays="1", goes="2", other="3")
    api.answers["GetTemplate"] = lambda _: {"TemplateBody": json.dumps(deployed)}
    api.answers["ListStackResources"] = lambda _: {"StackResourceSummaries": []}
    requested = template("2", comes="4", stays="1", other={"Fn::Sub": "a${B.Id}"})
    details = (detail("Tags", recreation="Always"), detail("A", "1", "2"))
    tagged = change("Thing", "AWS::X::Y", *details, replacement="True")
    [found] = planned(tagged, api=api, documents=(Document("cluster", requested, "m", ("vpc",)),)).changes
    assert found.properties == (
        PropertyChange("/Properties/A", "1", "2"),
        PropertyChange("/Properties/Tags[comes]", None, "4", replaces=WILL),
        PropertyChange("/Properties/Tags[goes]", "2", None, replaces=WILL),
        PropertyChange("/Properties/Tags[other]", "3", "a${B.Id}", replaces=WILL),
    )


def scaling(api: Recorded, *groups: int, code: str = "") -> list[str]:
    """Let Auto Scaling answer with groups of so many instances; return the names it is asked for."""
    asked: list[str] = []

    def answer(params: dict[str, Any], **_: Any) -> Any:
        asked.extend(value for name, value in params["body"].items() if name.startswith("AutoScalingGroupNames"))
        if code:
            error = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
            return AWSResponse("https://recorded", 403, {}, None), error
        found = [{"Instances": [{}] * number} for number in groups]
        return AWSResponse("https://recorded", 200, {}, None), {"AutoScalingGroups": found}

    client = api.account.session.client("autoscaling", region_name="us-west-2")
    client.meta.events.register("before-call.autoscaling.DescribeAutoScalingGroups", answer)
    api.account._clients["autoscaling"] = client
    return asked


@pytest.mark.parametrize(
    ("groups", "code", "words"),
    [
        ([0, 9], "", "node group `nodes` has no instances now"),
        ([1], "", "its instances are replaced one at a time"),
        ([], "", "its instances are replaced one at a time"),
        ([], "AccessDenied", "its instances are replaced one at a time"),
    ],
)
def test_a_group_that_rolls_is_asked_how_many_instances_it_has(groups: list[int], code: str, words: str) -> None:
    api = Recorded()
    asked = scaling(api, *groups, code=code)
    rolling = change(GROUP, ASG, detail("LaunchTemplate/Version", "1", "2"))
    [found] = planned(rolling, change("T", TEMPLATE, detail("LaunchTemplateData/KeyName", "a", "b")), api=api).stacks
    meaning = next(each.impact for each in found.changes if each.logical_id == GROUP)
    assert meaning is not None
    assert words in meaning.text
    assert asked == [f"physical-{GROUP}"]


@pytest.mark.parametrize(("action", "words"), [("SyncWithActual", "SyncWithActual"), ("", "nothing")])
def test_an_action_that_nobody_knows_is_named_and_counts_as_the_worst(action: str, words: str) -> None:
    [found] = planned(change("Thing", "AWS::X::Y", action=action)).changes
    assert (found.action, found.replacement, found.danger) == ("update", MIGHT, Danger.DANGEROUS)
    assert found.impact is not None
    assert found.impact.text.startswith(f"CloudFormation calls this change {words}, which cfngen does not know")


ROOT = Document("cluster", {"Description": "a", "Outputs": {"X": 1}, "Resources": {"A": {"Type": "X"}}}, "m", ("vpc",))


@pytest.mark.parametrize(
    ("deployed", "differs"),
    [
        ({"Description": "a", "Outputs": {"X": 1}, "Resources": {"B": {"Type": "Y"}}}, False),
        ({"Description": "b", "Outputs": {"X": 1}}, True),
        ({"Description": "a"}, True),
        ({"Description": "a", "Outputs": {"X": 1}, "Metadata": {}}, True),
        (RefusedError("AccessDenied"), False),
    ],
)
def test_templates_that_differ_in_no_resource_are_something_to_do(deployed: Any, differs: bool) -> None:
    def answer(_: dict[str, Any]) -> dict[str, Any]:
        if isinstance(deployed, Exception):
            raise deployed
        return {"TemplateBody": json.dumps(deployed)}

    api = Recorded()
    api.answers["GetTemplate"] = answer
    plan = planned(nested("VpcStack"), api=api, documents=(ROOT,), VpcStack=())
    assert (plan.templates_only, plan.stacks) == (differs, ())
    if differs:
        assert plan.change_set_id == CHANGE_SET


def test_without_a_root_among_the_documents_nothing_is_compared() -> None:
    assert not planned(nested("VpcStack"), documents=(), VpcStack=()).templates_only


def test_where_a_resource_changes_more_than_the_templates_changes() -> None:
    assert not planned(change("Thing", "AWS::X::Y", detail("A", "1", "2"))).templates_only
