"""Replacing an instance: a master also where its type is sold out, a node that is drained, and what is refused."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace as replace_in
from datetime import timedelta
from typing import Any

import pytest
from answers import Answers
from aws_descriptions import Asked, arn, resource, scaling_group, stack, stacked
from deployed import place
from replaced import MASTERS, NAME, NODES, ONE, Cluster

from cfngen.cluster.load import parse
from cfngen.deploy.access.kubernetes_objects import Node, Pod, Readiness
from cfngen.deploy.aws.groups import GroupView, InstanceView, Role, find_groups
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, NoStackError, StackView
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.operations.replacing.master_type import UnsuitableTypeError
from cfngen.deploy.operations.replacing.members import Member, UnknownInstanceError
from cfngen.deploy.operations.replacing.messages import (
    Replaced,
    ReplacementDetachedError,
    ReplacementFailedError,
    ReplacementInProgressError,
    ReplacementPlan,
    consequences_of,
)
from cfngen.deploy.operations.replacing.replace import GroupStoppedError, replace
from cfngen.deploy.preflight.stack_checks import BusyError
from cfngen.deploy.status.cluster_problems import KubernetesReading, Problem
from cfngen.deploy.status.derived_status import read_status
from cfngen.errors import CfngenError
from cfngen.sandbox.durations import DURATIONS
from cfngen.sandbox.services import capacity


@pytest.fixture(scope="module")
def one() -> Iterator[Cluster]:
    """A cluster of one master; a test that changes something puts it back."""
    with place(parse(dict(ONE)), DURATIONS) as where:
        yield Cluster(where, ONE)


@pytest.fixture(autouse=True)
def room() -> Iterator[None]:
    yield
    capacity.reset("us-west-2")


@pytest.mark.drill
def test_the_only_master_is_replaced_after_it_is_said_that_the_api_is_away(one: Cluster) -> None:
    before = one.instance(MASTERS["a"])
    replaced = one.replace("a")
    assert (replaced.role, replaced.group, replaced.old_instance) == ("master", "a", before)
    assert replaced.instance == one.instance(MASTERS["a"]) != before
    assert (replaced.instance_type, replaced.zone, replaced.stack_type) == ("t3.medium", "us-west-2a", "")
    assert replaced.seconds > 60
    assert any("the Kubernetes API is away" in sentence for sentence in one.plan.consequences)
    [question] = one.operator.questions
    assert question.text == "Replace master a of one?"
    assert one.states == ["terminating", "waiting for an instance", "booting", "ready"]
    assert one.valid()


def test_a_node_is_drained_and_its_group_keeps_its_size(one: Cluster) -> None:
    before = one.instance(NODES)
    replaced = one.replace(before)
    assert (replaced.role, replaced.group, replaced.old_instance) == ("node", "general", before)
    assert replaced.instance not in (before, "")
    assert "draining" in one.states
    assert any("evicted first, within 5 minutes" in sentence for sentence in one.plan.consequences)
    assert one.valid()


def test_whoever_declines_changes_nothing(one: Cluster) -> None:
    before, versions = one.instance(MASTERS["a"]), one.versions()
    one.agrees = False
    with pytest.raises(DeclinedError):
        one.replace("a", "t3.large")
    one.agrees = True
    assert (one.instance(MASTERS["a"]), one.versions()) == (before, versions)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("b", "there is no master slot and no instance 'b'; the slots are a"),
        ("general", "general is a node group; name one of its instances (i-"),
        ("i-0123456789abcdef0", "i-0123456789abcdef0 is no instance of the cluster's groups"),
    ],
)
def test_what_the_cluster_does_not_have_is_not_replaced(one: Cluster, name: str, text: str) -> None:
    with pytest.raises(UnknownInstanceError, match=text.replace("(", r"\(")) as refused:
        one.replace(name)
    assert "cfngen status" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("instance_type", "text"),
    [
        ("m6g.large", "m6g.large is arm64, and the image of the masters is for amd64"),
        ("t3.micro", "t3.micro has less than 2 GiB"),
        ("m5.lagre", "AWS has no instance type m5.lagre"),
        ("h1.2xlarge", "h1.2xlarge is not offered in us-west-2a"),
        ("m5.24xlarge", "vCPUs of on-demand standard"),
    ],
)
def test_a_type_that_cannot_run_the_master_is_refused_before_anything_changes(
    one: Cluster, instance_type: str, text: str
) -> None:
    before, versions = one.instance(MASTERS["a"]), one.versions()
    with pytest.raises(UnsuitableTypeError) as refused:
        one.replace("a", instance_type)
    assert text in str(refused.value)
    assert "types of similar size that us-west-2a offers: " in str(refused.value.hint)
    assert (one.instance(MASTERS["a"]), one.versions()) == (before, versions)


def test_nodes_get_other_types_in_the_cluster_file(one: Cluster) -> None:
    with pytest.raises(UnsuitableTypeError, match="is no master") as refused:
        one.replace(one.instance(NODES), "m5.large")
    assert "instanceTypes" in str(refused.value.hint)


def test_a_group_that_launches_nothing_is_left_alone(one: Cluster) -> None:
    autoscaling, name = one.account.client("autoscaling"), one.group_name(MASTERS["a"])
    autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])
    with pytest.raises(GroupStoppedError, match="Launch are suspended") as refused:
        one.replace("a")
    autoscaling.resume_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])
    assert "resume-processes" in str(refused.value.hint)


@pytest.mark.drill
def test_a_group_that_was_reduced_to_nothing_gets_its_sizes_back_by_what_is_advised(one: Cluster) -> None:
    autoscaling, name = one.account.client("autoscaling"), one.group_name(MASTERS["a"])
    autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, MaxSize=0, DesiredCapacity=0)
    one.where.clock.sleep(300)
    for _ in range(2):
        with pytest.raises(GroupStoppedError, match=r"the desired capacity of its group .* is 0") as refused:
            one.replace("a")
    command = str(refused.value.hint).split("`")[1]
    for _ in range(2):
        one.type(command)
    assert one.replace("a").instance == one.instance(MASTERS["a"])
    assert one.valid()


def test_there_must_be_a_stack_that_nobody_else_changes(one: Cluster) -> None:
    with pytest.raises(NoStackError):
        replace(
            one.account, "nothing", parse(dict(ONE)), "a", consent=lambda question: True, report=lambda message: None
        )
    [stack] = [stack for stack in one.where.world.cloud.stacks() if stack.name == NAME]
    status = stack.status
    stack.status = "UPDATE_IN_PROGRESS"
    with pytest.raises(BusyError):
        one.replace("a")
    stack.status = status


@pytest.mark.drill
def test_after_ctrl_c_the_same_command_only_waits(one: Cluster) -> None:
    before = one.instance(MASTERS["a"])

    def interrupt() -> None:
        raise KeyboardInterrupt

    one.where.clock.meanwhile[one.where.clock.sleeps + 3] = interrupt
    with pytest.raises(ReplacementDetachedError) as detached:
        one.replace("a")
    assert "cfngen replace a" in str(detached.value.hint)
    replaced = one.replace("a")
    assert one.plan.pending
    assert not one.operator.questions
    assert replaced.instance == one.instance(MASTERS["a"]) != before
    assert one.valid()


@pytest.mark.drill
def test_a_master_whose_type_is_sold_out_gets_another_one_until_the_next_change(one: Cluster) -> None:
    one.sell_out("t3.medium", "us-west-2a")
    with pytest.raises(ReplacementFailedError) as failed:
        one.replace("a", timeout=timedelta(minutes=10))
    assert "do not have sufficient t3.medium capacity" in str(failed.value)
    assert "cfngen replace a --instance-type t3a.medium" in str(failed.value.hint)
    [notice] = one.operator.reported(Notice)
    assert "t3.medium capacity" in notice.text
    assert "--instance-type t3a.medium" in str(notice.hint)

    replaced = one.replace("a", "m5.large")
    assert (replaced.instance_type, replaced.stack_type) == ("m5.large", "t3.medium")
    assert any("goes back to the type of the cluster file" in sentence for sentence in one.plan.consequences)
    assert one.instance_type(MASTERS["a"]) == "m5.large"
    status = read_status(one.account, NAME, parse(dict(ONE)), find_url_override=one.where.override)
    [slot] = status.retyped_slots or ()
    assert (slot.slot, slot.type, slot.stack_type) == ("a", "m5.large", "t3.medium")
    assert not status.stale_groups
    assert one.valid()

    one.operator.plan(ONE)
    assert any("master a launches m5.large" in notice.text for notice in one.operator.reported(Notice))
    capacity.reset(one.account.region)
    back = one.replace("a", "t3.medium")
    assert (back.instance_type, back.stack_type) == ("t3.medium", "")
    assert not one.retyped()


def test_groups_are_named_by_what_they_are(one: Cluster) -> None:
    titles = [group.title for group in find_groups(one.account, parse(dict(ONE)), one.views())]
    assert titles == ["master a", "node group general"]


NODE = "i-0123456789abcdef0"


@pytest.mark.parametrize(("maximum", "values", "advice"), [
    (5, {"Min": "0", "Max": "5"}, "`aws autoscaling set-desired-capacity --desired-capacity 1 --region us-west-2 "),
    (0, {"Min": "0", "Max": "0"}, "set a maxSize in the cluster file, then `cfngen deploy`"),
    (0, {}, "set a maxSize in the cluster file, then `cfngen deploy`"),
    (1, {}, "`aws autoscaling set-desired-capacity --desired-capacity 1 --region us-west-2 "),
    (0, {"Min": "1", "Max": "5"}, "`aws autoscaling update-auto-scaling-group"),
])  # fmt: skip
def test_a_group_of_nodes_that_was_reduced_to_nothing(
    aws: Answers, maximum: int, values: dict[str, str], advice: str
) -> None:
    parameters = {f"NodeGroupGeneral{part}Size": value for part, value in values.items()}
    group = resource("group-1", name=NODES)
    stacked(aws, stack(parameters=parameters), resources={"one": (group,)})
    aws.given["autoscaling:DescribeAutoScalingGroups"] = {
        "AutoScalingGroups": [scaling_group("group-1", (0, maximum, 0), Instances=[launched(NODE)])]
    }
    with pytest.raises(GroupStoppedError, match=f"its sizes are 0 to {maximum}") as refused:
        replace(aws.account, NAME, parse(dict(ONE)), NODE, consent=lambda _: True, report=lambda _: None)
    assert str(refused.value.hint).startswith(advice)
    assert not aws.writes


def launched(instance_id: str, lifecycle: str = "InService") -> dict[str, Any]:
    """An instance as Auto Scaling describes it."""
    return {
        "InstanceId": instance_id, "AvailabilityZone": "us-west-2a", "LifecycleState": lifecycle,
        "HealthStatus": "Healthy", "ProtectedFromScaleIn": False,
    }  # fmt: skip


def grouped(aws: Answers, *, age: timedelta | None = None, **instances: list[dict[str, Any]]) -> None:
    """The stack `one` with Auto Scaling groups by logical id without its end, and what EC2 says of their instances."""
    members = tuple(resource(name, name=f"{name}AutoScalingGroup", type_name=AUTO_SCALING_GROUP) for name in instances)
    stacked(aws, stack(), resources={"one": members})

    def groups(sent: dict[str, Any]) -> dict[str, Any]:
        return {
            "AutoScalingGroups": [
                scaling_group(
                    name,
                    (1, 1, 1),
                    Instances=instances[name],
                    LaunchTemplate={"LaunchTemplateId": "lt-1", "Version": "1"},
                )
                for name in sent.get("AutoScalingGroupNames", instances)
            ]
        }

    at = {} if age is None else {"LaunchTime": aws.clock.now() - age}
    described = [{"InstanceId": of["InstanceId"], **at} for members_of in instances.values() for of in members_of]
    aws.given["autoscaling:DescribeAutoScalingGroups"] = groups
    aws.given["ec2:DescribeInstances"] = {"Reservations": [{"Instances": described}]}
    template = {"LaunchTemplateId": "lt-1", "VersionNumber": 1, "LaunchTemplateData": {"InstanceType": "t3.medium"}}
    aws.given["ec2:DescribeLaunchTemplateVersions"] = {"LaunchTemplateVersions": [template]}
    aws.given["autoscaling:TerminateInstanceInAutoScalingGroup"] = {}
    aws.given["autoscaling:DescribeScalingActivities"] = {"Activities": []}


def reading(*working: str) -> KubernetesReading:
    """What the API says of a cluster in which some masters work."""
    return KubernetesReading(
        "1.36.3",
        Readiness(ready=True),
        tuple(Node(name, name, ready=True, master=True) for name in working),
        tuple(Pod(f"etcd-{name}", name, "Running", ready=True) for name in working),
    )


SILENT = Problem("api", "the API server", "cannot be queried: no connection")
YOUNG, OLD = timedelta(minutes=19, seconds=59), timedelta(minutes=20)  # the default of creationTimeout
FAILED = "[7/14] downloads FAILED after 2.0 s: no route to dl.k8s.io"
THREE = {"MasterB": [launched("i-b")], "MasterC": [launched("i-c")]}
REPLACED, AWAITED = True, False


@pytest.mark.parametrize(
    ("instances", "others", "age", "says", "console", "outcome"),
    [
        ([launched("i-a")], {}, OLD, SILENT, FAILED, REPLACED),
        ([launched("i-a")], {}, None, SILENT, FAILED, REPLACED),
        ([launched("i-a")], {}, YOUNG, reading("i-a"), "", REPLACED),
        # A master that may still be booting is waited for, unless its boot has failed.
        ([launched("i-a")], {}, YOUNG, SILENT, "", AWAITED),
        ([launched("i-a")], {}, YOUNG, reading(), "", AWAITED),
        ([launched("i-a")], {}, YOUNG, SILENT, FAILED, REPLACED),
        ([launched("i-a")], {}, YOUNG, reading(), FAILED, REPLACED),
        # Of three, it is replaced only where it is known that the others work.
        ([launched("i-a")], THREE, YOUNG, SILENT, FAILED, AWAITED),
        ([launched("i-a")], THREE, YOUNG, reading("i-b", "i-c"), FAILED, REPLACED),
        ([launched("i-a")], THREE, YOUNG, reading("i-b", "i-c"), "", AWAITED),
        # An instance that goes, or is gone, does so whatever its console says.
        ([launched("i-a", "Terminating")], {}, YOUNG, reading(), FAILED, AWAITED),
        ([launched("i-a", "Terminating")], {}, OLD, reading("i-a"), FAILED, AWAITED),
        ([], {}, None, SILENT, FAILED, AWAITED),
    ],
)
def test_a_master_that_boots_is_waited_for_unless_its_boot_has_failed(
    aws: Answers,
    monkeypatch: pytest.MonkeyPatch,
    instances: list[dict[str, Any]],
    others: dict[str, list[dict[str, Any]]],
    age: timedelta | None,
    says: KubernetesReading | Problem,
    console: str,
    outcome: bool,
) -> None:
    grouped(aws, age=age, MasterA=instances, **others)
    output = base64.b64encode(f"cfngen: {console}\n".encode()).decode()
    aws.given["ec2:GetConsoleOutput"] = {"Output": output if console else ""}
    monkeypatch.setattr("cfngen.deploy.operations.replacing.replace.try_read_kubernetes", lambda *_: says)
    asked = Asked(agrees=False)
    # Who is asked declines, and who only waits is not asked.
    with pytest.raises(DeclinedError if outcome is REPLACED else ReplacementFailedError):
        replace(
            aws.account, NAME, parse(dict(ONE)), "a", consent=asked.consent, report=asked.told.append,
            timeout=timedelta(seconds=1),
        )  # fmt: skip
    [plan] = (message for message in asked.told if isinstance(message, ReplacementPlan))
    assert plan.pending is (outcome is AWAITED)
    assert [question.text for question in asked.questions] == ["Replace master a of one?"] * outcome
    has_failed = outcome is REPLACED and age == YOUNG and console == FAILED
    assert (f"its boot has failed: {FAILED}" in plan.consequences) == has_failed
    assert aws.writes == []


FILE = {
    "name": "one",
    "controlPlane": {"creationTimeout": 40},
    "nodeGroups": [
        {"name": "gpu", "creationTimeout": 20, "drainTimeout": 7},
        {"name": "general", "creationTimeout": 25, "drainTimeout": 5},
    ],
}


@pytest.mark.parametrize(
    ("group", "file", "name", "timeout", "minutes"),
    [
        # Beside the boot, a quarter of an hour is for the old instance, and the time that its drain may take.
        ("MasterA", {**FILE, "controlPlane": {"creationTimeout": 20}}, "a", None, 35),
        ("NodeGroupGeneral", FILE, "i-1", None, 45),
        ("NodeGroupGpu", FILE, "i-1", None, 42),
        ("NodeGroupGone", FILE, "i-1", None, 47),
        ("Bastion", FILE, "i-1", None, 47),
        ("Bastion", {**FILE, "nodeGroups": []}, "i-1", None, 55),
        ("NodeGroupGone", {**FILE, "nodeGroups": []}, "i-1", None, 55),
        ("NodeGroupGeneral", FILE, "i-1", timedelta(minutes=1), 1),
    ],
)
def test_a_new_instance_is_waited_for_as_long_as_its_group_may_take(
    aws: Answers,
    monkeypatch: pytest.MonkeyPatch,
    group: str,
    file: dict[str, Any],
    name: str,
    timeout: timedelta | None,
    minutes: int,
) -> None:
    # Only of a master is it asked whether it may still be booting.
    grouped(aws, age=OLD if group == "MasterA" else YOUNG, **{group: [launched("i-1")]})
    monkeypatch.setattr("cfngen.deploy.operations.replacing.replace.try_read_kubernetes", lambda *_: SILENT)
    cluster = parse(file)
    counted = "1 minute" if minutes == 1 else f"{minutes} minutes"
    with pytest.raises(ReplacementFailedError, match=f"is terminating after {counted}$"):
        replace(
            aws.account, NAME, cluster, name, consent=lambda _: True, report=lambda _: None, timeout=timeout
        )  # fmt: skip
    assert aws.named("autoscaling:TerminateInstanceInAutoScalingGroup") == [
        {"InstanceId": "i-1", "ShouldDecrementDesiredCapacity": False}
    ]


def nodes(**ready: bool) -> KubernetesReading:
    """What the API says of Nodes, by the ends of their instances' ids."""
    return replace_in(reading(), nodes=tuple(Node(f"i-{end}", f"i-{end}", ready=of) for end, of in ready.items()))


