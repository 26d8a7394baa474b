"""`cfngen replace`: what is said before and after, questions, exit codes, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from deployed_cluster import STACK, Command, Place, Shell, commanding, place
from deployments import Operator

from cfngen.sandbox.durations import DURATIONS
from cfngen.sandbox.services import capacity

MASTERS, NODES = "MasterAAutoScalingGroup", "NodeGroupNodesAutoScalingGroup"


@pytest.fixture(scope="module")
def deployed() -> Iterator[Place]:
    """The default cluster, deployed by somebody."""
    with place(durations=DURATIONS) as where:
        session = where.session_of(SimpleNamespace(access_key="AKIAOPERATOR", secret_key="secret"))
        operator = Operator(SimpleNamespace(session=session, cluster=where.cluster, clock=where.clock))
        assert operator.deploy(where.cluster, stack_name=STACK).status == "CREATE_COMPLETE"
        yield where
        capacity.reset(where.cluster.region)


@pytest.fixture
def run(deployed: Place, cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> Command:
    return commanding(deployed, cfngen, monkeypatch)


def test_without_a_terminal_nothing_is_terminated_unless_yes_is_said(run: Command, deployed: Place) -> None:
    before = deployed.instances(MASTERS)
    ran = run("replace", "a")
    assert ran.code == 1
    assert "Replace master a of kubernetes?" in ran.err
    assert deployed.instances(MASTERS) == before


@pytest.mark.drill
def test_a_master_with_another_type_is_told_with_what_follows(run: Command, deployed: Place) -> None:
    before = deployed.instances(MASTERS)[-1]
    ran = run("replace", "a", "--instance-type", "m5.large", "--yes")
    assert ran.code == 0, ran.err
    after = deployed.instances(MASTERS)[-1]
    assert "master a will be replaced by an m5.large in us-west-2a" in ran.out
    assert "the Kubernetes API is away" in ran.out
    assert f"Master a is {after} (m5.large in us-west-2a), in place of {before}" in ran.out
    assert "    instanceType: m5.large" in ran.out
    assert "Next: cfngen validate cluster" in ran.out
    assert f"master a ({after}): ready" in ran.err
    status = run("status")
    assert "Other types" in status.out
    assert "master a launches m5.large in place of the stack's t3.medium" in status.out


def test_programs_get_the_plan_each_state_and_the_result(run: Command, deployed: Place) -> None:
    node = deployed.instances(NODES)[-1]
    ran = run("replace", node, "--yes", "--output", "json")
    assert ran.code == 0, ran.err
    messages = [json.loads(line) for line in ran.out.splitlines()]
    assert [messages[0]["type"], messages[-1]["type"]] == ["replacementPlan", "replaced"]
    assert (messages[0]["role"], messages[0]["group"], messages[0]["instance"]) == ("node", "nodes", node)
    states = [message["state"] for message in messages if message["type"] == "replacementProgress"]
    assert (states[0], states[-1]) == ("draining", "ready")
    assert messages[-1]["oldInstance"] == node


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("b",), 1, "there is no master slot and no instance 'b'"),
        (("a", "--instance-type", "m6g.large"), 1, "m6g.large is arm64"),
        ((), 64, "Missing argument 'INSTANCE|SLOT'"),
        (("a", "--wait", "soon"), 64, "--wait"),
    ],
)
def test_refusals_and_mistakes_have_their_exit_codes(
    run: Command, arguments: tuple[str, ...], code: int, text: str
) -> None:
    ran = run("replace", *arguments, "--yes")
    assert (ran.code, text.lower() in ran.err.lower()) == (code, True), ran.err


@pytest.mark.drill
def test_ctrl_c_detaches(run: Command, deployed: Place) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    deployed.clock.meanwhile[deployed.clock.sleeps + 3] = interrupt
    ran = run("replace", "a", "--yes")
    assert ran.code == 130
    assert "Auto Scaling replaces master a without cfngen" in ran.err
    assert "cfngen replace a" in ran.err
    again = run("replace", "a")
    assert again.code == 0, again.err
    assert "master a is being replaced already by" in again.out
