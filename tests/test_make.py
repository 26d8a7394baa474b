"""The Makefile, and the virtual environment that its targets make once."""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
REQUIREMENTS = {f"requirements/{name}.txt": name for name in ("runtime", "sandbox", "development", "oldest")}


def test_make_help_names_every_target():
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    assert set(re.findall(r"^make ([a-z-]+)", shown, re.MULTILINE)) == set(phony[1].split()) - {
        "runtime",
        "sandbox",
        "development",
    }


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a Python that only pretends: it notes what it is asked to do."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / "requirements").mkdir()
    for path in (".ci/venv", "setup.cfg", "pyproject.toml", *REQUIREMENTS):
        (tmp_path / path).write_text((ROOT / path).read_text())
    python = tmp_path / "python3"
    python.write_text(
        "#!/bin/sh\n"
        'echo "$*" >> "$LOG"\n'
        'case "$*" in\n'
        '  *"version_info < "*) exit "${TOO_OLD:-0}" ;;\n'
        '  *ensurepip*) exit "${NO_VENV:-0}" ;;\n'
        '  "-m venv --clear .venv") rm -rf .venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;\n'
        '  *"config list") printf "%s" "$PIP_CONFIGURATION" ;;\n'
        '  *uv.txt) cp "${UV:-/nowhere}" .venv/bin/uv ;;\n'
        '  *install*) exit "${NO_NETWORK:-0}" ;;\n'
        "esac\n"
    )
    python.chmod(0o755)

    class Checkout:
        log = tmp_path / "log"

        def venv(self, wanted, **environ):
            """Run .ci/venv; return its exit code, what it said, and whether it made or installed something."""
            self.log.write_text("")
            done = subprocess.run(
                ["sh", str(tmp_path / ".ci" / "venv"), wanted],
                env={"PATH": os.environ["PATH"], "PYTHON": str(python), "LOG": str(self.log), **environ},
                capture_output=True,
                text=True,
            )
            log = self.log.read_text()
            return done.returncode, done.stdout + done.stderr, ("venv --clear" in log, "install" in log)

    return Checkout()


def test_the_environment_is_made_once(checkout):
    assert checkout.venv("runtime")[::2] == (0, (True, True))
    assert checkout.venv("runtime") == (0, "", (False, False))


def test_development_adds_to_the_runtime_environment_and_serves_as_one(checkout):
    checkout.venv("runtime")
    assert checkout.venv("development")[::2] == (0, (False, True))
    assert checkout.venv("development") == checkout.venv("runtime") == (0, "", (False, False))


def test_what_is_installed_is_locked_and_the_project_itself_comes_alone(checkout):
    checkout.venv("sandbox")
    installed = [
        line.partition(" install ")[2] for line in checkout.log.read_text().splitlines() if " install " in line
    ]
    assert installed == [
        "-qq --require-hashes --requirement requirements/sandbox.txt",
        "-qq --no-deps --no-build-isolation --editable .",
    ]


PIP_CONFIGURATION = """\
:env:.find-links='/wheels /more-wheels'
global.extra-index-url='\\nhttps://a.example.com/simple\\nhttps://b.example.com/simple'
global.find-links='/other'
global.index-url='https://user:word@example.com/simple'
install.cert='/etc/ssl/ours.pem'
"""


def test_development_requirements_are_installed_by_uv_as_pip_is_configured(checkout, tmp_path):
    uv = tmp_path / "uv"
    uv.write_text('#!/bin/sh\n{ echo "uv $*"; env | grep -E "^(UV_|SSL)" | sort; } >> "$LOG"\nexit "${UV_FAILS:-0}"\n')
    uv.chmod(0o755)
    assert checkout.venv("development", UV=str(uv), PIP_CONFIGURATION=PIP_CONFIGURATION)[0] == 0
    log = checkout.log.read_text()
    assert "--require-hashes --requirement requirements/development.txt\n" in log.partition("uv pip install")[2]
    assert log.count("requirements/development.txt") == 1
    assert (
        "SSL_CERT_FILE=/etc/ssl/ours.pem\n"
        "UV_DEFAULT_INDEX=https://user:word@example.com/simple\n"
        "UV_FIND_LINKS=/wheels,/more-wheels\n"
        "UV_INDEX=https://a.example.com/simple https://b.example.com/simple\n"
    ) in log
    alone = (tmp_path / ".venv/uv.txt").read_text()
    assert re.findall(r"(?m)^\S+(?===)", alone) == ["uv"]
    assert "--hash=sha256:" in alone


@pytest.mark.parametrize("environ", [{"UV_FAILS": "2"}, {"PIP_CONFIGURATION": "global.no-index='true'\n"}])
def test_pip_installs_what_uv_does_not(checkout, tmp_path, environ):
    uv = tmp_path / "uv"
    uv.write_text('#!/bin/sh\nexit "${UV_FAILS:-0}"\n')
    uv.chmod(0o755)
    assert checkout.venv("development", UV=str(uv), **environ)[0] == 0
    assert "install -qq --require-hashes --requirement requirements/development.txt\n" in checkout.log.read_text()


