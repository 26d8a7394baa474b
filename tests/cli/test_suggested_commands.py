"""Commands that are suggested reach the cluster, the stack and the account of the command that suggests them."""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from deployed_cluster import Command, Place, Shell, place
from shell import COMMANDS as EXISTING

from cfngen.cli.application import COMMANDS
from cfngen.cli.display.suggested_commands import colored, complete_commands
from cfngen.cli.input.source import Source
from cfngen.cli.input.target import Target
from cfngen.cli.render import operations
from cfngen.deploy.messages.message import Finished, Notice, Step
from cfngen.deploy.messages.next_steps import NextStep
from cfngen.deploy.status.cluster_status import Unknown
from cfngen.deploy.watching.diagnosis import Diagnosis
from cfngen.hints import CommandText, SuggestedCommand, suggest

ROOT = Path(__file__).parents[2]
SANDBOX = (("--sandbox",),)
ALL = (
    ("--sandbox",),
    ("-f", "my file.yaml"),
    ("--set", "nodeGroups[0].maxSize=6"),
    ("--set", "name=a"),
    ("--profile", "prod"),
    ("--stack-name", "k8s"),
)
SAID = "--sandbox -f 'my file.yaml' --set 'nodeGroups[0].maxSize=6' --set name=a --profile prod"


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        (CommandText(suggest("deploy"), " creates it."), f"`cfngen deploy {SAID} --stack-name k8s` creates it."),
        (
            CommandText("Next: ", suggest("watch", stack="one"), "   attaches.", quote=""),
            f"Next: cfngen watch --stack-name one {SAID}   attaches.",
        ),
        (CommandText("end it: ", suggest("delete"), "."), f"end it: `cfngen delete {SAID} --stack-name k8s`."),
        (
            CommandText(suggest("kubeconfig"), " && kubectl get nodes", quote=""),
            f"cfngen kubeconfig {SAID} --stack-name k8s && kubectl get nodes",
        ),
        (
            SuggestedCommand("validate cluster", (("--wait", "10m"),)),
            f"cfngen validate cluster --wait 10m {SAID} --stack-name k8s",
        ),
        (suggest("templates"), "cfngen templates -f 'my file.yaml' --set 'nodeGroups[0].maxSize=6' --set name=a"),
        (CommandText(suggest("etcd restore"), " goes on"), f"`cfngen etcd restore {SAID} --stack-name k8s` goes on"),
        (suggest("rollback", "--force", "--yes"), f"cfngen rollback --force --yes {SAID} --stack-name k8s"),
        (
            CommandText(suggest("delete", "--empty-bucket"), "   (or, …)", quote=""),
            f"cfngen delete --empty-bucket {SAID} --stack-name k8s   (or, …)",
        ),
        ("`cfngen sandbox start` and `cfngen templates`", "`cfngen sandbox start` and `cfngen templates`"),
        ("run it with `cfngen --debug …`", "run it with `cfngen --debug …`"),
    ],
)
def test_commands_get_what_they_lack(text: str | CommandText | SuggestedCommand, completed: str) -> None:
    once = complete_commands(text, ALL)
    assert str(once) == completed
    assert str(complete_commands(once, ALL)) == completed


def test_several_commands_in_one_text() -> None:
    text = CommandText(suggest("deploy"), " goes on, ", suggest("rollback"), " returns.")
    assert str(complete_commands(text, SANDBOX)) == (
        "`cfngen deploy --sandbox` goes on, `cfngen rollback --sandbox` returns."
    )
    assert text.commands == (suggest("deploy"), suggest("rollback"))


def test_other_names_of_an_option_count() -> None:
    plan = SuggestedCommand("plan", (("--cluster", "x.yaml"),))
    assert str(complete_commands(plan, (("-f", "y.yaml"),))) == "cfngen plan --cluster x.yaml"


def test_messages_are_completed_inside() -> None:
    step = NextStep(suggest("rollback", stack="k8s"), "ends")
    found = Diagnosis("k8s", "arn", "UPDATE_FAILED", next_steps=(step,))
    assert str(complete_commands(found, SANDBOX).next_steps[0].command) == "cfngen rollback --stack-name k8s --sandbox"
    hint = CommandText(suggest("deploy"))
    completed = complete_commands(Notice("`cfngen deploy` made it", hint), SANDBOX)
    assert (completed.text, str(completed.hint)) == ("`cfngen deploy` made it", "`cfngen deploy --sandbox`")
    unknown = Unknown("nobody answers", CommandText(suggest("status")))
    assert str(complete_commands(unknown, SANDBOX).hint) == "`cfngen status --sandbox`"
    said = Step("nothing to type")
    assert complete_commands(said, SANDBOX) is said


