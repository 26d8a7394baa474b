"""Deployments that follow each other until the cluster is as its file says, with one consent for all of them.

Each is found anew from the deployed stack (`cfngen.deploy.plan.issuer_updates`), has its own change set and can be
rolled back to the state before it. So a series that stopped is continued by deploying again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from cfngen.cluster.issuer_stages import IssuerState
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.events import read_last_event
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Finished, Notice, Step
from cfngen.deploy.operations.deployment.phase_execution import UnfinishedError
from cfngen.deploy.operations.deployment.preparation import DeploymentRequest
from cfngen.deploy.operations.interaction import DeclinedError, Interaction
from cfngen.deploy.plan.issuer_updates import TOKEN_LIFETIME
from cfngen.deploy.plan.plan import Plan, PlannedUpdate
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.templates.issuer import BUCKET_OUTPUT


class Deployment(NamedTuple):
    """One deployment that has ended.

    Attributes:
        finished: its result.
        plan: its plan.
    """

    finished: Finished
    plan: Plan


DeployOnce = Callable[[DeploymentRequest, bool], Deployment]
"""Takes the request for the wanted cluster, and whether the user has agreed already; deploys the next state."""


def carry_out(request: DeploymentRequest, interaction: Interaction, deploy_once: DeployOnce) -> Finished:
    """Deploy until the cluster is as the request says; return the result of the last deployment.

    Raises:
        CfngenError: refused before anything was changed, or between two updates.
    """
    finished, first_plan = deploy_once(request, False)
    updates = first_plan.updates
    seconds = finished.seconds
    for done in range(1, len(updates)):
        position = f"update {done} of {len(updates)}"
        if not finished.succeeded:
            reason = f"{position} has not ended" if finished.in_progress else f"{position} did not succeed"
            interaction.report(_notice(reason, updates[done:] if finished.in_progress else updates[done - 1 :]))
            return finished
        interaction.report(Step(f"update {done + 1} of {len(updates)}: {updates[done].title}"))
        next_request = replace(request, token=f"{request.token}-u{done + 1}")
        try:
            finished, plan = deploy_once(next_request, True)
        except DeclinedError:
            raise UnfinishedError(f"you did not agree to update {done + 1}", _titles(updates[done:])) from None
        except (CfngenError, KeyboardInterrupt):
            interaction.report(_notice(f"{position} is complete", updates[done:]))
            raise
        if plan.updates and finished.action == "none":
            raise UnfinishedError(f"update {done + 1} found nothing to change", _titles(updates[done:]))
        seconds += finished.seconds
    if updates and not finished.succeeded:
        interaction.report(_notice(f"update {len(updates)} of {len(updates)} did not succeed", updates[-1:]))
    return replace(finished, seconds=seconds)


def wait_for_new_tokens(account: Account, stack: StackView, interaction: Interaction) -> None:
    """Wait until no pod holds a token any more that was issued before the last update of a stack."""
    last_event = read_last_event(account, stack.id)
    if last_event is None:
        return
    end = last_event.time + TOKEN_LIFETIME
    seconds = (end - account.clock.now()).total_seconds()
    if seconds > 0:
        text = (
            f"waiting until {end:%H:%M} UTC: pods may hold tokens of the issuer for an hour after the last update, and "
            "API servers would refuse them; Ctrl-C ends the wait, and a later deployment continues"
        )
        interaction.report(Step(text))
        account.clock.sleep(seconds)


def buckets_of(issuer: IssuerState, stack: StackView) -> tuple[str, ...]:
    """Return the buckets that a stack made for the documents of an issuer; none if that is the user's own."""
    bucket = "" if issuer.url else stack.outputs.get(BUCKET_OUTPUT, "")
    return (bucket,) if bucket else ()


def _notice(reason: str, remaining: Sequence[PlannedUpdate]) -> Notice:
    return Notice(
        f"{reason}; the updates before are kept, and the cluster works in this state. "
        f"Remaining: {', '.join(_titles(remaining))}",
        CommandText("when nothing is in the way, ", suggest("deploy"), " continues with the remaining updates."),
    )


def _titles(updates: Sequence[PlannedUpdate]) -> list[str]:
    return [update.title for update in updates]
