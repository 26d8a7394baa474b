"""`cfngen rehearse`: run small steps in AWS, and compare the events with those of the emulator."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cfngen.cli.display.json_output import to_json_value
from cfngen.cli.display.messages import show_message
from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.exit_codes import FAILED, INTERRUPTED, SUCCESS, rehearsal_exit_code
from cfngen.cli.input.deployment import bucket_option, role_option
from cfngen.cli.input.options import Option, OptionGroup, yes_option
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.source import Source
from cfngen.cli.input.target import Target, account_option, make_target, output_option, profile_option, sandbox_option

if TYPE_CHECKING:
    from cfngen.cli.display.screen import Screen
    from cfngen.deploy.aws.account import Account
    from cfngen.deploy.operations.interaction import Interaction
    from cfngen.rehearse.expectations import Expectations
    from cfngen.rehearse.operation_runner import RehearsalRequest
    from cfngen.rehearse.report import Rehearsal
    from cfngen.rehearse.run import RehearsalResult


_DEFAULT_ZONES = "us-west-2a,us-west-2b,us-west-2c"
"""The default of --zones."""


@dataclass(frozen=True)
class _Options:
    """The values of the options that say where a rehearsal runs, and where its report goes."""

    zones: str
    report: Path | None
    offline_report: Path | None
    bucket: str
    role_arn: str
    profile: str
    account_number: str
    sandbox: bool
    output: Literal["text", "json"]

    def target(self, zone: str) -> Target:
        """Return the target: not the cluster of a cluster file, but one with the rehearsal's name in a zone."""
        from cfngen.rehearse.clusters import REHEARSAL_NAME

        overrides = (f"name={REHEARSAL_NAME}", f"network.subnets=[{{zone: {zone}}}]")
        return make_target(
            source=Source(path=None, environ={}, overrides=overrides, is_explicit=True),
            explicit_stack_name=REHEARSAL_NAME,
            profile=self.profile,
            account_number=self.account_number,
            sandbox=self.sandbox,
            output=self.output,
        )

    def clean_up_command(self) -> str:
        """Return the command that deletes what a rehearsal with these zones, bucket and account has left."""
        words = ["cfngen", "rehearse", "--clean-up", *(["--sandbox"] if self.sandbox else [])]
        if self.zones != _DEFAULT_ZONES:
            words += ["--zones", self.zones]
        for name, value in {
            "--bucket": self.bucket,
            "--profile": self.profile,
            "--account": self.account_number,
        }.items():
            words += [name, value] if value else []
        return shlex.join(words)


_options = OptionGroup(
    "options",
    _Options,
    Option(
        "--zones",
        metavar="ZONE,ZONE,ZONE",
        default=_DEFAULT_ZONES,
        show_default=True,
        help="Three zones of the region to rehearse in; all steps but the last use the first.",
    ),
    Option(
        "--report",
        metavar="FILE",
        type=PathArgument("give a file name"),
        help="File for the report in JSON; a readable page is written next to it. Default: rehearsal-<date>.json.",
    ),
    Option(
        "--offline-report",
        metavar="FILE",
        type=PathArgument("give a report in JSON"),
        help="Only show what this report says about AWS, as facts for cfngen's tests; needs no credentials.",
    ),
    bucket_option,
    role_option,
    profile_option,
    account_option,
    sandbox_option,
    output_option,
)


