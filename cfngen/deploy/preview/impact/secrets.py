"""The impact of changes of the cluster's secrets and their KMS key."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.preview.impact.context import ChangeContext


def _key_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of the KMS key that encrypts the secrets."""
    if not context.disappears:
        return Impact("who may use the key of the cluster's secrets changes") if context.touches("KeyPolicy") else None
    return Impact(
        f"secrets: the key that encrypts them {context.verb}; certificate authorities would be lost with it once its "
        "waiting period is over",
        Danger.DANGEROUS,
    )


def _secret_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of removing or replacing a secret: the join information or the certificate authorities."""
    if not context.disappears:
        return None
    if context.change.logical_id.startswith("Join"):
        return Impact(
            f"secrets: the join information {context.verb}; no node joins until the masters have written it again",
            Danger.DISRUPTIVE,
        )
    return Impact(
        f"secrets: the certificate authorities {context.verb} and would be lost; no instance could join, and no "
        "replaced master would start",
        Danger.DANGEROUS,
    )


IMPACT_BY_TYPE: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    "AWS::KMS::Key": _key_impact,
    "AWS::SecretsManager::Secret": _secret_impact,
}
