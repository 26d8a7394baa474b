"""Both ends of the contract: what `userdata` builds is what the boot program's types say."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import cfngen
from cfngen.boot.contract import Config, MasterConfig, MasterReferences, NodeConfig, References
from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.userdata import UserData, node, references, roles

PACKAGE = Path(cfngen.__file__).parent
ZONES = [{"zone": f"us-west-2{letter}"} for letter in "abc"]
COMMANDS = {"preBootCommands": ["true"], "postBootCommands": ["true"]}
CLUSTERS: dict[str, dict[str, Any]] = {
    "default": {},
    "three masters": {"network": {"subnets": ZONES}, "controlPlane": {"count": 3}},
    "amazon-vpc": {"network": {"plugin": "amazon-vpc"}, "etcd": {"backups": {"enabled": False}}},
    "proxy": {"network": {"proxy": {"httpsProxy": "http://proxy.example.com:3128"}}},
    "GPUs and images": {
        "nodeGroups": [
            {"instanceType": "g6.xlarge", "gpu": "nvidia", "prePulledImages": ["docker.io/library/nginx:1.29"]}
        ]
    },
    "commands": {"controlPlane": COMMANDS, "nodeGroups": [{"name": "nodes", **COMMANDS}]},
}


def config(role: UserData) -> dict[str, Any]:
    return {**json.loads(role.files["config.json"]), **json.loads(role.files["role.json"])}


def test_every_reference_has_a_type_and_a_length() -> None:
    assert set(references.MAX_LENGTHS) == set(MasterReferences.__annotations__)


@pytest.mark.parametrize("file", CLUSTERS.values(), ids=CLUSTERS)
def test_references_of_a_role_are_those_of_its_type(file: dict[str, Any]) -> None:
    cluster = parse(file)
    names = set(references.of_master(cluster))
    assert MasterReferences.__required_keys__ <= names <= set(MasterReferences.__annotations__)
    assert set(references.of_node()) == References.__required_keys__


@pytest.mark.parametrize("change", [{"volume": "vol-1"}, {"stack": None}])
def test_a_template_that_gives_other_references_is_an_error(change: dict[str, Any]) -> None:
    cluster = Cluster()
    values = {**dict.fromkeys(references.of_node(), "text"), **change}
    with pytest.raises(ValueError, match="references of user data are"):
        node(cluster, cluster.node_groups[0], {name: value for name, value in values.items() if value})


@pytest.mark.parametrize("file", CLUSTERS.values(), ids=CLUSTERS)
def test_configuration_of_a_role_has_the_keys_of_its_type(file: dict[str, Any]) -> None:
    for role in roles(parse(file)):
        kind = MasterConfig if role.role == "master" else NodeConfig
        assert kind.__required_keys__ <= set(config(role)) <= set(kind.__annotations__)
    assert Config.__required_keys__ <= MasterConfig.__required_keys__ & NodeConfig.__required_keys__


def test_nothing_is_imported_of_the_boot_program_but_types_for_type_checkers() -> None:
    for file in PACKAGE.rglob("*.py"):
        if "boot" in file.relative_to(PACKAGE).parts:
            continue
        source = file.read_text()
        if "boot" not in source:
            continue
        tree = ast.parse(source)
        blocks = [
            node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ]
        allowed = {id(found) for block in blocks for found in ast.walk(block)}
        for statement in ast.walk(tree):
            names = {f"import {each.name}" for each in statement.names} if isinstance(statement, ast.Import) else set()
            if isinstance(statement, ast.ImportFrom) and not statement.level:
                names = {f"{statement.module}.{each.name}" for each in statement.names}
            if named := {each for each in names if "cfngen.boot" in each}:
                assert id(statement) in allowed, file
                assert all(each.startswith("cfngen.boot.contract") for each in named), file