@click.command(
    "rehearse",
    short_help="Compare AWS with the emulator, in small steps, cheapest first.",
    epilog=examples_epilog(
        "cfngen rehearse --list                   the steps, what is billed and how long it takes",
        "cfngen rehearse --up-to change-set       only the steps that cost nothing",
        "cfngen rehearse --profile trial          all steps, up to three masters",
        "cfngen rehearse --clean-up               delete what an interrupted rehearsal left behind",
        "cfngen rehearse --sandbox --yes          without an AWS account",
    ),
)
@click.option(
    "--up-to",
    "last_step",
    metavar="STEP",
    default="",
    help="Last step to run, by its name or number. Default: all steps.",
)
@click.option("--list", "list_only", is_flag=True, help="Only show the steps; needs no credentials.")
@click.option("--clean-up", "clean_up_only", is_flag=True, help="Only delete what earlier rehearsals left behind.")
@yes_option("Do not ask before anything is created.")
@_options
@click.pass_context
def command(
    context: click.Context, *, last_step: str, list_only: bool, clean_up_only: bool, yes: bool, options: _Options
) -> None:
    """Run small steps in your AWS account, compare each event with that of the emulator, and clean up.

    Everything is in a separate stack, `cfngen-rehearsal`, which is deleted after each step, after a failure, and after
    Ctrl-C. If a rehearsal was killed, the next one or --clean-up deletes what it has left. The first steps cost
    nothing; it stops at the first difference. It shows the steps and asks before it creates anything.

    The report contains no account number, id, ARN, address or name, so that you can send it to the project.

    Exits with 2 if AWS behaved differently from the emulator.
    """
    from cfngen.rehearse.expectations import read_recorded_expectations
    from cfngen.rehearse.operation_runner import RehearsalRequest
    from cfngen.rehearse.outlines import outline_steps
    from cfngen.rehearse.report import RehearsalSteps, propose_facts
    from cfngen.rehearse.steps import steps_up_to

    alternatives = {"--list": list_only, "--clean-up": clean_up_only, "--offline-report": options.offline_report}
    if len(chosen := [name for name, value in alternatives.items() if value]) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} cannot be used together.")
    if options.offline_report:
        show_message(propose_facts(options.offline_report), json=options.output == "json")
        context.exit(SUCCESS)
    zones = _parse_zones(options.zones)
    target = options.target(zones[0])
    steps = steps_up_to(last_step)
    expectations = read_recorded_expectations()
    outlines = outline_steps(steps, zones, expectations)
    if list_only:
        show_message(RehearsalSteps(outlines), json=target.json)
        context.exit(SUCCESS)
    request = RehearsalRequest(
        steps=steps,
        outlines=outlines,
        zones=zones,
        bucket=options.bucket,
        role_arn=options.role_arn,
        profile=options.profile,
        command=options.clean_up_command(),
    )
    account = target.connect()
    with screen(target, account) as display:
        interaction = display.interaction(target.consent(yes=yes, allow_danger=yes))
        if clean_up_only:
            exit_code = _clean_up(account, request, interaction)
        else:
            exit_code = _rehearse(account, request, expectations, interaction, options, display)
    context.exit(exit_code)


def _clean_up(account: Account, request: RehearsalRequest, interaction: Interaction) -> int:
    from cfngen.rehearse.run import clean_up

    remaining = clean_up(account, interaction, request)
    for resource in remaining:
        interaction.report(resource.notice)
    return FAILED if remaining else SUCCESS


def _rehearse(
    account: Account,
    request: RehearsalRequest,
    expectations: Expectations,
    interaction: Interaction,
    options: _Options,
    display: Screen,
) -> int:
    """Run the rehearsal, show its result, write its report, and return the exit code."""
    from cfngen.rehearse.report import require_writable
    from cfngen.rehearse.run import rehearse

    file = options.report or Path(f"rehearsal-{account.clock.now():%Y-%m-%d-%H%M}.json")
    # Fails now, rather than after the rehearsal, if the report cannot be written.
    require_writable(file)
    result = rehearse(account, request, expectations, interaction)
    display.close()
    # The notices contain the ids, which are masked in the report.
    for resource in result.left:
        display.report(resource.notice)
    is_json = options.output == "json"
    show_message(result.rehearsal, json=is_json)
    _write_report(file, result.rehearsal, is_json=is_json)
    return _exit_code(result)


def _exit_code(rehearsal_result: RehearsalResult) -> int:
    """Return the exit code of a rehearsal, or raise the exception that ended it."""
    if isinstance(rehearsal_result.stop, KeyboardInterrupt):
        return INTERRUPTED
    if rehearsal_result.stop is not None:
        raise rehearsal_result.stop
    return rehearsal_exit_code(rehearsal_result.rehearsal, leftovers=bool(rehearsal_result.left))


def _write_report(file: Path, rehearsal: Rehearsal, *, is_json: bool) -> None:
    import json

    from cfngen.rehearse.report import RehearsalWritten, markdown_page, write_report

    document = json.dumps(to_json_value(rehearsal), indent=1, ensure_ascii=False) + "\n"
    files = write_report(file, document, markdown_page(rehearsal))
    show_message(RehearsalWritten(tuple(map(str, files))), json=is_json)


def _parse_zones(text: str) -> tuple[str, ...]:
    """Return the zones in the value of --zones, which are separated by commas."""
    from cfngen.cluster.naming.zones import zone_region

    zones = tuple(zone.strip() for zone in text.split(",") if zone.strip())
    regions = {zone_region(zone) for zone in zones}
    are_three_zones = len(zones) == 3 and len(set(zones)) == 3
    # The region of a text that is not a zone is None.
    if not are_three_zones or len(regions) != 1 or None in regions:
        raise click.BadParameter(
            f"{text!r} is not three zones of one region, such as {_DEFAULT_ZONES}.", param_hint="--zones"
        )
    return zones
