"""What is to be rehearsed, and how."""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.rehearse.outlines import Outline
from cfngen.rehearse.steps import RehearsalStep


@dataclass(frozen=True)
class RehearsalRequest:
    """What is to be rehearsed, and how.

    Attributes:
        steps: the steps, in order.
        outlines: what they take and cost, as the user is told before consent.
        zones: three zones of a region; the steps with one zone use the first.
        bucket: bucket for the templates; cfngen's own if empty.
        role_arn: service role of CloudFormation; the caller's rights if empty.
        profile: the caller's profile, which must not appear in the report; empty if none is named.
        command: what removes what a rehearsal has left, as the user types it.
    """

    steps: tuple[RehearsalStep, ...]
    outlines: tuple[Outline, ...]
    zones: tuple[str, ...]
    bucket: str = ""
    role_arn: str = ""
    profile: str = ""
    command: str = "cfngen rehearse --clean-up"
