"""What changes of the cluster's secrets mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.preview.impact.subject import Subject
from cfngen.deploy.preview.plan import Danger, Impact


def _key(subject: Subject) -> Impact | None:
    if not subject.goes:
        return Impact("who may use the key of the cluster's secrets changes") if subject.touches("KeyPolicy") else None
    return Impact(
        f"secrets: the key that encrypts them {subject.going}; certificate authorities would be lost with it once its "
        "waiting period is over",
        Danger.DANGEROUS,
    )


def _secret(subject: Subject) -> Impact | None:
    if not subject.goes:
        return None
    if subject.change.logical_id.startswith("Join"):
        return Impact(
            f"secrets: the join information {subject.going}; no node joins until the masters have written it anew",
            Danger.DISRUPTIVE,
        )
    return Impact(
        f"secrets: the certificate authorities {subject.going} and would be lost; no instance could join, and no "
        "replaced master would start",
        Danger.DANGEROUS,
    )


RULES: Mapping[str, Callable[[Subject], Impact | None]] = {
    "AWS::KMS::Key": _key,
    "AWS::SecretsManager::Secret": _secret,
}
