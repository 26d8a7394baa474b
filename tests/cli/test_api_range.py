"""`deploy` and `plan` without a word about who may reach the API: what is asked, written, taken or refused."""

from __future__ import annotations

import errno
import io
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deployed_cluster import session
from json_lines import lines
from pages_account import PagesAccount
from shell import Ran, Shell

from cfngen.cluster.documents import examples

KUBE_UP = examples.text_of("kube-up")

Typing = Callable[..., Ran]
HINT = "`allowedCidrs: [203.0.113.7/32]` below `api:`"


class Terminal(io.StringIO):
    """Standard input, where somebody types answers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[PagesAccount]:
    made = PagesAccount(monkeypatch)
    yield made
    made.close()


@pytest.fixture
def typing(account: PagesAccount, cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> Typing:
    """Runs a command of cfngen, whose questions are answered; without answers, nobody is there."""
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())

    def run(*words: str, answers: tuple[str, ...] | None = None) -> Ran:
        account.use(sandbox="--sandbox" in words)
        typed = "".join(f"{answer}\n" for answer in answers or ())
        monkeypatch.setattr("sys.stdin", io.StringIO() if answers is None else Terminal(typed))
        return cfngen(*words)

    return run


def groups_of_the_api(region: str = "us-west-2") -> list[str]:
    """Return the ranges that security groups let in to the API's port."""
    groups = session().client("ec2", region_name=region).describe_security_groups()["SecurityGroups"]
    permissions = [permission for group in groups for permission in group["IpPermissions"]]
    return [
        each["CidrIp"]
        for permission in permissions
        if permission.get("FromPort") == 443
        for each in permission["IpRanges"]
    ]


@pytest.mark.parametrize("command", ["plan", "deploy"])
def test_an_answer_goes_into_the_cluster_file(typing: Typing, directory: Path, command: str) -> None:
    file = directory / "cluster.yaml"
    file.write_text(KUBE_UP)
    file.chmod(0o640)
    # The last question is whether a plan may make the bucket for templates, or whether to deploy.
    may_go_on = "y" if command == "plan" else "n"
    ran = typing(command, answers=("here", "203.0.113.7/8", "203.0.113.7", "y", may_go_on))
    assert ran.code == (4 if command == "plan" else 1)
    assert "Address range that may reach it" in ran.err
    assert "'here' is not an IPv4 CIDR" in ran.err
    assert "One address is the range 203.0.113.7/32." in ran.err
    assert "Wrote api.allowedCidrs: [203.0.113.7/32] into cluster.yaml." in ran.err
    assert "Plan: 39 to add" in ran.out
    assert (
        file.read_text()
        .replace("api:\n", "#api:\n")
        .replace("  allowedCidrs: [203.0.113.7/32]", "#  allowedCidrs: []", 1)
        == KUBE_UP
    )
    assert file.stat().st_mode & 0o777 == 0o640
    again = typing("plan", answers=())
    assert (again.code, "Address range" in again.err) == (4, False)


def test_an_answer_that_stays_out_of_the_file_is_the_stacks(typing: Typing, directory: Path) -> None:
    (directory / "cluster.yaml").write_text("name: kubernetes\n")
    ran = typing("plan", answers=("203.0.113.0/24", "n", "y"))
    assert (ran.code, "Plan: 39 to add" in ran.out) == (4, True)
    assert (directory / "cluster.yaml").read_text() == "name: kubernetes\n"
    (directory / "cluster.yaml").unlink()
    ran = typing("plan", answers=("203.0.113.0/24",))
    assert (ran.code, "Plan: 39 to add" in ran.out) == (4, True)
    assert "`cfngen init`" in ran.err


