"""`cfngen sandbox`: the emulated account on this machine that `--sandbox` uses."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import click

from cfngen.cli.display.messages import show_message
from cfngen.cli.display.terminal import echo, examples_epilog, show_warning
from cfngen.cli.exit_codes import FAILED, SUCCESS
from cfngen.cli.input.options import Option
from cfngen.cli.input.target import output_option
from cfngen.cli.usage import SuggestingGroup
from cfngen.errors import CfngenError
from cfngen.text import pluralize

if TYPE_CHECKING:
    from cfngen.sandbox.process.running import RunningSandbox


_region_option = Option(
    "--region", metavar="REGION", default="us-west-2", show_default=True, help="Region of the cluster."
)


class UnknownGroupError(CfngenError):
    """There is no Auto Scaling group of that name."""

    code = "unknown-sandbox-group"


class NoSpotInstancesError(CfngenError):
    """A group has no Spot Instances that EC2 could interrupt."""

    code = "no-spot-instances"


class NoSandboxError(CfngenError):
    """The command needs a running sandbox, and none is running."""

    code = "no-sandbox"

    def __init__(self) -> None:
        super().__init__("no sandbox is running", hint="`cfngen sandbox start` starts one.")


@click.group(
    "sandbox",
    cls=SuggestingGroup,
    short_help="The emulated AWS account that --sandbox uses.",
    epilog=examples_epilog(
        "cfngen deploy --sandbox --yes",
        "eval $(cfngen sandbox env)        point the AWS CLI at it",
        "cfngen sandbox status             what is in it",
        "cfngen sandbox fail general       make new nodes fail, to see what that looks like",
        "cfngen sandbox stop",
    ),
)
def command() -> None:
    """An emulated AWS account on this machine, to try cfngen at no cost: stacks are created and instances boot.

    `--sandbox` starts it automatically. It listens on the loopback address only, loses everything when it is stopped,
    and stops after an hour without use. After that, commands with `--sandbox` fail until you start a new, empty one
    with `cfngen sandbox start`.

    It needs additional packages: in a checkout, run `make sandbox` or `pip install '.[sandbox]'`. `pipx install
    '.[sandbox]'` and `uv tool install '.[sandbox]'` work, too.
    """


@command.command("start", epilog=examples_epilog("cfngen sandbox start", "cfngen sandbox start --speed 60"))
@click.option(
    "--speed",
    metavar="NUMBER",
    type=click.FloatRange(1, 1000),
    help="How many times faster than real time its clock runs. Default: 12.",
)
@click.option(
    "--answers",
    type=click.Choice(["aws", "generous"]),
    default="aws",
    show_default=True,
    help="How much it tells of a change set: what AWS tells, or everything that it knows.",
)
def start(speed: float | None, answers: str) -> None:
    """Start the sandbox, unless it is running. The stacks of an earlier sandbox are lost."""
    from cfngen.sandbox.process import running
    from cfngen.sandbox.process.control_api import DEFAULT_SPEED

    sandbox = running.find_running_sandbox(os.environ)
    if sandbox is None:
        sandbox = running.start(
            os.environ, DEFAULT_SPEED if speed is None else speed, answers=answers, accept_lost_stacks=True
        )
        echo(f"The sandbox listens on {sandbox.endpoint}, as process {sandbox.pid}.")
    else:
        echo(f"The sandbox is already running: {sandbox.endpoint}, process {sandbox.pid}.")


@command.command(
    "status",
    short_help="Show whether the sandbox is running, and what is in it.",
    epilog=examples_epilog("cfngen sandbox status", "cfngen sandbox status --output json | jq .stacks"),
)
@output_option
@click.pass_context
def status(context: click.Context, output: str) -> None:
    """Show whether the sandbox is running, since when, and what is in it: stacks, clusters, and injected failures.

    This command does not count as use of the sandbox. Exits with 0 if it is running, and with 1 if not.
    """
    from cfngen.sandbox.process import running

    sandbox_status = running.status(os.environ)
    show_message(sandbox_status, json=output == "json")
    context.exit(SUCCESS if sandbox_status.running else FAILED)


@command.command("stop", epilog=examples_epilog("cfngen sandbox stop"))
def stop() -> None:
    """Stop the sandbox; everything in it is lost."""
    from cfngen.sandbox.process import running

    was_running = running.stop(os.environ)
    echo("The sandbox has been stopped." if was_running else "No sandbox is running.")


@command.command(
    "fail",
    short_help="Make new instances of a group fail to boot.",
    epilog=examples_epilog(
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
    help="Message with which they fail; if empty, they hang.",
)
@click.option(
    "--times", type=click.IntRange(min=0), default=0, metavar="NUMBER", help="How many instances fail; 0 means all."
)
def fail(group: str, region: str, step: str, message: str, times: int) -> None:
    """Make instances that an Auto Scaling group launches from now on fail to boot, to see what that looks like.

    GROUP is the name of a node group, `master` (every master), one of several masters such as `master-b`, or the
    logical id of an Auto Scaling group.
    """
    # Imported here, since importing the model of the cluster file takes a while.
    from cfngen.cluster.naming.logical_ids import is_auto_scaling_group

    sandbox = _require_running()
    known_groups = {
        stack_group["name"] for stack_group in sandbox.status()["groups"] if stack_group["region"] == region
    }
    # Without any stack in the region, a misspelt name looks like the name of a future group.
    if known_groups and group not in (*known_groups, "master") and not is_auto_scaling_group(group):
        raise UnknownGroupError(
            f"no stack in {region} has a group {group!r}",
            hint=f"the groups are {', '.join(sorted(known_groups | {'master'}))}. For a group that does not exist yet, "
            "use its logical id, such as NodeGroupGpuAutoScalingGroup.",
        )
    group_exists = sandbox.inject_failure(region, group, step, message, times=times)
    if not group_exists:
        show_warning(f"no stack in {region} has a group {group} yet; the failure applies once a stack has one.")
    subject = f"The next {pluralize(times, 'instance')}" if times else "From now on the instances"
    verb = "fails" if times == 1 else "fail"
    echo(f"{subject} of {group} {verb} at the step {step!r}; `cfngen sandbox heal` stops this.")


@command.command(
    "interrupt",
    short_help="Interrupt Spot Instances of a group, as EC2 does.",
    epilog=examples_epilog(
        "cfngen sandbox interrupt spot                    all of the group at once",
        "cfngen sandbox interrupt spot --times 2",
        "cfngen sandbox interrupt spot --notice rebalance",
    ),
)
@click.argument("group")
@_region_option
@click.option(
    "--notice",
    type=click.Choice(("interruption", "rebalance", "both")),
    default="interruption",
    show_default=True,
    help="What EC2 says: that it interrupts the instances in two minutes, that it recommends to rebalance them, or "
    "both at once.",
)
@click.option(
    "--times", type=click.IntRange(min=0), default=0, metavar="NUMBER", help="How many instances get it; 0 means all."
)
def interrupt(group: str, region: str, notice: str, times: int) -> None:
    """Send EC2's notices to running Spot Instances of a group; interrupted ones are terminated two minutes later.

    GROUP is the name of a node group, or the logical id of its Auto Scaling group.
    """
    instance_ids = _require_running().send_notice(region, group, notice, times)
    if not instance_ids:
        raise NoSpotInstancesError(
            f"{group!r} in {region} has no running Spot Instances",
            hint="`cfngen sandbox status` shows the groups; one with spotPrice has Spot Instances.",
        )
    subject = f"{pluralize(len(instance_ids), 'Spot Instance')} of {group}"
    if notice == "rebalance":
        echo(f"EC2 recommends to rebalance {subject}: {', '.join(instance_ids)}")
    else:
        echo(f"EC2 interrupts {subject} in two minutes: {', '.join(instance_ids)}")


@command.command("heal", epilog=examples_epilog("cfngen sandbox heal"))
@_region_option
def heal(region: str) -> None:
    """Remove injected failures: new instances boot normally, and those that failed try again within a minute."""
    _require_running().remove_faults(region)
    echo("From now on instances boot normally; those that failed try again within a minute.")


@command.command(
    "env",
    short_help="Print the environment for the AWS CLI and other programs.",
    epilog=examples_epilog("eval $(cfngen sandbox env)", "aws cloudformation list-stacks"),
)
@_region_option
def env(region: str) -> None:
    """Print the environment that points the AWS CLI and other programs at the sandbox; start it if necessary."""
    from cfngen.sandbox.process import running

    sandbox = running.start(os.environ)
    environment = {
        "AWS_ENDPOINT_URL": sandbox.endpoint,
        # The sandbox accepts any credentials.
        "AWS_ACCESS_KEY_ID": "sandbox",
        "AWS_SECRET_ACCESS_KEY": "sandbox",
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in environment.items():
        echo(f"export {name}={shlex.quote(value)}")


def _require_running() -> RunningSandbox:
    """Return the running sandbox, for a command that does not start one.

    Raises:
        NoSandboxError: no sandbox is running.
    """
    from cfngen.sandbox.process import running

    sandbox = running.find_running_sandbox(os.environ)
    if sandbox is None:
        raise NoSandboxError
    return sandbox
