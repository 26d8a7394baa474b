"""The status of a cluster while it is paused: what is missing on purpose is not shown as a problem."""

from __future__ import annotations

from dataclasses import replace

from cfngen.deploy.inspection.cluster_status import BackupState, ClusterStatus, Unknown
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.pausing.state import PauseState
from cfngen.hints import suggest


def with_pause(status: ClusterStatus, pause: PauseState | None, authority_name: str) -> ClusterStatus:
    """Return the status of a cluster, with its pause if it is paused.

    Args:
        status: the status as it was read.
        pause: the pause; None if the cluster is not paused.
        authority_name: what the expiry of the certificate authority is called, which also counts during a pause.
    """
    if pause is None:
        return status
    status = replace(status, pause=pause)
    if status.stack.health == StackHealth.HEALTHY.value:
        status = replace(status, next_command=suggest("resume"))
    if not pause.complete:
        return status
    backups = status.backups
    return replace(
        status,
        api=Unknown("the cluster is paused"),
        kubelets=None,
        persistent_volumes=None,
        addons=None,
        # The masters make the other certificates and the join token anew when they boot.
        certificates=tuple(expiry for expiry in status.certificates if expiry.what == authority_name),
        backups=replace(backups, late=False) if isinstance(backups, BackupState) else backups,
    )
