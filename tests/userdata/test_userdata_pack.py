"""User data as CloudFormation and an instance see it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from troposphere import Ref

from cfngen.cluster.model import Cluster
from cfngen.userdata import UserData, master, node, references, roles
from cfngen.userdata.pack import MAX_USER_DATA_BYTES, UserDataTooLargeError
from cfngen.userdata.references import MAX_LENGTHS
from cfngen.userdata.source import stripped_source

VALUES = {
    "slot": "a",
    "addressA": "172.20.0.9",
    "condition": "MasterAWaitCondition",
    "conditionStack": "kubernetes",
    "bucket": "kubernetes-bucket-1abcdefghijkl",
    "stack": "kubernetes-Master-1ABCDEFGHIJKL",
    "volumeId": "vol-0123456789abcdef0",
    "privateAddress": "172.20.0.9",
    "publicAddress": "203.0.113.9",
    "caSecretArn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:CaSecret-abcdefghijkl-AbCdEf",
    "joinSecretArn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:JoinSecret-abcdefghijkl-AbCdEf",
    "routeTableId": "rtb-0123456789abcdef0",
}


def cluster(**data: Any) -> Cluster:
    return Cluster.model_validate(data)


def of_master(given: Cluster) -> UserData:
    names = references.of_master(given)
    return master(given, given.slots[0], {**{name: Ref(name) for name in names}, "resource": "MasterA"})


def of_node(given: Cluster) -> UserData:
    return node(given, given.node_groups[0], {"resource": "Nodes", "stack": Ref("stack"), "joinSecretArn": Ref("join")})


def rendered(found: UserData, values: Mapping[str, str]) -> str:
    """Return the user data as an instance gets it."""
    pieces = found.value.to_dict()["Fn::Base64"]["Fn::Join"]
    assert pieces[0] == ""
    return "".join(piece if isinstance(piece, str) else values[piece["Ref"]] for piece in pieces[1])


def module_of(path: str) -> str:
    """The name of the module in a file of the program."""
    return path.removeprefix("boot/").removesuffix(".py").replace("/", ".")


def unpacked(text: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Run user data as cloud-init would, / being `root` and systemctl a program that notes how it was called."""
    programs = root / "programs"
    programs.mkdir(parents=True)
    systemctl = programs / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >> {root}/systemctl\n')
    systemctl.chmod(0o755)
    script = root / "user-data"
    script.write_text(text)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "CFNGEN_ROOT": str(root)}
    return subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("build", [of_master, of_node])
def test_user_data_unpacks_the_program_and_starts_it(build: Any, tmp_path: Path) -> None:
    found = build(Cluster())
    text = rendered(found, {**VALUES, "join": VALUES["joinSecretArn"]})
    assert text.startswith("#!/usr/bin/python3\n")
    done = unpacked(text, tmp_path)
    assert (done.stdout, done.stderr) == ("", "")
    home = tmp_path / "opt/cfngen"
    files = {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}
    assert sorted(files) == [
        *(f"boot/{each}.py" for each in ("__main__", "machine", "packages", "program", "reasons", "runner")),
        "boot/state.py",
        "cfngen-boot.service",
        "config.json",
        "references.json",
    ]
    for path, content in files.items():
        if path.startswith("boot/"):
            assert content == stripped_source(module_of(path))
            ast.parse(content, feature_version=(3, 9))
    assert files["cfngen-boot.service"] == found.files["cfngen-boot.service"]
    assert json.loads(files["config.json"]) == json.loads(found.files["config.json"])
    assert files == {
        **{path: found.instance_files[path] for path in files},
        "references.json": files["references.json"],
    }
    references = json.loads(files["references.json"])
    assert references["stack"] == VALUES["stack"]
    assert references["joinSecretArn"] == VALUES["joinSecretArn"]
    assert (home.stat().st_mode & 0o777, (home / "config.json").stat().st_mode & 0o777) == (0o700, 0o600)
    assert (home / "cfngen-boot.service").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "systemctl").read_text() == (
        f"enable {home}/cfngen-boot.service\nrestart --no-block cfngen-boot.service\n"
    )