ALL, ONE_LESS, NONE = {"two": True, "three": True}, {"two": True, "three": False}, {"two": False, "three": False}
TWO_OTHERS = {"i-two": "InService", "i-three": "InService"}
ONE_PENDING = {"i-two": "InService", "i-three": "Pending"}


@pytest.mark.parametrize(
    ("desired", "others", "before", "after", "ends"),
    [
        (3, TWO_OTHERS, nodes(**ALL), nodes(new=True, **ALL), True),
        (3, TWO_OTHERS, nodes(**ALL), nodes(new=False, **ALL), False),
        (3, TWO_OTHERS, nodes(**ALL), nodes(**ALL), False),
        (3, TWO_OTHERS, nodes(**ALL), nodes(new=True, **ONE_LESS), False),
        # What did not work before is not waited for.
        (3, TWO_OTHERS, nodes(**ONE_LESS), nodes(new=True, **ONE_LESS), True),
        (3, TWO_OTHERS, nodes(two=True), nodes(new=True, two=True), True),
        (3, TWO_OTHERS, nodes(**ONE_LESS), nodes(new=True, **NONE), False),
        (3, TWO_OTHERS, nodes(**NONE), nodes(new=True, **NONE), True),
        (3, ONE_PENDING, nodes(**ALL), nodes(new=True, **ALL), True),
        (3, {"i-two": "InService"}, nodes(two=True), nodes(new=True, two=True), True),
        # Where the API said nothing, what is in service counts.
        (3, TWO_OTHERS, SILENT, nodes(new=True, **ALL), True),
        (3, TWO_OTHERS, SILENT, nodes(new=True, **ONE_LESS), False),
        (3, ONE_PENDING, SILENT, nodes(new=True, **ONE_LESS), True),
        (3, ONE_PENDING, SILENT, SILENT, False),
        # The group is to have fewer.
        (2, TWO_OTHERS, nodes(**ALL), nodes(new=True, **ONE_LESS), True),
        (2, TWO_OTHERS, nodes(**ALL), nodes(new=True, **NONE), False),
        # The Node of the old instance has to go.
        (3, TWO_OTHERS, nodes(one=True, **ALL), nodes(new=True, one=True, **ALL), False),
    ],
)
def test_a_node_is_replaced_once_as_many_nodes_work_as_before(
    aws: Answers,
    monkeypatch: pytest.MonkeyPatch,
    desired: int,
    others: dict[str, str],
    before: KubernetesReading | Problem,
    after: KubernetesReading | Problem,
    ends: bool,
) -> None:
    staying = [launched(name, lifecycle) for name, lifecycle in others.items()]
    grouped(aws, NodeGroupGeneral=[])

    def groups(_: dict[str, Any]) -> dict[str, Any]:
        instances = [*staying, launched("i-new" if aws.writes else "i-one")]
        return {"AutoScalingGroups": [scaling_group("NodeGroupGeneral", (1, 5, desired), Instances=instances)]}

    aws.given["autoscaling:DescribeAutoScalingGroups"] = groups
    start = aws.clock.now()
    ages = {"i-one": OLD, "i-two": OLD, "i-three": OLD, "i-new": timedelta(0)}
    described = [
        {"InstanceId": name, "LaunchTime": start - age, "InstanceType": "t3.large"} for name, age in ages.items()
    ]
    aws.given["ec2:DescribeInstances"] = {"Reservations": [{"Instances": described}]}
    read = "cfngen.deploy.operations.replacing.replace.try_read_kubernetes"
    monkeypatch.setattr(read, lambda *_: after if aws.writes else before)

    def run() -> Replaced:
        return replace(
            aws.account, NAME, parse(dict(ONE)), "i-one", consent=lambda _: True, report=lambda _: None,
            timeout=timedelta(minutes=1),
        )  # fmt: skip

    if ends:
        assert run() == Replaced("one", "node", "general", "i-one", "i-new", "t3.large", "us-west-2a", "", 0.0)
    else:
        with pytest.raises(ReplacementFailedError, match="is booting after 1 minute"):
            run()
    assert aws.writes == ["autoscaling:TerminateInstanceInAutoScalingGroup"]


