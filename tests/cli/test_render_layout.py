"""The layout of texts: widths, words that stay whole, lists and tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from pathlib import Path

import click
import pytest

from cfngen.cli.render.durations import age_text
from cfngen.cli.render.layout import flow, fold, hanging, paragraph, table, unbroken


def plain(lines):
    return [click.unstyle(line) for line in lines]


def test_words_keep_their_style_across_lines():
    styled = list(flow([("one two three", {"fg": "red"})], 8))
    assert [click.unstyle(line) for line in styled] == ["one two", "three"]
    assert all(line.startswith("\x1b[31m") and line.endswith("\x1b[0m") for line in styled)


def test_commands_and_long_words_are_not_torn():
    assert list(paragraph("run `cfngen plan --full` now", 12)) == ["run", "`cfngen plan --full`", "now"]
    assert list(paragraph("see https://example.com/a/long/path first", 10)) == [
        "see",
        "https://example.com/a/long/path",
        "first",
    ]


def test_spaces_within_a_line_stay():
    assert list(paragraph("  a  table   of words", 14)) == ["  a  table", "of words"]


def test_a_text_hangs_behind_its_label():
    assert plain(hanging("hint:", "one two three", 16, 2)) == ["  hint: one two", "        three"]


def test_a_long_text_is_wrapped_within_its_column_or_stands_below_its_row():
    rows = [("1", "volume of the data of a master", "kept, since its policy says so"), ("12", "key", "")]
    assert table((), rows, 60, right_aligned=(0,)) == [
        "   1  volume of the data of a     kept, since its policy",
        "      master                      says so",
        "  12  key",
    ]
    assert table((), rows, 50, right_aligned=(0,)) == [
        "   1  volume of the data of a master",
        "      kept, since its policy says so",
        "  12  key",
    ]


def rows_of(lines: Sequence[str]) -> list[list[str]]:
    return [re.split(" {2,}", click.unstyle(line).strip()) for line in lines]


def recorded_tables() -> Iterator[list[list[str]]]:
    """Yield the tables of a cluster's life: lines below each other that have equally many columns."""
    page = Path(__file__).parents[2] / "docs/reference/walkthrough-full.md"
    for column_count, rows in groupby(rows_of(page.read_text().splitlines()), len):
        if column_count > 1:
            yield list(rows)


COMMAND = "`aws ec2 delete-volume --region eu-central-1 --volume-id vol-0123456789abcdef0`"
COPIED_TABLES = [
    [
        ["1", "bucket of the documents by which AWS checks service-account tokens", ""],
        ["1", "CloudFront distribution of these documents", "no charge by the hour; the few requests are billed"],
    ],
    [
        [
            "key",
            "arn:aws:kms:eu-central-1:123456789012:key/0123abcd-0123-0123-0123-0123456789ab",
            f"run {COMMAND} first",
        ],
        ["file", "https://mirror.example.internal/kubernetes/get.helm.sh/helm-v4.2.4-linux-amd64.tar.gz", "a program"],
    ],
]


@pytest.mark.parametrize("width", range(60, 201, 7))
def test_no_row_runs_together_and_nothing_that_is_copied_is_broken(width: int) -> None:
    tables = [*recorded_tables(), *COPIED_TABLES]
    assert len(tables) > 20
    for rows in tables:
        cells = [cell for row in rows for cell in row]
        lines = table((), rows, width)
        for line, texts in zip(lines, rows_of(lines), strict=True):
            # Each text between wide gaps is of one cell.
            assert all(any(text in cell for cell in cells) for text in texts), line
            whole = [text.replace(COMMAND, "command").split() for text in texts]
            assert len(line) <= width or max(map(len, whole)) == 1 or COMMAND in line, line
        printed = "\n".join(fold(line, width) for line in lines)
        assert printed.count(COMMAND) == str(rows).count(COMMAND)
        assert Counter(printed.split()) == Counter(" ".join(cells).split())


def test_a_column_of_commands_is_as_wide_as_the_longest() -> None:
    rows = [(unbroken("cfngen deploy --stack-name production"), "continues with the next of the phases")]
    assert table((), rows, 70) == ["  cfngen deploy --stack-name production  continues with the next of",
                                   "                                         the phases"]  # fmt: skip
    assert table((), rows, 40) == ["  cfngen deploy --stack-name production",
                                   "      continues with the next of the",
                                   "      phases"]  # fmt: skip


def test_columns_without_room_stand_below_their_row():
    header, rows = ("NAME", "ZONE", "IMAGE"), (("one", "a" * 10, "ami-1"), ("two", "b" * 10, ""))
    assert plain(table(header, rows, 20)) == [
        "  NAME  ZONE",
        "  one   aaaaaaaaaa",
        "      image: ami-1",
        "  two   bbbbbbbbbb",
    ]
    assert plain(table(header, rows, 25)) == [
        "  NAME  ZONE        IMAGE",
        "  one   aaaaaaaaaa  ami-1",
        "  two   bbbbbbbbbb",
    ]


@pytest.mark.parametrize(
    ("line", "folded"),
    [
        ("it all fits", ["it all fits"]),
        ("the newest snapshot is of this very morning, UTC", ["the newest snapshot is of this very", "morning, UTC"]),
        ("Stack  k8s  CREATE_COMPLETE for 1 day (it succeeded)", ["Stack  k8s  CREATE_COMPLETE for 1 day",
                                                                  "            (it succeeded)"]),
        ("  12:00Z  COMPLETE  VpcStack/SubnetA  EC2 Subnet", ["  12:00Z  COMPLETE  VpcStack/SubnetA",
                                                              "                    EC2 Subnet"]),
        ("API   https://k8s.elb.amazonaws.example.com  ready", ["API",
                                                                "    https://k8s.elb.amazonaws.example.com",
                                                                "    ready"]),
        ("    aws ec2 delete-volume --volume-id vol-12345678", ["    aws ec2 delete-volume --volume-id vol-12345678"]),
        ("  cfngen rollback --stack-name production --force", ["  cfngen rollback --stack-name production --force"]),
        ('         -  "a line of a difference is whole"', ['         -  "a line of a difference is whole"']),
        ("      | [4/9] program: Program1 unpacked  (0.4 s)", ["      | [4/9] program: Program1 unpacked  (0.4 s)"]),
        ("Next: cfngen deploy -f prod.yaml --stack-name prod", ["Next: cfngen deploy -f prod.yaml --stack-name prod"]),
        ("  yes, `cfngen status --drift` says more of it", ["  yes, `cfngen status --drift` says more", "  of it"]),
    ],
)  # fmt: skip
def test_a_line_is_folded_below_its_columns(line: str, folded: list[str]) -> None:
    assert fold(line, 40).split("\n") == folded
    assert click.unstyle(fold(click.style(line, fg="red"), 40)).split("\n") == folded


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=-3), "0 seconds"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(minutes=59, seconds=59), "59 minutes"),
        (timedelta(days=29), "29 days"),
        (timedelta(days=364), "12 months"),
        (timedelta(days=800), "2 years"),
    ],
)
def test_ages_have_their_largest_unit(age, text):
    assert age_text(age) == text
