"""Durations as they are typed."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest

from cfngen.cli.input.options import Duration, format_duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("10m", 600), ("12h", 43200), ("1h30m", 5400), ("2d", 172800), ("0s", 0)]
)
def test_a_duration_is_read_and_written(text: str, seconds: int) -> None:
    assert Duration().convert(text, None, None) == timedelta(seconds=seconds)
    assert format_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize("text", ["", " ", "10", "h", "-5m", "1.5h", "5m1h", "1w", "9999999d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration, such as"):
        Duration().convert(text, None, None)


def test_a_least_one_is_kept() -> None:
    with pytest.raises(click.BadParameter, match="59s is too short; the minimum is 1m"):
        Duration(timedelta(minutes=1)).convert("59s", None, None)