def test_a_plan_makes_the_bucket_only_if_somebody_agrees(typing: Typing, account: PagesAccount) -> None:
    allowed = ("--defaults", "--parameter", "ApiAllowedCidr=203.0.113.7/32")

    def buckets() -> list[str]:
        return [bucket["Name"] for bucket in account.client("s3", "us-west-2").list_buckets()["Buckets"]]

    name = "cfngen-123456789012-us-west-2"
    alone = typing("plan", *allowed)
    assert (alone.code, "confirm in advance with --create-bucket." in " ".join(alone.err.split())) == (1, True)
    declined = typing("plan", *allowed, answers=("n",))
    said = " ".join(declined.err.split())
    assert (declined.code, f"Create the bucket {name}?" in said) == (1, True)
    assert "it stays, for plans and deployments to come, until a deletion with --empty-bucket" in said
    assert (buckets(), account.stacks("us-west-2")) == ([], [])
    agreed = typing("plan", *allowed, "--create-bucket")
    assert (agreed.code, buckets(), account.stacks("us-west-2")) == (4, [name], [])
    left = "left in the account: 7 templates in the bucket cfngen-123456789012-us-west-2, which was created for them"
    assert left in " ".join(agreed.err.split())
    again = typing("plan", *allowed)
    assert (again.code, "left in the account" in again.err) == (4, False)
    [remedy] = re.findall(r"`cfngen (delete [^`]*)`", agreed.err)
    assert typing(*shlex.split(remedy), "--yes").code == 0
    assert buckets() == []


@pytest.mark.parametrize("reason", ["its form is unusual", "it cannot be written: Read-only file system"])
def test_where_the_file_cannot_be_changed_the_lines_are_shown(
    typing: Typing, directory: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    def refuse(path: Path, text: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("cfngen.cli.input.api_range.replace_file", refuse)
    text = "ssh: &closed {allowedCidrs: []}\napi: *closed\n" if "form" in reason else KUBE_UP
    (directory / "cluster.yaml").write_text(text)
    ran = typing("plan", answers=("203.0.113.0/24", "y", "y"))
    assert (ran.code, "Plan: 39 to add" in ran.out) == (4, True)
    assert f"cluster.yaml was not changed, since {reason}. Add these lines" in ran.err
    assert "  api:\n    allowedCidrs: [203.0.113.0/24]\n" in ran.err
    assert (directory / "cluster.yaml").read_text() == text


@pytest.mark.parametrize("answers", [(), ("",)], ids=["end of input", "empty"])
def test_no_answer_changes_nothing(
    typing: Typing, directory: Path, answers: tuple[str, ...], account: PagesAccount
) -> None:
    (directory / "cluster.yaml").write_text(KUBE_UP)
    ran = typing("deploy", answers=answers)
    assert ran.code == (1 if answers else 130)
    assert (HINT in ran.err) == bool(answers)
    assert (directory / "cluster.yaml").read_text() == KUBE_UP
    assert account.stacks("us-west-2") == []


@pytest.mark.parametrize(
    ("words", "answers"),
    [(("deploy",), None), (("deploy", "--yes"), ()), (("plan",), None), (("plan", "-o", "json"), ())],
    ids=lambda value: " ".join(value) if value else "",
)
def test_where_nobody_is_asked_the_key_is_named_first(
    typing: Typing, directory: Path, words: tuple[str, ...], answers: tuple[str, ...] | None
) -> None:
    (directory / "my.yaml").write_text(KUBE_UP)
    ran = typing(*words, "-f", "my.yaml", answers=answers)
    assert ran.code == 1
    assert ran.err.index("my.yaml: api.allowedCidrs is missing") < ran.err.index(f"hint: write {HINT} into my.yaml")
    assert "--parameter ApiAllowedCidr=203.0.113.7/32" in ran.err
    if "json" in words:
        assert lines(ran.out)[-1]["code"] == "missing-parameter"
    ran = typing(*words, "--defaults", answers=answers)
    assert f"hint: write {HINT} into a cluster file, which `cfngen init` writes, or give --parameter" in ran.err


@pytest.mark.drill
def test_the_first_commands_work_as_printed_from_an_empty_folder(typing: Typing, account: PagesAccount) -> None:
    for _ in range(2):
        ran = typing("deploy", "--sandbox", answers=("y",))
        assert (ran.code, ran.err.count("a range for documentation")) == (0, 1), ran.err
        assert set(groups_of_the_api()) >= {"203.0.113.0/24"}
        again = typing("deploy", "--sandbox", answers=("y",))
        assert (again.code, "a range for documentation" in again.err) == (0, False)
        account.close()
        typing("init")
