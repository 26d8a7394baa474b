"""The end of an operation: whether the cluster works, which decides the exit code together with the operation."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from cfngen.cli.exit_codes import operation_exit_code, validation_exit_code
from cfngen.cli.input.options import Option

if TYPE_CHECKING:
    from collections.abc import Callable

    from cfngen.cli.display.screen import Screen
    from cfngen.cli.input.target import Target
    from cfngen.deploy.aws.account import Account
    from cfngen.deploy.messages.message import Finished
    from cfngen.deploy.status.validation import Validation

SETTLING_TIME = timedelta(minutes=5)
"""How long to wait for a valid cluster after its instances have signalled success, while add-ons are starting."""

verify_option = Option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Check masters, nodes and pods at the end, as `cfngen validate cluster` does.",
)


def check_at_end(
    target: Target,
    account: Account,
    display: Screen,
    finished: Finished,
    settling_time: timedelta = SETTLING_TIME,
    *,
    verify: bool,
) -> int:
    """Check the cluster after an operation that has succeeded, and return the exit code of the command.

    Args:
        settling_time: how long to wait until the cluster is valid.
        verify: whether to check it; if not, the exit code only says how the operation ended.
    """
    from cfngen.deploy.messages.stack_status import StackHealth, StackStatus

    has_cluster = finished.status != "" and StackStatus(finished.status).health is StackHealth.HEALTHY
    if not verify or not finished.succeeded or not has_cluster:
        return operation_exit_code(finished)
    return validation_exit_code(valid=_cluster_works(target, account, display, settling_time))


def _cluster_works(target: Target, account: Account, display: Screen, settling_time: timedelta) -> bool:
    """Wait until the cluster is valid, at most `settling_time`; return whether it is valid.

    Returns True, too, if the cluster cannot be checked, e.g. because its API cannot be reached from this machine.

    Raises:
        OperationInterruptedError: the user interrupted the check.
    """
    from cfngen.deploy.messages.message import Notice, Step
    from cfngen.deploy.operations.runner import OperationInterruptedError
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
            validation = wait_until_valid(next_validation, account.clock, settling_time, display.report)
    except KeyboardInterrupt:
        hint = CommandText(suggest("validate cluster"), " checks the cluster again.")
        raise OperationInterruptedError("interrupted before the cluster was valid", hint=hint) from None
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