def test_a_text_within_a_text_keeps_its_commands_in_their_places() -> None:
    inner = CommandText("sign in, or ", suggest("watch"), " waits.")
    text = CommandText(inner, " Then ", suggest("deploy"), ".").map_text(str.upper)
    assert str(text) == "SIGN IN, OR `cfngen watch` WAITS. THEN `cfngen deploy`."


def test_a_colored_text_is_colored_to_its_end() -> None:
    text = colored(CommandText("restoring; ", suggest("etcd restore"), " waits"), "yellow")
    expected = click.style("restoring; `cfngen etcd restore --sandbox` waits", fg="yellow")
    assert str(complete_commands(text, SANDBOX)) == expected


def test_deploy_suggests_commands_as_data_only() -> None:
    """A command in a plain text would not get the options for the same cluster, stack and account."""
    command = re.compile(rf"\bcfngen ({'|'.join(map(re.escape, COMMANDS))})\b")
    plain_texts = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in sorted((ROOT / "cfngen" / "deploy").rglob("*.py"))
        for node in _texts(ast.parse(path.read_text()))
        if command.search(str(node.value))
    ]
    assert plain_texts == []


def test_every_command_that_is_suggested_exists_with_its_options() -> None:
    wrong = []
    for path in sorted((ROOT / "cfngen").rglob("*.py")):
        text = path.read_text()
        for call in _suggestions(ast.parse(text)) if "suggest(" in text else ():
            name, *flags = [str(word.value) for word in call.args if isinstance(word, ast.Constant)]
            flags += [f"--{keyword.arg}-name" for keyword in call.keywords]
            # An argument may follow, e.g. what is to be validated.
            command = EXISTING.get(name) or EXISTING.get(name.rpartition(" ")[0], click.Command("missing"))
            options = {option for parameter in command.params for option in parameter.opts}
            takes = {type(parameter) for parameter in command.params}
            if not options.issuperset(flags) or (name not in EXISTING and click.Argument not in takes):
                wrong.append(f"{path.relative_to(ROOT)}:{call.lineno}: {name} {flags}")
    assert wrong == []


def _suggestions(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of `suggest` that name the command."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="suggest"), args=[ast.Constant(), *_]):
                yield node


def _texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the text literals of a module, but not its docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    with place() as made:
        yield made


def test_an_error_repeats_what_the_caller_chose(run: Command) -> None:
    ran = run("watch", "--set", "kubernetesVersion=1.35", "--account", "123456789012", stack="missing")
    assert ran.code == 1
    options = "--defaults --set kubernetesVersion=1.35 --stack-name missing --account 123456789012"
    assert f"`cfngen deploy {options}` creates a new cluster of this name" in ran.err


def test_the_next_command_of_a_status_does(run: Command) -> None:
    ran = run("status", stack="missing")
    assert ran.out.endswith("Next: cfngen deploy --defaults --stack-name missing\n")


def test_what_follows_a_deployment_stays_in_the_sandbox() -> None:
    target = Target(Source(None, {}, (), is_explicit=False), sandbox=True)
    ended = Finished("create", "k8s", "arn", "CREATE_COMPLETE", True, 60, {"ApiEndpoint": "https://192.0.2.1"})
    assert "Next: cfngen kubeconfig --sandbox && kubectl get nodes" in [
        str(target.complete_commands(line)) for line in operations.finished_lines(ended)
    ]


def test_a_cluster_file_on_standard_input_is_read_once(
    run: Command, cfngen: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())
    text = io.BytesIO(b"name: piped\napi: {allowedCidrs: [0.0.0.0/0]}\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=text, isatty=lambda: False))
    ran = cfngen("plan", "-f", "-", "--create-bucket")  # in the account of `run`
    assert (ran.code, "the file is empty" in ran.err) == (4, False)
    assert "New cluster in the stack piped" in ran.out
    assert ran.err.count("lets the whole internet reach the Kubernetes API") == 1


def test_after_a_deletion_that_was_watched_no_cluster_is_suggested_to_kubectl() -> None:
    outputs = {"ApiEndpoint": "https://192.0.2.1"}  # which CloudFormation still tells of a deleted stack
    said = "\n".join(
        map(str, operations.finished_lines(Finished("delete", "k8s", "arn", "DELETE_COMPLETE", True, 60, outputs)))
    )
    assert "Next: cfngen delete --stack-name k8s " in said
    assert "kubeconfig" not in said
    assert "192.0.2.1" not in said
