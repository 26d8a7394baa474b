"""`cfngen sandbox`: the emulated account on this machine that `--sandbox` uses."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import click

from cfngen.cli.exit_codes import FAILED, SUCCESS
from cfngen.cli.message_output import show_message
from cfngen.cli.options import Option
from cfngen.cli.target import output_option
from cfngen.cli.terminal import examples, warning
from cfngen.cli.usage import Commands
from cfngen.errors import CfngenError
from cfngen.text import pluralize

if TYPE_CHECKING:
    from cfngen.sandbox.process import RunningSandbox


_region_option = Option(
    "--region", metavar="REGION", default="us-west-2", show_default=True, help="Region of the cluster."
)


class UnknownGroupError(CfngenError):
    """There is no Auto Scaling group of that name."""

    code = "unknown-sandbox-group"


class NoSandboxError(CfngenError):
    """The command needs a running sandbox, and none is running."""

    code = "no-sandbox"

    def __init__(self) -> None:
        super().__init__("no sandbox is running", hint="`cfngen sandbox start` starts one.")


@click.group(
    "sandbox",
    cls=Commands,
    short_help="The account on this machine that --sandbox works in.",
    epilog=examples(
        "cfngen deploy --sandbox --yes",
        "eval $(cfngen sandbox env)        point the AWS CLI at it",
        "cfngen sandbox status             what is in it",
        "cfngen sandbox fail general       let the nodes of a group fail, to see what that looks like",
        "cfngen sandbox stop",
    ),
)
def command() -> None:
    """An AWS account on this machine, to try cfngen without one: stacks are created, instances boot, nothing costs.

    `--sandbox` starts it automatically. It listens on the loopback address only, loses everything when it is stopped,
    and stops after an hour without work. After that, commands with `--sandbox` fail until you start a new, empty one
    with `cfngen sandbox start`.

    It needs more packages: in a checkout `make sandbox`, or `pip install '.[sandbox]'`; `pipx install '.[sandbox]'` and
    `uv tool install '.[sandbox]'` bring them, too.
    """


@command.command("start", epilog=examples("cfngen sandbox start", "cfngen sandbox start --speed 60"))
@click.option(
    "--speed",
    metavar="NUMBER",
    type=click.FloatRange(1, 1000),
    help="Seconds that pass in it each second. Default: 12.",
)
def start(speed: float | None) -> None:
    """Start the account, unless it runs. What was in one that has ended is gone."""
    from cfngen.sandbox import process
    from cfngen.sandbox.control_api import DEFAULT_SPEED

    running = process.running(os.environ)
    if running is None:
        running = process.start(os.environ, DEFAULT_SPEED if speed is None else speed, anew=True)
        click.echo(f"The sandbox listens on {running.endpoint}, as process {running.pid}.")
    else:
        click.echo(f"The sandbox runs already: {running.endpoint}, process {running.pid}.")


@command.command(
    "status",
    short_help="Show whether the account runs, and what is in it.",
    epilog=examples("cfngen sandbox status", "cfngen sandbox status --output json | jq .stacks"),
)
@output_option
@click.pass_context
def status(context: click.Context, output: str) -> None:
    """Show whether the account runs, since when, and what is in it: stacks, clusters, and injected failures.

    This command does not keep the account from stopping. Exits with 0 if it runs, and with 1 if it does not.
    """
    from cfngen.sandbox import process

    sandbox = process.status(os.environ)
    show_message(sandbox, json=output == "json")
    context.exit(SUCCESS if sandbox.running else FAILED)


@command.command("stop", epilog=examples("cfngen sandbox stop"))
def stop() -> None:
    """Stop the account; everything in it is gone."""
    from cfngen.sandbox import process

    click.echo("The sandbox has been stopped." if process.stop(os.environ) else "No sandbox is running.")


@command.command(
    "fail",
    short_help="Let instances of a group fail to boot from now on.",
    epilog=examples(
        "cfngen sandbox fail nodes",
        "cfngen sandbox fail master --step volume --message 'not attached after 900 s'",
        "cfngen sandbox fail master-b --message ''        hang, and say nothing",
    ),
)
@click.argument("group")
@_region_option
@click.option(
    "--step", metavar="NAME", default="downloads", show_default=True, help="Step of the boot program that fails."
)
@click.option(
    "--message",
    metavar="TEXT",
    default="no route to dl.k8s.io",
    show_default=True,
    help="Why they fail; if empty, they hang.",
)
@click.option(
    "--times", type=click.IntRange(min=0), default=0, metavar="NUMBER", help="How many instances fail; 0 is every one."
)
def fail(group: str, region: str, step: str, message: str, times: int) -> None:
    """Make instances that an Auto Scaling group launches from now on fail to boot, to see what that looks like.

    GROUP is the name of a node group, `master` (every master), one of several masters such as `master-b`, or the
    logical id of an Auto Scaling group.
    """
    # Importing the model of the cluster file takes a while.
    from cfngen.cluster.logical_ids import is_auto_scaling_group

    running = _require_running()
    names = [running_group["name"] for running_group in running.status()["groups"] if running_group["region"] == region]
    if names and group not in (*names, "master") and not is_auto_scaling_group(group):
        raise UnknownGroupError(
            f"no stack in {region} has a group {group!r}",
            hint=f"there are: {', '.join(sorted({*names, 'master'}))}. Of a group that is to come, name the logical "
            "id, such as NodeGroupGpuAutoScalingGroup.",
        )
    if not running.fail(region, group, step, message, times=times):
        warning(f"no stack in {region} has a group {group} now; it is noted for one that comes.")
    subject = f"The next {pluralize(times, 'instance')}" if times else "From now on the instances"
    verb = "fails" if times == 1 else "fail"
    click.echo(f"{subject} of {group} {verb} at the step {step!r}; `cfngen sandbox heal` ends it.")


@command.command("heal", epilog=examples("cfngen sandbox heal"))
@_region_option
def heal(region: str) -> None:
    """Let instances that are launched from now on boot again."""
    _require_running().heal(region)
    click.echo("From now on instances boot.")


@command.command(
    "env",
    short_help="Print the environment for the AWS CLI and other programs.",
    epilog=examples("eval $(cfngen sandbox env)", "aws cloudformation list-stacks"),
)
@_region_option
def env(region: str) -> None:
    """Print the environment that points the AWS CLI and other programs at the account; start it, unless it runs."""
    from cfngen.sandbox import process

    running = process.start(os.environ)
    for name, value in {
        "AWS_ENDPOINT_URL": running.endpoint,
        "AWS_ACCESS_KEY_ID": "sandbox",
        "AWS_SECRET_ACCESS_KEY": "sandbox",
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        click.echo(f"export {name}={shlex.quote(value)}")


def _require_running() -> RunningSandbox:
    """Return the running sandbox.

    Raises:
        NoSandboxError: there is none.
    """
    from cfngen.sandbox import process

    running = process.running(os.environ)
    if running is None:
        raise NoSandboxError
    return running
