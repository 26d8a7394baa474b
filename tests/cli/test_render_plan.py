"""How a plan reads on a terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import click
import pytest

from cfngen.cli.exit_codes import PLAN_HAS_CHANGES, plan_exit_code
from cfngen.cli.render.plan import next_lines, plan_lines
from cfngen.cli.render.plan_changes import shorten_to_difference
from cfngen.cli.render.plan_costs import bill_lines
from cfngen.cluster.file.kept_file import KeyChange
from cfngen.deploy.aws.kept_file import FileChange
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.costs.bill import MonthlyBill, MonthlyCost
from cfngen.deploy.plan.costs.costs import ComponentCount, Cost, CreationSummary
from cfngen.deploy.plan.plan import Change, Counts, Plan, PropertyChange, Replacement, StackPlan
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag
from cfngen.deploy.preflight.quotas.quota import Quota
from cfngen.hints import CommandText, suggest
from cfngen.userdata.downloads import Downloads

ADDRESS = Impact("API address changes: kubeconfigs and nodes stop reaching it", Danger.DANGEROUS)
ROLLS = Impact("node group `gpu`: its instances are replaced one at a time", Danger.DISRUPTIVE)
INTERFACE = Change(
    "MasterANetworkInterface",
    "eni-0123",
    "AWS::EC2::NetworkInterface",
    "update",
    Replacement.WILL,
    "delete",
    (
        PropertyChange(
            "/Properties/PrivateIpAddress",
            "172.20.0.9",
            "172.20.0.10",
            replaces=Replacement.WILL,
            cause="parameter MasterAAddress",
        ),
    ),
    ADDRESS,
    Danger.DANGEROUS,
)
GROUP = Change(
    "NodeGroupGpuAutoScalingGroup",
    "kubernetes-gpu",
    "AWS::AutoScaling::AutoScalingGroup",
    "update",
    properties=(PropertyChange("/Properties/LaunchTemplate/Version", note="the new version of its launch template"),),
    impact=ROLLS,
    danger=Danger.DISRUPTIVE,
)


def update(*stacks: StackPlan, **more: object) -> Plan:
    dangers = [stack.danger for stack in stacks] or [Danger.NONE]
    worst = max(dangers, key=lambda each: each.rank)
    usual = {"change_set_id": "arn:change-set", "stacks": stacks, "danger": worst}
    return Plan("kubernetes", "arn:stack", "update", **{**usual, **more})


def text(plan: Plan, width: int = 100) -> list[str]:
    return [click.unstyle(line) for line in plan_lines(plan, width=width)]


def stack(
    *changes: Change, name: str = "MasterStack", action: str = "update", impact: Impact | None = None
) -> StackPlan:
    return StackPlan((name,), f"kubernetes-{name}", action, changes, impact)


def test_a_plan_is_a_tree_with_danger_at_its_end():
    plan = update(stack(INTERFACE), stack(GROUP, name="NodeGroupGpuStack"), counts=Counts(update=1, replace=1))
    assert text(plan) == [
        "Update of the stack kubernetes",
        "",
        "MasterStack",
        "  ±  MasterANetworkInterface AWS::EC2::NetworkInterface eni-0123 will be replaced; the old one is",
        "       deleted",
        "     PrivateIpAddress: 172.20.0.9 -> 172.20.0.10 (replaces the resource, parameter MasterAAddress)",
        "     => API address changes: kubeconfigs and nodes stop reaching it",
        "",
        "NodeGroupGpuStack",
        "  ~  NodeGroupGpuAutoScalingGroup AWS::AutoScaling::AutoScalingGroup kubernetes-gpu",
        "     LaunchTemplate.Version: the new version of its launch template",
        "     => node group `gpu`: its instances are replaced one at a time",
        "",
        "Plan: 1 to replace, 1 to update.",
        "",
        "Disruptive:",
        "  ! node group `gpu`: its instances are replaced one at a time",
        "",
        "DANGER: data, addresses or the cluster may be lost, or everybody let in:",
        "  ! API address changes: kubeconfigs and nodes stop reaching it",
    ]


def test_what_happens_to_several_masters_is_said_once():
    rest = "replaced, one master at a time; the API stays up while the others work"
    groups = [
        Change(f"Master{slot.upper()}AutoScalingGroup", "", "AWS::X::Y", "update", impact=impact, danger=impact.danger)
        for slot in "abc"
        for impact in [Impact(f"master {slot} is {rest}", Danger.DISRUPTIVE)]
    ]
    volume = Impact("master a is away while its volume is", Danger.DISRUPTIVE)
    lines = text(update(stack(*groups, Change("V", "", "AWS::X::Y", "update", impact=volume, danger=volume.danger))))
    assert lines[lines.index("Disruptive:") + 1 :] == [
        "  ! masters a, b and c are replaced, one at a time; the API stays up while the others work",
        "  ! master a is away while its volume is",
    ]


def test_will_and_might_be_replaced_are_told_apart_without_colour():
    might = Change("Thing", "", "AWS::X::Y", "update", Replacement.MIGHT, "snapshot")
    [line] = [each for each in text(update(stack(might))) if "Thing" in each]
    assert line == "  ±? Thing AWS::X::Y might be replaced; the old one would be kept as a snapshot only"


def test_stacks_that_come_and_go_say_so():
    new = stack(
        Change("A", "", "AWS::X::Y", "add"),
        action="create",
        impact=Impact("new node group `gpu`: 2 nodes of t3.large"),
    )
    gone = stack(Change("B", "b-1", "AWS::X::Y", "remove", policy="retain"), name="OldStack", action="delete")
    assert text(update(new, gone, counts=Counts(add=1, remove=1)))[2:10] == [
        "+ MasterStack new stack",
        "  => new node group `gpu`: 2 nodes of t3.large",
        "  +  A AWS::X::Y is added",
        "",
        "- OldStack stack is deleted with everything in it",
        "  -  B AWS::X::Y b-1 is removed and kept",
        "",
        "Plan: 1 to remove, 1 to add.",
    ]


def test_danger_without_words_of_its_own_is_listed_all_the_same():
    bucket = Change("Backups", "backups", "AWS::S3::Bucket", "remove", danger=Danger.DANGEROUS)
    assert text(update(stack(bucket)))[-1] == "  ! Backups (AWS::S3::Bucket) is removed"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (PropertyChange("/Properties/A/0/B", "1", "2"), "A.0.B: 1 -> 2"),
        (PropertyChange("/Properties/A", None, "2"), "A: (none) -> 2"),
        (PropertyChange("/Properties/A", "1", None), "A: 1 -> (none)"),
        (PropertyChange("/Properties/A", "", "2"), 'A: "" -> 2'),
        (
            PropertyChange("/Properties/A", "1", None, known=False, certain=False, cause="parameter P"),
            "A: 1 -> (not known yet) (might change, parameter P)",
        ),
        (PropertyChange("/Properties/A", known=False), "A: changes"),
        (PropertyChange("/Properties/Password", sensitive=True), "Password: changes (secret, not shown)"),
        (PropertyChange("/UpdatePolicy", known=False), "UpdatePolicy: changes"),
    ],
)
def test_properties(change, line):
    thing = Change("Thing", "", "AWS::X::Y", "update", properties=(change,))
    assert f"     {line}" in text(update(stack(thing)))


def test_long_values_are_cut_around_the_difference():
    before, after = shorten_to_difference("a" * 200 + "old" + "z" * 200, "a" * 200 + "new" + "z" * 200, 40)
    assert "old" in before
    assert "new" in after
    assert before.startswith("…a")
    assert before.endswith("z…")
    assert max(len(before), len(after)) <= 42


def test_values_of_several_lines_take_one():
    assert shorten_to_difference("a\n  b", "a c", 80) == ("a b", "a c")


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_line_is_wider_than_the_terminal(width):
    policy = PropertyChange(
        "/Properties/Policies/0/PolicyDocument", '{"Statement": "' + "x" * 300, '{"Statement": "y"}'
    )
    thing = Change("AResourceWithALongNameOfItsOwn", "id", "AWS::IAM::Role", "update", properties=(policy,))
    plan = update(stack(INTERFACE, thing, GROUP), counts=Counts(update=2, replace=1), express=True)
    # A long word, such as the type of a resource, is not torn.
    assert all(len(line) <= width or len(line.split()) == 1 for line in text(plan, width))


def test_nothing_to_do_is_one_line():
    plan = Plan("kubernetes", "arn:stack", "update")
    assert text(plan) == ["No changes: the stack kubernetes is up to date."]


def test_tags_of_subnets_are_listed_also_where_the_stack_stays():
    tags = (SubnetTag("subnet-1", "kubernetes.io/role/elb", "1"),)
    plan = Plan("kubernetes", "arn:stack", "update", subnet_tags=tags)
    assert text(plan) == [
        "The stack kubernetes is up to date.",
        "",
        "Tags that existing subnets get first, by which controllers find them",
        "  subnet-1  kubernetes.io/role/elb = 1",
    ]
    assert plan_exit_code(plan) == PLAN_HAS_CHANGES


def test_templates_alone_are_a_change_of_no_resource():
    said = text(update(templates_only=True))
    assert "No resource changes: only descriptions, outputs or metadata of the templates." in said


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (FileChange((), first=True), ["The stack has not kept the cluster file yet; from now on it does."]),
        (FileChange((), first=False), [
            "Of the cluster file only comments or layout differ from the deployed one; the stack keeps the new",
            "one.",
        ]),
        (FileChange((KeyChange("a", "1", "2"), KeyChange("b", None, "{}"), KeyChange("c", "t", None)), first=False), [
            "Keys of the cluster file that differ from the deployed one",
            "  ~ a: 1 -> 2",
            "  + b: {}",
            "  - c: t",
        ]),
    ],
)  # fmt: skip
def test_the_cluster_files_keys_that_differ_are_listed(change: FileChange, lines: list[str]) -> None:
    shown = text(update(templates_only=True, file_change=change))
    start = shown.index(lines[0])
    assert shown[start : start + len(lines)] == lines
    assert shown[-1] == "No resource changes: only descriptions, outputs or metadata of the templates."


def test_what_an_update_tries_again_is_named_and_counted():
    said = text(update(templates_only=True, unfinished=("NodeGroupNodesStack/NodeGroupNodesAutoScalingGroup",)))
    assert "tried again as well: NodeGroupNodesStack/NodeGroupNodesAutoScalingGroup." in " ".join(map(str.strip, said))
    assert said[-1] == "Plan: 1 to try again."


def test_what_cloudformation_would_refuse_is_the_last_thing_said():
    said = " ".join(text(update(stack(INTERFACE), express=True)))
    assert said.endswith(
        "This plan cannot be carried out: MasterANetworkInterface may be replaced, and CloudFormation "
        "replaces no resources "
        "in express mode."
    )


TAG = ("--tag", "team=a b")
LOW = Quota("vCPUs", 10, 60, 64, sufficient=False)
SUGGESTED = [
    (update(stack(GROUP)), False, "cfngen deploy --tag 'team=a b'   shows this plan again and asks"),
    (update(stack(INTERFACE)), False, "cfngen deploy --tag 'team=a b'   asks for the cluster's name"),
    (update(stack(INTERFACE), express=True), False, "cfngen deploy --tag 'team=a b'   may replace resources"),
    (update(stack(GROUP)), True, "cfngen resume   starts the cluster, which is paused"),
]


@pytest.mark.parametrize(("plan", "is_paused", "words"), SUGGESTED)
def test_after_a_plan_comes_what_carries_it_out_or_allows_it(plan: Plan, is_paused: bool, words: str) -> None:
    options = (TAG, ("--express",)) if plan.express else (TAG,)
    empty, line = next_lines(plan, options, is_paused=is_paused)
    assert (empty, str(line).startswith(f"Next: {words}")) == ("", True)


def test_after_a_plan_that_exceeds_quotas_comes_what_ignores_them() -> None:
    plan = update(stack(GROUP), quotas=(LOW,))
    assert str(next_lines(plan, (TAG,), is_paused=False)[1]).startswith(
        "Next: cfngen deploy --tag 'team=a b' --ignore-quotas   "
    )


def test_nothing_comes_after_a_plan_without_changes_or_one_that_aws_refuses() -> None:
    refused = Change("V", "vol-1", "AWS::EC2::Volume", "update", impact=Impact("no", Danger.DISRUPTIVE, fails=True))
    assert next_lines(update(stack(refused)), (), is_paused=False) == []
    assert next_lines(Plan("kubernetes", "arn:stack", "update"), (), is_paused=False) == []


def test_what_leads_back_is_named_below_the_danger() -> None:
    hurts = Impact("Kubernetes changes", Danger.DANGEROUS, hint=CommandText(suggest("etcd restore KEY"), " goes back."))
    lines = text(update(stack(GROUP), predicted=(hurts,)))
    assert lines[lines.index("  ! Kubernetes changes") + 1].strip() == "`cfngen etcd restore KEY` goes back."


def test_a_new_cluster_is_a_list_of_what_there_will_be():
    creation = CreationSummary(
        (
            ComponentCount(1, "master", "t3.medium"),
            ComponentCount(4, "node", "t3.small, group nodes"),
            ComponentCount(1, "VPC"),
            ComponentCount(2, "subnet"),
        ),
        (Cost(5, "instance", "t3.small", "all"), Cost(168, "GiB", "gp3 volumes"), Cost(1, "address", "public IPv4")),
    )
    quotas = (
        Quota("VPCs per Region", 1, 4, 5, True),
        Quota("IAM roles", 2, 1, 1000, True),
        Quota("Instance profiles", 2, 1, 1000, True),
        Quota("Elastic IPs", 1, 5, 5, False, "ask for more in Service Quotas"),
        Quota("vCPUs", 10, None, None, None, "not allowed to ask"),
    )
    plan = Plan(
        "kubernetes",
        "arn:stack",
        "create",
        "arn:change-set",
        stacks=(stack(Change("Vpc", "", "AWS::EC2::VPC", "add"), name="VpcStack", action="create"),),
        counts=Counts(add=1),
        creation=creation,
        quotas=quotas,
        on_failure="DELETE",
    )
    assert text(plan) == [
        "New cluster in the stack kubernetes",
        "  1  master   t3.medium",
        "  4  nodes    t3.small, group nodes",
        "  1  VPC",
        "  2  subnets",
        "",
        "Stacks",
        "  VpcStack  1 resource",
        "",
        "Billed while it exists",
        "    5  instances  t3.small     all",
        "  168  GiB        gp3 volumes",
        "    1  address    public IPv4",
        "  Traffic, requests and snapshots are billed by use; see AWS's price list.",
        "",
        "Quotas of the account",
        "  VPCs per Region: 1 needed, 4 in use, 5 allowed: enough, 0 left",
        "  Elastic IPs: 1 needed, 5 in use, 5 allowed: NOT ENOUGH",
        "  vCPUs: 10 needed, limit not known: not known",
        "      not allowed to ask",
        "  2 other quotas: enough",
        "",
        "Plan: 1 to add in 1 stack.",
        "If it fails, everything that it created is deleted.",
        "",
        "The account's quotas are too low:",
        "  ! Elastic IPs: ask for more in Service Quotas",
        "",
        "This plan cannot be carried out: the account's quotas do not suffice (Elastic IPs); --ignore-quotas",
        "continues anyway.",
    ]
    insisted = text(replace(plan, quotas_ignored=True))
    assert insisted[-1] == "  ! Elastic IPs: ask for more in Service Quotas"


def test_a_cluster_without_a_way_out_lists_what_mirrors_must_serve():
    downloads = Downloads(
        mirror="https://m.example.com/k8s",
        files=("https://dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet",),
        charts=("https://charts.example.com/a-1.tgz", "https://charts.example.com/b-2.tgz"),
        registries=("registry.k8s.io",),
    )
    plan = Plan("kubernetes", "arn:stack", "create", "arn:change-set", creation=CreationSummary(), downloads=downloads)
    plan = replace(plan, stacks=(stack(Change("Vpc", "", "AWS::EC2::VPC", "add"), action="create"),))
    registries = [
        "  Mirrors of registries (containerd.registryMirrors) must serve the images of registry.k8s.io and",
        "  those of the charts' images. Packages of the distribution that the image lacks come from its own",
        "  mirrors.",
    ]
    said = text(plan)
    assert said[said.index("Without a way to the internet") + 1 :] == [
        "  https://m.example.com/k8s must serve 1 file and 2 charts to instances whose images do not contain",
        "  them:",
        "    https://m.example.com/k8s/dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet",
        "    https://m.example.com/k8s/charts.example.com/a-1.tgz",
        "    https://m.example.com/k8s/charts.example.com/b-2.tgz",
        *registries,
    ]
    # An update does not repeat the list.
    said = text(replace(plan, operation="update", creation=None, downloads=replace(downloads, mirror="")))
    assert said[said.index("Without a way to the internet") + 1 :] == [
        "  assets.mirror, which is not set, must serve 1 file and 2 charts to instances whose images do not",
        "  contain them; --full lists them.",
        *registries,
    ]


def test_an_update_says_what_it_adds_to_costs_and_quotas():
    plan = update(
        stack(GROUP, name="NodesStack"),
        counts=Counts(update=1),
        quotas=(
            Quota("Security groups", 1, 4, 5, True, needed_at_maximum=1, room_to_grow=True),
            Quota("vCPUs", 4, 50, 64, True, "ask for more", needed_at_maximum=20, room_to_grow=False),
        ),
        costs=(Cost(2, "instance", "t3.large"), Cost(-100, "GiB", "gp3 volumes")),
    )
    said = text(plan)
    begin = said.index("Changes of the bill")
    assert said[begin : begin + 7] == [
        "Changes of the bill",
        "    +2  instances  t3.large",
        "  -100  GiB        gp3 volumes",
        "",
        "Quotas of the account",
        "  vCPUs: 4 needed, 50 in use, 64 allowed: enough at first, but not for the 20 at the maximum sizes",
        "",
    ]
    assert said[-2:] == [
        "The account's quotas are too low for the maximum sizes:",
        "  ! vCPUs: ask for more",
    ]


def test_prices_make_a_monthly_bill():
    costs = (
        MonthlyCost(
            "t3.medium", 5, "instance", Decimal("91.10"), Decimal("151.84"), Decimal("303.68"), "onDemand.t3.medium"
        ),
        MonthlyCost("KMS", 1, "key", None, None, None, "kmsKey"),
    )
    bill = MonthlyBill("USD", "2026-11-01", Decimal(730), Decimal("91.10"), Decimal("151.84"), Decimal("303.68"), costs)
    assert (
        "\n".join(map(click.unstyle, bill_lines(bill, 90, is_new=False)))
        == """\
