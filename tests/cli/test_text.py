"""Numbers in sentences: one thing does what several do."""

from __future__ import annotations

import pytest

from cfngen.text import minutes_text, plural_form, pluralize


@pytest.mark.parametrize(
    ("number", "noun", "verb", "text"),
    [
        (1, "file", "", "1 file"),
        (1_000, "file", "", "1,000 files"),
        (1, "volume of claims", "stay", "1 volume of claims stays"),
        (2, "volume of claims", "stay", "2 volumes of claims stay"),
        (1, "load balancer", "go", "1 load balancer goes"),
        (0, "load balancer", "go", "0 load balancers go"),
        (1, "object", "were", "1 object was"),
        (1, "stack", "have", "1 stack has"),
        (1, "node", "match", "1 node matches"),
        (2, "address", "are", "2 addresses are"),
    ],
)
def test_nouns_and_verbs_agree_with_their_number(number: int, noun: str, verb: str, text: str) -> None:
    assert pluralize(number, noun, verb) == text


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ("policy", "policies"),
        ("key", "keys"),
        ("master (t3.small)", "masters (t3.small)"),
        ("GiB of gp3", "GiBs of gp3"),
    ],
)
def test_plurals(one: str, several: str) -> None:
    assert plural_form(one) == several


@pytest.mark.parametrize(
    ("seconds", "text"), [(29, "0 minutes"), (31, "1 minute"), (90.5, "2 minutes"), (900, "15 minutes")]
)
def test_a_time_is_told_in_whole_minutes(seconds: float, text: str) -> None:
    assert minutes_text(seconds) == text
