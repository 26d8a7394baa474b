"""Asks the user to confirm a deletion, and lists its consequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cfngen.deploy.deletion.authority_copies import AuthorityCopy
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource
from cfngen.deploy.deletion.plan import DeletionRequest, PreparedDeletion
from cfngen.deploy.messages.message import Consent, Question
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.hints import suggest
from cfngen.text import join_and, pluralize, verb_form


def confirm_deletion(
    request: DeletionRequest, prepared: PreparedDeletion, copy: AuthorityCopy | None, consent: Consent
) -> bool:
    """Return whether the user agrees to a deletion; a deletion that would delete nothing needs no confirmation.

    Args:
        request: what to delete.
        prepared: the plan of the deletion.
        copy: how the certificate authorities are kept; None if there are none to keep.
        consent: asks the user.
    """
    stack, name = prepared.stack, request.cluster
    consequences = _consequences(request, prepared, copy)
    if stack and stack.status.health is StackHealth.EMPTY and not consequences:
        text = f"Delete the empty stack {stack.name} and the change sets in it? Nothing has been created from them."
        return consent(Question(text))
    if not consequences:
        # There is nothing to delete, or the user confirmed the deletion in progress when they started it.
        return True
    if stack is None or stack.status.health is StackHealth.EMPTY:
        text = f"Delete what is left of the cluster {name}?"
    elif prepared.plan.by_console:
        text = f"Delete {stack.name}, which was created from cfngen's templates but not by `{suggest('deploy')}`?"
    else:
        text = f"Delete the cluster {name} and everything in it?"
    return consent(Question(text, (*consequences, *_billing_notes(prepared)), dangerous=True, name=name))


def _consequences(request: DeletionRequest, prepared: PreparedDeletion, copy: AuthorityCopy | None) -> list[str]:
    """Return the sentences of the confirmation prompt that say what will be deleted."""
    stack, plan = prepared.stack, prepared.plan
    consequences: list[str] = []
    if stack and stack.status.health is not StackHealth.EMPTY and stack.status.name != "DELETE_IN_PROGRESS":
        consequences.append(f"the stack {stack.name} ({stack.status}) is deleted, with every instance of the cluster")
        if plan.by_console:
            consequences.append("it was created in the console, and whoever created it may not know of its deletion")
        if stack.protected:
            consequences.append("its termination protection is disabled")
        if copy:
            consequences.append(copy.consequence)
        if plan.blockers:
            consequences.append(
                "the network is retained because other resources use it, and it may lose its internet access"
            )
    if plan.removed:
        consequences.append(
            f"{_count_by_kind(plan.removed)} that Kubernetes created {verb_form(len(plan.removed), 'are')} deleted too"
        )
    if plan.subnet_tags:
        subnets = {tag.subnet for tag in plan.subnet_tags}
        consequences.append(f"the tags of the cluster are removed from {pluralize(len(subnets), 'existing subnet')}")
    if data := plan.data_to_delete:
        consequences.append(
            f"{_count_by_kind(data, ' of claims')} {verb_form(len(data), 'are')} deleted too, with all data"
        )
    if request.empty_bucket and plan.objects:
        uri = f"s3://{request.bucket}/{request.cluster}/"
        consequences.append(
            f"{pluralize(plan.objects, 'object version')} in {uri} {verb_form(plan.objects, 'are')} deleted"
        )
    if request.delete_bucket:
        consequences.append(f"the bucket {request.bucket} is deleted if it is empty by then")
    return consequences


def _billing_notes(prepared: PreparedDeletion) -> list[str]:
    """Return a sentence about the volumes that stay and are still billed, if there are any."""
    count = len(prepared.plan.volumes)
    if count and not prepared.plan.delete_volumes:
        return [f"{pluralize(count, 'volume of claims', 'remain')}, and {verb_form(count, 'continue')} to be billed"]
    return []


def _count_by_kind(resources: Sequence[OrphanedResource], suffix: str = "") -> str:
    """Return how many resources there are of each kind, e.g. `2 load balancers and 1 volume`."""
    counts = Counter(resource.kind for resource in resources)
    return join_and([pluralize(count, f"{kind}{suffix}") for kind, count in counts.items()])
