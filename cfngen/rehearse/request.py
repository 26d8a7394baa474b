"""The request for a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.rehearse.outlines import Outline
from cfngen.rehearse.steps import RehearsalStep


@dataclass(frozen=True)
class RehearsalRequest:
    """What to rehearse, and how.

    Attributes:
        outlines: their durations and costs, which the user sees before consent.
        zones: three zones of a region; steps with one zone use the first.
        bucket: bucket for the templates; cfngen's own bucket if empty.
        role_arn: service role of CloudFormation; if empty, CloudFormation uses the caller's permissions.
        profile: the caller's profile, which must not appear in the report; empty if there is none.
        command: the command that removes leftovers of a rehearsal, for hints.
    """

    steps: tuple[RehearsalStep, ...]
    outlines: tuple[Outline, ...]
    zones: tuple[str, ...]
    bucket: str = ""
    role_arn: str = ""
    profile: str = ""
    command: str = "cfngen rehearse --clean-up"