Cost of a month of 730 hours, in USD
    151.84  +60.74  5 instances  t3.medium
  no price          1 key        KMS
    151.84  +60.74  in total
  With every node group at its maximum size it is 303.68.
  Prices of 2026-11-01. Traffic, requests, snapshots, and what Kubernetes creates are not
  included.
  The price list has no price for kmsKey; the totals leave these out."""
    )
    new_cluster_lines = list(bill_lines(bill, 90, is_new=True))
    assert new_cluster_lines[1] == "    151.84    5 instances  t3.medium"
    up_to_date = Plan(stack="prod", stack_id="arn", operation="update", bill=bill)
    assert "Cost of a month of 730 hours, in USD" in [click.unstyle(line) for line in plan_lines(up_to_date, width=90)]


def test_what_is_only_tried_again_is_named() -> None:
    plan = Plan("k8s", "arn", "update", on_failure="DO_NOTHING", retries=("MasterStack/MasterAVolume",))
    text = " ".join(click.unstyle(line) for line in plan_lines(plan, width=100))
    assert "tried again: MasterStack/MasterAVolume." in text
    assert "No changes" not in text


HANDLE = "AWS::CloudFormation::WaitConditionHandle"


def test_boot_programs_are_one_line_unless_all_is_asked_for():
    programs = [Change(f"Program{name}", "", HANDLE, action) for name, action in (("1", "add"), ("2", "remove"))]
    plan = update(stack(INTERFACE, *programs), stack(Change("Program3", "", HANDLE, "add"), name="NodeGroupGpuStack"))
    shown = text(plan)
    assert [line for line in shown if "Program" in line or "Gpu" in line] == []
    assert "Not counted, since they are metadata of the stacks: boot programs +2, -1; --full shows them." in shown
    full = [click.unstyle(line) for line in plan_lines(plan, width=100, full=True)]
    assert sum(HANDLE in line for line in full) == 3
    assert not any("Boot programs" in line for line in full)


def test_long_values_can_be_shown_whole():
    before = json.dumps({"Sid": "Read", "Action": [f"ec2:Describe{each}" for each in "ABCDEFGH"]})
    after = before.replace("DescribeC", "RunInstances")
    change = Change(
        "P", "p", "T", "update", properties=(PropertyChange("/Properties/PolicyDocument[Read]", before, after),)
    )
    plan = update(stack(change))
    assert any("…" in line for line in text(plan))
    full = [click.unstyle(line) for line in plan_lines(plan, width=100, full=True)]
    assert '         -    "ec2:DescribeC",' in full
    assert '         +    "ec2:RunInstances",' in full
    assert not any("…" in line for line in full)


def test_of_what_is_said_only_the_part_that_hurts_is_repeated_at_the_end():
    both = Impact("it rolls; it grows", Danger.DISRUPTIVE, dangerous_part="it rolls")
    change = Change("G", "g", "T", "update", impact=both, danger=Danger.DISRUPTIVE)
    shown = text(update(stack(change)))
    assert shown[-1] == "  ! it rolls"
