"""What a command that talks to AWS works on: a cluster's stack, in an account, through credentials.

`--sandbox` puts an account on this machine in the place of AWS; everything else stays the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from cfngen.cli.exit_codes import Settings
from cfngen.cli.json_output import emit
from cfngen.cli.render.wrapping import columns, wrapped
from cfngen.cli.source import Source, source_options
from cfngen.cli.suggested_commands import again
from cfngen.cli.terminal import warning
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from cfngen.cluster.model import Cluster
    from cfngen.deploy.account import Account
    from cfngen.deploy.clock import Clock
    from cfngen.deploy.messages import Consent, Message, Question
    from cfngen.sandbox.process import Running

_Thing = TypeVar("_Thing")
STACK_NAME_LIMIT = 90
"""Most characters of a root's name: the rights of instances to signal name their nested stack by the root's name, and
CloudFormation cuts the names of nested stacks at 128 characters."""


class NobodyToAskError(CfngenError):
    """A question came up, and nobody can answer it."""

    def __init__(self, question: Question) -> None:
        context = click.get_current_context(silent=True)
        has_allow_danger = context is not None and any(param.name == "allow_danger" for param in context.command.params)
        flag = "--yes --allow-danger" if question.dangerous and has_allow_danger else "--yes"
        super().__init__(
            f"consent is needed, and standard input is not a terminal: {question.text}",
            hint=f"run it on a terminal, or give consent beforehand with {flag}.",
        )


class StackNameError(CfngenError):
    """CloudFormation, or the cluster's instances, could not use the stack by this name."""


@dataclass(frozen=True)
class Target:
    """A cluster's stack, and the way to it.

    Attributes:
        source: where the cluster is described.
        explicit_stack_name: the stack's name as asked for; empty means that of the cluster.
        profile: profile of the AWS configuration; empty means boto3's own choice.
        account_number: the account the caller means to be in; empty means any.
        sandbox: whether to work in the account on this machine.
        output: how to show results.
    """

    source: Source
    explicit_stack_name: str = ""
    profile: str = ""
    account_number: str = ""
    sandbox: bool = False
    output: Literal["text", "json"] = "text"

    @cached_property
    def cluster(self) -> Cluster:
        """The complete cluster of the cluster file; loading shows its warnings."""
        return self.source.load().cluster

    @property
    def region(self) -> str:
        """The cluster's region."""
        return self.cluster.region

    @property
    def stack_name(self) -> str:
        """Name of the root stack.

        Raises:
            StackNameError: CloudFormation or the instances could not use it.
        """
        name = self.explicit_stack_name or self.cluster.name.replace(".", "-")
        usable = name[:1].isalpha() and name.isascii() and name.replace("-", "").isalnum()
        if not usable or len(name) > STACK_NAME_LIMIT:
            raise StackNameError(
                f"{name!r} is no name for the stack: it starts with a letter, holds letters, digits and hyphens, and "
                f"has at most {STACK_NAME_LIMIT} characters",
                hint="name the stack with --stack-name.",
            )
        return name

    @property
    def options(self) -> tuple[tuple[str, ...], ...]:
        """The options that choose the same cluster, stack and account again."""
        named = {"--stack-name": self.explicit_stack_name, "--profile": self.profile, "--account": self.account_number}
        sandbox_option = (("--sandbox",),) if self.sandbox else ()
        return (*sandbox_option, *self.source.options, *((name, value) for name, value in named.items() if value))

    def complete_commands(self, thing: _Thing) -> _Thing:
        """Return a text or a message whose suggested commands choose the same cluster, stack and account."""
        return again(thing, self.options)

    @property
    def json(self) -> bool:
        """Whether standard output is for a program."""
        return self.output == "json"

    @cached_property
    def clock(self) -> Clock:
        """The time: this machine's, or that of the sandbox."""
        if self.sandbox:
            return self._running.clock()
        from cfngen.deploy.clock import SystemClock

        return SystemClock()

    def connect(self) -> Account:
        """Ask AWS who is calling.

        Raises:
            AwsError: no or refused credentials, no such region, no answer.
            WrongAccountError: not the account that was named.
            CfngenError: the sandbox cannot be reached or started.
        """
        from cfngen.deploy.account import connect
        from cfngen.deploy.aws_errors import translate_aws_errors

        with translate_aws_errors():
            return connect(self._session(), self.region, clock=self.clock, expected_account=self.account_number)

    def kubernetes_override(self, endpoint: str) -> str:
        """Return where the API server that is known by this URL really listens, if elsewhere; else an empty text."""
        return self._running.kubernetes.get(endpoint, "") if self.sandbox else ""

    def consent(self, *, yes: bool, allow_danger: bool = False) -> Consent:
        """Return what asks the user.

        Args:
            yes: the user has said yes to everything that is not dangerous.
            allow_danger: and to what is.
        """

        def ask(question: Question) -> bool:
            if yes and (allow_danger or not question.dangerous):
                return True
            if not sys.stdin or not sys.stdin.isatty():
                raise NobodyToAskError(question)
            for consequence in question.consequences:
                click.echo("\n".join(wrapped(consequence, columns(), "    ", first="  - ")), err=True)
            text = click.style(question.text, bold=True, fg="red" if question.dangerous else None)
            if not question.name:
                return click.confirm(text, default=False, err=True)
            answer: str = click.prompt(
                f"{text}\nType {question.name} to go on", default="", show_default=False, err=True
            )
            return answer.strip() == question.name

        return ask

    def report(self, message: Message) -> None:
        """Show a message of the work in progress as JSON, or as a line where it stands for something said in words."""
        message = self.complete_commands(message)
        if self.json:
            emit(message)
            return
        from cfngen.deploy.messages import Notice, Step

        if isinstance(message, Step):
            click.echo(click.style("• ", fg="cyan") + message.text, err=True)
        elif isinstance(message, Notice):
            warning(message.text)
            if message.hint:
                click.echo(click.style("hint: ", bold=True) + message.hint, err=True)

    @cached_property
    def _running(self) -> Running:
        from cfngen.sandbox import process

        last = process.lost(os.environ)
        running = process.start(os.environ)
        if last:
            warning(f"{last.story}, and what was in it is gone: {', '.join(last.stacks)}. This is a new, empty one.")
        return running

    def _session(self) -> Any:
        import boto3

        if self.sandbox:
            return self._running.session(self.region)
        return boto3.Session(profile_name=self.profile or None)


