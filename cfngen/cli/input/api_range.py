"""Who may reach the Kubernetes API, where `deploy` or `plan` needs to know it and neither file nor parameter says it.

On a terminal it is asked, and written into the cluster file if the user wants that. In the sandbox, where nobody is let
in or kept out, it is a range for documentation. Elsewhere it is an error that names the key.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from cfngen.atomic_files import replace_file
from cfngen.bounded_files import read_bytes
from cfngen.cli.display.terminal import echo, visible
from cfngen.cli.input.source import Source
from cfngen.cli.input.target import Target

if TYPE_CHECKING:
    from cfngen.deploy.messages.message import Report
    from cfngen.deploy.operations.deployment.preparation import DeploymentRequest
    from cfngen.deploy.preflight.parameters.parameter_values import MissingParameterError


_Result = TypeVar("_Result")
_KEY = ("api", "allowedCidrs")
_KEY_TEXT = "api.allowedCidrs"
_EXAMPLE = "203.0.113.7/32"
SANDBOX_RANGE = "203.0.113.0/24"
"""TEST-NET-3, "provided for use in documentation" (RFC 5737): no address of it is in use."""


def with_api_range(
    run: Callable[[DeploymentRequest], _Result],
    request: DeploymentRequest,
    target: Target,
    report: Report,
    *,
    may_ask: bool,
    request_of: Callable[[Target], DeploymentRequest],
) -> _Result:
    """Plan or deploy; if nobody has said who may reach the API, find it out and try again.

    Args:
        run: plans or deploys a request. It finds out that a parameter is missing before it changes anything.
        may_ask: whether the user may be asked if there is a terminal.
        request_of: returns the request anew, after a change of the cluster file.

    Raises:
        MissingParameterError: nobody can be asked, or the answer was empty.
    """
    from cfngen.deploy.messages.message import Step
    from cfngen.deploy.preflight.parameters.parameter_values import API_CIDR_PARAMETER, MissingParameterError

    try:
        return run(request)
    except MissingParameterError as error:
        if error.names != (API_CIDR_PARAMETER,):
            raise
        missing_error = _missing(API_CIDR_PARAMETER, target.source)
    cidr = ""
    if target.sandbox:
        cidr = SANDBOX_RANGE
        text = f"the sandbox uses {cidr}, a range for documentation, as {_KEY_TEXT}; in AWS, set it"
        report(Step(text))
    elif may_ask and not target.json and sys.stdin and sys.stdin.isatty():
        cidr = _ask_for_range(target)
        if cidr and _was_written(target.source.file, cidr):
            return run(request_of(replace(target, source=target.source.reread())))
    if not cidr:
        raise missing_error
    return run(replace(request, flags={**request.flags, API_CIDR_PARAMETER: cidr}))


def _missing(parameter: str, source: Source) -> MissingParameterError:
    """Return the error that nobody has said who may reach the API; it names the key before the parameter."""
    from cfngen.deploy.preflight.parameters.parameter_values import MissingParameterError

    text = f"{source.description}: {_KEY_TEXT} is missing, the address ranges that may reach the Kubernetes API"
    file = f"{source.file}" if source.file else "a cluster file, which `cfngen init` writes"
    hint = f"write `allowedCidrs: [{_EXAMPLE}]` below `api:` into {file}, or give --parameter {parameter}={_EXAMPLE}"
    return MissingParameterError([text], [parameter], hint=hint)


def _ask_for_range(target: Target) -> str:
    echo(f"It is not set who may reach the Kubernetes API of {target.cluster.name}.", err=True)
    if target.source.file is None:
        echo("There is no cluster file to write it into; `cfngen init` makes one.", err=True)
    text = click.style(f"Address range that may reach it (such as {_EXAMPLE}, for one address)", bold=True)
    answer: str = click.prompt(text, default="", show_default=False, value_proc=_parse_range, err=True)
    return answer


def _was_written(path: Path | None, cidr: str) -> bool:
    """Offer to write a range into the cluster file; return whether that was wanted and done."""
    if path is None or not click.confirm(
        f"Write it into {visible(str(path))} as {_KEY_TEXT}?", default=False, err=True
    ):
        return False
    return _write(path, cidr)


def _parse_range(answer: str) -> str:
    """Return an answer as a CIDR, an address with its prefix length; empty if the answer is.

    Raises:
        click.UsageError: `api.allowedCidrs` would refuse it.
    """
    from pydantic_core import PydanticCustomError

    from cfngen.cluster.sections.field_validation import parse_cidr

    text = answer.strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", text):
        text += "/32"
        echo(f"One address is the range {text}.", err=True)
    try:
        return str(parse_cidr(text)) if text else ""
    except PydanticCustomError as error:
        raise click.UsageError(f"{error.message()}; try again.") from None


def _write(path: Path, cidr: str) -> bool:
    """Write the key into the cluster file and return True; if that is not possible, show the lines to add."""
    from cfngen.cluster.file.edit import NotEditableError, lines, set_key

    try:
        text = read_bytes(path).decode("utf-8")
        byte_order_mark = "\ufeff" if text.startswith("\ufeff") else ""
        edited_text = set_key(text.removeprefix(byte_order_mark), _KEY, [cidr])
        replace_file(path, byte_order_mark + edited_text)
    except (NotEditableError, OSError) as error:
        reason = (
            f"it cannot be written: {error.strerror or error}" if isinstance(error, OSError) else "its form is unusual"
        )
        echo(f"{path} was not changed, since {reason}. Add these lines to it:", err=True)
        echo("\n".join(lines(_KEY, [cidr], indentation="  ")), err=True)
        return False
    echo(f"Wrote {_KEY_TEXT}: [{cidr}] into {path}.", err=True)
    return True
