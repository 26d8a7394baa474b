"""Exit codes, and the translation of exceptions into error messages and exit codes."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import click

from cfngen.cli.json_output import emit
from cfngen.cli.usage import message_and_hint
from cfngen.errors import CfngenError
from cfngen.hints import Hint

SUCCESS = 0
FAILED = 1
PROBLEMS = 2
STALE = 3
CHANGES = 4
DANGER = 5
IN_PROGRESS = 6
USAGE = 64  # EX_USAGE of sysexits.h, since click's own code 2 is used for PROBLEMS
INTERNAL = 70
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143

EXIT_CODES = {
    SUCCESS: "done",
    FAILED: "refused or failed; the message says what to do",
    PROBLEMS: "validate, deploy: the cluster was looked at, and something is wrong with it; rehearse: a surprise",
    STALE: "templates --check: the output directory is not what the cluster gives",
    CHANGES: "plan: there are changes",
    DANGER: "plan: there are changes that may lose data, addresses or the cluster",
    IN_PROGRESS: "CloudFormation goes on without cfngen; `cfngen watch` attaches again",
    USAGE: "the command line is not one that cfngen knows",
    INTERNAL: "a fault of cfngen itself; run again with --debug and report it",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "what was reading the output, such as `head`, has ended",
    TERMINATED: "terminated; an operation that CloudFormation has begun goes on",
}
_OS_ERROR_HINTS = {
    errno.ENOENT: "check the name; nothing is there.",
    errno.EISDIR: "name a file; this is a directory.",
    errno.ENOTDIR: "check the path; a part of it is a file.",
    errno.EACCES: "give yourself permission, or choose another file.",
    errno.EPERM: "give yourself permission, or choose another file.",
    errno.EROFS: "choose another place; this file system is read-only.",
    errno.ENOSPC: "free space on that file system, or choose another place.",
    errno.EDQUOT: "your disk quota is used up; free space, or choose another place.",
}


@dataclass
class Settings:
    """Settings from the global options.

    Attributes:
        debug: whether to show tracebacks.
        color: whether to use colours; None means only on a terminal.
        json: whether standard output is JSON.
        render_hint: returns a hint as text, with the options for the same cluster, stack and account in its commands.
    """

    debug: bool = False
    color: bool | None = None
    json: bool = False
    render_hint: Callable[[Hint], str] = str


@dataclass(frozen=True)
class Failure:
    """A command has failed; the last line of its output.

    Attributes:
        message: what went wrong, a line for each problem.
        hint: what to do about it; may be empty.
        exit_code: what the process exits with.
    """

    kind: ClassVar[str] = "error"
    message: str
    hint: str
    exit_code: int


class Ended(Protocol):
    """How an operation of CloudFormation ended."""

    @property
    def in_progress(self) -> bool:
        """Whether it has not ended, because the user left it."""

    @property
    def succeeded(self) -> bool:
        """Whether it ended as it was meant to."""


def operation_exit_code(result: Ended) -> int:
    """Return the exit code of a command that started or watched an operation."""
    if result.in_progress:
        return IN_PROGRESS
    return SUCCESS if result.succeeded else FAILED


def exit_code(run: Callable[[], Any], settings: Settings) -> int:
    """Run the command line, show its errors and return the exit code of the process.

    Args:
        run: runs the command line; returns an exit code, or anything else for success.
        settings: filled in while the command line is parsed.
    """
    try:
        code = _run(run, settings)
    except BrokenPipeError:
        code = BROKEN_PIPE
    except OSError:
        # Standard error cannot be written: there is nowhere to show the error.
        code = FAILED
    return _flush_streams(code, settings)


def _flush_streams(code: int, settings: Settings) -> int:
    """Flush standard output and error; redirect a broken one to /dev/null, so that Python does not fail at exit."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError as failure:
            with contextlib.suppress(OSError):
                null_device = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null_device, stream.fileno())
                os.close(null_device)
            if isinstance(failure, BrokenPipeError):
                code = BROKEN_PIPE
            elif code == SUCCESS:
                code = FAILED
                with contextlib.suppress(OSError):
                    _print_failure(failure, [_os_error_text(failure)], _os_error_hint(failure), settings)
    return code


def _run(run: Callable[[], Any], settings: Settings) -> int:
    """Run the command line and show its errors; return the exit code.

    Raises:
        OSError: the error message cannot be written.
    """
    try:
        result = run()
    except click.Abort:
        return _show_failure(["interrupted; nothing is left half-written"], "", INTERRUPTED, settings)
    except click.ClickException as failure:
        # A group without a subcommand shows its help, which is no error. click has this class since 8.2.
        if isinstance(failure, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            click.echo(failure.format_message(), err=True)
            return USAGE
        if isinstance(failure, click.UsageError) and failure.ctx:
            click.echo(f"{failure.ctx.get_usage()}\nTry '{failure.ctx.command_path} --help'.\n", err=True)
        code = USAGE if isinstance(failure, click.UsageError) else failure.exit_code
        message, hint = message_and_hint(failure)
        return _show_failure([message], hint, code, settings)
    except CfngenError as failure:
        # Some errors, such as that of a cluster file, list several problems.
        problems = getattr(failure, "problems", ()) or (failure,)
        hint = settings.render_hint(failure.hint)
        return _show_failure([str(problem) for problem in problems], hint, failure.exit_code, settings, failure)
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as failure:
        return _show_failure([_os_error_text(failure)], _os_error_hint(failure), FAILED, settings, failure)
    except Exception as failure:  # noqa: BLE001  a bug in cfngen becomes one readable line
        frame = traceback.extract_tb(failure.__traceback__)[-1]
        message = f"a fault in cfngen: {type(failure).__name__}: {failure} ({Path(frame.filename).name}:{frame.lineno})"
        hint = "run the same with `cfngen --debug …` and report the traceback together with your cluster file."
        return _show_failure([message], hint, INTERNAL, settings, failure)
    return result if isinstance(result, int) else SUCCESS


def _os_error_text(failure: OSError) -> str:
    """Return an operating system error as text: the file and the reason."""
    reason = failure.strerror or str(failure) or type(failure).__name__
    # An OSError without a file name comes from writing to standard output.
    return f"{failure.filename}: {reason}" if failure.filename else f"standard output cannot be written: {reason}"


def _os_error_hint(failure: OSError) -> str:
    if not failure.filename:
        return "send the output elsewhere."
    return _OS_ERROR_HINTS.get(
        failure.errno or 0, "the words are the operating system's; look at the file and where it is."
    )


def _show_failure(
    messages: Sequence[str], hint: str, code: int, settings: Settings, failure: BaseException | None = None
) -> int:
    """Show the error, also as JSON if standard output is JSON; return the exit code."""
    _print_failure(failure, messages, hint, settings)
    if settings.json:
        emit(Failure("\n".join(messages), hint, code))
    return code


def _print_failure(failure: BaseException | None, messages: Sequence[str], hint: str, settings: Settings) -> None:
    """Show the messages and the hint, and in debug mode the traceback before them."""
    if settings.debug and failure is not None:
        click.echo("".join(traceback.format_exception(failure)), err=True, nl=False)
    for message in messages:
        _print_error(message, settings)
    if hint:
        click.echo(click.style("hint: ", bold=True) + hint, err=True, color=settings.color)


def _print_error(message: str, settings: Settings) -> None:
    click.echo(click.style("error: ", fg="red", bold=True) + message, err=True, color=settings.color)
