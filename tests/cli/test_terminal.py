"""What a terminal shows."""

from __future__ import annotations

import io

import pytest

from cfngen.cli.display.terminal import progress_line


class Terminal(io.StringIO):
    """A terminal of one row: knows the carriage return and the sequence that erases the row."""

    def isatty(self):
        return True

    def row(self):
        shown: list[str] = []
        column = 0
        for character in self.getvalue().replace("\x1b[2K", "\v"):
            if character == "\r":
                column = 0
            elif character == "\v":
                shown = []
            else:
                shown[column:] = [*" " * (column - len(shown)), character, *shown[column + 1 :]]
                column += 1
        return "".join(shown)


def opened(monkeypatch):
    """A terminal as standard error; not a fixture, since pytest puts its own in place when a test begins."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)
    return terminal


@pytest.mark.parametrize("no_color", ["", "1"])
def test_progress_is_erased_with_whatever_was_added_to_it(monkeypatch, no_color):
    terminal = opened(monkeypatch)
    monkeypatch.setenv("NO_COLOR", no_color)
    with progress_line("linting 8 templates…"):
        assert terminal.row() == "linting 8 templates…"
        terminal.write("^C")
    assert terminal.row() == ""


def test_progress_stays_in_one_row(monkeypatch):
    terminal = opened(monkeypatch)
    monkeypatch.setenv("COLUMNS", "10")
    with progress_line("linting 8 templates…"):
        assert terminal.row() == "linting 8"
    assert terminal.row() == ""


def test_no_progress_where_it_could_not_be_erased(monkeypatch):
    terminal = opened(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    with progress_line("linting"):
        pass
    assert terminal.getvalue() == ""
