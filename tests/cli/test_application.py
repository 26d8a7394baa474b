"""The command line as a whole: help, version, colours, and how it ends when something goes wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import cfngen as package
from cfngen.cli.application import COMMANDS, application
from cfngen.cli.display.typography import ASCII_REPLACEMENTS
from cfngen.cli.exit_codes import EXIT_CODE_MEANINGS
from cfngen.cli.input.template_file import TemplateFileError
from cfngen.cli.usage import COMMANDS_OF_OTHER_TOOLS, OPTIONS_OF_OTHER_TOOLS
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
    for code, meaning in EXIT_CODE_MEANINGS.items():
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
    assert "\\b" not in ran.out  # click's mark for a paragraph that is not wrapped


def test_version(cfngen):
    assert cfngen("--version").out == f"cfngen {package.__version__}\n"


def test_versions(cfngen):
    ran = cfngen("version", "--output", "json")
    versions = json.loads(ran.out)
    assert versions["cfngen"] == package.__version__
    assert versions["defaultKubernetesVersion"] in versions["kubernetesVersions"]
    assert versions["packages"].keys() == {"cfn-lint", "troposphere", "boto3"}
    lines = cfngen("version").out.splitlines()
    assert lines[0] == f"cfngen       {package.__version__}"
    assert lines[1].startswith(f"Kubernetes   {versions['defaultKubernetesVersion']} by default; also ")
    assert all(version in lines[1] for version in versions["kubernetesVersions"])
    assert f"boto3        {versions['packages']['boto3']}" in lines


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("template", "no such command 'template'; did you mean 'templates' or 'replace'?"),
        ("xyzzy", "no such command 'xyzzy'; the commands are init, templates,"),
        ("etcd restor", "no such command 'restor'; did you mean 'restore'?"),
        ("sandbox xyzzy", "no such command 'xyzzy'; the commands are "),
        ("templates --chekc", "no such option '--chekc'; did you mean '--check'?"),
        ("--colour", "no such option '--colour'; did you mean '--color' or '--no-color'?"),
        ("plan --xyzzy", "no such option '--xyzzy'\n"),
        ("etcd restore a b", "cfngen etcd restore takes no argument 'b'\n"),
        ("templates -o", "option '-o' requires an argument."),
        ("templates -o mine/", "'mine/' is not one of json, yaml; --output-dir (-d) chooses the directory."),
    ],
)
def test_a_command_line_with_a_mistake_names_what_is_near(line, message, cfngen, tree):
    ran = cfngen(*line.split(" "))
    assert (ran.code, ran.out) == (64, "")
    assert f" {message}" in ran.err.partition("error:")[2]
    assert tree() == {}


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("deploy --region eu-west-1", "the region is `region` in the cluster file; `--set region=REGION` overrides it"),
        ("templates --name mine", "the name is `name` in the cluster file; `--set name=NAME` overrides it"),
        ("deploy --dry-run", "`cfngen plan` shows what a deployment would change"),
        ("etcd restore --debug", "put it before the command: `cfngen --debug etcd restore …`"),
    ],
)
def test_an_option_that_belongs_elsewhere_is_told_where(line, hint, cfngen):
    ran = cfngen(*line.split(" "))
    assert ran.code == 64
    assert f"Try 'cfngen {line.partition(' --')[0]} --help'." in ran.err
    assert f"\nhint: {hint}" in ran.err


@pytest.mark.parametrize("name", COMMANDS_OF_OTHER_TOOLS)
def test_a_command_of_another_tool_is_told_what_does_it_here(name, cfngen):
    assert name not in COMMANDS
    advice = COMMANDS_OF_OTHER_TOOLS[name]
    ran = cfngen(name, "cluster", "--yes")
    assert (ran.code, ran.out) == (64, "")
    assert f"error: no such command {name!r}; {advice}\n" in ran.err
    commands = re.findall(r"`cfngen ([a-z-]+)([^`]*)`", advice)
    assert commands
    for command, arguments in commands:
        assert set(re.findall(r"--[a-z-]+", arguments)) <= options_of(command)
    assert [page for page in re.findall(r"docs/[a-z/]+\.md", advice) if not (PACKAGE.parent / page).exists()] == []


def options_of(name):
    return {option for parameter in application.get_command(None, name).params for option in parameter.opts}


def test_every_option_that_advice_names_is_one():
    known = set().union(*map(options_of, COMMANDS))
    assert {needed for needed, _ in OPTIONS_OF_OTHER_TOOLS.values()} <= known
    advised = {
        each for _, text in OPTIONS_OF_OTHER_TOOLS.values() for each in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text)
    }
    assert advised
    assert advised <= known


def test_the_short_option_o_means_the_form_of_the_output_in_every_command():
    commands = [application.get_command(None, name) for name in COMMANDS]
    commands += [command for group in commands if isinstance(group, click.Group) for command in group.commands.values()]
    meanings = {
        (tuple(parameter.opts[:2]), isinstance(parameter.type, click.Choice))
        for command in commands
        for parameter in command.params
        if "-o" in parameter.opts
    }
    assert meanings == {(("--output", "-o"), True)}


def test_templates_are_written_in_the_form_that_o_names(cfngen, tree, monkeypatch):
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())
    assert cfngen("templates", "--defaults", "-o", "yaml", "-d", "mine", "--only", "vpc").code == 0
    assert set(tree()) == {"mine/vpc.yaml"}


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
        "hint: free space on that file system, or choose another directory.\n"
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
    assert ran.err.startswith("error: a bug in cfngen: KeyError: 'Vpc' (test_application.py:")
    assert "cfngen --debug" in ran.err
    assert "Traceback" not in ran.err


def test_debug_shows_the_traceback_before_the_message(cfngen, failing):
    failing(KeyError("Vpc"))
    ran = cfngen("--debug", "schema")
    assert ran.code == 70
    assert ran.err.startswith("Traceback (most recent call last):")
    assert "error: a bug in cfngen" in ran.err


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
        "error: standard output cannot be written: No space left on device\n"
        "hint: redirect the output to another file.\n"
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


def test_a_dumb_terminal_gets_no_colours_unless_asked_for(cfngen, failing, monkeypatch):
    failing(CfngenError("no"))
    monkeypatch.setattr("click._compat.isatty", lambda stream: True)
    assert "\x1b" in cfngen("schema", TERM="xterm").err
    assert "\x1b" not in cfngen("schema", TERM="dumb").err
    assert "\x1b" in cfngen("--color", "schema", TERM="dumb").err


SIGNS = "".join(ASCII_REPLACEMENTS) + " Zürich"
ASCII = "".join(ASCII_REPLACEMENTS.values()) + " Zürich"


@pytest.mark.drill
@pytest.mark.parametrize(
    ("locale", "text"),
    [
        ({"LC_ALL": "C"}, ASCII),
        ({"LC_ALL": "", "LANG": "POSIX"}, ASCII),
        ({"LC_ALL": "", "LANG": ""}, ASCII),
        ({"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, ASCII),
        ({"LC_ALL": "", "LANG": "en_US.UTF-8", "PYTHONIOENCODING": "utf-8"}, SIGNS),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, SIGNS),
    ],
)
def test_signs_beyond_ascii_are_shown_only_where_the_locale_has_them(process, locale, text):
    ran = process("lint", f"{SIGNS}.json", **locale)
    assert ran.communicate()[1].startswith(f"error: {text}.json: ")


def test_an_encoding_of_eight_bits_gets_stand_ins_and_no_fault(directory):
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-m", "cfngen", "lint", "✗ … Zürich.json"]
    done = subprocess.run(command, env=environ, capture_output=True)
    assert (done.returncode, done.stderr.partition(b": ")[2].partition(b": ")[0]) == (1, b"x ... Z\xfcrich.json")


def test_data_is_the_same_in_every_locale(process):
    outputs = {
        process("plan", "--parameter", "✓ … ✗", "-o", "json", LC_ALL=locale).communicate()[0]
        for locale in ("C", "C.UTF-8")
    }
    assert len(outputs) == 1
    assert "✓ … ✗" in outputs.pop()


@pytest.mark.parametrize(("shell", "mark"), [("bash", "complete -o"), ("zsh", "#compdef cfngen"), ("fish", "complete")])
def test_completion_prints_the_shells_script(cfngen, shell, mark):
    ran = cfngen("completion", shell)
    assert ran.code == 0
    assert mark in ran.out
    assert "_CFNGEN_COMPLETE" in ran.out


def test_completion_knows_the_commands(process):
    done = process(_CFNGEN_COMPLETE="bash_complete", COMP_WORDS="cfngen te", COMP_CWORD="1")
    assert done.communicate()[0] == "plain,templates\n"


def completed(cfngen, line):
    """What the shell offers after a command line."""
    ran = cfngen(_CFNGEN_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(line.split(" ")) - 1))
    assert ran.err == ""
    return [line for line in ran.out.splitlines() if line]


EXISTING = """\
{vpc: {id: vpc-0123456789abcdef0, cidr: 10.9.0.0/16}, subnets: [{id: subnet-0123456789abcdef0, cidr: 10.9.0.0/24}]}"""


@pytest.mark.parametrize("network", ["{}", EXISTING])
def test_completion_knows_the_stacks_and_the_roles(cfngen, directory, network):
    text = f"network: {network}\nnodeGroups: [{{name: general}}, {{name: gpu}}]\n"
    (directory / "own.yaml").write_text(text)
    cluster = load(directory / "own.yaml", environ={}).cluster
    names = [document.name for document in generate(cluster)]
    assert completed(cfngen, "cfngen templates -f own.yaml --only ") == [f"plain,{name}" for name in names]
    assert completed(cfngen, "cfngen userdata -f own.yaml nodes-g") == ["plain,nodes-general", "plain,nodes-gpu"]
    people = ["operator", "execution", "bucket", "pipeline", "boundary", "replace", "etcd", "pause"]
    grantees = [*people, "master", "nodes-general", "nodes-gpu"]
    assert completed(cfngen, "cfngen permissions -f own.yaml ") == [f"plain,{name}" for name in grantees]


def test_completion_leaves_files_and_directories_to_the_shell(cfngen):
    assert completed(cfngen, "cfngen config -f cl") == ["file,cl"]
    assert completed(cfngen, "cfngen lint ou") == ["file,ou"]
    assert completed(cfngen, "cfngen templates --output-dir ou") == ["dir,ou"]


@pytest.mark.parametrize("option", ["-f absent.yaml", "-f bad.yaml", "-f -", "--set name", "-f"])
def test_completion_is_silent_about_what_is_wrong(cfngen, directory, option):
    (directory / "bad.yaml").write_text("name: [\n")
    assert completed(cfngen, f"cfngen userdata {option} n") in ([], ["file,n"])


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
