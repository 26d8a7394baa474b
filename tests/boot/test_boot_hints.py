"""What people are told to do works where they are told it: every program that a hint names is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import cfngen.boot
from cfngen.cluster.model import Cluster
from cfngen.releases import master_tools, release
from cfngen.userdata.role_configuration import ARCHIVE_MEMBERS

MODULES = sorted(Path(cfngen.boot.__file__).parent.rglob("*.py"))
# Names of texts that are hints, or become a part of one.
NAMES = {"hint", "quorum_hint", "HINT", "RESTORE", "REPAIR", "PREFLIGHT"}
# With every distribution that is supported, whatever its image: coreutils, util-linux, kmod, procps, iproute2, systemd;
# e2fsprogs is installed on masters.
DISTRIBUTION = {"cat", "df", "e2fsck", "grep", "ip", "journalctl", "ls", "lsblk", "lsmod", "ss", "sysctl", "systemctl"}
# On the machine of whoever reads the hint.
OPERATORS = {"aws", "cfngen"}
# Of containerd's archive.
CONTAINERD = {"containerd", "ctr"}
# What people are used to, and no instance has.
ABSENT = {"crictl", "docker", "fsck", "nerdctl", "podman", "netstat", "xfs_repair"}


def installed() -> set[str]:
    cluster = Cluster()
    assets = [*release(cluster.kubernetes_version, "amd64").assets, *master_tools("amd64")]
    archived = {pattern.rpartition("/")[2] for patterns in ARCHIVE_MEMBERS.values() for pattern in patterns}
    return {asset.name for asset in assets} | archived | CONTAINERD | DISTRIBUTION | OPERATORS


def texts(node: ast.AST | None) -> Iterator[str]:
    """Yield the texts below a node; what is filled in is left out."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif node is not None:
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def hints(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call):
            function = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            position = {"BootError": 1, "wait": 2}.get(function)
            if position is not None:
                yield from texts(node.args[position] if len(node.args) > position else None)
            yield from (text for word in node.keywords if word.arg == "hint" for text in texts(word.value))
        elif isinstance(node, ast.Assign):
            titles = {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            if titles & NAMES:
                yield from texts(node.value)
        elif isinstance(node, ast.FunctionDef) and node.name in NAMES:
            yield from texts(ast.Module(node.body[1:], []))


def commands(hint: str) -> Iterator[str]:
    """Yield the commands in a hint: they stand in backquotes."""
    for quoted in re.findall("`([^`]+)`", hint):
        yield from (command.strip() for command in quoted.split("|"))


ALL = [(module.stem, hint) for module in MODULES for hint in hints(module)]


def test_hints_are_found() -> None:
    quoted = {module for module, hint in ALL if any(commands(hint))}
    assert {"addons", "backup", "control_plane", "disks", "first_pod", "membership", "system", "volume"} <= quoted


def test_every_program_that_a_hint_names_is_installed() -> None:
    there = installed()
    # A key of the cluster file stands in backquotes as well; it has a dot.
    named = {(module, command.split()[0]) for module, hint in ALL for command in commands(hint)}
    assert [(module, program) for module, program in sorted(named) if program not in there and "." not in program] == []


def test_programs_of_hints_stand_in_backquotes_and_none_is_missing_on_instances() -> None:
    plain = {(module, word) for module, hint in ALL for word in re.findall(r"[\w-]+", re.sub("`[^`]+`", " ", hint))}
    # These are also names of services and verbs.
    words = {"cfngen", "containerd", "kubelet", "kubeadm", "helm", "etcd", "ip", "runc", "cat"}
    assert [(module, word) for module, word in sorted(plain) if word in (installed() - words) | ABSENT] == []
