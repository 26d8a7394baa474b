"""Whoever follows the README and the pages under docs/ literally gets what they say."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from aws_cli import WrongCommandError, call, in_text, parsed
from pages import PAGES, ROOT, ClusterFile, Line, Shown, read
from pages_account import PagesAccount
from pages_commands import ANSWERS, MAKE_ELSEWHERE, MENTIONED, NOT_RUN, TYPED, Typed, deployed
from shell import Ran, Shell

from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.userdata import roles

pytestmark = pytest.mark.drill

MAKE_VARIABLES = re.findall(r"^([A-Z]+) \?=", (ROOT / "Makefile").read_text(), re.MULTILINE)
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
    '{"Version": "2012-10-17"',
    "range                     tier",
    "currency: USD",
)
# Commands that a sentence gives of a cluster that is there.
OF_A_CLUSTER = {"watch", "events", "status", "validate", "kubeconfig", "etcd", "replace", "rollback", "delete"}


class Terminal(io.StringIO):
    """Standard input, where somebody types answers."""

    def isatty(self) -> bool:
        return True


class Reader:
    """Somebody who does what a page says, line by line.

    Args:
        page: which one.
        account: where commands go.
        shell: runs `cfngen`.
        patch: gives them their standard input.

    Attributes:
        example: the README's cluster file.
    """

    example = EXAMPLE

    def __init__(self, page: Path, account: PagesAccount, shell: Shell, patch: pytest.MonkeyPatch) -> None:
        self.page = page
        self.account = account
        self._shell = shell
        self._patch = patch
        self._done: set[tuple[str, str, str]] = set()
        self.files = [part for part in read(page) if isinstance(part, ClusterFile)]

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

    def run(self, *words: str, code: int = 0, answers: tuple[str, ...] | None = None, lints: bool = False) -> Ran:
        """Type a command of cfngen; without lint unless it matters, as that takes seconds for each new cluster."""
        self.account.use(sandbox="--sandbox" in words or words[0] == "sandbox")
        name = next((name for name in ANSWERS if " ".join(words).startswith(name)), "")
        typed = [self.stack if answer == "NAME" else answer for answer in answers or ANSWERS.get(name, ())]
        terminal = Terminal("".join(f"{answer}\n" for answer in typed))
        self._patch.setattr("sys.stdin", terminal)
        with self._patch.context() as patch:
            if not lints:
                patch.setattr("cfngen.lint.lint", lambda documents, **options: ())
            ran = self._shell(*words)
        assert ran.code == code, f"cfngen {shlex.join(words)}: {ran.code}\n{ran.out}\n{ran.err}"
        if answers is not None:
            assert terminal.read() == "", f"cfngen {shlex.join(words)} did not ask for all of {typed}"
        return ran

    def do(self, line: Line) -> None:
        """Do what a line says; what a sentence mentions again is not done again, unless a table says how."""
        command = line.text.replace(".venv/bin/", "")
        how = (self.page.name, line.section, command)
        if (self.page.name, command) in MENTIONED:
            return
        if not line.shown and (how in self._done or (how not in TYPED and command in {done[2] for done in self._done})):
            return
        self._done.add(how)
        words = shlex.split(command.partition("|")[0].strip("()"))
        if words[0] == "eval":
            words = shlex.split(command[len("eval $(") : -1])
        if words[0] == "$EDITOR":
            [file, *_] = (file for file in self.files if file.number > line.number)
            Path(words[1]).write_text(file.text)
        elif words[0] == "cfngen":
            self._cfngen(line, shlex.join(words) if command.startswith("eval ") else command)
        elif "make" in words:
            self._make(command.split())
        elif "aws" in words:
            self._aws(line, command)
        else:
            assert reason_not_to_run(words), f"{self.page.name}:{line.number}: no table of this test has `{command}`"

    def _typed(self, line: Line, command: str) -> tuple[Typed, list[str]]:
        """How a command is typed, and what with its placeholders filled in."""
        typed = TYPED.get((self.page.name, line.section, command), Typed())
        typed.before(self)
        lines = list(typed.lines or (command,))
        for placeholder, value in typed.fill.items():
            lines = [typed_line.replace(placeholder, value(self)) for typed_line in lines]
        return typed, lines

    def _cfngen(self, line: Line, command: str) -> None:
        typed, lines = self._typed(line, command)
        for typed_line in lines:
            words = shlex.split(typed_line)[1:]
            if not line.shown and words[0] in OF_A_CLUSTER and "--help" not in words and typed == Typed():
                deployed(self)
            lints = words[0] == "templates"
            self.run(*words, code=typed.code, answers=typed.answers, lints=lints)

    def _aws(self, line: Line, command: str) -> None:
        """Have a command of the AWS CLI judged, and carry it out where the page is told how it is typed."""
        typed, [typed_line] = self._typed(line, command)
        called, _, file = typed_line[typed_line.index("aws ") :].partition("|")[0].rstrip(")").partition(">")
        words = shlex.split(called)
        service, operation, options = parsed(words)
        if (service, operation) == ("cloudformation", "deploy"):
            self._create_stack({name: values[0] for name, values in options.items()})
        elif typed != Typed():
            printed = call(words, lambda name: self.account.client(name, self.region))
            if file:
                Path(file.strip()).write_text(printed)

    def _create_stack(self, options: Mapping[str, str]) -> None:
        """Create a stack as `aws cloudformation deploy` does."""
        region, bucket = options["region"], options["s3-bucket"]
        self.account.client("s3", region).put_object(
            Bucket=bucket, Key="template", Body=Path(options["template-file"]).read_bytes()
        )
        key, _, value = options["parameter-overrides"].partition("=")
        cloudformation = self.account.client("cloudformation", region)
        cloudformation.create_stack(
            StackName=options["stack-name"],
            TemplateURL=f"https://{bucket}.s3.{region}.amazonaws.com/template",
            Parameters=[{"ParameterKey": key, "ParameterValue": value}],
            Capabilities=[options["capabilities"]],
        )
        cloudformation.get_waiter("stack_create_complete").wait(StackName=options["stack-name"])

    def _make(self, words: list[str]) -> None:
        """Ask make what it would do, and do what is a command of cfngen."""
        variables = [word.partition("=")[0] for word in words[words.index("make") :] if "=" in word]
        assert set(variables) <= set(MAKE_VARIABLES), words
        asked = shlex.join(["make", "--dry-run", *words[words.index("make") + 1 :]])
        done = subprocess.run(shlex.split(asked), cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        targets = [word for word in words[words.index("make") + 1 :] if "=" not in word]
        if targets != ["templates"]:
            assert set(targets) - {"templates"} <= set(MAKE_ELSEWHERE), words
            return
        [recipe] = re.findall(r"^.venv/bin/python -m cfngen (.*)$", done.stdout, re.MULTILINE)
        with self._patch.context() as patch:
            for word in words[: words.index("make")]:
                patch.setenv(*word.split("=", 1))
            self.run(*shlex.split(recipe))


def reason_not_to_run(words: list[str]) -> str:
    """Why a command is not run; nothing if it is in no table."""
    program = [word for word in words if word not in ("sudo", "-i")]
    return NOT_RUN.get(" ".join(program[:2])) or NOT_RUN.get(program[0], "")


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[PagesAccount]:
    made = PagesAccount(monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_do_what_it_says(
    page: Path, account: PagesAccount, cfngen: Shell, monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(directory / "config"))
    reader = Reader(page, account, cfngen, monkeypatch)
    if page.name not in ("README.md", "console.md"):  # whoever reads on has the README's cluster file by now
        reader.cluster_file(EXAMPLE)
    for part in read(page):
        if isinstance(part, Line):
            reader.do(part)


def test_every_table_is_of_commands_that_the_pages_have() -> None:
    lines = {(page.name, part) for page in PAGES for part in read(page) if isinstance(part, Line)}
    on_pages = {(page, line.section, line.text.replace(".venv/bin/", "")) for page, line in lines}
    assert set(TYPED) <= on_pages
    commands = {(page, command) for page, _, command in on_pages}
    assert set(MENTIONED) <= commands
    shown = {(where, command) for (_, command), where in MENTIONED.items() if not where.startswith("tests/")}
    assert shown <= commands - set(MENTIONED)
    words = [line.text.replace("sudo ", "").replace("-i ", "").split() for _, line in lines]
    assert set(NOT_RUN) <= {" ".join(word[:count]) for word in words for count in (1, 2)}
    assert set(MAKE_ELSEWHERE) <= {word for each in words if "make" in each for word in each}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_other_block_of_a_page_is_known(page: Path) -> None:
    shown = [part.text.partition("\n")[0] for part in read(page) if isinstance(part, Shown)]
    assert [first for first in shown if not first.startswith(OTHER_BLOCKS)] == []


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, id=f"{page.name}-{part.number}")
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
