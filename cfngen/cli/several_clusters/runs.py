"""Runs a command for each of several clusters, and shows at the end how each run ended."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from cfngen.cli.display.messages import show_message
from cfngen.cli.display.terminal import echo
from cfngen.cli.error_reporting import run_and_report
from cfngen.cli.exit_codes import (
    BROKEN_PIPE,
    FAILED,
    INTERRUPTED,
    PROBLEMS_FOUND,
    SUCCESS,
    TERMINATED,
    worst_exit_code,
)
from cfngen.cli.input.cluster_files import ClusterFile, read_cluster_files
from cfngen.cli.input.target import Target
from cfngen.cli.settings import Settings
from cfngen.cli.several_clusters.outcomes import ClusterOutcome, ClusterOutcomes, outcome_of
from cfngen.cli.several_clusters.processes import Processes
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from cfngen.deploy.aws.stacks import StackView


_COMMANDS_ABOUT_STACKS = ("deploy", "delete", "status")
_CANARY_SETTLING_TIME = "5m"
"""How long the canary may take to become valid after its deployment."""


def run_for_clusters(
    context: click.Context,
    arguments: Sequence[str],
    paths: Sequence[Path],
    *,
    canary: Path | None = None,
    parallel: int | None = None,
) -> int:
    """Run a command for the clusters of several files, show how it ended for each, and return the exit code.

    Args:
        arguments: the command's arguments as they were typed.
        canary: the file whose cluster comes first; the others are left alone unless it is valid then.
        parallel: how many clusters are worked on at the same time; None runs the command for one after the other.

    Raises:
        CfngenError: a cluster file is wrong, or AWS cannot be reached; nothing has been started then.
    """
    if context.command.name == "deploy" and parallel and parallel > 1 and not context.params["yes"]:
        raise click.UsageError("--parallel cannot ask about several clusters at the same time; add --yes.")
    typed = _typed_values(context, arguments)
    files = read_cluster_files(paths, context.params["overrides"], no_env=context.params["no_env"])
    if canary:
        files = tuple(sorted(files, key=lambda file: file.path.resolve() != canary.resolve()))
        if files[0].path.resolve() != canary.resolve():
            raise click.UsageError(f"--canary {canary} is none of the cluster files; name one of them.")
    run = _Run(context, typed, files)
    asks = context.command.name == "delete" and not (context.params["yes"] or context.params["dry_run"])
    if asks and (exit_code := run.preview_deletion()):
        return exit_code
    others = files[1:] if canary else files
    if not canary or run.run_canary(files[0]):
        if parallel and parallel > 1:
            run.run_side_by_side(others, parallel)
        else:
            run.run_in_order(others)
    return run.show_outcomes()


@dataclass
class _Run:
    """The runs of a command for several clusters, by what was typed for its parameters."""

    context: click.Context
    typed: Mapping[str, object]
    files: Sequence[ClusterFile]
    _outcomes: dict[str, ClusterOutcome] = field(init=False)
    _stacks: dict[str, StackView | None] = field(init=False)

    def __post_init__(self) -> None:
        self._outcomes = {
            file.label: ClusterOutcome(file.cluster.name, file.cluster.region, str(file.path)) for file in self.files
        }
        self._stacks = {file.label: self._stack(file) for file in self.files if self._command in _COMMANDS_ABOUT_STACKS}

    @property
    def _settings(self) -> Settings:
        return self.context.ensure_object(Settings)

    @property
    def _command(self) -> str:
        return self.context.command.name or ""

    def run_in_order(self, files: Sequence[ClusterFile]) -> None:
        """Run the command for one cluster after the other."""
        for file in files:
            if not self._end(file, self._run(file, self.context.command)):
                break

    def run_canary(self, file: ClusterFile) -> bool:
        """Deploy the cluster that goes first, and check it; return whether the others are to be deployed."""
        exit_code = self._run(file, self.context.command, verify=False)
        if exit_code == SUCCESS:
            validate: click.Command = import_module("cfngen.cli.commands.validate").command
            exit_code = self._run(file, validate, timeout=_CANARY_SETTLING_TIME)
            # Whether a canary is valid must be known.
            exit_code = PROBLEMS_FOUND if exit_code == FAILED else exit_code
        return self._end(file, exit_code)

    def run_side_by_side(self, files: Sequence[ClusterFile], limit: int) -> None:
        """Run the command for several clusters at the same time; those that run go on when another one has failed."""
        file_by_label = {file.label: file for file in files}
        settings = self._settings
        flags = ["--debug"] if settings.debug else []
        flags += [] if settings.color is None else ["--color" if settings.color else "--no-color"]
        width = max(map(len, file_by_label), default=0)
        streams = {file.label: naming_stream(sys.stdout, file) for file in files}

        def show(label: str, line: str) -> None:
            if settings.json:
                click.echo(line, file=streams[label])
            else:
                echo(f"{label:{width}} │ {line}")

        processes = Processes(limit, show, self._goes_on, separates_errors=settings.json)
        lines = {file.label: [*flags, self._command, *self._words(file, self.context.command)] for file in files}
        for label, exit_code in processes.run(lines):
            self._end(file_by_label[label], exit_code)
        settings.terminated |= processes.is_terminated

    def preview_deletion(self) -> int:
        """Show what is deleted of each cluster, and ask for consent; return the exit code of what is in the way."""
        from cfngen.deploy.messages.message import Question
        from cfngen.deploy.operations.interaction import DeclinedError

        if exit_code := worst_exit_code(self._run(file, self.context.command, dry_run=True) for file in self.files):
            return exit_code
        names = " ".join(file.label for file in self.files)
        question = Question(f"Delete {len(self.files)} clusters?", dangerous=True, name=names)
        if not self._target(self.files[0]).consent(yes=False)(question):
            raise DeclinedError
        self.typed = {**self.typed, "yes": True}
        return SUCCESS

    def show_outcomes(self) -> int:
        outcomes = tuple(self._outcomes.values())
        exit_code = worst_exit_code(outcome.exit_code for outcome in outcomes if outcome.exit_code is not None)
        # Values that are read as text are a file in the end.
        if self._command != "config" or self._settings.json:
            show_message(ClusterOutcomes(self._command, outcomes, exit_code), json=self._settings.json)
        return exit_code

    def _run(self, file: ClusterFile, command: click.Command, **changes: object) -> int:
        settings = self._settings
        settings.render_hint = str
        with contextlib.ExitStack() as stack:
            if settings.json:
                stream = stack.enter_context(naming_stream(sys.stdout, file))
                stack.enter_context(contextlib.redirect_stdout(stream))
            elif self.typed.get("output_format") == "yaml":
                echo("---")  # between the documents of one stream of YAML
            elif self._command != "config":
                echo(click.style(f"▸ {file.label}", bold=True) + f"  {file.path}")
            arguments = self._words(file, command, **changes)
            return run_and_report(
                lambda: command.main(
                    arguments, prog_name=command.name, standalone_mode=False, parent=self.context.parent
                ),
                settings,
            )

    def _words(self, file: ClusterFile, command: click.Command, **changes: object) -> list[str]:
        own: dict[str, object] = {"file": [str(file.path)], "canary": None, "parallel": None}
        if self._command == "templates":
            own["directory"] = str(self.context.params["directory"] / file.label)
        if self._command == "kubeconfig":
            own["context_name"] = file.label
        return _command_line(command, {**self.typed, **own, **changes})

    def _end(self, file: ClusterFile, exit_code: int) -> bool:
        """Note how the command ended for a cluster; return whether the next one is to be touched."""
        before = after = None
        if self._command in _COMMANDS_ABOUT_STACKS:
            before = self._stacks[file.label]
            with contextlib.suppress(CfngenError):
                after = self._stack(file)
        self._outcomes[file.label] = replace(
            self._outcomes[file.label],
            outcome=outcome_of(self._command, exit_code, before, after),
            status=str(after.status) if after else "",
            exit_code=exit_code,
        )
        return self._goes_on(exit_code)

    def _goes_on(self, exit_code: int) -> bool:
        """Return whether the next cluster is touched: not after an interrupt, nor after a failed deployment."""
        if self._command == "deploy":
            return exit_code == SUCCESS
        return exit_code not in (INTERRUPTED, TERMINATED, BROKEN_PIPE)

    def _target(self, file: ClusterFile) -> Target:
        parameters = self.context.params
        return Target(
            file.source,
            profile=parameters["profile"],
            account_number=parameters["account_number"],
            sandbox=parameters["sandbox"],
        )

    def _stack(self, file: ClusterFile) -> StackView | None:
        from cfngen.deploy.aws.errors import translate_aws_errors
        from cfngen.deploy.aws.stacks import find_stack

        target = self._target(file)
        with translate_aws_errors():
            return find_stack(target.connect(), target.stack_name)


def _typed_values(context: click.Context, arguments: Sequence[str]) -> Mapping[str, object]:
    """Return what was typed for each parameter of a command, by its name: text, several texts, or a flag's truth."""
    values, _, order = context.command.make_parser(context).parse_args(args=list(arguments))
    typed = {parameter.name or "": values[parameter.name or ""] for parameter in order}
    # An argument that was left out has None, or a mark of click's own.
    return {name: value for name, value in typed.items() if isinstance(value, (str, bool, Sequence))}


