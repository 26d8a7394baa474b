"""The order of steps, what a person reads, and what CloudFormation hears."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from boots import boot_of
from scripted_machine import IDENTITY, ScriptedMachine, refusal

from cfngen.boot import runner
from cfngen.boot.machine import BootError
from cfngen.boot.state import Boot

INSTANCE = IDENTITY["instanceId"]
CONFIG = {"role": "node", "cluster": "kubernetes", "region": "us-west-2", "timeout": 20}


def config(**more: Any) -> Boot:
    return boot_of({**CONFIG, "facts": {"stack": "kubernetes-nodes", "resource": "Nodes"}, **more})


def good(machine: ScriptedMachine, boot: Boot) -> str:
    machine.sleep(2.14)
    return "all is well"


def bad(machine: ScriptedMachine, boot: Boot) -> str:
    machine.sleep(1)
    raise BootError("vol-1 is gone", "look at the volume")


def broken(machine: ScriptedMachine, boot: Boot) -> str:
    return str({}["nothing"])


def signals(machine: ScriptedMachine) -> list[str]:
    return [arguments["Status"] for name, arguments in machine.calls if name == "cloudformation.signal_resource"]


def test_steps_are_numbered_and_timed_and_success_is_signalled() -> None:
    machine = ScriptedMachine()
    assert runner.run(machine, config(), {"first": good, "second": good}) == 0
    assert machine.said == [
        f"[1/4] identity: {INSTANCE} in us-west-2a, node of kubernetes (0.0 s)",
        "[2/4] first: all is well (2.1 s)",
        "[3/4] second: all is well (2.1 s)",
        "[4/4] signal: signalled SUCCESS (0.0 s)",
        "done in 4.3 s",
    ]
    assert machine.calls == [
        (
            "cloudformation.signal_resource",
            {
                "StackName": "kubernetes-nodes",
                "LogicalResourceId": "Nodes",
                "UniqueId": INSTANCE,
                "Status": "SUCCESS",
            },
        )
    ]


def test_failure_is_one_line_and_a_failed_signal_at_once() -> None:
    machine = ScriptedMachine()
    assert runner.run(machine, config(), {"volume": bad, "later": good}) == 1
    assert machine.said[1:] == [
        "[2/4] volume FAILED after 1.0 s: vol-1 is gone. What to do: look at the volume",
        "signalled FAILURE",
    ]
    assert signals(machine) == ["FAILURE"]


def test_time_before_the_program_is_not_counted() -> None:
    machine, known = ScriptedMachine(), config()
    machine.passed = 1000
    assert runner.run(machine, known, {"first": good}) == 0
    assert [line.rpartition(" (")[2] for line in machine.said] == ["0.0 s)", "2.1 s)", "0.0 s)", "done in 2.1 s"]
    assert known.deadline == 1000 + 20 * 60 - 120
    assert runner.run(machine, config(), {"volume": bad}, is_boot=False) == 1
    assert machine.said[-1].startswith("[2/2] volume FAILED after 1.0 s: ")


def test_unexpected_exception_is_a_failure_like_any_other() -> None:
    machine = ScriptedMachine()
    assert runner.run(machine, config(), {"odd": broken}) == 1
    assert "[2/3] odd FAILED after 0.0 s: KeyError: 'nothing'. What to do: see /var/log/cfngen.log" in machine.said
    assert signals(machine) == ["FAILURE"]


def test_an_instance_that_works_after_a_reboot_says_so() -> None:
    """An operation that is repeated waits for it, where what failed was kept."""
    machine = ScriptedMachine()
    for step in (bad, good, good):
        runner.run(machine, config(), {"step": step})
    assert signals(machine) == ["FAILURE", "SUCCESS"]


@pytest.mark.parametrize(("first", "second"), [("SUCCESS", "FAILURE"), ("FAILURE", "FAILURE"), ("SUCCESS", "SUCCESS")])
def test_only_the_first_boot_signals(first: str, second: str) -> None:
    machine = ScriptedMachine()
    for status in (first, second):
        runner.run(machine, config(), {"step": good if status == "SUCCESS" else bad})
    assert signals(machine) == [first]
    assert f"signalled {first} before" in " ".join(machine.said)


def test_instance_made_from_an_image_of_another_signals_again() -> None:
    machine = ScriptedMachine()
    machine.files[runner.SIGNALLED_FILE] = "i-0fedcba9876543210 SUCCESS"
    runner.run(machine, config(), {"step": good})
    assert signals(machine) == ["SUCCESS"]


def test_stack_that_does_not_wait_counts_as_told() -> None:
    machine = ScriptedMachine()
    message = "Stack arn:… is in CREATE_COMPLETE state and can not be signaled"
    machine.cloud["cloudformation.signal_resource"] = lambda **_: refusal("ValidationError", message)
    assert runner.run(machine, config(), {"step": good}) == 0
    assert f"[3/3] signal: {message} (0.0 s)" in machine.said
    assert machine.files[runner.SIGNALLED_FILE] == f"{INSTANCE} SUCCESS"


def test_signal_that_cannot_be_sent_fails_the_boot_so_that_it_is_tried_again() -> None:
    machine = ScriptedMachine()
    machine.cloud["cloudformation.signal_resource"] = lambda **_: refusal("AccessDenied")
    assert runner.run(machine, config(), {"step": good}) == 1
    assert runner.SIGNALLED_FILE not in machine.files
    assert machine.said[-1].startswith("CloudFormation was not signalled: waited 61 s for signal_resource: An error")
    assert "(AccessDenied)" in machine.said[-1]


def test_failure_before_the_identity_is_known_is_said_although_nobody_can_be_told() -> None:
    class Isolated(ScriptedMachine):
        def metadata(self, path: str) -> str:
            raise BootError(
                "waited 120 s for instance metadata: timed out", "check that the metadata service is enabled"
            )

    machine = Isolated()
    assert runner.run(machine, config(), {"step": good}) == 1
    assert machine.said[0].startswith("[1/3] identity FAILED after 0.0 s: waited 120 s")
    assert machine.said[1] == "CloudFormation was not signalled: 'instanceId'"


def test_references_and_facts_fill_the_configuration() -> None:
    machine, known = ScriptedMachine(), config(facts={"stack": "s", "resource": "r", "privateAddress": "10.0.0.4"})
    known.config["kubeadm"] = [
        {"name": "${instanceId}", "endpoint": "${privateAddress}:443", "other": "${user} $5 {{.X}}"}
    ]
    runner.run(machine, known, {"step": good})
    assert known.config["kubeadm"] == [{"name": INSTANCE, "endpoint": "10.0.0.4:443", "other": "${user} $5 {{.X}}"}]
    assert known.facts == {
        "stack": "s",
        "resource": "r",
        "privateAddress": "10.0.0.4",
        "instanceId": INSTANCE,
        "address": IDENTITY["privateIp"],
        "providerId": f"aws:///us-west-2a/{INSTANCE}",
    }


def test_renewal_neither_signals_success_nor_failure() -> None:
    machine = ScriptedMachine()
    assert runner.run(machine, config(), {"step": good}, is_boot=False) == 0
    assert runner.run(machine, config(), {"step": bad}, is_boot=False) == 1
    assert signals(machine) == []


def test_waits_end_before_cloudformation_loses_patience() -> None:
    machine, known = ScriptedMachine(), config(timeout=20)
    left: list[float] = []

    def ask(machine: ScriptedMachine, boot: Boot) -> str:
        left.append(boot.remaining(machine))
        machine.sleep(3000)
        left.append(boot.remaining(machine))
        return ""

    runner.run(machine, known, {"step": ask})
    assert left == [20 * 60 - 120, 60]


def test_a_task_that_has_nothing_to_do_says_nothing() -> None:
    machine = ScriptedMachine()
    assert runner.run(machine, config(), {"step": lambda machine, boot: ""}, is_boot=False) == 0
    assert machine.said == []
    assert runner.run(machine, config(), {"step": good}, is_boot=False) == 0
    assert machine.said == ["[2/2] step: all is well (2.1 s)"]


def test_a_task_that_fails_every_minute_says_so_once_until_it_fails_otherwise_or_has_worked() -> None:
    machine = ScriptedMachine()
    machine.prefix = "cfngen-approve"

    def run(failure: str) -> list[str]:
        def step(machine: ScriptedMachine, boot: Boot) -> str:
            if failure:
                raise BootError(failure, "look at it")
            return ""

        machine.said.clear()
        assert runner.run(machine, config(), {"approve": step}, is_boot=False) == bool(failure)
        return machine.said

    assert run("waited 60 s for a master") == [
        "[2/2] approve FAILED after 0.0 s: waited 60 s for a master. What to do: look at it"
    ]
    assert run("waited 123 s for a master") == []
    assert len(run("waited 60 s for AWS")) == 1
    assert len(run("waited 60 s for a master")) == 1
    assert run("") == []
    assert len(run("waited 60 s for a master")) == 1


def test_a_boot_says_how_it_fails_each_time() -> None:
    machine = ScriptedMachine()
    for _ in range(2):
        machine.said.clear()
        assert runner.run(machine, config(), {"volume": bad}) == 1
        assert machine.said[1].startswith("[2/3] volume FAILED after 1.0 s: vol-1 is gone")


class Installed(ScriptedMachine):
    """An instance on which the program lies, as user data have left it."""

    def __init__(self) -> None:
        super().__init__()
        tasks = {"versions": {"note": "master.upgrade.record_version"}}
        self.files["/opt/cfngen/config.json"] = json.dumps(
            {
                **CONFIG,
                "kubernetesVersion": "v1.36.3",
                "steps": {"note the version": "test_boot_sequence.good"},
            }
        )
        self.files["/opt/cfngen/references.json"] = json.dumps({"stack": "kubernetes-nodes", "resource": "Nodes"})
        self.files["/opt/cfngen/role.json"] = json.dumps({"tasks": tasks})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    machine = Installed()
    monkeypatch.setattr(runner, "Machine", lambda: machine)
    # The steps' modules are the boot program's own.
    monkeypatch.setitem(sys.modules, "cfngen.boot.test_boot_sequence", sys.modules[__name__])
    return machine


def test_boot_runs_the_steps_of_the_role_and_signals(installed: Installed) -> None:
    assert runner.main([]) == 0
    assert [line.partition(":")[0] for line in installed.said] == [
        "[1/3] identity",
        "[2/3] note the version",
        "[3/3] signal",
        "done in 2.1 s",
    ]
    assert signals(installed) == ["SUCCESS"]
    assert installed.prefix == "cfngen"


def test_task_runs_its_own_steps_under_its_own_name_and_signals_nothing(installed: Installed) -> None:
    assert runner.main(["versions"]) == 0
    assert installed.files["/mnt/master/kubernetes-version"] == "v1.36.3"
    assert installed.said == ["[2/2] note: None (0.0 s)"]
    assert signals(installed) == []
    assert installed.prefix == "cfngen-versions"


def test_failed_step_fails_the_unit(installed: Installed) -> None:
    known = json.loads(installed.files["/opt/cfngen/config.json"])
    known["steps"] = {"volume": "test_boot_sequence.bad"}
    installed.files["/opt/cfngen/config.json"] = json.dumps(known)
    assert runner.main([]) == 1
    assert signals(installed) == ["FAILURE"]
