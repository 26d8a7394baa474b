"""The target of a command that calls AWS: a cluster's root stack in an account and region, with credentials.

With `--sandbox`, an emulated account on this machine takes the place of AWS.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from cfngen.cli.display.messages import show_message
from cfngen.cli.display.suggested_commands import complete_commands
from cfngen.cli.display.terminal import echo, show_warning, visible
from cfngen.cli.input.options import Option, OptionGroup
from cfngen.cli.input.recorded_cluster import LostFileError, RecordedCluster, find_recorded_cluster
from cfngen.cli.input.source import DEFAULT_FILE, Source, source_options
from cfngen.cli.render.layout import bullets, line_width
from cfngen.cli.settings import Settings
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, Hint, SuggestedCommand, SuggestedOption
from cfngen.text import join_and

if TYPE_CHECKING:
    from boto3 import Session

    from cfngen.cluster.model import Cluster
    from cfngen.deploy.aws.account import Account
    from cfngen.deploy.aws.types import Clock
    from cfngen.deploy.messages.message import Consent, Message, Question
    from cfngen.sandbox.process.running import RunningSandbox

_HintOrMessage = TypeVar("_HintOrMessage")
MAX_STACK_NAME_LENGTH = 90
"""Maximum length of the root stack's name: the IAM permission of instances to signal contains the nested stack's name,
which begins with the root's name, and CloudFormation truncates the names of nested stacks at 128 characters."""


class NobodyToAskError(CfngenError):
    """Consent is needed that the command line does not give, and standard input is not a terminal."""

    code = "consent-required"

    def __init__(self, question: Question, *, yes: bool, flag: str = "--yes") -> None:
        context = click.get_current_context(silent=True)
        has_allow_danger = context is not None and any(param.name == "allow_danger" for param in context.command.params)
        flags = f"{flag} --allow-danger" if question.dangerous and has_allow_danger else flag
        if yes:
            reason = "--yes does not confirm what may lose data, addresses or the cluster"
            details = "".join(f"; {consequence}" for consequence in question.consequences)
        else:
            reason, details = "confirmation is needed", ""
        super().__init__(
            f"{reason}, and standard input is not a terminal: {question.text}{details}",
            hint=f"run the command on a terminal, or confirm in advance with {flags}.",
        )


class StackNameError(CfngenError):
    """The stack's name is not allowed by CloudFormation, or too long for the cluster's instances."""

    code = "invalid-stack-name"