def _command_line(command: click.Command, values: Mapping[str, object]) -> list[str]:
    """Return the words of a command line that gives a command these values; it ignores those that it does not take."""
    result: list[str] = []
    for parameter in command.params:
        value = values.get(parameter.name or "")
        flag = max(parameter.opts, key=len)
        if isinstance(value, bool):
            result.append(flag if value else max(parameter.secondary_opts, key=len))
        elif value is not None:
            texts = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
            result += [str(text) if isinstance(parameter, click.Argument) else f"{flag}={text}" for text in texts]
    return result


def naming_stream(stream: TextIO, file: ClusterFile) -> io.TextIOWrapper:
    """Return a stream that hands on the JSON written to it, one object a line, with the keys of a cluster in each.

    An object may be written in several lines; what is not JSON is handed on as it is when the stream is closed.
    """
    return io.TextIOWrapper(io.BufferedWriter(_NamingStream(stream, file)), encoding="utf-8", write_through=True)


class _NamingStream(io.RawIOBase):
    def __init__(self, stream: TextIO, file: ClusterFile) -> None:
        self._stream = stream
        self._keys = {"clusterName": file.cluster.name, "clusterFile": str(file.path)}
        self._written = b""

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        for line in bytes(content).splitlines(keepends=True):
            self._written += line
            if line.endswith(b"\n"):
                self._hand_on()
        return len(bytes(content))

    def close(self) -> None:
        if self._written:
            click.echo(self._written, file=self._stream, nl=False)
            self._written = b""
        super().close()

    def _hand_on(self) -> None:
        if self._written[:-1].rpartition(b"\n")[2].startswith(b" "):
            return  # an indented line is none with which an object ends
        try:
            value = json.loads(self._written)
        except ValueError:
            return
        named = {**self._keys, **value} if isinstance(value, dict) else value
        click.echo(json.dumps(named, ensure_ascii=False).encode(), file=self._stream)
        self._written = b""
