"""The layout of texts: widths, words that stay whole, lists and tables."""

from __future__ import annotations

import click

from cfngen.cli.render.layout import flow, table


def test_words_keep_their_style_across_lines():
    styled = list(flow([("one two three", {"fg": "red"})], 8))
    assert [click.unstyle(line) for line in styled] == ["one two", "three"]
    assert all(line.startswith("\x1b[31m") and line.endswith("\x1b[0m") for line in styled)


def test_columns_without_room_stand_below_their_row():
    header, rows = ("NAME", "ZONE", "IMAGE"), (("one", "a" * 10, "ami-1"), ("two", "b" * 10, ""))
    assert [click.unstyle(line) for line in table(header, rows, 20)] == [
        "  NAME  ZONE",
        "  one   aaaaaaaaaa",
        "      image: ami-1",
        "  two   bbbbbbbbbb",
    ]
    assert [click.unstyle(line) for line in table(header, rows, 25)] == [
        "  NAME  ZONE        IMAGE",
        "  one   aaaaaaaaaa  ami-1",
        "  two   bbbbbbbbbb",
    ]
