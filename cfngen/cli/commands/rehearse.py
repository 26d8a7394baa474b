"""`cfngen rehearse`: run small steps in AWS, and compare the events with those of the emulator."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cfngen.cli.deployment import bucket_option, role_option
from cfngen.cli.exit_codes import FAILED, INTERRUPTED, SUCCESS, rehearsal_exit_code
from cfngen.cli.json_output import to_json_value
from cfngen.cli.message_output import show_message
from cfngen.cli.options import yes_option
from cfngen.cli.paths import PathArgument
from cfngen.cli.screen import screen
from cfngen.cli.source import Source
from cfngen.cli.target import Target, account_option, make_target, output_option, profile_option, sandbox_option
from cfngen.cli.terminal import examples_epilog

if TYPE_CHECKING:
    from cfngen.rehearse.report import Rehearsal
    from cfngen.rehearse.run import RehearsalResult

_DEFAULT_ZONES = "us-west-2a,us-west-2b,us-west-2c"
"""The default of --zones."""


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
@click.option(
    "--zones",
    metavar="ZONE,ZONE,ZONE",
    default=_DEFAULT_ZONES,
    show_default=True,
    help="Three zones of the region to rehearse in; all steps but the last use the first.",
)
@click.option(
    "--report",
    metavar="FILE",
    type=PathArgument("give a file name"),
    help="File for the report in JSON; a readable page is written next to it. Default: rehearsal-<date>.json.",
)
@bucket_option
@role_option
@profile_option
@account_option
@sandbox_option
@output_option
@click.pass_context
def command(
    context: click.Context,
    *,
    last_step: str,
    list_only: bool,
    clean_up_only: bool,
    yes: bool,
    zones: str,
    report: Path | None,
    bucket: str,
    role_arn: str,
    profile: str,
    account_number: str,
    sandbox: bool,
    output: Literal["text", "json"],
) -> None:
    """Run small steps in your AWS account, compare each event with that of the emulator, and clean up.

    Everything is in a separate stack, `cfngen-rehearsal`, which is deleted after each step, after a failure, and after
    Ctrl-C. If a rehearsal was killed, the next one or --clean-up deletes what it has left. The first steps cost
    nothing; it stops at the first difference. It shows the steps and asks before it creates anything.

    The report contains no account number, id, ARN, address or name, so that you can send it to the project.

    Exits with 2 if AWS behaved differently from the emulator.
    """
    from cfngen.rehearse.clusters import REHEARSAL_NAME
    from cfngen.rehearse.expectations import read_recorded_expectations
    from cfngen.rehearse.operation_runner import RehearsalRequest
    from cfngen.rehearse.outlines import outline_steps
    from cfngen.rehearse.report import RehearsalSteps, require_writable
    from cfngen.rehearse.run import clean_up as delete_leftovers
    from cfngen.rehearse.run import rehearse
    from cfngen.rehearse.steps import steps_up_to as steps_up_to

    if list_only and clean_up_only:
        raise click.UsageError("--list and --clean-up cannot be used together.")
    zone_names = _parse_zones(zones)
    # The target is not the cluster of a cluster file, but one with the rehearsal's name in the first zone.
    source = Source(
        path=None,
        environ={},
        overrides=(f"name={REHEARSAL_NAME}", f"network.subnets=[{{zone: {zone_names[0]}}}]"),
        is_explicit=True,
    )
    target = make_target(
        source=source,
        explicit_stack_name=REHEARSAL_NAME,
        profile=profile,
        account_number=account_number,
        sandbox=sandbox,
        output=output,
    )
    steps = steps_up_to(last_step)
    expectations = read_recorded_expectations()
    step_outlines = outline_steps(steps, zone_names, expectations)
    if list_only:
        show_message(RehearsalSteps(step_outlines), json=target.json)
        context.exit(SUCCESS)
    account_options = _options_of_same_account(zones, bucket, profile, account_number, sandbox)
    request = RehearsalRequest(
        steps=steps,
        outlines=step_outlines,
        zones=zone_names,
        bucket=bucket,
        role_arn=role_arn,
        profile=profile,
        command=shlex.join(["cfngen", "rehearse", "--clean-up", *account_options]),
    )
    account = target.connect()
    file = report or Path(f"rehearsal-{account.clock.now():%Y-%m-%d-%H%M}.json")
    with screen(target, account) as display:
        interaction = display.interaction(target.consent(yes=yes, allow_danger=yes))
        if clean_up_only:
            remaining = delete_leftovers(account, interaction, request)
            for resource in remaining:
                display.report(resource.notice)
            context.exit(FAILED if remaining else SUCCESS)
        # Fails now, rather than after the rehearsal, if the report cannot be written.
        require_writable(file)
        rehearsal_result = rehearse(account, request, expectations, interaction)
        display.close()
        # The notices contain the ids, which are masked in the report.
        for resource in rehearsal_result.left:
            display.report(resource.notice)
        show_message(rehearsal_result.rehearsal, json=target.json)
        _write_report(target, file, rehearsal_result.rehearsal)
    context.exit(_exit_code(rehearsal_result))


def _exit_code(rehearsal_result: RehearsalResult) -> int:
    """Return the exit code of a rehearsal, or raise the exception that ended it.

    Raises:
        SystemExit: SIGTERM ended the rehearsal.
        Exception: a bug in cfngen ended it.
    """
    if isinstance(rehearsal_result.stop, KeyboardInterrupt):
        return INTERRUPTED
    if rehearsal_result.stop is not None:
        raise rehearsal_result.stop
    return rehearsal_exit_code(rehearsal_result.rehearsal, leftovers=bool(rehearsal_result.left))


def _write_report(target: Target, file: Path, rehearsal: Rehearsal) -> None:
    """Write the report as JSON and as a page, and show the names of both files."""
    import json

    from cfngen.rehearse.report import RehearsalWritten, markdown_page, write_report

    document = json.dumps(to_json_value(rehearsal), indent=1, ensure_ascii=False) + "\n"
    files = write_report(file, document, markdown_page(rehearsal))
    show_message(RehearsalWritten(tuple(map(str, files))), json=target.json)


def _parse_zones(text: str) -> tuple[str, ...]:
    """Return the zones in the value of --zones, which are separated by commas.

    Raises:
        click.BadParameter: they are not three different zones of one region.
    """
    from cfngen.cluster.zones import zone_region

    zones = tuple(zone.strip() for zone in text.split(",") if zone.strip())
    regions = {zone_region(zone) for zone in zones}
    are_three_zones = len(zones) == 3 and len(set(zones)) == 3
    # The region of a text that is not a zone is None.
    if not are_three_zones or len(regions) != 1 or None in regions:
        raise click.BadParameter(
            f"{text!r} is not three zones of one region, such as {_DEFAULT_ZONES}.", param_hint="--zones"
        )
    return zones


def _options_of_same_account(zones: str, bucket: str, profile: str, account_number: str, sandbox: bool) -> list[str]:
    """Return the options with which another `cfngen rehearse` uses the same zones, bucket and account."""
    words = ["--sandbox"] if sandbox else []
    if zones != _DEFAULT_ZONES:
        words += ["--zones", zones]
    for name, value in {"--bucket": bucket, "--profile": profile, "--account": account_number}.items():
        if value:
            words += [name, value]
    return words
