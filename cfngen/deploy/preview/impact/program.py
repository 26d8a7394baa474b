"""The impact of changes of the resources that hold the boot program's second stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.preview.changes import Danger, Impact
from cfngen.deploy.preview.impact.subject import ChangeContext


def _program_impact(subject: ChangeContext) -> Impact:
    owner = f"of {subject.owner or 'the masters'}"
    if subject.change.action == "remove":
        return Impact(f"the previous boot program {owner}; no instance downloads it any more", Danger.NONE)
    return Impact(f"the boot program {owner}, stored as metadata; nothing is created in AWS", Danger.NONE)


RULES: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    "AWS::CloudFormation::WaitConditionHandle": _program_impact
}
