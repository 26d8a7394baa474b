"""The second stage of the boot program: fetched from the stack, checked, unpacked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from boots import boot_of
from scripted_machine import ScriptedMachine, stack_resource

from cfngen.boot import program
from cfngen.boot.machine import BootError
from cfngen.boot.state import Boot
from cfngen.cluster.model import Cluster
from cfngen.userdata import UserData, roles
from cfngen.userdata.source import stripped_source

VALUES = {"stack": "kubernetes-Master-1ABCDEFGHIJKL", "privateAddress": "172.20.0.9"}
FIRST_STAGE = {
    f"boot/{each}.py" for each in ("__main__", "machine", "packages", "program", "reasons", "runner", "state")
}


def of_role(cluster: Cluster, role: str = "master") -> UserData:
    return next(each for each in roles(cluster) if each.role.startswith(role))


def second_stage(found: UserData) -> tuple[ScriptedMachine, Boot]:
    """An instance whose first stage is unpacked, in a stack that holds the second."""
    machine, facts = ScriptedMachine(), {"address": "172.20.0.9", **VALUES}
    boot = boot_of({**json.loads(found.files["config.json"]), "facts": facts, "deadline": 1000})
    metadata = json.dumps({"cfngen": {"role": found.role, "program": found.program}})
    answer = stack_resource("handle", found.resource, metadata)
    machine.cloud["cloudformation.describe_stack_resource"] = lambda StackName, LogicalResourceId: answer  # noqa: N803
    return machine, boot


@pytest.mark.parametrize("role", ["master", "node"])
def test_second_stage_is_the_rest_of_the_program(role: str) -> None:
    found = of_role(Cluster(), role)
    machine, boot = second_stage(found)
    machine.files["/opt/cfngen/files/etc/of-another-cluster"] = "old"
    assert program.fetch(machine, boot) == f"{found.resource} unpacked"
    [(call, arguments)] = machine.calls
    assert call == "cloudformation.describe_stack_resource"
    assert arguments == {"StackName": VALUES["stack"], "LogicalResourceId": found.resource}
    files = {path.removeprefix("/opt/cfngen/"): text for path, text in machine.files.items() if "/opt/cfngen" in path}
    later = {path for path in found.files if path.startswith(("boot/", "files/"))} - FIRST_STAGE
    assert files.pop("files/etc/of-another-cluster", None) is None
    assert set(files) == later | {"role.json", "unpacked"}
    for path in later:
        assert files[path] == (
            stripped_source(path[5:-3].replace("/", ".")) if path.startswith("boot/") else found.files[path]
        )
    assert boot.config["assets"] == json.loads(found.files["role.json"])["assets"]


def test_second_stage_is_fetched_once_and_its_configuration_is_filled_in_each_time() -> None:
    machine, boot = second_stage(of_role(Cluster()))
    program.fetch(machine, boot)
    again = boot_of({**json.loads(of_role(Cluster()).files["config.json"]), "facts": boot.facts})
    assert program.fetch(machine, again).endswith("was there")
    assert len(machine.calls) == 1
    assert again.config["kubeadm"][0]["localAPIEndpoint"]["advertiseAddress"] == "172.20.0.9"


def test_another_program_than_that_of_the_user_data_is_not_unpacked() -> None:
    machine, boot = second_stage(of_role(Cluster(name="other")))
    boot.config["program"]["sha256"] = "0" * 64
    with pytest.raises(BootError, match=r"has SHA-256 [0-9a-f]{64}, not 0{64}") as caught:
        program.fetch(machine, boot)
    assert caught.value.hint == "check that the stack still has this resource"
    assert not [path for path in machine.files if "/opt/cfngen" in path]


def test_what_systemd_starts_ends_with_an_exit_code(tmp_path: Path) -> None:
    for path, text in of_role(Cluster()).files.items():
        if path in FIRST_STAGE:
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(text.replace("/opt/cfngen", str(tmp_path)))
    configuration = {"config.json": {"steps": {}, "tasks": {}}, "references.json": {}, "role.json": {}}
    for name, content in configuration.items():
        (tmp_path / name).write_text(json.dumps(content))
    command = [sys.executable, "-m", "boot", "no-such-task"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.splitlines()[-1:]) == (1, ["KeyError: 'no-such-task'"])
