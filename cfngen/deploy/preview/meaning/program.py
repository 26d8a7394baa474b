"""Changes of what holds the boot program's second stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.preview.meaning.subject import Subject
from cfngen.deploy.preview.plan import Danger, Meaning


def _program(subject: Subject) -> Meaning:
    whose = f"of {subject.whose or 'the masters'}"
    if subject.change.action == "remove":
        return Meaning(f"the boot program {whose} as it was; no instance asks for it any more", Danger.NONE)
    return Meaning(f"the boot program {whose}, as metadata: it makes nothing", Danger.NONE)


RULES: Mapping[str, Callable[[Subject], Meaning | None]] = {"AWS::CloudFormation::WaitConditionHandle": _program}