@pytest.mark.parametrize("file", ["setup.cfg", "requirements/runtime.txt", "requirements/development.txt"])
def test_changed_requirements_make_the_environment_anew(checkout, file):
    checkout.venv("development")
    with (checkout.log.parent / file).open("a") as changed:
        changed.write("\n# changed\n")
    assert checkout.venv("runtime")[::2] == (0, (True, True))


def test_an_interrupted_installation_is_begun_again(checkout):
    checkout.venv("runtime")
    code, said, _ = checkout.venv("development", NO_NETWORK="1")
    assert code == 1
    assert "pip could not install what requirements/development.txt lists" in said
    assert checkout.venv("runtime")[::2] == (0, (True, True))


def test_a_python_that_is_too_old_is_refused(checkout):
    code, said, done = checkout.venv("runtime", TOO_OLD="1")
    assert (code, done) == (1, (False, False))
    assert "cfngen needs Python 3.11 or newer: make PYTHON=" in said


def test_a_python_without_venv_says_what_to_install(checkout):
    code, said, done = checkout.venv("runtime", NO_VENV="1")
    assert (code, done) == (1, (False, False))
    assert "python3-venv" in said


def test_a_python_that_does_not_exist_is_named(checkout):
    code, said, _ = checkout.venv("runtime", PYTHON="python9")
    assert code == 1
    assert "there is no 'python9' on this machine" in said


@pytest.mark.parametrize(("code", "ends"), [(0, 0), (4, 0), (5, 0), (1, 2), (64, 2)])
def test_a_plan_with_changes_is_no_error_of_make(tmp_path, code, ends):
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "venv").write_text("")
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(f"#!/bin/sh\necho planned\nexit {code}\n")
    python.chmod(0o755)
    done = subprocess.run(["make", "plan"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (ends, "planned\n")
    assert ("Error" in done.stderr) is bool(ends)


@pytest.mark.parametrize(
    ("red", "ran"),
    [
        ("", ["test", "lint", "drills", "boot-test"]),
        ("lint", ["test", "lint"]),
        # What failed of the boot test is tried once more.
        ("boot-test", ["test", "lint", "drills", "boot-test", "boot-test TESTS=tests/bootlab/test_boot_a.py"]),
        ("pythons oldest", ["test", "lint", "drills", "boot-test"]),
    ],
)
def test_all_that_must_pass_is_run_and_anything_red_is_red(tmp_path, red, ran):
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/run").write_text((ROOT / ".ci/run").read_text())
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\necho "made $*"\n[ -z "$RED" ] || [ "${*#"$RED"}" = "$*" ]\n')
    make.chmod(0o755)
    failed = tmp_path / ".pytest_cache/v/cache/lastfailed"
    failed.parent.mkdir(parents=True)
    failed.write_text(json.dumps(dict.fromkeys([f"tests/bootlab/test_boot_a.py::test_{name}" for name in "ab"], True)))
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "RED": red, "TMPDIR": str(tmp_path)}
    done = subprocess.run(["bash", str(tmp_path / ".ci/run")], env=environ, capture_output=True, text=True)
    assert done.returncode == (1 if red else 0)
    made = [line.removeprefix("made ") for line in done.stdout.splitlines()]
    assert [each for each in made if each != "pythons oldest"] == ran
    if red in ("", "pythons oldest"):
        assert made[-1] == "pythons oldest"
    assert not list(tmp_path.glob("tmp.*"))


def locked(file: str) -> dict[str, set[str]]:
    """The versions that a file of requirements/ lists, by package; several if they depend on the Python."""
    versions: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / file).read_text(), re.MULTILINE):
        versions.setdefault(name, set()).add(version)
    return versions


def declared(*sections: str) -> list[Requirement]:
    """What setup.cfg and the build require."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    extras = settings["options.extras_require"]
    lines = [settings["options"]["install_requires"], *(extras[section] for section in sections)]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    listed = [line.strip() for text in lines for line in text.splitlines()]
    return [Requirement(line) for line in (*listed, *build) if line and line[0] not in "#%"]


@pytest.mark.parametrize(("file", "name"), REQUIREMENTS.items())
def test_every_locked_package_has_hashes_and_what_is_required_is_locked(file, name):
    text = (ROOT / file).read_text()
    packages = re.split(r"\n(?=[a-z])", text.partition("\n")[2].strip())
    assert all("--hash=sha256:" in package for package in packages)
    assert "://" not in text
    extras = {"runtime": (), "sandbox": ("sandbox",)}.get(name, ("sandbox", "dev"))
    for requirement in declared(*extras):
        versions = locked(file)[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_locked_versions_are_the_same_for_users_and_developers():
    development = locked("requirements/development.txt")
    for file in ("requirements/runtime.txt", "requirements/sandbox.txt"):
        assert [package for package, versions in locked(file).items() if versions != development[package]] == []


def test_the_lowest_versions_that_are_tried_are_those_that_setup_cfg_names():
    oldest = locked("requirements/oldest.txt")
    for requirement in declared("sandbox"):
        [floor] = [bound.version for bound in requirement.specifier if bound.operator == ">="]
        [version] = oldest[canonicalize_name(requirement.name)]
        assert Version(version) == Version(floor), requirement