def test_unpacked_program_runs_up_to_its_first_need_of_the_instance(tmp_path: Path) -> None:
    """It loads the configuration and its role, and says on the console what it lacks."""
    unpacked(rendered(of_master(Cluster()), VALUES), tmp_path)
    home = tmp_path / "opt/cfngen"
    (home / "sitecustomize.py").write_text(
        "import pathlib, time\n"
        "time.sleep = lambda seconds: setattr(time, 'passed', getattr(time, 'passed', 0) + seconds)\n"
        "time.monotonic = lambda: getattr(time, 'passed', 0)\n"
        "import boot.machine\n"
        f"boot.machine.HOME = {str(home)!r}\n"
        f"boot.machine.LOG = {str(home / 'log')!r}\n"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(home),
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9",
    }
    done = subprocess.run(
        [sys.executable, "-m", "boot"], cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert re.search(r"cfngen: \[1/\d+\] identity FAILED after", done.stdout)
    assert "What to do: check that the metadata service is enabled" in done.stdout


def test_references_stand_in_the_order_given_and_texts_are_not_split() -> None:
    pieces = of_node(Cluster()).value.to_dict()["Fn::Base64"]["Fn::Join"][1]
    assert [piece for piece in pieces if not isinstance(piece, str)] == [{"Ref": "stack"}, {"Ref": "join"}]
    assert len(pieces) == 5
    assert '"resource": "Nodes", "stack": "' in pieces[0]


def test_size_is_that_of_the_longest_references() -> None:
    found = of_master(Cluster())
    assert found.size == len(rendered(found, {name: "x" * length for name, length in MAX_LENGTHS.items()}))
    assert found.size > len(rendered(found, VALUES))
    assert found.limit == MAX_USER_DATA_BYTES == 16384


def test_real_references_are_never_longer_than_reckoned() -> None:
    region = "ap-southeast-99"
    name = "JoinSecret" + "X" * 20
    longest = f"arn:aws-us-gov:secretsmanager:{region}:123456789012:secret:{name}-abcdefghijkl-AbCdEf"
    assert len(longest) <= MAX_LENGTHS["joinSecretArn"]
    assert all(len(value) <= MAX_LENGTHS[name] for name, value in VALUES.items())


def greeting(letters: int) -> Cluster:
    """A cluster whose nodes have a cloud-config, which stands in the user data as it is."""
    config = {"write_files": [{"path": "/etc/motd", "content": "m" * letters}]}
    return cluster(nodeGroups=[{"name": "nodes", "cloudConfig": config}])


def test_user_data_may_have_all_that_ec2_takes_and_not_a_byte_more() -> None:
    """EC2 user guide, "Run commands when you launch an instance": 16 KB in raw form, before it is encoded."""
    room = 16384 - of_node(greeting(0)).size
    assert room > 0
    assert of_node(greeting(room)).size == 16384
    with pytest.raises(UserDataTooLargeError, match="the user data of nodes-nodes takes up to 16385 bytes") as caught:
        of_node(greeting(room + 1))
    assert "shorten cloudConfig" in caught.value.hint


def test_every_role_has_room_to_spare() -> None:
    sizes = {found.role: found.size for found in roles(Cluster())}
    assert sorted(sizes) == ["master", "nodes-nodes"]
    assert max(sizes.values()) <= MAX_USER_DATA_BYTES - 6000


def test_a_long_cluster_file_makes_the_second_stage_longer_and_not_the_user_data() -> None:
    names = [f"{index:x}-{index * 7919:x}-{index**7:x}.example.com" for index in range(400)]
    long, short = of_master(cluster(api={"additionalNames": names})), of_master(Cluster())
    assert abs(long.size - short.size) < 32
    assert len(long.program) > len(short.program) + 4096


def test_program_has_another_name_when_it_is_another() -> None:
    first, same, other = of_master(Cluster()), of_master(cluster()), of_master(cluster(api={"port": 6443}))
    assert first.resource == same.resource != other.resource
    assert re.fullmatch(r"MasterProgram[0-9a-f]{12}", first.resource)


def test_same_cluster_gives_the_same_bytes() -> None:
    first, second = of_master(Cluster()), of_master(cluster())
    assert first.value.to_dict() == second.value.to_dict()
    assert first.files == second.files


def test_readable_view_names_references_and_leaves_the_packed_program_out() -> None:
    files = of_master(Cluster()).files
    assert '"volumeId": "${volumeId}"' in files["user-data.py"]
    assert "characters: boot/__main__.py, boot/machine.py" in files["user-data.py"]
    assert len(files["user-data.py"]) < 1500
    assert "the master's data volume" in files["boot/master/volume.py"], "people read the sources with their comments"
    assert "\n  " in files["config.json"]


def test_a_reviewer_reads_the_steps_and_not_the_program() -> None:
    found = of_master(Cluster())
    assert not [path for path in found.files_to_review if path.startswith("boot/")]
    page = found.files_to_review["steps.md"]
    titles = re.findall(r"^\| \d+ \| ([^|]+) \| [A-Z][^|]+\. \|$", page, re.MULTILINE)
    assert titles == ["identity", *json.loads(found.files["config.json"])["steps"], "signal"]
    tasks = re.findall(r"^\| ([a-z]+) \| [A-Z][^|]+\. \|$", page, re.MULTILINE)
    assert tasks == list(json.loads(found.files["role.json"])["tasks"])
    digest = re.compile("`[0-9a-f]{64}`")
    assert digest.findall(page) == digest.findall(of_master(cluster(api={"port": 6443})).files["steps.md"])
    assert digest.findall(page) != digest.findall(of_node(Cluster()).files["steps.md"])


def test_nodes_get_nothing_that_only_masters_need() -> None:
    files = of_node(Cluster()).files
    assert not [path for path in files if path.startswith("boot/master/")]
    assert not [path for path in of_master(Cluster()).files if path.startswith("boot/node/")]
    assert "caSecretArn" not in "".join(files.values())
    assert "files/etc/kubernetes/cloud.config" not in files


def test_user_data_is_plain_ascii_that_needs_no_escaping() -> None:
    for found in roles(Cluster()):
        for piece in found.value.to_dict()["Fn::Base64"]["Fn::Join"][1]:
            if isinstance(piece, str):
                assert piece.isascii()


def test_loader_is_understood_by_the_oldest_python_of_the_distributions() -> None:
    for found in roles(Cluster()):
        ast.parse(found.files["user-data.py"], feature_version=(3, 9))