@dataclass(frozen=True)
class Target:
    """A cluster's root stack, and how to reach it.

    Attributes:
        explicit_stack_name: value of --stack-name; empty means the cluster's name.
        profile: profile of the AWS configuration; empty means boto3's default.
        account_number: number of the expected AWS account; empty means any account.
        sandbox: whether to use the emulated account on this machine.
        is_deployed: whether the command is about a cluster that exists: without a cluster file, its name, region and
            version are those of the stack.
    """

    source: Source
    explicit_stack_name: str = ""
    profile: str = ""
    account_number: str = ""
    sandbox: bool = False
    output: Literal["text", "json"] = "text"
    is_deployed: bool = False

    @cached_property
    def cluster(self) -> Cluster:
        """The complete cluster of the cluster file, or of the stack; loading shows the file's warnings."""
        return (self._deployed_source() if self.describes_stack else self.source).load().cluster

    @cached_property
    def describes_stack(self) -> bool:
        """Whether the cluster is that of the stack: nothing else says anything about it, or a file of another one."""
        return self.is_deployed and (self.source.is_default or self._file_is_of_another_cluster)

    @property
    def _file_is_of_another_cluster(self) -> bool:
        """Whether what nobody has named, such as ./cluster.yaml, is about another cluster than the stack that is."""
        is_named = not self.explicit_stack_name or self.source.is_explicit or self.source.overrides
        return not is_named and self._recorded.name not in ("", self.source.read().cluster.name)

    @property
    def lost_file_hint(self) -> Hint:
        """What to do before a deployment, if the stack has a cluster that nothing here describes; else empty."""
        if not self.source.is_default or self._recorded.name in ("", self.source.load().cluster.name):
            return ""
        gives_back = SuggestedCommand("config", (("--deployed",),))
        compares = SuggestedCommand("plan", (("-f", str(DEFAULT_FILE)),))
        return CommandText("if its cluster file is lost, ", gives_back, " prints it, and ", compares, " compares.")

    @cached_property
    def file_values(self) -> Mapping[str, str]:
        """What the cluster file says about the root's parameters; nothing without a file or without templates."""
        if self.describes_stack:
            return {}
        from cfngen.templates import generate
        from cfngen.templates.document import root_of

        try:
            root = root_of(generate(self.cluster))
        except CfngenError:
            return {}
        return root.values if root else {}

    def _deployed_source(self) -> Source:
        """Return the source with what environment and stack say about the cluster that nobody has described."""
        recorded = self._recorded
        if not recorded.name:
            show_warning(
                f"there is no {DEFAULT_FILE} here, and in {join_and(list(recorded.regions))} no stack "
                f"{recorded.stack_name} of a cluster; -f names a cluster file, --stack-name a stack, and AWS_REGION "
                "its region"
            )
        elif not self.source.is_default:
            show_warning(f"{self.source.description} is of another cluster than {recorded.stack_name}, and not used")
        overrides = {"region": recorded.region, "name": recorded.name, "kubernetesVersion": recorded.version}
        texts = tuple(f"{key}={value}" for key, value in overrides.items() if value)
        return replace(self.source, path=None, environ={}, overrides=texts)

    @cached_property
    def _recorded(self) -> RecordedCluster:
        """What the stack says about a cluster that nothing else describes."""
        default = self.source.read().cluster
        regions = (self.environment_region(default.region), default.region)
        # The default cluster is in the default region; who names a stack without a file means that of the environment.
        is_named = self.explicit_stack_name and self.source.path is None
        regions = regions if is_named else regions[::-1]
        return find_recorded_cluster(self.connect_in, self.explicit_stack_name or default.name, regions)

    def environment_region(self, default: str) -> str:
        """Return the region of environment or profile, or else a default; it raises what `connect` raises."""
        from cfngen.deploy.aws.errors import translate_aws_errors

        with translate_aws_errors():
            # As the AWS CLI reads them: the variable comes before the profile.
            return os.environ.get("AWS_REGION") or self._session(default).region_name or default

    @property
    def region(self) -> str:
        """The cluster's region."""
        return self.cluster.region

    @property
    def stack_name(self) -> str:
        """Name of the root stack.

        Raises:
            StackNameError: it is not allowed by CloudFormation, or too long.
        """
        name = self.explicit_stack_name or self.cluster.name.replace(".", "-")
        # CloudFormation allows ASCII letters, digits and hyphens, and a letter at the start.
        has_allowed_characters = name[:1].isalpha() and name.isascii() and name.replace("-", "").isalnum()
        if not has_allowed_characters or len(name) > MAX_STACK_NAME_LENGTH:
            raise StackNameError(
                f"{name!r} is not a valid stack name: it must start with a letter, contain only letters, digits and "
                f"hyphens, and have at most {MAX_STACK_NAME_LENGTH} characters",
                hint="choose a valid name with --stack-name.",
            )
        return name

    @property
    def options(self) -> tuple[SuggestedOption, ...]:
        """The command line options that choose this cluster, stack and account, each with its value if it has one."""
        options: list[SuggestedOption] = [("--sandbox",)] if self.sandbox else []
        options += self.source.options
        if self.explicit_stack_name:
            options.append(("--stack-name", self.explicit_stack_name))
        if self.profile:
            options.append(("--profile", self.profile))
        if self.account_number:
            options.append(("--account", self.account_number))
        return tuple(options)

    def complete_commands(self, value: _HintOrMessage) -> _HintOrMessage:
        """Return a hint or message with the options for this target added to the commands in it."""
        return complete_commands(value, self.options)

    def render_hint(self, hint: Hint) -> str:
        """Return a hint as text, with the options for this target added to the commands in it."""
        return str(self.complete_commands(hint))

    @property
    def json(self) -> bool:
        """Whether results are printed as JSON."""
        return self.output == "json"

    @cached_property
    def clock(self) -> Clock:
        """The clock of this machine, or of the sandbox."""
        if self.sandbox:
            return self._running_sandbox.clock()
        from cfngen.deploy.aws.types import SystemClock

        return SystemClock()

    def connect(self, *, with_existing_parts: bool = False) -> Account:
        """Return the account and region, after checking the credentials.

        Args:
            with_existing_parts: whether a sandbox makes what the cluster file names as existing.

        Raises:
            AwsError: credentials are missing or refused, the region does not exist, or AWS does not answer.
            WrongAccountError: the credentials belong to another account than --account.
            CfngenError: the sandbox cannot be reached or started.
        """
        if with_existing_parts and self.explicit_stack_name and (hint := self.lost_file_hint):
            raise LostFileError(
                f"the stack {self.explicit_stack_name} in {self._recorded.region} has the cluster "
                f"{self._recorded.name}, and there is no {DEFAULT_FILE} here that describes it",
                hint=hint,
            )
        if self.sandbox and with_existing_parts:
            self._make_existing_parts()
        return self.connect_in(self.region)

    def connect_in(self, region: str) -> Account:
        """Return the account in a region, whatever that of the cluster; it raises what `connect` raises."""
        from cfngen.deploy.aws.account import connect
        from cfngen.deploy.aws.errors import CredentialsError, translate_aws_errors

        try:
            with translate_aws_errors():
                return connect(self._session(region), region, clock=self.clock, expected_account=self.account_number)
        except CredentialsError as error:
            error.hint = CommandText(error.hint, *self._sandbox_hint())
            raise

    def _sandbox_hint(self) -> tuple[str | SuggestedCommand, ...]:
        """Return what to add to the hint of an error about credentials if a cluster is in a running sandbox."""
        from cfngen.sandbox.process.running import find_running_sandbox, state_file
        from cfngen.sandbox.process.status import read_last_sandbox

        record = read_last_sandbox(state_file(os.environ))
        context = click.get_current_context(silent=True)
        if self.sandbox or context is None or not record or not record.stacks or not find_running_sandbox(os.environ):
            return ()
        command = SuggestedCommand(context.command_path.partition(" ")[2], (("--sandbox",),))
        return (f" The sandbox on this machine has {join_and(record.stacks)}: ", command, ".")

    def _session(self, region: str) -> Session:
        if self.sandbox:
            return self._running_sandbox.session(region)
        import boto3

        return boto3.Session(profile_name=self.profile or None)

    def _make_existing_parts(self) -> None:
        """Make in the sandbox what the cluster file names as existing and is missing there, and say so."""
        from cfngen.cli.input.existing_parts import existing_parts
        from cfngen.deploy.messages.message import Step

        parts = existing_parts(self.cluster, self.stack_name)
        if made := self._running_sandbox.make_existing_parts(self.region, parts):
            self.show(Step(f"the sandbox begins empty: made {join_and(made)}, which the cluster file names"))

    def kubernetes_override(self, endpoint: str) -> str:
        """Return the URL at which the sandbox serves the Kubernetes API of this endpoint; empty without a sandbox."""
        return self._running_sandbox.kubernetes.get(endpoint, "") if self.sandbox else ""

    def consent(self, *, yes: bool, allow_danger: bool = False, flag: str = "--yes") -> Consent:
        """Return a function that asks the user a question, and returns whether the user agrees.

        Args:
            yes: whether the function agrees without asking, except to dangerous questions.
            allow_danger: whether, with `yes`, the function agrees to dangerous questions without asking, too.
            flag: the option that says yes in advance.
        """

        def ask(question: Question) -> bool:
            if yes and (allow_danger or not question.dangerous):
                return True
            can_ask = bool(sys.stdin and sys.stdin.isatty())
            if can_ask or not yes:  # the error names them if --yes has refused
                for line in bullets(question.consequences, line_width()):
                    echo(line, err=True)
            if not can_ask:
                raise NobodyToAskError(question, yes=yes, flag=flag)
            text = click.style(question.text, bold=True, fg="red" if question.dangerous else None)
            # The consent to the most serious changes is to type the cluster's name.
            if not question.name:
                return click.confirm(visible(text), default=False, err=True)
            answer: str = click.prompt(
                f"{text}\nType {question.name} to continue", default="", show_default=False, err=True
            )
            return answer.strip() == question.name

        return ask

    def show(self, message: Message, *, full: bool = False) -> None:
        """Show a message or result in the form of --output, with commands for this target; see `show_message`."""
        show_message(self.complete_commands(message), json=self.json, full=full, render_line=self.render_hint)

    @cached_property
    def _running_sandbox(self) -> RunningSandbox:
        """The running sandbox, which is started if necessary; a warning says if an earlier one has lost its stacks."""
        from cfngen.sandbox.process import running

        lost_sandbox = running.lost_sandbox(os.environ)
        running_sandbox = running.start(os.environ)
        if lost_sandbox:
            lost_stacks = ", ".join(lost_sandbox.stacks)
            show_warning(
                f"{lost_sandbox.how_it_ended}, and its stacks are lost: {lost_stacks}. A new, empty one has been "
                "started."
            )
        return running_sandbox


