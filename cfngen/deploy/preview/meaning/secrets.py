"""What changes of the cluster's secrets mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.preview.meaning.subject import Subject
from cfngen.deploy.preview.plan import Danger, Meaning


def _key(subject: Subject) -> Meaning | None:
    if not subject.goes:
        return Meaning("who may use the key of the cluster's secrets changes") if subject.touches("KeyPolicy") else None
    return Meaning(
        f"secrets: the key that encrypts them {subject.going}; certificate authorities would be lost with it once its "
        "waiting period is over",
        Danger.DANGEROUS,
    )


def _secret(subject: Subject) -> Meaning | None:
    if not subject.goes:
        return None
    if subject.change.logical_id.startswith("Join"):
        return Meaning(
            f"secrets: the join information {subject.going}; no node joins until the masters have written it anew",
            Danger.DISRUPTIVE,
        )
    return Meaning(
        f"secrets: the certificate authorities {subject.going} and would be lost; no instance could join, and no "
        "replaced master would start",
        Danger.DANGEROUS,
    )


RULES: Mapping[str, Callable[[Subject], Meaning | None]] = {
    "AWS::KMS::Key": _key,
    "AWS::SecretsManager::Secret": _secret,
}
