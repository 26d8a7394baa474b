"""The impact of changes of the resources whose metadata contain the second stage of the boot program."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.preview.impact.context import ChangeContext


def _program_impact(context: ChangeContext) -> Impact:
    """Return the impact of adding or removing a boot program."""
    owner = f"of {context.owner or 'the masters'}"
    if context.change.action == "remove":
        return Impact(f"the previous boot program {owner}; no instance downloads it any more", Danger.NONE)
    return Impact(f"the boot program {owner}, stored as metadata; nothing is created in AWS", Danger.NONE)


IMPACT_BY_TYPE: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    "AWS::CloudFormation::WaitConditionHandle": _program_impact
}
