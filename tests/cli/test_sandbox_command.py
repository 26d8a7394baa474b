"""`cfngen sandbox`: the account on this machine, as its user meets it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shell import Shell

from cfngen.cli.input.source import Source
from cfngen.cli.input.target import Target
from cfngen.cli.render.notices import sandbox_lines
from cfngen.sandbox.process import running as process
from cfngen.sandbox.process.control_api import SandboxState
from cfngen.sandbox.process.status import LastSandbox, SandboxFault, SandboxStack, SandboxStatus, write_last_sandbox

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
LAST = LastSandbox("token", ("k8s in us-west-2",), "idle", "2026-11-22T11:00:00+00:00")


@pytest.mark.parametrize(
    "command", [("heal",), ("fail", "NodeGroupNodesAutoScalingGroup"), ("interrupt", "nodes")], ids=" ".join
)
def test_what_is_about_a_running_account_starts_none(
    cfngen: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(process, "start", lambda *_, **__: pytest.fail("a sandbox was started"))
    ran = cfngen("sandbox", *command, XDG_STATE_HOME=str(tmp_path))
    assert ran.code == 1
    assert "no sandbox is running\nhint: `cfngen sandbox start` starts one." in ran.err


@pytest.mark.parametrize(("options", "region"), [((), "us-west-2"), (("--region", "eu-central-1"), "eu-central-1")])
def test_the_environment_names_a_region(
    cfngen: Shell, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], region: str
) -> None:
    state = SandboxState("http://127.0.0.1:1", 7, "of its starter", 12.0)
    running = SimpleNamespace(endpoint=state.endpoint, state=state, status=Arranged().status)
    monkeypatch.setattr(process, "start", lambda *_, **__: running)
    ran = cfngen("sandbox", "env", *options)
    assert ran.code == 0
    assert f"export AWS_DEFAULT_REGION={region}\n" in ran.out
    assert "export AWS_ENDPOINT_URL=http://127.0.0.1:1\n" in ran.out
    assert "export AWS_SESSION_TOKEN='of its starter'\n" in ran.out


def test_what_to_install_is_said_as_it_works_in_a_checkout(cfngen: Shell) -> None:
    said = " ".join(cfngen("sandbox", "--help").out.split())
    assert "pip install '.[sandbox]'" in said
    assert "cfngen[sandbox]" not in said


def left_behind(folder: Path, last: LastSandbox) -> None:
    """Write down what a sandbox has left that ended."""
    file = process.state_file({"XDG_STATE_HOME": str(folder)})
    file.parent.mkdir()
    write_last_sandbox(file, last)


def test_the_status_of_none_is_an_answer_of_its_own(cfngen: Shell, tmp_path: Path) -> None:
    ran = cfngen("sandbox", "status", XDG_STATE_HOME=str(tmp_path))
    assert (ran.code, ran.out) == (1, "No sandbox is running; `cfngen sandbox start` starts one.\n")
    left_behind(tmp_path, LAST)
    ran = cfngen("sandbox", "status", XDG_STATE_HOME=str(tmp_path))
    assert "ended at 11:00 UTC on 2026-11-22 because it was idle; its stacks are lost: k8s in us-west-2." in ran.out
    ran = cfngen("sandbox", "status", "--output", "json", XDG_STATE_HOME=str(tmp_path))
    shown = json.loads(ran.out)
    assert (ran.code, shown["type"], shown["running"]) == (1, "sandbox", False)
    assert shown["lost"] == ["k8s in us-west-2"]


def test_the_status_of_a_sandbox_says_what_is_in_it() -> None:
    status = SandboxStatus(
        running=True,
        endpoint="http://127.0.0.1:4566",
        process=42,
        speed=12.0,
        started=NOW - timedelta(minutes=10),
        time=datetime(2026, 1, 1, 2, tzinfo=UTC),
        age=7200,
        stacks=(SandboxStack("us-west-2", "k8s", "CREATE_COMPLETE", "https://127.0.0.1:1", ("nodes", "master-a")),),
        faults=(
            SandboxFault("us-west-2", "general", "downloads", "no route", 0),
            SandboxFault("us-west-2", "master", "volume", "", 2),
            SandboxFault("us-west-2", "gpu", "ready", "no driver", 1),
        ),
    )
    assert list(sandbox_lines(status, NOW)) == [
        "The sandbox listens on http://127.0.0.1:4566, as process 42.",
        "It has been running for 10 min; its clock is 12 times as fast: 2 h 00 min.",
        "Its clock shows 2026-01-01 02:00:00 UTC.",
        "Stack k8s in us-west-2: CREATE_COMPLETE",
        "  Kubernetes API: https://127.0.0.1:1",
        "  Groups: master-a, nodes",
        "Injected failure in us-west-2: instances of general fail with 'no route' at the step 'downloads'.",
        "Injected failure in us-west-2: the next 2 instances of master hang at the step 'volume'.",
        "Injected failure in us-west-2: the next 1 instance of gpu fails with 'no driver' at the step 'ready'.",
    ]


@pytest.mark.parametrize("command", [("deploy", "--yes"), ("status",), ("delete", "--yes")], ids=" ".join)
def test_what_was_lost_is_said_before_anything_begins_anew(
    cfngen: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(process, "_spawn_server", lambda *_: pytest.fail("a sandbox was started"))
    left_behind(tmp_path, LAST)
    ran = cfngen(*command, "--defaults", "--sandbox", XDG_STATE_HOME=str(tmp_path))
    assert ran.code == 1
    said = " ".join(ran.err.split())
    assert "its stacks are lost: k8s in us-west-2" in said
    assert "hint: `cfngen sandbox start` starts a new sandbox with an empty account." in said


def test_who_has_no_credentials_is_told_of_the_cluster_in_the_sandbox(
    cfngen: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"XDG_STATE_HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}
    left_behind(tmp_path, LastSandbox("token", ("shop in eu-central-1",)))
    assert "andbox" not in cfngen("etcd", "list", "--defaults", **where).err
    monkeypatch.setattr(process, "find_running_sandbox", lambda environ: SimpleNamespace())
    ran = cfngen("etcd", "list", "--defaults", **where)
    assert (ran.code, "no AWS credentials were found" in ran.err) == (1, True)
    hint = "The sandbox on this machine has shop in eu-central-1: `cfngen etcd list --sandbox --defaults`."
    assert hint in " ".join(ran.err.split())


@pytest.mark.parametrize("command", ["status", "validate", "pause", "delete --dry-run", "etcd list"])
def test_without_credentials_and_a_cluster_file_nothing_is_said_of_stacks(
    cfngen: Shell, tmp_path: Path, command: str
) -> None:
    ran = cfngen(*command.split(), AWS_EC2_METADATA_DISABLED="true", XDG_STATE_HOME=str(tmp_path))
    assert ran.code == 1
    assert ran.err.startswith("error: no AWS credentials were found")


def test_one_that_was_stopped_is_followed_by_another_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left_behind(tmp_path, LastSandbox("token", LAST.stacks, "stopped", LAST.ended))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(process, "start", lambda *_, **__: SimpleNamespace(kubernetes={}))
    target = Target(Source(None, {}, (), is_explicit=False), sandbox=True)
    assert target.kubernetes_override("https://api") == ""
    said = " ".join(capsys.readouterr().err.split())
    words = "the sandbox was stopped at 11:00 UTC on 2026-11-22, and its stacks are lost: k8s in us-west-2."
    assert f"{words} A new, empty one has been started." in said


class Arranged:
    """A sandbox that runs, and what it was told to let fail."""

    def __init__(self, *names: str, regions: tuple[str, ...] = ("us-west-2",)) -> None:
        self.names, self.regions = names, regions
        self.orders: list[tuple[Any, ...]] = []

    def status(self) -> dict[str, Any]:
        stacks = [{"region": region, "name": "k8s"} for region in self.regions]
        groups = [{**stack, "stack": "k8s", "name": name, "logicalId": ""} for stack in stacks for name in self.names]
        return {"stacks": stacks, "groups": groups}

    def inject_failure(self, region: str, group: str, step: str, message: str, times: int = 0) -> bool:
        self.orders.append((region, group, step, message, times))
        return group in (*self.names, "master")


@pytest.mark.parametrize("group", ["general", "master", "master-a"])
def test_a_group_fails_by_its_name(cfngen: Shell, monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    running = Arranged("general", "gpu", "master-a")
    monkeypatch.setattr(process, "find_running_sandbox", lambda environ: running)
    ran = cfngen("sandbox", "fail", group, "--times", "1")
    assert (ran.code, ran.err) == (0, "")
    assert running.orders == [("us-west-2", group, "downloads", "no route to dl.k8s.io", 1)]


@pytest.mark.parametrize(
    ("file", "options", "regions", "region"),
    [
        ("region: eu-central-1", (), ("us-west-2",), "eu-central-1"),
        ("region: eu-central-1", ("--region", "us-east-1"), ("us-west-2",), "us-east-1"),
        ("", (), ("eu-central-1",), "eu-central-1"),
        ("", (), (), "us-west-2"),
        ("", (), ("eu-central-1", "us-west-2"), ""),
    ],
)
def test_the_region_is_that_of_the_file_in_use_or_of_the_stacks(
    cfngen: Shell,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    file: str,
    options: tuple[str, ...],
    regions: tuple[str, ...],
    region: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if file:
        (tmp_path / "cluster.yaml").write_text(file)
    running = Arranged("general", regions=regions)
    monkeypatch.setattr(process, "find_running_sandbox", lambda environ: running)
    ran = cfngen("sandbox", "fail", "general", *options)
    assert [order[0] for order in running.orders] == ([region] if region else [])
    assert (f"in {region} fail" if region else "stacks in eu-central-1 and us-west-2") in " ".join(
        (ran.out + ran.err).split()
    )


def test_a_sandbox_that_runs_is_not_started_with_other_settings(cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    state = SandboxState("http://127.0.0.1:5000", 7, "token", 12.0)
    running = SimpleNamespace(state=state, endpoint=state.endpoint, pid=state.pid)
    monkeypatch.setattr(process, "find_running_sandbox", lambda environ: running)
    for options in ((), ("--speed", "12", "--answers", "aws", "--seed", "1")):
        assert "already running: http://127.0.0.1:5000, process 7." in cfngen("sandbox", "start", *options).out
    ran = cfngen("sandbox", "start", "--speed", "40", "--answers", "generous", "--seed", "7")
    assert ran.code == 1
    assert "already running with --speed 12, --answers aws and --seed 1" in " ".join(ran.err.split())


def test_healing_says_where(cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def remove_faults(region: str) -> list[str]:
        asked.append(region)
        return [] if region else ["eu-central-1", "us-west-2"]

    monkeypatch.setattr(process, "find_running_sandbox", lambda _: SimpleNamespace(remove_faults=remove_faults))
    assert "instances in eu-central-1 and us-west-2 boot normally" in cfngen("sandbox", "heal").out
    assert cfngen("sandbox", "heal", "--region", "us-east-1").out == "There are no injected failures in us-east-1.\n"
    assert asked == ["", "us-east-1"]


def test_an_unknown_name_is_told_which_there_are(cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Arranged("general", "gpu", "master-a")
    monkeypatch.setattr(process, "find_running_sandbox", lambda environ: running)
    ran = cfngen("sandbox", "fail", "genral")
    assert (ran.code, running.orders) == (1, [])
    said = " ".join(ran.err.split())
    assert "no stack in us-west-2 has a group 'genral'" in said
    assert "the groups are general, gpu, master, master-a." in said


@pytest.mark.parametrize("names", [(), ("general",)], ids=["before a cluster", "by a logical id"])
def test_a_group_that_comes_later_may_be_named_beforehand(
    cfngen: Shell, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    running, group = Arranged(*names), "NodeGroupGpuAutoScalingGroup" if names else "gpu"
    monkeypatch.setattr(process, "find_running_sandbox", lambda environ: running)
    ran = cfngen("sandbox", "fail", group)
    assert ran.code == 0
    assert running.orders[0][1] == group
    assert "the failure applies once a stack has one" in " ".join(ran.err.split())


def test_interrupting_says_which_instances_end_and_how(cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[Any, ...]] = []

    def send_notice(*arguments: Any) -> tuple[list[str], list[str]]:
        sent.append(arguments)
        return {"batch": (["i-1", "i-2"], []), "general": ([], ["i-3"])}.get(arguments[1], ([], []))

    running = SimpleNamespace(send_notice=send_notice, status=Arranged("batch").status)
    monkeypatch.setattr(process, "find_running_sandbox", lambda _: running)
    ran = cfngen("sandbox", "interrupt", "batch", "--times", "2")
    assert (ran.code, ran.out) == (
        0,
        "EC2 interrupts 2 Spot Instances of batch in us-west-2 in two minutes: i-1, i-2\n",
    )
    ran = cfngen("sandbox", "interrupt", "batch", "--notice", "rebalance")
    assert (ran.code, ran.out) == (0, "EC2 recommends to rebalance 2 Spot Instances of batch in us-west-2: i-1, i-2\n")
    ran = cfngen("sandbox", "interrupt", "general")
    ended = "1 On-Demand Instance of general in us-west-2 ended, as if the machine failed: i-3\n"
    assert (ran.code, ran.out) == (0, ended)
    ran = cfngen("sandbox", "interrupt", "none", "--region", "eu-central-1", "--notice", "both")
    assert ran.code == 1
    assert "'none' in eu-central-1 has no running instances" in ran.err
    assert sent == [
        ("us-west-2", "batch", "interruption", 2),
        ("us-west-2", "batch", "rebalance", 0),
        ("us-west-2", "general", "interruption", 0),
        ("eu-central-1", "none", "both", 0),
    ]
