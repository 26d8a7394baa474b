"""An operation as it goes on, on a terminal of a few lines that understands what terminals understand."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import click
import pytest

from cfngen.cli.render.live import HEARTBEAT_SECONDS, LiveScreen, fit_to_height, heartbeat_line, tree_lines
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.messages.message import Event
from cfngen.deploy.watching.progress import Progress, ResourceProgress, StackProgress

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
VPC = StackProgress(("VpcStack",), "k8s-Vpc-1", "CREATE_COMPLETE", 9, 9, 75)
NODES = StackProgress(
    ("NodeGroupNodesStack",),
    "k8s-Nodes-1",
    "CREATE_IN_PROGRESS",
    1,
    2,
    95,
    (
        ResourceProgress("NodeGroupNodesLaunchTemplate", "AWS::EC2::LaunchTemplate", "CREATE_COMPLETE", 3, 10),
        ResourceProgress("NodeGroupNodesAutoScalingGroup", AUTO_SCALING_GROUP, "CREATE_IN_PROGRESS", 90, 300, 1, 4),
    ),
)
IAM = StackProgress(("IamStack",), "", "", 0, 4, 0)
ROOT = StackProgress((), "k8s", "CREATE_IN_PROGRESS", 0, 0, 170)
PROGRESS = Progress("create", "k8s", "CREATE_IN_PROGRESS", 170, 600, (ROOT, VPC, NODES, IAM))


class Clock:
    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class Terminal:
    """Keeps rows of text the way a terminal does; refuses what it does not know.

    Attributes:
        rows: what can be seen, and what has scrolled away above it.
        cursor: whether the cursor can be seen.
    """

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        self.columns, self.lines = columns, lines
        self.rows = [""]
        self.row = self.column = 0
        self.cursor = True

    def size(self) -> os.terminal_size:
        return os.terminal_size((self.columns, self.lines))

    def write(self, text: str) -> None:
        for part in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|\n|[^\x1b\n]+", text):
            if part == "\n":
                self.row, self.column = self.row + 1, 0
                if self.row == len(self.rows):
                    self.rows.append("")
            elif not part.startswith("\x1b"):
                for letter in part:
                    assert self.column < self.columns, f"{self.rows[self.row]!r} is too long"
                    self.rows[self.row] = (
                        self.rows[self.row][: self.column].ljust(self.column)
                        + letter
                        + (self.rows[self.row][self.column + 1 :])
                    )
                    self.column += 1
            elif part.endswith("m"):
                continue
            elif part.endswith("F"):
                up = int(part[2:-1])
                assert up < self.lines, "what has scrolled away cannot be drawn again"
                self.row, self.column = self.row - up, 0
            elif part == "\x1b[K":
                self.rows[self.row] = self.rows[self.row][: self.column]
            elif part == "\x1b[J":
                self.rows[self.row] = self.rows[self.row][: self.column]
                del self.rows[self.row + 1 :]
            elif part in ("\x1b[?25l", "\x1b[?25h"):
                self.cursor = part.endswith("h")
            else:
                raise AssertionError(f"unknown control sequence {part!r}")


def shown(terminal: Terminal) -> list[str]:
    return [row for row in terminal.rows if row]


def plain(progress: Progress, width: int = 100) -> list[str]:
    return [line.text for line in tree_lines(progress, width)]


def test_the_tree():
    assert plain(PROGRESS) == [
        "| creating k8s  CREATE_IN_PROGRESS  2 min 50 s of about 10 min",
        "  ✓ VPC                9 of 9  1 min 15 s",
        "  ● node group nodes   1 of 2  1 min 35 s",
        "      node group nodes: 1 of 4 signals, 1 min 30 s of about 5 min",
        "  · IAM                0 of 4",
    ]


def test_a_wait_condition_is_the_master_that_it_waits_for():
    waiting = ResourceProgress(
        "MasterBWaitCondition", "AWS::CloudFormation::WaitCondition", "CREATE_IN_PROGRESS", 90, 300
    )
    master = replace(PROGRESS.stacks[2], resources=(waiting,))
    assert heartbeat_line(replace(PROGRESS, stacks=(master,))).endswith(
        ": master b: waiting for its signal, 1 min 30 s of about 5 min"
    )


def test_it_is_drawn_in_place_and_the_cursor_comes_back():
    terminal = Terminal()
    screen = LiveScreen(terminal.write, size=terminal.size, clock=Clock())
    terminal.write("what was there before\n")
    for _ in range(5):
        screen.show(PROGRESS)
    assert not terminal.cursor
    assert shown(terminal) == ["what was there before", *plain(PROGRESS)]
    screen.close()
    terminal.write("what comes after\n")
    assert terminal.cursor
    assert shown(terminal)[-1] == "what comes after"


def test_what_is_gone_leaves_no_trace():
    terminal = Terminal()
    screen = LiveScreen(terminal.write, size=terminal.size, clock=Clock())
    screen.show(PROGRESS)
    done = Progress("create", "k8s", "CREATE_COMPLETE", 175, 600, (ROOT, VPC))
    screen.show(done)
    assert shown(terminal) == plain(done)


@pytest.mark.parametrize("columns", [20, 40, 80])
@pytest.mark.parametrize("rows", [4, 6, 24])
def test_it_fits_into_every_terminal(columns: int, rows: int):
    terminal = Terminal(columns, rows)
    screen = LiveScreen(terminal.write, size=terminal.size, clock=Clock())
    for _ in range(3):
        screen.show(PROGRESS)
    assert len(terminal.rows) <= rows
    assert shown(terminal)[0].startswith("| creating k8s")


def test_a_terminal_that_becomes_narrower_is_drawn_over_whole():
    terminal = Terminal(100, 24)
    screen = LiveScreen(terminal.write, size=terminal.size, clock=Clock())
    screen.show(PROGRESS)
    terminal.columns = 40
    # It wraps what is there: the rows it has made of each line are drawn over.
    terminal.rows = [row[at : at + 40] for row in terminal.rows for at in range(0, max(1, len(row)), 40)]
    terminal.row = len(terminal.rows) - 1
    screen.show(PROGRESS)
    assert [row for row in shown(terminal) if row.startswith("| creating")] == [plain(PROGRESS)[0][:39]]


def test_what_tells_least_goes_first():
    lines = fit_to_height(tree_lines(PROGRESS, 100), 4)
    assert [line.text for line in lines] == [*plain(PROGRESS)[:1], *plain(PROGRESS)[2:4], "  … and 2 more"]


def test_failures_stay_in_view():
    reason = "The maximum number of VPCs has been reached. " * 8
    failed = ResourceProgress("Vpc", "AWS::EC2::VPC", "DELETE_COMPLETE", 3, 0, reason=reason)
    stack = StackProgress(("VpcStack",), "k8s-Vpc-1", "DELETE_COMPLETE", 2, 2, 75, (failed,))
    rolling = Progress("create", "k8s", "ROLLBACK_IN_PROGRESS", 170, 600, (ROOT, stack, NODES, IAM))
    text = plain(rolling, 80)
    assert text[:3] == [
        "| rolling back k8s  ROLLBACK_IN_PROGRESS  2 min 50 s",
        "  ✓ VPC                2 of 2 undone  1 min 15 s",
        "      ✗ VPC failed (Vpc)",
    ]
    assert len([line for line in text if "VPCs" in line]) == 3
    assert any(line.text.endswith("failed (Vpc)") for line in fit_to_height(tree_lines(rolling, 80), 7))


def test_what_takes_longer_than_usual_stands_out():
    late = ResourceProgress("Vpc", "AWS::EC2::VPC", "CREATE_IN_PROGRESS", 45, 15)
    stack = StackProgress(("VpcStack",), "k8s-Vpc-1", "CREATE_IN_PROGRESS", 0, 9, 45, (late,))
    [line] = [line for line in tree_lines(Progress("create", "k8s", "", 45, 0, (stack,)), 80) if "VPC: " in line.text]
    assert click.style("creating, 45 s, overdue: usually 15 s", fg="yellow") in line.styled(80)


def test_trouble_is_shown():
    assert (
        plain(Progress("create", "k8s", "", 1, poll_error="AWS throttles API calls"))[1] == "  AWS throttles API calls"
    )


def event(status: str, name: str = "SubnetA", second: int = 0) -> Event:
    time = NOON + timedelta(seconds=second)
    return Event("1", time, "k8s-Vpc-1", ("VpcStack",), name, "subnet-1", "AWS::EC2::Subnet", status)


def test_without_a_terminal_it_is_a_line_for_each_event_that_tells_something():
    written: list[str] = []
    screen = LiveScreen(written.append, size=None, clock=Clock())
    screen.show(event("CREATE_IN_PROGRESS"))
    screen.show(event("CREATE_COMPLETE", second=12))
    screen.show(PROGRESS)
    screen.close()
    assert click.unstyle("".join(written)) == (
        "12:00:12Z         12 s  CREATE_COMPLETE       VpcStack/SubnetA  EC2 Subnet\n"
    )


def test_without_a_terminal_long_silence_is_broken():
    written: list[str] = []
    clock = Clock()
    screen = LiveScreen(written.append, size=None, clock=clock)
    for _ in range(5):
        screen.show(PROGRESS)
        clock.sleep(HEARTBEAT_SECONDS / 2)
    assert written == [f"{heartbeat_line(PROGRESS)}\n"] * 2
    assert heartbeat_line(PROGRESS) == (
        "k8s CREATE_IN_PROGRESS after 2 min 50 s of about 10 min: node group nodes: 1 of 4 signals, "
        "1 min 30 s of about 5 min"
    )
    assert not any("\x1b" in text for text in written)


def test_times_are_counted_from_the_beginning_of_each_operation() -> None:
    """Neither from a question in between, nor from an operation before."""

    def root(status: str, second: int) -> Event:
        arn = "arn:aws:cloudformation:us-west-2:123456789012:stack/k8s/1"
        time = NOON + timedelta(seconds=second)
        return Event("1", time, "k8s", (), "k8s", arn, "AWS::CloudFormation::Stack", status, stack_id=arn)

    written: list[str] = []
    screen = LiveScreen(lambda text: written.append(click.unstyle(text)), size=None, clock=Clock())
    for shown in (root("DELETE_IN_PROGRESS", 0), event("DELETE_COMPLETE", second=50), root("DELETE_FAILED", 60)):
        screen.show(shown)
        screen.close()
    screen.show(root("DELETE_IN_PROGRESS", 600))
    screen.show(event("DELETE_COMPLETE", second=620))
    assert [line.split("Z")[1].split("  DELETE")[0].strip() for line in written] == [
        "0 s",
        "50 s",
        "1 min",
        "0 s",
        "20 s",
    ]