def refusal(aws: Answers, name: str, kind: type[CfngenError], instance_type: str = "") -> CfngenError:
    """Why an instance is not replaced; nothing is changed, and nobody is asked."""
    asked = Asked()
    with pytest.raises(kind) as refused:
        replace(
            aws.account, NAME, parse(dict(ONE)), name, instance_type=instance_type, consent=asked.consent,
            report=asked.told.append,
        )  # fmt: skip
    assert (aws.writes, asked.questions, asked.told) == ([], [], [])
    return refused.value


@pytest.mark.parametrize(
    ("processes", "named"),
    [
        (["Launch"], "Launch"),
        (["Terminate"], "Terminate"),
        (["Terminate", "AZRebalance", "Launch"], "Launch, Terminate"),
    ],
)
def test_a_group_whose_processes_are_suspended_does_not_replace_instances(
    aws: Answers, processes: list[str], named: str
) -> None:
    grouped(aws, NodeGroupGeneral=[])
    suspended = [{"ProcessName": process} for process in processes]
    described = scaling_group("g", (1, 1, 1), Instances=[launched("i-1")], SuspendedProcesses=suspended)
    aws.given["autoscaling:DescribeAutoScalingGroups"] = {
        "AutoScalingGroups": [{**described, "AutoScalingGroupName": "NodeGroupGeneral"}]
    }
    refused = refusal(aws, "i-1", GroupStoppedError)
    assert f"does not replace instances: its processes {named} are suspended" in str(refused)


