"""`cfngen sandbox`: the emulated account on this machine that `--sandbox` uses."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cfngen.cli.display.messages import show_message
from cfngen.cli.display.terminal import echo, examples_epilog, show_warning
from cfngen.cli.exit_codes import FAILED, SUCCESS
from cfngen.cli.input.options import Option, OptionGroup
from cfngen.cli.input.source import DEFAULT_FILE, Source, source_options
from cfngen.cli.input.target import output_option
from cfngen.cli.usage import SuggestingGroup
from cfngen.errors import CfngenError
from cfngen.text import join_and, pluralize

if TYPE_CHECKING:
    from cfngen.sandbox.process.running import RunningSandbox
    from cfngen.sandbox.untyped import JsonObject


@dataclass(frozen=True)
class _Cluster:
    """The cluster that a command is about.

    Attributes:
        explicit_region: value of --region; empty means the region of the cluster file, or of what the sandbox has.
    """

    source: Source
    explicit_region: str

    def region(self, status: JsonObject, group: str = "") -> str:
        """Return the region: that of the option, of the cluster file, or of the only stacks; else that of the default.

        Args:
            group: only stacks with this group count, if there are any; else all.

        Raises:
            SeveralRegionsError: nothing says which of several regions with stacks is meant.
        """
        if self.explicit_region:
            return self.explicit_region
        default_region = self.source.load().cluster.region
        if not self.source.is_default:
            return default_region
        regions = {str(stack["region"]) for stack in status["stacks"]}
        regions_with_group = {str(item["region"]) for item in status["groups"] if item["name"] == group}
        candidates = sorted(regions_with_group or regions) or [default_region]
        if len(candidates) > 1:
            raise SeveralRegionsError(
                f"the sandbox has stacks in {join_and(candidates)}, and there is no {DEFAULT_FILE} here",
                hint="choose a region with --region, or a cluster file with -f.",
            )
        return candidates[0]


_cluster_options = OptionGroup(
    "cluster",
    lambda source, region: _Cluster(source, region),
    source_options,
    Option(
        "--region",
        metavar="REGION",
        default="",
        help="Region of the cluster. Default: that of the cluster file, or of the stacks in the sandbox.",
    ),
)


class SeveralRegionsError(CfngenError):
    """Nothing says which of several regions of the sandbox is meant."""

    code = "several-sandbox-regions"


class SandboxRunningError(CfngenError):
    """A sandbox is running already, with other settings than those that are asked for."""

    code = "sandbox-running"


class UnknownGroupError(CfngenError):
    """There is no Auto Scaling group of that name."""

    code = "unknown-sandbox-group"


class NoInstancesError(CfngenError):
    """A group has no running instances that could be ended or told something."""

    code = "no-running-instances"


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

    `--sandbox` starts it automatically. It listens on the loopback address only, answers only to who started it, loses
    everything when it is stopped, and stops after an hour without use. After that, commands with `--sandbox` fail until
    you start a new, empty one with `cfngen sandbox start`.

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
    help="How much it tells of a change set: what AWS tells, or everything that it knows. Default: aws.",
)
@click.option(
    "--seed",
    metavar="NUMBER",
    type=int,
    help="Draws the order of resources that do not depend on each other: the same number, the same order. Default: 1.",
)
def start(speed: float | None, answers: str | None, seed: int | None) -> None:
    """Start the sandbox, unless it is running. The stacks of an earlier sandbox are lost.

    A sandbox that is running keeps its settings: with others, the command fails.
    """
    from cfngen.sandbox.process import running
    from cfngen.sandbox.process.control_api import AWS, DEFAULT_SPEED

    sandbox = running.find_running_sandbox(os.environ)
    if sandbox is None:
        sandbox = running.start(
            os.environ,
            DEFAULT_SPEED if speed is None else speed,
            answers=answers or AWS,
            seed=seed,
            accept_lost_stacks=True,
        )
        echo(f"The sandbox listens on {sandbox.endpoint}, as process {sandbox.pid}.")
    else:
        settings = sandbox.state
        kept = [
            f"{option} {value}"
            for option, value, new in (
                ("--speed", f"{settings.speed:g}", None if speed is None else f"{speed:g}"),
                ("--answers", settings.answers, answers),
                ("--seed", f"{settings.seed}", None if seed is None else f"{seed}"),
            )
            if new not in (None, value)
        ]
        if kept:
            raise SandboxRunningError(
                f"the sandbox is already running with {join_and(kept)}, as process {sandbox.pid}",
                hint="`cfngen sandbox stop` stops it, and its stacks are lost; then start it with other settings.",
            )
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
@_cluster_options
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
def fail(group: str, cluster: _Cluster, step: str, message: str, times: int) -> None:
    """Make instances that an Auto Scaling group launches from now on fail to boot, to see what that looks like.

    GROUP is the name of a node group, `master` (every master), one of several masters such as `master-b`, or the
    logical id of an Auto Scaling group.
    """
    # Imported here, since importing the model of the cluster file takes a while.
    from cfngen.cluster.naming.logical_ids import is_auto_scaling_group

    sandbox = _require_running()
    status = sandbox.status()
    region = cluster.region(status, group)
    known_groups = {stack_group["name"] for stack_group in status["groups"] if stack_group["region"] == region}
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
    echo(f"{subject} of {group} in {region} {verb} at the step {step!r}; `cfngen sandbox heal` stops this.")


@command.command(
    "interrupt",
    short_help="End running instances of a group.",
    epilog=examples_epilog(
        "cfngen sandbox interrupt spot                    all of the group at once",
        "cfngen sandbox interrupt master-b                as if its machine failed",
        "cfngen sandbox interrupt spot --times 2",
        "cfngen sandbox interrupt spot --notice rebalance",
    ),
)
@click.argument("group")
@_cluster_options
@click.option(
    "--notice",
    type=click.Choice(("interruption", "rebalance", "both")),
    default="interruption",
    show_default=True,
    help="What EC2 says to Spot Instances: that it interrupts them in two minutes, that it recommends to rebalance "
    "them, or both at once.",
)
@click.option(
    "--times", type=click.IntRange(min=0), default=0, metavar="NUMBER", help="How many instances end; 0 means all."
)
def interrupt(group: str, cluster: _Cluster, notice: str, times: int) -> None:
    """End running instances of a group. Those launched first end first.

    Spot Instances get EC2's notice, and are terminated two minutes later. On-Demand Instances get none: they are gone
    at once, as if their machine failed.

    GROUP is the name of a node group, `master` (every master), one of several masters such as `master-b`, or the
    logical id of an Auto Scaling group.
    """
    sandbox = _require_running()
    region = cluster.region(sandbox.status(), group)
    spot_ids, on_demand_ids = sandbox.send_notice(region, group, notice, times)
    if not spot_ids and not on_demand_ids:
        raise NoInstancesError(
            f"{group!r} in {region} has no running {'Spot Instances' if notice == 'rebalance' else 'instances'}",
            hint="`cfngen sandbox status` shows the groups; one with spotPrice has Spot Instances.",
        )
    if spot_ids:
        subject = f"{pluralize(len(spot_ids), 'Spot Instance')} of {group} in {region}"
        action = (
            f"recommends to rebalance {subject}" if notice == "rebalance" else f"interrupts {subject} in two minutes"
        )
        echo(f"EC2 {action}: {', '.join(spot_ids)}")
    if on_demand_ids:
        subject = f"{pluralize(len(on_demand_ids), 'On-Demand Instance')} of {group} in {region}"
        echo(f"{subject} ended, as if the machine failed: {', '.join(on_demand_ids)}")


@command.command("heal", epilog=examples_epilog("cfngen sandbox heal"))
@click.option("--region", metavar="REGION", default="", help="Only in this region. Default: in all regions.")
def heal(region: str) -> None:
    """Remove injected failures: new instances boot normally, and those that failed try again within a minute."""
    if regions := _require_running().remove_faults(region):
        echo(
            f"From now on instances in {join_and(regions)} boot normally; those that failed try again within a minute."
        )
    else:
        echo(f"There are no injected failures{f' in {region}' if region else ''}.")


@command.command(
    "env",
    short_help="Print the environment for the AWS CLI and other programs.",
    epilog=examples_epilog("eval $(cfngen sandbox env)", "aws cloudformation list-stacks"),
)
@_cluster_options
def env(cluster: _Cluster) -> None:
    """Print the environment that points the AWS CLI and other programs at the sandbox; start it if necessary.

    It includes the sandbox's token, without which the sandbox refuses requests.
    """
    from cfngen.sandbox.process import running

    sandbox = running.start(os.environ)
    region = cluster.region(sandbox.status())
    environment = {
        "AWS_ENDPOINT_URL": sandbox.endpoint,
        # The sandbox accepts any keys, but answers only to its token.
        "AWS_ACCESS_KEY_ID": "sandbox",
        "AWS_SECRET_ACCESS_KEY": "sandbox",
        "AWS_SESSION_TOKEN": sandbox.state.token,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in environment.items():
        echo(f"export {name}={shlex.quote(value)}")


def _require_running() -> RunningSandbox:
    """Return the running sandbox, for a command that does not start one."""
    from cfngen.sandbox.process import running

    sandbox = running.find_running_sandbox(os.environ)
    if sandbox is None:
        raise NoSandboxError
    return sandbox
