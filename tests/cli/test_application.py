"""The command line as a whole: help, version, colours, and how it ends when something goes wrong."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import cfngen as package
from cfngen.cli.application import COMMANDS, application
from cfngen.cli.failures import EXIT_CODES
from cfngen.cli.template_file import TemplateFileError
from cfngen.cluster.load import load
from cfngen.errors import CfngenError
from cfngen.templates import generate

PACKAGE = Path(package.__file__).parent


@pytest.fixture
def failing(monkeypatch):
    """Makes `cfngen schema` fail with an exception."""

    def fail_with(exception):
        @click.command("schema")
        def command():
            raise exception

        monkeypatch.setattr("cfngen.cli.commands.schema.command", command)

    return fail_with


def test_help_lists_every_command_and_every_exit_code(cfngen):
    ran = cfngen("--help")
    assert ran.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in ran.out
    for code, meaning in EXIT_CODES.items():
        assert f"{code}  {meaning}" in ran.out


def test_without_a_command_the_help_is_shown(cfngen):
    ran = cfngen()
    assert (ran.code, ran.out) == (64, "")
    assert ran.err == cfngen("--help").out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_commands_help_says_what_it_is_for_and_shows_examples(cfngen, name):
    ran = cfngen(name, "--help")
    assert ran.code == 0
    assert "Examples:\n" in ran.out
    assert f"cfngen {name}" in ran.out.partition("Examples:")[2]


def test_version(cfngen):
    assert cfngen("--version").out == f"cfngen {package.__version__}\n"


def test_an_unknown_command_names_the_nearest_one(cfngen):
    ran = cfngen("template")
    assert ran.code == 64
    assert "no such command 'template'; did you mean 'templates'?" in ran.err


def test_an_unknown_command_unlike_any_lists_them_all(cfngen):
    ran = cfngen("xyzzy")
    assert ran.code == 64
    assert "no such command 'xyzzy'; there are init, templates," in ran.err


def test_an_unknown_option_is_a_usage_error_and_not_a_traceback(cfngen):
    ran = cfngen("templates", "--chekc")
    assert ran.code == 64
    assert ran.out == ""
    assert "--chekc" in ran.err
    assert "Try 'cfngen templates --help'" in ran.err


def test_importing_the_command_line_imports_nothing_heavy():
    code = (
        "import sys; import cfngen.cli.application as a; "
        "[a.application.get_command(None, name) for name in a.COMMANDS]; "
        "print(*sorted({'pydantic', 'yaml', 'troposphere', 'awacs', 'cfnlint', 'boto3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_an_expected_error_is_a_message_a_hint_and_its_exit_code(cfngen, failing):
    failing(CfngenError("it does not fit", hint="make it smaller."))
    ran = cfngen("schema")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: it does not fit\nhint: make it smaller.\n"


def test_an_operating_system_error_names_the_file(cfngen, failing):
    failing(OSError(errno.ENOSPC, "No space left on device", "output/vpc.json"))
    ran = cfngen("schema")
    assert ran.code == 1
    assert ran.err == (
        "error: output/vpc.json: No space left on device\n"
        "hint: free space on that file system, or choose another place.\n"
    )


def test_each_of_several_problems_is_an_error_of_its_own_and_the_hint_comes_once(cfngen, failing):
    failing(TemplateFileError(["a.json: is empty", "b.json:3: is cut off"]))
    ran = cfngen("schema")
    lines = ran.err.splitlines()
    assert lines[:2] == ["error: a.json: is empty", "error: b.json:3: is cut off"]
    assert [line.split()[0] for line in lines[2:]] == ["hint:"]


def test_a_fault_is_one_line_that_says_how_to_report_it(cfngen, failing):
    failing(KeyError("Vpc"))
    ran = cfngen("schema")
    assert ran.code == 70
    assert ran.err.startswith("error: a fault in cfngen: KeyError: 'Vpc' (test_application.py:")
    assert "cfngen --debug" in ran.err
    assert "Traceback" not in ran.err


def test_debug_shows_the_traceback_before_the_message(cfngen, failing):
    failing(KeyError("Vpc"))
    ran = cfngen("--debug", "schema")
    assert ran.code == 70
    assert ran.err.startswith("Traceback (most recent call last):")
    assert "error: a fault in cfngen" in ran.err


def test_an_interrupt_ends_with_130_and_a_short_line(cfngen, failing):
    failing(KeyboardInterrupt())
    ran = cfngen("schema")
    assert ran.code == 130
    assert ran.err.strip() == "error: interrupted; nothing is left half-written"


@pytest.mark.parametrize("arguments", [("schema",), ("--help",), ("config", "--help"), ("--version",)])
def test_a_reader_that_goes_away_is_no_error_message(process, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    started = process(*arguments, stdout=writer)
    os.close(writer)
    assert (started.communicate()[1], started.returncode) == ("", 141)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
@pytest.mark.parametrize("arguments", [("schema",), ("--version",), ("userdata",)])
def test_output_that_cannot_be_written_is_one_error(process, arguments):
    full = os.open("/dev/full", os.O_WRONLY)
    started = process(*arguments, stdout=full)
    os.close(full)
    _, err = started.communicate()
    assert started.returncode == 1
    assert err == (
        "error: standard output cannot be written: No space left on device\nhint: send the output elsewhere.\n"
    )


def test_no_colours_unless_on_a_terminal(cfngen, failing):
    failing(CfngenError("no"))
    assert "\x1b" not in cfngen("schema").err


def test_colours_when_asked_for(cfngen, failing):
    failing(CfngenError("no"))
    assert cfngen("--color", "schema").err.startswith("\x1b[31m")


def test_no_color_in_the_environment_is_weaker_than_the_flag_and_stronger_than_a_terminal(cfngen, failing, monkeypatch):
    failing(CfngenError("no"))
    monkeypatch.setattr("click._compat.isatty", lambda stream: True)
    assert "\x1b" in cfngen("schema").err
    assert "\x1b" not in cfngen("schema", NO_COLOR="1").err
    assert "\x1b" not in cfngen("--no-color", "schema").err
    assert "\x1b" in cfngen("--color", "schema", NO_COLOR="1").err


@pytest.mark.parametrize(("shell", "mark"), [("bash", "complete -o"), ("zsh", "#compdef cfngen"), ("fish", "complete")])
def test_completion_prints_the_shells_script(cfngen, shell, mark):
    ran = cfngen("completion", shell)
    assert ran.code == 0
    assert mark in ran.out
    assert "_CFNGEN_COMPLETE" in ran.out


def test_completion_knows_the_commands(process):
    done = process(_CFNGEN_COMPLETE="bash_complete", COMP_WORDS="cfngen te", COMP_CWORD="1")
    assert done.communicate()[0] == "plain,templates\n"


def completed(process, line):
    """What the shell offers after a command line."""
    done = process(_CFNGEN_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(line.split(" ")) - 1))
    out, err = done.communicate()
    assert err == ""
    return [line for line in out.splitlines() if line]


EXISTING = """\
{vpc: {id: vpc-0123456789abcdef0, cidr: 10.9.0.0/16}, subnets: [{id: subnet-0123456789abcdef0, cidr: 10.9.0.0/24}]}"""


@pytest.mark.parametrize("network", ["{}", EXISTING])
def test_completion_knows_the_stacks_and_the_roles(process, directory, network):
    text = f"network: {network}\nnodeGroups: [{{name: general}}, {{name: gpu}}]\n"
    (directory / "own.yaml").write_text(text)
    cluster = load(directory / "own.yaml", environ={}).cluster
    names = [document.name for document in generate(cluster)]
    assert completed(process, "cfngen templates -f own.yaml --only ") == [f"plain,{name}" for name in names]
    assert completed(process, "cfngen userdata -f own.yaml nodes-g") == ["plain,nodes-general", "plain,nodes-gpu"]


def test_completion_leaves_files_and_directories_to_the_shell(process):
    assert completed(process, "cfngen config -f cl") == ["file,cl"]
    assert completed(process, "cfngen lint ou") == ["file,ou"]
    assert completed(process, "cfngen templates --output-dir ou") == ["dir,ou"]


@pytest.mark.parametrize("option", ["-f absent.yaml", "-f bad.yaml", "-f -", "--set name", "-f"])
def test_completion_is_silent_about_what_is_wrong(process, directory, option):
    (directory / "bad.yaml").write_text("name: [\n")
    assert completed(process, f"cfngen userdata {option} n") in ([], ["file,n"])


def test_completion_refuses_a_shell_it_does_not_know(cfngen):
    ran = cfngen("completion", "tcsh")
    assert ran.code == 64
    assert "'tcsh' is not one of" in ran.err


def test_every_command_of_the_application_exists():
    context = click.Context(application)
    assert all(application.get_command(context, name) for name in COMMANDS)
    modules = {path.stem for path in (PACKAGE / "cli" / "commands").glob("*.py")} - {"__init__"}
    assert modules == set(COMMANDS)


def test_a_group_of_commands_alone_shows_its_help_and_no_error(cfngen):
    ran = cfngen("etcd")
    assert "cfngen etcd restore" in ran.out + ran.err
    assert "error:" not in ran.err
