"""The status of a cluster, from everything that was read of it; a part that could not be read is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial

from cfngen.cluster.model import Cluster
from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.cluster_access import FindApiUrlOverride
from cfngen.deploy.aws import drift
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.drift import Drift
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.pause import find_pause
from cfngen.deploy.aws.stacks import NESTED_STACK, ResourceView, StackView, find_stack, stack_name
from cfngen.deploy.messages.message import Report, Step
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.status import parts
from cfngen.deploy.status.cluster_problems import target_version
from cfngen.deploy.status.cluster_status import (
    AddonState,
    ClusterStatus,
    Expiry,
    MasterState,
    StackState,
    Unknown,
    next_command,
    stack_state,
)
from cfngen.deploy.status.parts import all_nodes_ready, bastion_state, masters_and_node_groups, with_pause
from cfngen.deploy.status.reading import (
    ClusterReading,
    Differences,
    KubernetesState,
    read_cluster,
    read_or_unknown,
    read_status_since,
    require,
)
from cfngen.hints import SuggestedCommand

# Statuses of stacks without resources: nothing has been created, or everything has been deleted again.
STATUSES_WITHOUT_RESOURCES = ("REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_COMPLETE")
AUTHORITY_NAME, SERVING_CERTIFICATE_NAME = "certificate authority", "API server's certificate"
JOIN_TOKEN_NAME = "join token"


def read_status(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    *,
    find_url_override: FindApiUrlOverride = cluster_access.no_api_url_override,
    detect_drift: bool = False,
    report: Report = lambda message: None,
) -> ClusterStatus:
    """Return the status of a cluster.

    Args:
        detect_drift: whether to let CloudFormation detect drift, which takes some time.
        report: called when a slow step starts.

    Raises:
        AwsError: the root stack itself cannot be read.
    """
    with translate_aws_errors():
        stack = find_stack(account, stack_name)
    make_status = partial(
        ClusterStatus,
        cluster=cluster.name,
        region=account.region,
        account=account.id,
        time=account.clock.now(),
        target_version=target_version(cluster),
    )
    if stack is None:
        return make_status(stack=StackState(name=stack_name), next_command=next_command(StackStatus("")))
    if stack.status.name in STATUSES_WITHOUT_RESOURCES:
        state = stack_state(stack, read_or_unknown(lambda: read_status_since(account, stack)))
        return make_status(stack=state, next_command=next_command(stack.status))
    reading = read_cluster(account, cluster, stack, find_url_override)
    drift_state = _detect_drift(account, stack, reading, report) if detect_drift else None
    return _status_of_reading(make_status, stack, reading, drift_state)


def _detect_drift(account: Account, stack: StackView, reading: ClusterReading, report: Report) -> Drift | Unknown:
    report(Step("CloudFormation is comparing the resources with the templates"))
    return read_or_unknown(lambda: drift.detect_drift(account, _stack_names(stack, require(reading.resources))))


def _status_of_reading(
    make_status: partial[ClusterStatus], stack: StackView, reading: ClusterReading, drift_state: Drift | Unknown | None
) -> ClusterStatus:
    """Return the status of a cluster with resources; `make_status` knows already what all statuses have."""
    kubernetes, differences = reading.kubernetes, reading.differences
    nodes = None if isinstance(kubernetes, Unknown) else kubernetes.nodes
    masters, node_groups = masters_and_node_groups(reading.groups, reading.image_dates, nodes)
    bastion = bastion_state(reading.groups)
    is_healthy = (
        not isinstance(kubernetes, Unknown)
        and kubernetes.api.ready
        and all_nodes_ready(masters, node_groups)
        and (bastion is None or isinstance(bastion, Unknown) or bastion.in_service)
        and (not differences.network_problems or isinstance(differences.network_problems, Unknown))
    )
    status = make_status(
        stack=stack_state(stack, reading.since, reading.without_policy),
        next_command=_next_command(stack, differences, is_healthy=is_healthy),
        endpoint=reading.endpoint if isinstance(reading.endpoint, Unknown) else reading.endpoint.url,
        api=kubernetes if isinstance(kubernetes, Unknown) else kubernetes.api,
        kubelets=(
            kubernetes if isinstance(kubernetes, Unknown) else Counter(node.version for node in kubernetes.nodes)
        ),
        masters=masters,
        node_groups=node_groups,
        bastion=bastion,
        certificates=_expiries(reading, masters),
        volumes=reading.volumes,
        persistent_volumes=kubernetes if isinstance(kubernetes, Unknown) else kubernetes.volumes,
        backups=reading.backups,
        addons=_addon_states(kubernetes),
        drift=drift_state,
        stale_groups=differences.stale_groups or None,
        retyped_slots=differences.retyped_slots or None,
        lost_addresses=differences.lost_addresses or None,
        network_problems=differences.network_problems or None,
    )
    pause = None if isinstance(reading.groups, Unknown) else find_pause(reading.groups)
    return with_pause(status, pause, AUTHORITY_NAME)


def _next_command(stack: StackView, differences: Differences, *, is_healthy: bool) -> str | SuggestedCommand:
    return next_command(
        stack.status,
        healthy=is_healthy,
        stale_groups=bool(differences.stale_groups) and not isinstance(differences.stale_groups, Unknown),
        lost_addresses=() if isinstance(differences.lost_addresses, Unknown) else differences.lost_addresses,
    )


def _expiries(reading: ClusterReading, masters: tuple[MasterState, ...] | Unknown) -> tuple[Expiry, ...]:
    """Return when certificates and the join token expire; masters' certificates only if their reports were read."""
    kubernetes = reading.kubernetes
    reports = kubernetes if isinstance(kubernetes, Unknown) else kubernetes.certificates
    return (
        Expiry(what=AUTHORITY_NAME, ends=reading.authority_expiry),
        Expiry(what=SERVING_CERTIFICATE_NAME, ends=reading.serving_expiry),
        Expiry(what=JOIN_TOKEN_NAME, ends=reading.token_expiry),
        *(
            ()
            if isinstance(reports, Unknown) or isinstance(masters, Unknown)
            else parts.parse_certificates(reports, masters)
        ),
    )


def _addon_states(kubernetes: KubernetesState | Unknown) -> tuple[AddonState, ...] | Unknown | None:
    """Return the add-ons; None where the masters have not reported any yet."""
    if isinstance(kubernetes, Unknown):
        return None
    if isinstance(kubernetes.addons, Unknown):
        return kubernetes.addons
    return parts.parse_addons(kubernetes.addons) or None


def _stack_names(stack: StackView, stack_resources: Iterable[ResourceView]) -> dict[str, str]:
    """Return the names of a stack and its nested stacks, by ARN."""
    nested = {
        resource.physical_id: stack_name(resource.physical_id)
        for resource in stack_resources
        if resource.type == NESTED_STACK
    }
    # A nested stack that has not been created yet has no ARN.
    return {stack.id: stack.name, **{arn: name for arn, name in nested.items() if arn}}
