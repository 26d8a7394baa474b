"""What is wrong with a cluster by its status, the worst first: what costs the API, then the stack, then the rest."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.deploy.access.api_connection import (
    ApiUnreachableError,
    CertificateRefusedError,
    ForbiddenError,
    KubernetesError,
    WrongServerError,
)
from cfngen.deploy.aws.groups import IN_SERVICE
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.status.cluster_problems import etcd_quorum
from cfngen.deploy.status.cluster_status import (
    ApiState,
    BackupState,
    BastionState,
    ClusterStatus,
    StackState,
    Unknown,
)
from cfngen.text import pluralize

_API_ERROR_CODES = frozenset(
    error.code
    for error in (KubernetesError, ApiUnreachableError, CertificateRefusedError, ForbiddenError, WrongServerError)
)
"""The codes of errors whose texts begin with the Kubernetes API: it was asked, or does not answer."""


def find_status_problems(status: ClusterStatus) -> Iterator[str]:
    """Yield what is wrong, a sentence without its full stop each, the worst first; of a paused cluster, little is."""
    is_paused = status.pause is not None and status.pause.complete
    if not is_paused and status.stack.operation != "delete" and not _is_being_created(status.stack):
        yield from _api_problems(status)
        yield from _master_problems(status)
    yield from _stack_problems(status.stack)
    if not is_paused and not _is_being_created(status.stack):
        yield from _node_problems(status)
    yield from _other_problems(status)


def _is_being_created(stack: StackState) -> bool:
    return stack.operation == "create" and stack.succeeded is None


def _api_problems(status: ClusterStatus) -> Iterator[str]:
    api = status.api
    if isinstance(api, Unknown):
        is_its_own_answer = api.code in _API_ERROR_CODES
        yield api.unknown if is_its_own_answer else f"the Kubernetes API could not be asked: {api.unknown}"
    elif isinstance(api, ApiState) and not api.ready:
        yield f"the API is not ready{': ' if api.failing else ''}{', '.join(api.failing)}"


def _master_problems(status: ClusterStatus) -> Iterator[str]:
    masters = () if isinstance(status.masters, Unknown) else status.masters or ()
    slots = {master.slot for master in masters}
    # While a master is replaced, its slot has the old instance beside the new one.
    working = {
        master.slot for master in masters if (master.lifecycle == IN_SERVICE if master.ready is None else master.ready)
    }
    quorum = f"; {len(working)} of {len(slots)} masters work, and etcd needs {etcd_quorum(len(slots))}"
    for slot in sorted(slots - working):
        master = next(master for master in masters if master.slot == slot)
        problem = "has no instance"
        if master.instance:
            problem = f"({master.instance}) is {'not Ready' if master.ready is False else master.lifecycle}"
        yield f"master {slot} {problem}{quorum if len(slots) > 1 else ''}"


def _stack_problems(stack: StackState) -> Iterator[str]:
    if stack.health not in (StackHealth.HEALTHY, StackHealth.BUSY, StackHealth.EMPTY, StackHealth.ABSENT):
        yield f"the stack {stack.name} is in {stack.status}{f': {stack.reason}' if stack.reason else ''}"


def _node_problems(status: ClusterStatus) -> Iterator[str]:
    node_groups = () if isinstance(status.node_groups, Unknown) else status.node_groups or ()
    for group in node_groups:
        count, state = (group.in_service, "in service") if group.ready is None else (group.ready, "Ready")
        if count < group.desired:
            yield f"node group {group.name} has {count} of {pluralize(group.desired, 'node')} {state}"
    bastion = status.bastion
    if isinstance(bastion, BastionState) and not bastion.in_service:
        yield f"the bastion is {bastion.lifecycle or 'missing'}"


def _other_problems(status: ClusterStatus) -> Iterator[str]:
    if not isinstance(status.network_problems, Unknown):
        yield from (problem.sentence for problem in status.network_problems or ())
    if not isinstance(status.lost_addresses, Unknown):
        yield from (address.text for address in status.lost_addresses or ())
    if not isinstance(status.addons, Unknown):
        yield from (
            f"add-on {addon.name} is {addon.status or 'unknown'}"
            for addon in status.addons or ()
            if addon.status != "deployed"
        )
    if isinstance(status.backups, BackupState) and status.backups.late:
        yield "snapshots of etcd are late" if status.backups.newest else "there is no snapshot of etcd yet"
    for expiry in status.certificates:
        if not isinstance(expiry.ends, Unknown) and expiry.ends <= status.time:
            yield f"expired: {expiry.what}"
    stack = status.stack
    if stack.health == StackHealth.HEALTHY and stack.succeeded is False and not stack.cancelled:
        yield f"the last {stack.operation} of the stack failed, and was rolled back"
