"""The command `cfngen`: global options, and subcommands that are imported only when they are used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from os import environ
from typing import Any, NoReturn

import click

from cfngen import __version__
from cfngen.cli.display.terminal import echo
from cfngen.cli.display.typography import ascii_fallback
from cfngen.cli.error_reporting import run_and_report
from cfngen.cli.exit_codes import BROKEN_PIPE, EXIT_CODE_MEANINGS, USAGE_ERROR
from cfngen.cli.settings import Settings
from cfngen.cli.usage import SuggestingGroup

COMMANDS = (
    "init", "templates", "lint", "graph", "userdata", "config", "schema", "permissions", "check", "plan",
    "deploy", "watch", "events", "status", "validate", "kubeconfig", "etcd", "replace", "pause", "resume",
    "rollback", "delete", "rehearse", "sandbox", "kind", "completion", "version",
)  # fmt: skip
GETTING_STARTED_HELP = """\b
Getting started:
  cfngen init                # writes a commented cluster.yaml
  cfngen templates           # generates and lints the templates; writes output/
  cfngen deploy --sandbox    # a whole deployment, without an AWS account
  cfngen plan                # what would be created in your account
  cfngen deploy              # creates it
"""
EXIT_CODE_HELP = "\n".join(
    ["\b", "Exit codes:", *(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODE_MEANINGS.items())]
)


@contextmanager
def _exit_on_broken_pipe() -> Iterator[None]:
    """Exit with the code for a broken pipe; click itself would exit with the code for a failure."""
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(BROKEN_PIPE) from None


class Application(SuggestingGroup):
    """The click group `cfngen`, which imports a command's module when the command is used.

    It is the only place where the process exits.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which a new user needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, which is the `command` of its module; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"cfngen.cli.commands.{cmd_name}").command
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        """Make the context as click does; options such as --help already print here, so the pipe may be broken."""
        with _exit_on_broken_pipe():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command as click does."""
        with _exit_on_broken_pipe():
            return super().invoke(ctx)

    def main(self, *arguments: Any, **options: Any) -> NoReturn:
        """Run a command line, with the arguments of click's own `main`, and exit with its exit code."""
        no_color = environ.get("NO_COLOR") or environ.get("TERM") == "dumb"
        settings = Settings(color=False if no_color else None)
        # Outside its standalone mode, click leaves errors to the caller, and does not exit.
        options.update(standalone_mode=False, obj=settings)
        with ascii_fallback(environ):
            exit_code = run_and_report(lambda: super(Application, self).main(*arguments, **options), settings)
        sys.exit(exit_code)


@click.command(
    cls=Application,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"{GETTING_STARTED_HELP}\n{EXIT_CODE_HELP}",
    invoke_without_command=True,
)
@click.version_option(__version__, "--version", "-V", prog_name="cfngen", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the Python traceback of a failure.")
@click.option(
    "--color/--no-color",
    default=None,
    help="Use colours. Default: only on a terminal, unless TERM is dumb or NO_COLOR is set.",
)
@click.pass_context
def application(context: click.Context, debug: bool, color: bool | None) -> None:
    """Self-managed Kubernetes on EC2 as CloudFormation templates that you can read.

    cfngen reads a short cluster.yaml and generates linted templates: one for each nested stack, and one that contains
    everything, to upload in the CloudFormation console. `cfngen deploy` creates or updates the stacks in your account
    and shows the progress. Without a cluster.yaml you get kube-up's default cluster.

    `cfngen COMMAND --help` explains a command and shows examples.
    """
    settings = context.ensure_object(Settings)
    settings.debug = debug
    if color is not None:
        settings.color = color
    context.color = settings.color
    if context.invoked_subcommand is None:
        echo(context.get_help(), err=True)
        context.exit(USAGE_ERROR)
