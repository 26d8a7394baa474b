"""The layout of texts: widths, words that stay whole, lists and tables."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest

from cfngen.cli.render.durations import age_text
from cfngen.cli.render.layout import aligned_rows, flow, fold, hanging, paragraph, table


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


def test_the_text_of_a_row_stands_beside_the_other_cells_or_below_them():
    rows = [("1", "volume", "kept, since its policy says so and nobody asked"), ("12", "key", "")]
    assert list(aligned_rows(rows, 50, right_aligned=(0,))) == [
        "   1  volume  kept, since its policy says so and",
        "              nobody asked",
        "  12  key",
    ]
    assert list(aligned_rows(rows, 40, right_aligned=(0,))) == [
        "   1  volume",
        "      kept, since its policy says so and",
        "      nobody asked",
        "  12  key",
    ]


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