def remember_output(context: click.Context, parameter: click.Parameter, output: str) -> str:
    """Remember the output format, so that errors are shown in it, too; a click callback."""
    settings = context.find_object(Settings)
    if settings is not None:
        settings.json = output == "json"
    return output


def check_account(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the number of an account unchanged, if it can be one; a click callback."""
    if value and not re.fullmatch(r"[0-9]{12}", value):
        raise click.BadParameter(f"{value!r} is not an account number, which has 12 digits.")
    return value


profile_option = Option("--profile", metavar="NAME", default="", help="Profile in your AWS configuration.")
account_option = Option(
    "--account",
    "account_number",
    metavar="NUMBER",
    default="",
    callback=check_account,
    help="Fail unless the credentials belong to this AWS account.",
)
sandbox_option = Option(
    "--sandbox", is_flag=True, help="Use an emulated AWS account on this machine instead of a real one."
)
output_option = Option(
    "--output",
    "-o",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    is_eager=True,  # so that errors in other options are shown in this format, too
    callback=remember_output,
    help="Output format; docs/reference/json.md describes the JSON.",
)


stack_name_option = Option(
    "--stack-name",
    "explicit_stack_name",
    metavar="NAME",
    default="",
    help="Name of the root stack. Default: the cluster's name.",
)


def make_target(**values: Any) -> Target:
    """Return the target with these attributes; from now on, hints of errors suggest commands for this target."""
    target = Target(**values)
    settings = click.get_current_context().find_object(Settings)
    if settings is not None:
        settings.render_hint = target.render_hint
    return target


_TARGET_OPTIONS = (source_options, stack_name_option, profile_option, account_option, sandbox_option, output_option)
target_options = OptionGroup("target", make_target, *_TARGET_OPTIONS)
"""The options that choose cluster, stack and account; a command receives them as the argument `target`."""

deployed_target_options = OptionGroup("target", partial(make_target, is_deployed=True), *_TARGET_OPTIONS)
"""The same for commands about a cluster that exists, which do without a cluster file: see `Target.is_deployed`."""
