"""The specifications of the emulator and the sandbox say of every behaviour how it is known, and where to read that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HEADER = "| behaviour | how it is known |"
EVIDENCE = re.compile(r"\*(documented|seen|assumed)\*(?:: (?P<links>\[[^()]+\]))?(?: \(.+\))?")
DEFINITION = re.compile(r"^\[(?P<label>[^\]]+)\]: (?P<target>\S+)$", re.MULTILINE)
REFERENCE = re.compile(r"\[(?P<label>[^\[\]]+)\](?!\(|:)")  # neither an inline link nor a definition
CODE = re.compile(r"`[^`]+`")
DOCUMENTATION = (
    "https://docs.aws.amazon.com/",
    "https://repost.aws/",
    "https://kubernetes.io/docs/",
    "https://etcd.io/",
)

pytestmark = pytest.mark.parametrize(
    "page", [TESTS / "aws/README.md", TESTS / "sandbox/README.md"], ids=lambda page: page.parent.name
)


def tables(page: Path) -> Iterator[list[str]]:
    """Rows of each table of a page, headers included."""
    for block in page.read_text().split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        if rows:
            yield rows


def evidence(page: Path) -> Iterator[tuple[str, str, list[str]]]:
    """The row, the word and the labels of each piece of evidence."""
    for _, _, *rows in tables(page):
        for row in rows:
            for piece in row.removesuffix(" |").rsplit(" | ", 1)[1].split("; "):
                match = EVIDENCE.fullmatch(piece)
                assert match, f"{piece!r} is not `*documented*: [link]`, `*seen*: [link]` or `*assumed*`, in\n{row}"
                yield row, match[1], REFERENCE.findall(match["links"] or "")


def test_every_table_says_how_its_rows_are_known(page: Path) -> None:
    assert {word for _, word, _ in evidence(page)} >= {"documented", "assumed"}
    assert [rows[0] for rows in tables(page) if rows[0] != HEADER] == []


def test_documentation_and_logs_are_linked_and_assumptions_are_not(page: Path) -> None:
    for row, word, labels in evidence(page):
        assert bool(labels) == (word != "assumed"), row


def test_what_is_documented_is_linked_where_it_is_and_what_was_seen_elsewhere(page: Path) -> None:
    targets = dict(DEFINITION.findall(page.read_text()))
    for row, word, labels in evidence(page):
        for label in labels:
            target = targets[label]
            ours = not target.startswith("https://") and (page.parent / target).exists()
            assert (target.startswith(DOCUMENTATION) or ours) == (word == "documented"), row


def test_every_reference_leads_somewhere_and_none_is_left_over(page: Path) -> None:
    text = page.read_text()
    labels = [label for label, _ in DEFINITION.findall(text)]
    assert sorted(labels) == sorted(set(labels))
    assert set(REFERENCE.findall(CODE.sub("", DEFINITION.sub("", text)))) == set(labels)
