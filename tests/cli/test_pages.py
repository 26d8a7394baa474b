"""Whoever follows the README and the pages under docs/ literally gets what they say."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from aws_cli import WrongCommandError, call, in_text, parsed
from pages import FIRST_PAGES, PAGES, ROOT, ClusterFile, Line, Part, Shown, help_pages, name_of, read
from pages_account import PagesAccount
from pages_commands import ANSWERS, MAKE_ELSEWHERE, MENTIONED, NOT_RUN, TYPED, Typed, deployed
from pages_shell import Call, PageShell, environ_changes
from shell import Ran, Shell

from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.userdata import roles

MAKE_VARIABLES = re.findall(r"^([A-Z]+) \?=", (ROOT / "Makefile").read_text(), re.MULTILINE)
HELP = help_pages()
EXAMPLE = next(part.text for part in read(ROOT / "README.md") if isinstance(part, ClusterFile))
# How blocks begin that are neither commands nor cluster files: drawings, lines that a program prints, parameter files,
# and lists of changed files.
OTHER_BLOCKS = (
    "cluster.yaml ─►",
    "people ─►",
    "ensure deployable ─►",
    "flowchart TD",
    "cfngen/cluster/",
    "cfngen: [6/17]",
    "apiVersion: v1",
    '{"ApiAllowedCidr"',
    '{"Effect": "Allow"',
    '{"Effect": "Deny"',  # tests/templates/test_backups.py
    '{"Version": "2012-10-17"',
    "range                     tier",
    "currency: USD",
    "extends: common.yaml",  # tests/cluster/file/test_extended_files.py
    "new CfnInclude(",  # this and the next: tests/sandbox/test_pipelines.py
    "cdk deploy ",
    'resource "aws_cloudformation_stack"',
    "commit ─► job",
    "name: deploy",  # this and the next two: tests/permissions/test_registry_page.py
    "variables: {IMAGE",
    "pipeline {",
)
# Commands that a sentence gives of a cluster that is there.
OF_A_CLUSTER = {
    *("watch", "events", "status", "validate", "kubeconfig", "etcd"),
    *("replace", "pause", "resume", "rollback", "delete"),
}


WITHOUT_FILE = ("docs/deploy/console.md", "docs/deploy/pipelines.md")


class Terminal(io.StringIO):
    """Standard input, where somebody types answers."""

    def isatty(self) -> bool:
        return True


class Reader:
    """Somebody who does what a page says, line by line.

    Args:
        page: its name.
        parts: what is on it.
        account: where commands go.
        cfngen: runs `cfngen`.
        patch: gives them their standard input.

    Attributes:
        example: the README's cluster file.
        lints: whether templates are linted, which takes seconds for each new cluster.
    """

    example = EXAMPLE

    def __init__(
        self, page: str, parts: list[Part], account: PagesAccount, cfngen: Shell, patch: pytest.MonkeyPatch
    ) -> None:
        self.page = page
        self.account = account
        self.lints = False
        self._cfngen = cfngen
        self._patch = patch
        self._done: set[tuple[str, str]] = set()
        self._files = [part for part in parts if isinstance(part, ClusterFile)]
        self._line = Line(0, "", shown=False)
        self._typed = Typed()
        self._codes: list[int] = []
        self._pretended = False
        self._own = TemporaryDirectory(prefix="page-")
        programs = {name.split()[0] for name in NOT_RUN} | {"cfngen", "make", "aws", "kubectl", "editor", "sudo"}
        self._shell = PageShell(
            Path(self._own.name),
            {name for name in programs if "/" not in name},
            self._answer,
            {**os.environ, "EDITOR": "editor"},
        )

    def close(self) -> None:
        self._shell.close()
        self._own.cleanup()

    @property
    def region(self) -> str:
        return self._cluster.region

    @property
    def stack(self) -> str:
        return self._cluster.name

    @property
    def _cluster(self) -> Cluster:
        file = Path("cluster.yaml")
        return load(file if file.exists() else None, environ={}).cluster

    def cluster_file(self, text: str) -> None:
        Path("cluster.yaml").write_text(text)

    def blocks(self, page: str) -> list[str]:
        """What another page shows that is neither a command nor a cluster file."""
        return [part.text for part in read(ROOT / page) if isinstance(part, Shown)]

    def run(self, *words: str, code: int = 0) -> Ran:
        """Run a command of cfngen that the page does not have."""
        ran = self._run(list(words), None)
        assert ran.code == code, f"cfngen {shlex.join(words)}: {ran.code}\n{ran.out}\n{ran.err}"
        return ran

    def _run(self, words: list[str], answers: tuple[str, ...] | None) -> Ran:
        self.account.use(sandbox="--sandbox" in words or words[0] == "sandbox")
        name = next((name for name in ANSWERS if " ".join(words).startswith(name)), "")
        typed = answers if answers is not None else ANSWERS.get(name, ())
        terminal = Terminal("".join(f"{self.stack if answer == 'NAME' else answer}\n" for answer in typed))
        with self._patch.context() as patch:
            patch.setattr("sys.stdin", terminal)
            if not self.lints and words[0] != "templates":
                patch.setattr("cfngen.lint.lint", lambda documents, **options: ())
            ran = self._cfngen(*words)
        if answers is not None:
            assert terminal.read() == "", f"cfngen {shlex.join(words)} did not ask for all of {typed}"
        return ran

    def paste(self, line: Line) -> str:
        """Type a line of a first page, with nothing put in; return what was shown."""
        self._typed = TYPED.get(self.page, {}).get((line.section, line.text), Typed())
        assert self._typed == Typed(code=self._typed.code, answers=self._typed.answers), "nothing is put in here"
        return self._type(line, line.printed)

    def do(self, line: Line) -> None:
        """Do what a line says; what a sentence mentions again is not done again, unless a table says how."""
        if line.text in MENTIONED.get(self.page, {}):
            return
        how = (line.section, line.text)
        self._typed = TYPED.get(self.page, {}).get(how, Typed())
        commands_done = {command for _, command in self._done}
        if not line.shown and (how in self._done or (self._typed == Typed() and line.text in commands_done)):
            return
        self._done.add(how)
        words = line.text.split()
        if "/" in words[0] and reason_not_to_run(words):
            return
        of_a_cluster = words[0] == "cfngen" and words[1] in OF_A_CLUSTER and "--help" not in words
        if of_a_cluster and self._typed == Typed() and (not line.shown or self.page.endswith("--help")):
            deployed(self)
        self._typed.before(self)
        # What a block has in a second column, without a `#`, says what the command does.
        for text in self._typed.lines(re.sub(r"(?<=\S) {3,}[^# ].*$", "", line.printed), self):
            self._type(line, text)

    def _type(self, line: Line, text: str) -> str:
        self._line, self._codes, self._pretended = line, [], False
        code, shown = self._shell.type(text)
        if self._codes:
            *before, last = self._codes
            went_well = set(before) <= {0} and last == self._typed.code
        else:
            # A program that only pretends to run prints nothing, so that `grep` behind it finds nothing.
            went_well = code == 0 or (self._pretended and code == 1)
        assert went_well, f"{self.page}: {text}: {code}\n{shown}"
        return shown

    def _answer(self, call: Call) -> Ran:
        """Be the program that the shell has started."""
        program = call.words[0]
        with self._patch.context() as patch:
            patch.chdir(call.directory)
            for name, value in environ_changes(call.environ).items():
                patch.setenv(name, value)
            if program == "cfngen":
                ran = self._run(call.words[1:], self._typed.answers)
                self._codes.append(ran.code)
                return ran
            if program == "make":
                return self._make(call.words[1:])
            if program == "aws":
                self._pretended = True
                return Ran(0, self._aws(call.words), "")
            if (
                program == "kubectl"
                and self.page in FIRST_PAGES
                and self._line.shown
                and call.words[1:] == ["get", "nodes"]
            ):
                return Ran(0, ready_nodes(), "")
            if program == "editor":
                Path(call.words[1]).write_text(next(f.text for f in self._files if f.number > self._line.number))
                return Ran(0, "", "")
        self._pretended = True
        assert reason_not_to_run(call.words), f"{self.page}: no table of this test has `{shlex.join(call.words)}`"
        return Ran(0, "", "")

    def _aws(self, words: list[str]) -> str:
        """Have a command of the AWS CLI judged, and carry it out on a first page and where a table says how."""
        service, operation, options = parsed(words)
        if (service, operation) == ("cloudformation", "deploy"):
            self.deploy_template({name: values[0] for name, values in options.items()})
        elif self._typed != Typed() or self.page in FIRST_PAGES:
            if not self.account.worlds:
                self.account.use(sandbox=False)
            return call(words, lambda name: self.account.client(name, self.region))
        return ""

    def deploy_template(self, options: Mapping[str, str]) -> None:
        """Create or update a stack as `aws cloudformation deploy` does."""
        region, bucket = options["region"], options["s3-bucket"]
        self.account.client("s3", region).put_object(
            Bucket=bucket, Key="template", Body=Path(options["template-file"]).read_bytes()
        )
        overrides, stack = options["parameter-overrides"], options["stack-name"]
        file = overrides.removeprefix("file://")
        pairs = [overrides] if file == overrides else json.loads(Path(file).read_text())
        values = dict(pair.split("=", 1) for pair in pairs)
        cloudformation = self.account.client("cloudformation", region)
        exists = stack in self.account.stacks(region)
        described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["Parameters"] if exists else ()
        change = cloudformation.update_stack if exists else cloudformation.create_stack
        change(
            StackName=stack,
            TemplateURL=f"https://{bucket}.s3.{region}.amazonaws.com/template",
            Parameters=[
                *({"ParameterKey": key, "ParameterValue": value} for key, value in values.items()),
                *(
                    {"ParameterKey": parameter["ParameterKey"], "UsePreviousValue": True}
                    for parameter in described
                    if parameter["ParameterKey"] not in values
                ),
            ],
            Capabilities=[options["capabilities"]],
        )
        cloudformation.get_waiter(f"stack_{'update' if exists else 'create'}_complete").wait(StackName=stack)

    def _make(self, words: list[str]) -> Ran:
        """Ask make what it would do, and do what is a command of cfngen; `.venv` is there afterwards."""
        assert {word.partition("=")[0] for word in words if "=" in word} <= set(MAKE_VARIABLES), words
        dry = subprocess.run(["/usr/bin/env", "make", "--dry-run", *words], cwd=ROOT, capture_output=True, text=True)
        assert dry.returncode == 0, dry.stderr
        programs = Path(".venv/bin")
        if not programs.exists():
            programs.mkdir(parents=True)
            (programs / "activate").write_text("")
            (programs / "cfngen").symlink_to(self._shell.bin / "cfngen")
        targets = [word for word in words if "=" not in word]
        if targets != ["templates"]:
            assert set(targets) - {"templates"} <= set(MAKE_ELSEWHERE), words
            return Ran(0, "", "")
        [recipe] = re.findall(r"^.venv/bin/python -m cfngen (.*)$", dry.stdout, re.MULTILINE)
        return self._run(shlex.split(recipe), None)


def ready_nodes() -> str:
    """What `kubectl get nodes` shows, with the kubeconfig that is current; all nodes have to be Ready."""
    from kubernetes import client, config

    # The client itself looks at the environment only when it is imported.
    nodes = client.CoreV1Api(config.new_client_from_config(os.environ["KUBECONFIG"])).list_node().items
    ready = {
        node.metadata.name: next(condition.status for condition in node.status.conditions if condition.type == "Ready")
        for node in nodes
    }
    assert ready
    assert set(ready.values()) == {"True"}
    return "".join(f"{name}\n" for name in ready)


def reason_not_to_run(words: list[str]) -> str:
    """Why a command is not run; nothing if it is in no table."""
    program = [word for word in words if word not in ("sudo", "-i")]
    return NOT_RUN.get(" ".join(program[:2])) or NOT_RUN.get(program[0], "")


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[PagesAccount]:
    made = PagesAccount(monkeypatch)
    yield made
    made.close()


@pytest.fixture
def reading(
    account: PagesAccount, cfngen: Shell, monkeypatch: pytest.MonkeyPatch, directory: Path
) -> Iterator[Callable[[str, list[Part]], Reader]]:
    """Makes the reader of a page, in an empty folder."""
    monkeypatch.setenv("KUBECONFIG", str(directory / "config"))
    with ExitStack() as readers:

        def read_page(page: str, parts: list[Part]) -> Reader:
            return readers.enter_context(closing(Reader(page, parts, account, cfngen, monkeypatch)))

        yield read_page


def paste_all(reader: Reader, parts: Iterable[Part]) -> None:
    """Type the blocks of a first page, in its order; whatever it says that they print, they print."""
    shown = ""
    for part in parts:
        if isinstance(part, Line) and part.shown:
            shown = reader.paste(part)
        elif isinstance(part, Shown):
            printed = iter(shown.splitlines())
            missing = [line for line in part.text.splitlines() if line not in ("", "…") and line not in printed]
            assert missing == [], f"{reader.page}: not printed, or not in this order"


def test_the_blocks_of_the_readme_run_as_printed(reading: Callable[[str, list[Part]], Reader]) -> None:
    parts = read(ROOT / "README.md")
    paste_all(reading("README.md", parts), parts)


def test_the_first_commands_of_the_help_run_as_printed(reading: Callable[[str, list[Part]], Reader]) -> None:
    lines = HELP["cfngen --help"]
    paste_all(reading("cfngen --help", [*lines]), lines)


@pytest.mark.drill
def test_the_first_deployment_runs_as_printed(reading: Callable[[str, list[Part]], Reader]) -> None:
    page = "docs/start/first-deployment.md"
    paste_all(reading(page, read(ROOT / page)), read(ROOT / page))


@pytest.mark.drill
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_a_page_do_what_it_says(page: Path, reading: Callable[[str, list[Part]], Reader]) -> None:
    name = name_of(page)
    parts = read(page)
    reader = reading(name, parts)
    if name not in WITHOUT_FILE:  # whoever reads on has the README's cluster file by now
        reader.cluster_file(EXAMPLE)
    for part in parts:
        if isinstance(part, Line) and not (part.shown and name in FIRST_PAGES):
            reader.do(part)


@pytest.mark.drill
@pytest.mark.parametrize("page", sorted(HELP.keys() - set(FIRST_PAGES)))
def test_the_examples_of_a_commands_help_run(page: str, reading: Callable[[str, list[Part]], Reader]) -> None:
    reader = reading(page, [*HELP[page]])
    reader.cluster_file(EXAMPLE)
    Path("prod.yaml").write_text(EXAMPLE.replace("staging", "prod"))
    for line in HELP[page]:
        reader.do(line)


def test_every_table_is_of_commands_that_the_pages_have() -> None:
    lines = [
        *((name_of(page), part) for page in PAGES for part in read(page) if isinstance(part, Line)),
        *((page, line) for page, lines in HELP.items() for line in lines),
    ]
    on_pages = {(page, line.section, line.text) for page, line in lines}
    assert {(page, *how) for page, rows in TYPED.items() for how in rows} <= on_pages
    commands = {(page, command) for page, _, command in on_pages}
    mentioned = {(page, command) for page, rows in MENTIONED.items() for command in rows}
    assert mentioned <= commands
    elsewhere = {(where, command) for rows in MENTIONED.values() for command, where in rows.items()}
    assert {(where, command) for where, command in elsewhere if not where.startswith("tests/")} <= commands - mentioned
    assert {where for where, _ in elsewhere if where.startswith("tests/") and not (ROOT / where).exists()} == set()
    words = [re.sub(r"\bsudo |-i ", "", line.text).split() for _, line in lines]
    assert set(NOT_RUN) <= {
        " ".join(word[at : at + count]) for word in words for at in range(len(word)) for count in (1, 2)
    }
    assert set(MAKE_ELSEWHERE) <= {word for each in words if "make" in each for word in each}


def test_only_marked_placeholders_are_filled_in() -> None:
    reader = cast("Reader", None)
    assert Typed(fill={"[FILE]": ("", "a.yaml")}).lines("cfngen init [FILE]", reader) == [
        "cfngen init ",
        "cfngen init a.yaml",
    ]
    for fill in ({"init": "plan"}, {"NAME": "a"}, {"[FILE]": "a; cfngen plan"}):
        with pytest.raises(AssertionError):
            Typed(fill=fill).lines("cfngen init [FILE]", reader)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_other_block_of_a_page_is_known(page: Path) -> None:
    if name_of(page) not in FIRST_PAGES:  # there a test compares what is shown with what was printed
        shown = [part.text.partition("\n")[0] for part in read(page) if isinstance(part, Shown)]
        assert [first for first in shown if not first.startswith(OTHER_BLOCKS)] == []


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, id=f"{name_of(page)}-{part.number}")
        for page in PAGES
        for part in read(page)
        if isinstance(part, ClusterFile)
    ],
)
def test_cluster_files_of_the_pages_are_valid(part: ClusterFile, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(part.text)
    assert load(file, environ={}).warnings == ()


def test_units_and_objects_that_commands_name_are_those_of_an_instance() -> None:
    instances = "\n".join(text for role in roles(Cluster()) for text in role.files.values())
    program = instances + "".join(path.read_text() for path in (ROOT / "cfngen/boot").rglob("*.py"))
    lines = [part.text for page in PAGES for part in read(page) if isinstance(part, Line)]
    names = {name for line in lines if "ctl " in line for name in re.findall(r"\bcfngen-[a-z]+", line)}
    assert len(names) > 5
    assert {name for name in names if name not in program} == set()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("aws ec3 delete-volume --volume-id vol-1", "there is no aws ec3"),
        ("aws ec2 remove-volume --volume-id vol-1", "there is no aws ec2 remove-volume"),
        ("aws ec2 delete-volume --volume vol-1", "has no option --volume"),
        ("aws ec2 delete-volume --dry-run", "lacks volume-id"),
        ("aws s3 rb --recursive s3://bucket", "has no option --recursive"),
    ],
)
def test_a_misspelt_command_of_the_aws_cli_is_seen(command: str, message: str) -> None:
    with pytest.raises(WrongCommandError, match=message):
        parsed(command.split())


def test_commands_of_the_aws_cli_that_the_program_suggests_exist() -> None:
    suggested = [words for path in sorted((ROOT / "cfngen").rglob("*.py")) for words in in_text(path.read_text())]
    assert len(suggested) > 20
    for words in suggested:
        parsed(words)