def _remember_output(context: click.Context, parameter: click.Parameter, output: str) -> str:
    """Let failures know, too, who reads."""
    settings = context.find_object(Settings)
    if settings is not None:
        settings.json = output == "json"
    return output


output_option = click.option(
    "--output",
    "-o",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    is_eager=True,  # so that a mistake in any other option is told in the form that is asked for
    callback=_remember_output,
    help="Form of the results; docs/json.md describes the JSON.",
)


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that choose its cluster, stack and account; it gets them as the argument `target`."""

    @source_options
    @click.option(
        "--stack-name", metavar="NAME", default="", help="Name of the root stack. Default: the cluster's name."
    )
    @click.option("--profile", metavar="NAME", default="", help="Profile of your AWS configuration.")
    @click.option(
        "--account", "account_number", metavar="NUMBER", default="", help="Refuse to work in any other AWS account."
    )
    @click.option("--sandbox", is_flag=True, help="Work in an account on this machine: no AWS account is needed.")
    @output_option
    @wraps(command)
    def with_target(
        *args: Any,
        source: Source,
        stack_name: str,
        profile: str,
        account_number: str,
        sandbox: bool,
        output: Literal["text", "json"],
        **options: Any,
    ) -> Any:
        target = Target(source, stack_name, profile, account_number, sandbox, output)
        settings = click.get_current_context().find_object(Settings)
        if settings is not None:
            settings.complete_commands = target.complete_commands
        return command(*args, target=target, **options)

    return with_target


def key_values(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Mapping[str, str]:
    """Callback of options that take KEY=VALUE, any number of times."""
    pairs: dict[str, str] = {}
    for text in values:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE.")
        if key in pairs:
            raise click.BadParameter(f"{key} is given twice.")
        pairs[key] = value
    return pairs
