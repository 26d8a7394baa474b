"""`cfngen deploy`: create or update a cluster."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import click

from cfngen.cli.display.screen import Screen, screen
from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.exit_codes import operation_exit_code, validation_exit_code
from cfngen.cli.input.api_range import with_api_range
from cfngen.cli.input.deployment import DeploymentOptions, deployment_options
from cfngen.cli.input.options import allow_danger_option, yes_option
from cfngen.cli.input.target import Target, target_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from cfngen.deploy.aws.account import Account
    from cfngen.deploy.status.validation import Validation

SETTLING_TIME = timedelta(minutes=5)
"""How long to wait for a valid cluster after its instances have signalled success, while add-ons are starting."""


@click.command(
    "deploy",
    short_help="Create or update the cluster.",
    epilog=examples_epilog(
        "cfngen deploy",
        "cfngen deploy -f prod.yaml --profile prod --account 123456789012",
        "cfngen deploy --yes --output json        in a pipeline: never asks, one JSON object a line",
        "cfngen deploy --on-failure keep          keep what failed, to inspect it",
        "cfngen deploy --sandbox                  without an AWS account",
    ),
)
@target_options
@deployment_options
@yes_option("Do not ask, unless data, addresses or the cluster may be lost.")
@allow_danger_option
@click.option(
    "--protect/--no-protect", default=True, show_default=True, help="Turn on the stack's termination protection."
)
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Check masters, nodes and pods at the end, as `cfngen validate cluster` does.",
)
@click.pass_context
def command(
    context: click.Context,
    *,
    target: Target,
    deployment: DeploymentOptions,
    yes: bool,
    allow_danger: bool,
    protect: bool,
    verify: bool,
) -> None:
    """Generate, lint and upload the templates, show the plan, ask for consent, and create or update the stacks.

    You can repeat it at any time: if there is nothing to change, it says so and succeeds. Ctrl-C asks whether to
    continue watching, to detach while CloudFormation continues (`cfngen watch` attaches again), or to cancel.

    On a terminal, it asks who may reach the Kubernetes API if neither api.allowedCidrs in the cluster file nor the
    parameter ApiAllowedCidr says it, and offers to write it into the file. With --yes it does not ask.

    Exits with 2 if the stacks are deployed but the cluster does not work. If the Kubernetes API cannot be reached from
    here, that is only reported.
    """
    request = deployment.request(target, protect=protect)
    from cfngen.deploy.operations.deployment.deploy import deploy

    account = target.connect(with_existing_parts=True)
    with screen(target, account, full=deployment.full) as display:
        interaction = display.interaction(target.consent(yes=yes, allow_danger=allow_danger))
        finished = with_api_range(
            lambda request: deploy(account, request, interaction),
            request,
            target,
            display.report,
            may_ask=not yes,
            request_of=lambda target: deployment.request(target, protect=protect),
        )
        display.report(finished)
        if not finished.succeeded:
            context.exit(operation_exit_code(finished))
        # An unchanged cluster is not checked.
        is_checked = verify and finished.action != "none"
        is_valid = not is_checked or _cluster_works(target, account, display)
    context.exit(validation_exit_code(valid=is_valid))


def _cluster_works(target: Target, account: Account, display: Screen) -> bool:
    """Wait until the cluster is valid, at most SETTLING_TIME; return whether it is valid.

    Returns True, too, if the cluster cannot be checked, e.g. because its API cannot be reached from this machine.
    """
    from cfngen.deploy.messages.message import Notice, Step
    from cfngen.deploy.status.validation import validate, wait_until_valid
    from cfngen.errors import CfngenError
    from cfngen.hints import CommandText, suggest

    display.report(Step("checking masters, nodes and pods"))
    validate_now = partial(
        validate, account, target.stack_name, target.cluster, find_url_override=target.kubernetes_override
    )
    hint = CommandText("run ", suggest("validate cluster"), " where the API can be reached, as a user with access.")
    try:
        validation = validate_now()
        if not _is_api_unreachable(validation):
            next_validation = _starting_with(validation, validate_now)
            validation = wait_until_valid(next_validation, account.clock, SETTLING_TIME, display.report)
    except CfngenError as error:
        display.report(Notice(f"could not determine whether the cluster works: {error}", hint))
        return True
    if _is_api_unreachable(validation):
        reasons = "; ".join(problem.sentence for problem in validation.problems)
        display.report(Notice(f"could not determine whether the cluster works: {reasons}", hint))
        if target.json:
            # As text, the verdict would look like a failure; in JSON, every deployment has one result.
            display.report(validation)
        return True
    display.report(validation)
    return validation.valid


def _starting_with(first_validation: Validation, validate_now: Callable[[], Validation]) -> Callable[[], Validation]:
    """Return a function that returns the given validation when it is called first, and later validates anew."""
    done_validations = [first_validation]

    def next_validation() -> Validation:
        return done_validations.pop() if done_validations else validate_now()

    return next_validation


def _is_api_unreachable(validation: Validation) -> bool:
    """Return whether the only problem is that the API does not answer from here."""
    return (
        not validation.valid
        and not validation.version
        and all(problem.area == "api" for problem in validation.problems)
    )
