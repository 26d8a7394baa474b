"""`cfngen pause` and `cfngen resume` from the command line."""

from __future__ import annotations

import json

import pytest
from deployed_cluster import Command, Place

from cfngen.cli.render import pausing as render
from cfngen.deploy.operations.pausing.reports import Resumed, ResumeProgress


@pytest.fixture(autouse=True)
def owned(where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stacks of these tests count as made by `cfngen deploy`."""
    monkeypatch.setattr("cfngen.deploy.preflight.stack_checks.check_ownership", lambda *_, **__: False)
    where.clock.sleep(60)


def test_nothing_is_paused_without_an_answer(run: Command) -> None:
    ran = run("pause")
    assert ran.code == 1
    assert "will be paused" in ran.out
    assert "node group nodes  4" in ran.out
    assert ran.err.endswith("or confirm in advance with --yes.\n")


def test_a_cluster_that_is_not_paused_needs_no_resume(run: Command) -> None:
    ran = run("resume")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.strip() == "kubernetes is not paused; nothing was changed."


@pytest.mark.drill
def test_a_night(run: Command, where: Place) -> None:
    ran = run("pause", "--yes")
    assert ran.code == 0, ran.err
    assert "terminating 4 nodes" in ran.err
    assert "terminating 1 master" in ran.err
    assert "kubernetes is paused, after " in ran.out
    assert "Still billed while it is paused" in ran.out
    assert "20  GiB      gp3 volumes" in ran.out
    assert "Next: cfngen resume --defaults --stack-name k8s" in ran.out

    assert "has been paused since 2026-" in run("status").out
    assert run("validate").code == 2
    for refused in (("etcd", "backup"), ("etcd", "restore", "--yes"), ("rollback", "--yes")):
        ran = run(*refused)
        assert ran.code == 1
        assert "`cfngen resume --defaults --stack-name k8s` starts it again" in ran.err or "not created by" in ran.err
    assert run("etcd", "list").code == 0
    again = run("pause", "--yes", "-o", "json")
    assert json.loads(again.out)["changed"] is False

    where.clock.sleep(9 * 3600)
    ran = run("resume", "--yes", "-o", "json")
    assert ran.code == 0, ran.err
    messages = [json.loads(line) for line in ran.out.splitlines()]
    assert (messages[0]["type"], messages[-1]["type"]) == ("resumePlan", "resumed")
    assert {message["phase"] for message in messages if message["type"] == "resumeProgress"} == {"masters", "nodes"}
    assert (messages[-1]["changed"], messages[-1]["waited"]) == (True, True)
    assert run("validate", "--wait", "10m").code == 0


def test_of_many_nodes_only_the_first_are_named() -> None:
    sentences = tuple(f"the Node i-{number} of node group nodes is not Ready" for number in range(40))
    text = " ".join(" ".join(render.resume_progress_lines(ResumeProgress("nodes", sentences, 75.0))).split())
    assert text.startswith("1 min 15 s: waiting for nodes: the Node i-0 ")
    assert text.endswith("the Node i-2 of node group nodes is not Ready; and 37 more")


def test_what_was_not_waited_for_is_said() -> None:
    lines = render.resumed_lines(Resumed("one", changed=True, waited=False, seconds=2.0))
    assert "one is starting again; nothing was waited for, after 2 s." in str(lines[0])
