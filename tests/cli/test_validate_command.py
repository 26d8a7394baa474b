"""`cfngen validate cluster`: the verdict, its exit code, and what is shown while it waits."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from deployed_cluster import Command, Place

NODES = "NodeGroupNodesAutoScalingGroup"


@pytest.fixture
def ill(where: Place) -> Iterator[str]:
    """A node that is not Ready."""
    [node, *_] = where.instances(NODES)
    where.kubernetes.state.set_ready(node, False, "KubeletNotReady", "no network plugin")
    yield node
    where.kubernetes.state.set_ready(node, True)


def test_a_valid_cluster_is_shown_with_its_instances(run: Command, where: Place) -> None:
    ran = run("validate", "cluster")
    assert (ran.code, ran.err) == (0, "")
    assert "Cluster kubernetes (stack k8s, Kubernetes 1.36.3)" in ran.out
    assert ran.out.endswith("The cluster is valid.\n")
    for node in where.instances(NODES):
        [line] = [line for line in ran.out.splitlines() if node in line]
        assert line.split() == [node, "node", "nodes", "us-west-2a", "1.36.3", "Ready"]


def test_the_cluster_is_what_there_is_to_validate(run: Command) -> None:
    assert run("validate").out == run("validate", "cluster").out


def test_problems_are_listed_with_hints(run: Command, ill: str) -> None:
    ran = run("validate", "cluster")
    assert ran.code == 2
    assert (
        f"✗ The Node {ill} of node group nodes is not Ready.\n  KubeletNotReady: no network plugin\n  hint: " in ran.out
    )
    assert ran.out.endswith("The cluster is not valid: 1 problem.\n")


def test_texts_wrap_on_a_narrow_screen(run: Command, where: Place, ill: str) -> None:
    where.kubernetes.state.set_ready(ill, False, "KubeletNotReady", "no network plugin: " + "its file is missing " * 9)
    narrow = run("validate", "cluster", COLUMNS="60").out.splitlines()
    wide = run("validate", "cluster").out.splitlines()
    # A command is not folded, since it is to be copied.
    assert max(len(line) for line in narrow if "`cfngen" not in line) <= 60
    assert max(map(len, wide)) > 60


def test_a_program_gets_the_same(run: Command, ill: str) -> None:
    ran = run("validate", "cluster", "--output", "json")
    printed = json.loads(ran.out)
    assert (ran.code, ran.err) == (2, "")
    assert (printed["type"], printed["valid"]) == ("validation", False)
    [problem] = printed["problems"]
    assert (problem["area"], problem["subject"]) == ("node", ill)
    assert problem["detail"] == "KubeletNotReady: no network plugin"
    assert sorted(member["ready"] for member in printed["members"]) == [False, True, True, True, True]


def test_waiting_shows_changes_only(run: Command, ill: str, where: Place) -> None:
    state = where.kubernetes.state
    where.clock.meanwhile[where.clock.sleeps + 4] = lambda: state.set_ready(ill, True)
    ran = run("validate", "cluster", "--wait", "10m")
    assert ran.code == 0
    assert [line[10:] for line in ran.err.splitlines()] == [
        f"✗ The Node {ill} of node group nodes is not Ready",
        "1 problem now; waiting for 10 min more at most.",
    ]
    assert "The cluster is valid." in ran.out


def test_waiting_in_json_is_a_line_for_each_change(run: Command, ill: str, where: Place) -> None:
    ran = run("validate", "--wait", "30s", "--output", "json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 2
    assert [line["type"] for line in lines] == ["validationChange", "validation"]
    assert [each["subject"] for each in lines[0]["appeared"]] == [ill]


def test_what_cannot_be_found_out_is_no_verdict(run: Command, where: Place) -> None:
    assert run("validate", stack="nothing").code == 1
    where.served.faults.deny("secretsmanager:GetSecretValue")
    ran = run("validate")
    where.served.faults.clear()
    assert ran.code == 1
    assert "has no permission to read the secret" in ran.err


def test_there_is_nothing_else_to_validate(run: Command) -> None:
    assert run("validate", "weather").code == 64


def test_a_change_of_the_file_that_the_stack_has_not_got_is_named(run: Command) -> None:
    bigger = ("--set", "nodeGroups[0].instanceType=m7i.large", "--set", "nodeGroups[0].maxSize=8")
    ran = run("validate", "cluster", *bigger)
    assert ran.code == 0
    assert "! NodeGroupNodesMaxSize is 4 in the stack and 8 in the cluster file." in ran.out
    assert "parameters/" in ran.out.replace("\n", " ")  # the stack was not made by `cfngen deploy`
    assert ran.out.endswith("as it is deployed; 2 parameters of the stack differ from the cluster file.\n")
    screen = run("status", *bigger).out
    assert "\n  NodeGroupNodesInstanceType is t3.medium in the stack and m7i.large in the cluster file\n" in screen
    [types, sizes] = json.loads(run("validate", "cluster", *bigger, "-o", "json").out)["differingValues"]
    assert (types["fileValue"], sizes["stackValue"]) == ("m7i.large", "4")
