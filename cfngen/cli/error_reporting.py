"""Runs a command line, and reports its failure as an error message, as JSON and as the exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import click

from cfngen.cli.display.json_output import print_json
from cfngen.cli.display.terminal import echo
from cfngen.cli.exit_codes import BROKEN_PIPE, FAILED, SUCCESS, TERMINATED, USAGE_ERROR, error_exit_code
from cfngen.cli.settings import Settings
from cfngen.cli.usage import message_and_hint
from cfngen.errors import CfngenError
from cfngen.masking import mask_secrets

# By the number of an operating system error: what to do about it.
_OS_ERROR_HINTS = {
    errno.ENOENT: "check the name; there is no such file or directory.",
    errno.EISDIR: "give the name of a file; this is a directory.",
    errno.ENOTDIR: "check the path; a part of it is a file.",
    errno.EACCES: "give yourself permission, or choose another file.",
    errno.EPERM: "give yourself permission, or choose another file.",
    errno.EROFS: "choose another directory; this file system is read-only.",
    errno.ENOSPC: "free space on that file system, or choose another directory.",
    errno.EDQUOT: "your disk quota is used up; free space, or choose another directory.",
}


@dataclass(frozen=True)
class Failure:
    """A command has failed; the last line of its output.

    Attributes:
        code: stable name of the error, for programs; see [error codes](#error-codes).
        message: what went wrong, a line for each problem.
        hint: what to do about it; may be empty.
        exit_code: what the process exits with.
    """

    kind: ClassVar[str] = "error"
    code: str
    message: str
    hint: str
    exit_code: int


def run_and_report(run: Callable[[], object], settings: Settings) -> int:
    """Run a command line, show its errors and return the exit code of the process.

    Args:
        run: runs the command line, and returns its exit code; a result that is not a number means success.
        settings: the settings of this run; they have their values once the command line has been parsed.
    """
    try:
        exit_code = _run_and_show_errors(run, settings)
    except BrokenPipeError:
        exit_code = BROKEN_PIPE
    except OSError:
        # Standard error cannot be written: there is nowhere to show the error.
        exit_code = FAILED
    return _flush_streams(exit_code, settings)


def _flush_streams(exit_code: int, settings: Settings) -> int:
    """Flush standard output and standard error; return the exit code, which changes if that fails.

    A stream that cannot be written is redirected to /dev/null, so that Python does not fail when it exits.
    """
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
                exit_code = BROKEN_PIPE
            elif exit_code == SUCCESS:
                exit_code = FAILED
                with contextlib.suppress(OSError):
                    _print_failure(failure, [_os_error_text(failure)], _os_error_hint(failure), settings)
    return exit_code


def _run_and_show_errors(run: Callable[[], object], settings: Settings) -> int:
    try:
        result = run()
    except click.Abort:
        message = "interrupted; nothing is left half-written"
        return _report_failure("interrupted", [message], hint="", settings=settings)
    except click.ClickException as failure:
        # A group without a subcommand shows its help, and has not failed. click has this class since 8.2.
        if isinstance(failure, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            echo(failure.format_message(), err=True)
            return USAGE_ERROR
        if isinstance(failure, click.UsageError) and failure.ctx:
            echo(f"{failure.ctx.get_usage()}\nTry '{failure.ctx.command_path} --help'.\n", err=True)
        message, hint = message_and_hint(failure)
        code = "usage" if isinstance(failure, click.UsageError) else CfngenError.code
        return _report_failure(code, [message], hint=settings.render_hint(hint), settings=settings)
    except CfngenError as failure:
        # Some errors, such as a wrong cluster file, list several problems.
        problems = getattr(failure, "problems", ()) or (failure,)
        messages = [str(problem) for problem in problems]
        hint = settings.render_hint(failure.hint)
        return _report_failure(failure.code, messages, hint=hint, settings=settings, failure=failure)
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as failure:
        message, hint = _os_error_text(failure), _os_error_hint(failure)
        return _report_failure("os-error", [message], hint=hint, settings=settings, failure=failure)
    except Exception as failure:  # noqa: BLE001  a bug in cfngen becomes one readable line
        frame = traceback.extract_tb(failure.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        message = f"a bug in cfngen: {type(failure).__name__}: {failure} ({place})"
        hint = (
            "run the command again with `cfngen --debug …`, and report the traceback together with your cluster file."
        )
        return _report_failure("internal-error", [message], hint=hint, settings=settings, failure=failure)
    exit_code = result if isinstance(result, int) else SUCCESS
    return TERMINATED if settings.terminated else exit_code


def _os_error_text(failure: OSError) -> str:
    reason = failure.strerror or str(failure) or type(failure).__name__
    # An OSError without a file name comes from writing to standard output.
    return f"{failure.filename}: {reason}" if failure.filename else f"standard output cannot be written: {reason}"


def _os_error_hint(failure: OSError) -> str:
    if not failure.filename:
        return "redirect the output to another file."
    return _OS_ERROR_HINTS.get(
        failure.errno or 0, "this is the operating system's message; check the file and its directory."
    )


def _report_failure(
    code: str, messages: Sequence[str], *, hint: str, settings: Settings, failure: BaseException | None = None
) -> int:
    """Show an error on standard error, and as JSON if --output is json; return the exit code for its `code`.

    What is secret in it, or in its traceback, is left out: a service may repeat what it was sent.

    Args:
        failure: the exception, whose traceback is shown in debug mode; None if it has none worth showing.
    """
    messages, hint = [mask_secrets(message, os.environ) for message in messages], mask_secrets(hint, os.environ)
    _print_failure(failure, messages, hint, settings)
    exit_code = TERMINATED if settings.terminated else error_exit_code(code)
    if settings.json:
        print_json(Failure(code, "\n".join(messages), hint, exit_code))
    return exit_code


def _print_failure(failure: BaseException | None, messages: Sequence[str], hint: str, settings: Settings) -> None:
    """Show the messages and the hint, and in debug mode the traceback before them."""
    if settings.debug and failure is not None:
        trace = mask_secrets("".join(traceback.format_exception(failure)), os.environ)
        echo(trace, err=True, nl=False, folds=False)
    for message in messages:
        echo(click.style("error: ", fg="red", bold=True) + message, err=True, color=settings.color)
    if hint:
        echo(click.style("hint: ", bold=True) + hint, err=True, color=settings.color)
