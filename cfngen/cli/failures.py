"""From what went wrong to a message on standard error and an exit code."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from cfngen.errors import CfngenError

DONE = 0
FAILED = 1
USAGE = 2
STALE = 3
INTERNAL = 70
INTERRUPTED = 130

EXIT_CODES = {
    DONE: "done",
    FAILED: "refused or failed; the message says what to do, and nothing was changed",
    USAGE: "the command line is not one that cfngen knows",
    STALE: "templates --check: the output directory is not what the cluster gives",
    INTERNAL: "a fault of cfngen itself; run again with --debug and report it",
    INTERRUPTED: "interrupted",
}


@dataclass
class Settings:
    """What the global options ask for.

    Attributes:
        debug: show tracebacks.
        color: True or False as asked for; None leaves it to whether the output is a terminal.
    """

    debug: bool = False
    color: bool | None = None


def exit_code(run: Callable[[], Any], settings: Settings) -> int:
    """Run the command line and say what the process shall leave with, after showing what went wrong.

    Args:
        run: the command line; returns an exit code, or anything else for success.
        settings: filled in by the command line itself while it is parsed.
    """
    try:
        returned = run()
    except click.Abort:
        _error("interrupted; nothing is left half-written", settings)
        return INTERRUPTED
    except click.ClickException as failure:
        if isinstance(failure, click.UsageError) and failure.ctx:
            click.echo(f"{failure.ctx.get_usage()}\nTry '{failure.ctx.command_path} --help'.\n", err=True)
        _error(failure.format_message(), settings)
        return failure.exit_code
    except CfngenError as failure:
        _explain(failure, str(failure), failure.hint, settings)
        return failure.exit_code
    except OSError as failure:
        _explain(failure, _described(failure), "", settings)
        return FAILED
    except Exception as failure:  # noqa: BLE001  the last line of defence: a fault becomes one readable line
        where = traceback.extract_tb(failure.__traceback__)[-1]
        message = f"a fault in cfngen: {type(failure).__name__}: {failure} ({Path(where.filename).name}:{where.lineno})"
        hint = "run the same with `cfngen --debug …` and report the traceback together with your cluster file."
        _explain(failure, message, hint, settings)
        return INTERNAL
    return returned if isinstance(returned, int) else DONE


def _described(failure: OSError) -> str:
    """An operating system's error the way a person says it: which file, and what about it."""
    reason = failure.strerror or str(failure) or type(failure).__name__
    return f"{failure.filename}: {reason}" if failure.filename else reason


def _explain(failure: BaseException, message: str, hint: str, settings: Settings) -> None:
    """Show the message and the hint, and in debug mode the traceback before them."""
    if settings.debug:
        click.echo("".join(traceback.format_exception(failure)), err=True, nl=False)
    _error(message, settings)
    if hint:
        click.echo(click.style("hint: ", bold=True) + hint, err=True, color=settings.color)


def _error(message: str, settings: Settings) -> None:
    click.echo(click.style("error: ", fg="red", bold=True) + message, err=True, color=settings.color)