@pytest.mark.parametrize(
    ("group", "key"),
    [("Bastion", "bastion.instanceType"), ("NodeGroupGeneral", "instanceTypes of its node group")],
)
def test_what_is_no_master_gets_another_type_in_the_cluster_file(aws: Answers, group: str, key: str) -> None:
    grouped(aws, **{group: [launched("i-1")]})
    refused = refusal(aws, "i-1", UnsuitableTypeError, "m5.large")
    assert str(refused.hint) == f"set {key} in the cluster file, then `cfngen deploy`."


def test_a_stack_without_groups_has_nothing_to_replace(aws: Answers) -> None:
    grouped(aws)
    refused = refusal(aws, "a", UnknownInstanceError)
    assert str(refused) == "the stack one (CREATE_COMPLETE) has no instances"


def test_a_master_that_boots_is_not_replaced_by_one_of_another_type(
    aws: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped(aws, age=YOUNG, MasterA=[launched("i-a")])
    aws.given["ec2:GetConsoleOutput"] = {"Output": ""}
    monkeypatch.setattr("cfngen.deploy.operations.replacing.replace.try_read_kubernetes", lambda *_: SILENT)
    refused = refusal(aws, "a", ReplacementInProgressError, "m5.large")
    assert str(refused).startswith("master a is being replaced already, by i-a of type ")
    assert "`cfngen replace a` waits for it" in str(refused.hint)


def test_an_interrupted_replacement_goes_on_without_the_command(aws: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    grouped(aws, NodeGroupGeneral=[launched("i-1")])
    monkeypatch.setattr("cfngen.deploy.operations.replacing.replace.try_read_kubernetes", lambda *_: SILENT)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(aws.clock, "sleep", interrupt)
    with pytest.raises(ReplacementDetachedError) as detached:
        replace(aws.account, NAME, parse(dict(ONE)), "i-1", consent=lambda _: True, report=lambda _: None)
    assert str(detached.value.hint) == "`cfngen replace i-1` waits for it again; `cfngen status` shows the instances."
    assert aws.writes == ["autoscaling:TerminateInstanceInAutoScalingGroup"]


def consequences(role: Role, *, has_instance: bool = True, masters: int = 1, **more: Any) -> str:
    instance = InstanceView("i-1", "us-west-2a", "InService") if has_instance else None
    member = Member(GroupView(role, {"master": "a", "node": more.pop("group", "general")}.get(role, ""), "g"), instance)
    status = StackStatus(more.pop("status", "CREATE_COMPLETE"))
    told = consequences_of(
        parse({"nodeGroups": [{"name": "general", "drainTimeout": more.pop("drain", 5)}]}),
        StackView("one", arn("one"), status), member, master_count=masters, template=None, new_type="",
        **{"pending": False, **more},
    )  # fmt: skip
    return "; ".join(told)


QUORUM, AWAY = "etcd keeps its quorum, and the API stays up; if", "it is the only master: the Kubernetes API is away"
TERMINATED = "i-1 is terminated; the new instance has its address, its data volume and its etcd member"


@pytest.mark.parametrize(("asked", "text"), [
    ({"role": "master"}, f"{TERMINATED}; {AWAY}"),
    ({"role": "master", "masters": 3}, f"{TERMINATED}; {QUORUM}"),
    ({"role": "master", "has_instance": False}, AWAY),
    ({"role": "master", "has_instance": False, "masters": 3}, QUORUM),
    ({"role": "bastion"}, "SSH sessions through the bastion break"),
    ({"role": "node"}, "i-1 is terminated; its pods are evicted first, within 5 minutes; the group launches a new"),
    ({"role": "node", "drain": 0}, "i-1 is terminated; its pods are not evicted first (drainTimeout is 0); the"),
    ({"role": "node", "group": "gone"}, "i-1 is terminated; its pods are not evicted first (drainTimeout is 0); the"),
    ({"role": "master", "boot_failure": "no disk"}, f"its boot has failed: no disk; {TERMINATED}"),
])  # fmt: skip
def test_what_replacing_an_instance_means_is_said(asked: dict[str, Any], text: str) -> None:
    assert consequences(**asked).startswith(text)


def test_nothing_is_said_of_what_happens_already_but_that_the_stack_stays_as_it_is() -> None:
    assert consequences("node", has_instance=False) == consequences("master", pending=True) == ""
    assert consequences("master", pending=True, status="UPDATE_FAILED") == (
        "the stack one stays UPDATE_FAILED; only the instance is replaced"
    )
