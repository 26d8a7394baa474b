"""`cfngen userdata`."""

from __future__ import annotations

import json
from pathlib import Path

from cfngen.cluster.load import parse
from cfngen.userdata import roles


def test_the_roles_are_listed(cfngen):
    assert cfngen("userdata").out == "master\nnodes-nodes\n"


def test_a_role_is_shown_unpacked(cfngen):
    ran = cfngen("userdata", "master")
    assert ran.code == 0
    headings = [line for line in ran.out.splitlines() if line.startswith("==> ")]
    assert {"==> user-data.py <==", "==> config.json <==", "==> boot/machine.py <=="} <= set(headings)
    assert "class Machine" in ran.out


def test_one_file_by_itself(cfngen):
    assert json.loads(cfngen("userdata", "master", "--file", "config.json").out)["role"] == "master"


def test_the_size_of_every_role(cfngen):
    lines = cfngen("userdata", "--size").out.splitlines()
    assert [line.split()[0] for line in lines] == ["master", "nodes-nodes"]
    for line in lines:
        _, size, of, limit, _, room, left = line.split()
        assert (of, left) == ("of", "left")
        numbers = [int(each.replace(",", "")) for each in (size, limit, room)]
        assert numbers[0] + numbers[2] == numbers[1] == 16384


def test_the_size_of_one_role(cfngen):
    assert cfngen("userdata", "nodes-nodes", "--size").out.startswith("nodes-nodes ")


def test_an_unknown_role_lists_the_roles(cfngen):
    ran = cfngen("userdata", "nodes")
    assert ran.code == 64
    assert "no role 'nodes' in this cluster; the roles are master, nodes-nodes." in ran.err


def test_an_unknown_file_lists_the_files(cfngen):
    ran = cfngen("userdata", "master", "--file", "boot.json")
    assert ran.code == 64
    assert "config.json" in ran.err


def test_a_file_needs_a_role(cfngen):
    ran = cfngen("userdata", "--file", "config.json")
    assert ran.code == 64
    assert ran.err.endswith("error: specify a role: `cfngen userdata master --file config.json`\n")


def test_the_program_is_unpacked_as_an_instance_gets_it(cfngen, directory):
    ran = cfngen("userdata", "nodes-nodes", "--unpack", "node")
    [node] = [each for each in roles(parse({})) if each.role == "nodes-nodes"]
    assert ran.out == f"node: {len(node.instance_files)} files of the role nodes-nodes.\n"
    unpacked = {str(path.relative_to("node")): path.read_text() for path in Path("node").rglob("*") if path.is_file()}
    assert unpacked == node.instance_files
    assert json.loads(unpacked["references.json"])["joinSecretArn"] == "${joinSecretArn}"
    assert cfngen("userdata", "nodes-nodes", "--unpack", "node").code == 0


def test_nothing_is_unpacked_over_what_is_there(cfngen, directory):
    Path("node/boot").mkdir(parents=True)
    Path("node/boot/machine.py").write_text("mine")
    ran = cfngen("userdata", "nodes-nodes", "--unpack", "node")
    assert ran.code == 1
    assert "was not written by cfngen and would be replaced" in ran.err
    assert [path.name for path in Path("node").rglob("*")] == ["boot", "machine.py"]
    assert cfngen("userdata", "--unpack", "node").err.endswith(
        "specify a role: `cfngen userdata master --unpack node`\n"
    )


def test_a_file_or_the_size(cfngen):
    ran = cfngen("userdata", "master", "--size", "--file", "config.json")
    assert ran.code == 64
    assert "--file and --size cannot be used together" in ran.err


def test_the_roles_follow_the_cluster(cfngen, directory):
    (directory / "gpu.yaml").write_text("nodeGroups: [{name: gpu}]\n")
    assert cfngen("userdata", "-f", "gpu.yaml").out == "master\nnodes-gpu\n"


def test_a_program_gets_the_files(cfngen):
    by_role = {line["role"]: line for line in map(json.loads, cfngen("userdata", "-o", "json").out.splitlines())}
    assert list(by_role) == ["master", "nodes-nodes"]
    assert 0 < by_role["master"]["size"] < by_role["master"]["limit"]
    assert by_role["master"]["files"] == {}
    whole = json.loads(cfngen("userdata", "master", "-o", "json").out)["files"]
    one = json.loads(cfngen("userdata", "master", "--file", "config.json", "-o", "json").out)["files"]
    assert one == {"config.json": whole["config.json"]}
