"""The confirmation of a deletion: what the user is told about it, and asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cfngen.deploy.deletion.authority_copies import AuthorityCopy
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource
from cfngen.deploy.deletion.plan import DeletionRequest, PreparedDeletion
from cfngen.deploy.messages import Consent, Question
from cfngen.deploy.status import StackHealth
from cfngen.hints import suggest
from cfngen.text import join_and, pluralize, verb_form


def is_given(
    request: DeletionRequest, prepared: PreparedDeletion, copy: AuthorityCopy | None, consent: Consent
) -> bool:
    """Return whether the user agrees to a deletion; they are not asked if it would delete nothing.

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
        # There is nothing to delete, or the deletion in progress was confirmed when it was started.
        return True
    if stack is None or stack.status.health is StackHealth.EMPTY:
        text = f"Delete what is left of the cluster {name}?"
    elif prepared.plan.by_console:
        text = f"Delete {stack.name}, which was made from cfngen's templates but not by `{suggest('deploy')}`?"
    else:
        text = f"Delete the cluster {name} and everything in it?"
    return consent(Question(text, (*consequences, *_billing_notes(prepared)), dangerous=True, name=name))


def _consequences(request: DeletionRequest, prepared: PreparedDeletion, copy: AuthorityCopy | None) -> list[str]:
    """Return what will be deleted, in sentences of the confirmation prompt."""
    stack, plan, consequences = prepared.stack, prepared.plan, []
    if stack and stack.status.health is not StackHealth.EMPTY and stack.status.name != "DELETE_IN_PROGRESS":
        consequences.append(f"the stack {stack.name} ({stack.status}) goes, with every instance of the cluster")
        if plan.by_console:
            consequences.append("its maker works in the console, and may not know of this")
        if stack.protected:
            consequences.append("its termination protection is lifted")
        if copy:
            consequences.append(copy.consequence)
        if plan.blockers:
            consequences.append("the network stays for what others have in it, and may lose its way to the internet")
    if plan.removed:
        consequences.append(
            f"{_count_by_kind(plan.removed)} that Kubernetes made {verb_form(len(plan.removed), 'go')} too"
        )
    if data := plan.data_to_delete:
        consequences.append(f"{_count_by_kind(data, ' of claims')} {verb_form(len(data), 'go')} too, with all data")
    if request.empty_bucket and plan.objects:
        uri = f"s3://{request.bucket}/{request.cluster}/"
        consequences.append(f"{pluralize(plan.objects, 'object version')} in {uri} {verb_form(plan.objects, 'go')}")
    if request.delete_bucket:
        consequences.append(f"the bucket {request.bucket} goes if nothing is left in it")
    return consequences


def _billing_notes(prepared: PreparedDeletion) -> list[str]:
    """Return a sentence about the volumes that stay and are still billed, if there are any."""
    count = len(prepared.plan.volumes)
    if count and not prepared.plan.delete_volumes:
        return [f"{pluralize(count, 'volume of claims', 'stay')}, and {verb_form(count, 'go')} on being billed"]
    return []


def _count_by_kind(resources: Sequence[OrphanedResource], suffix: str = "") -> str:
    """Return how many resources there are of each kind, e.g. `2 load balancers and 1 volume`."""
    counts = Counter(resource.kind for resource in resources)
    return join_and([pluralize(count, f"{kind}{suffix}") for kind, count in counts.items()])
