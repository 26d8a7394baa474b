"""The emulator's model of a drift detection: the drift of a stack, of its resources and of their properties."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True)
class PropertyDifference:
    """A property whose actual value differs from the template.

    Attributes:
        path: e.g. `/MaxSize`
        expected: the value in the template as JSON, or ""
        actual: the actual value as JSON, or ""
        kind: ADD, REMOVE or NOT_EQUAL
    """

    path: str
    expected: str
    actual: str
    kind: str


@dataclass(frozen=True)
class ResourceDrift:
    """The drift of one resource.

    Attributes:
        status: IN_SYNC, MODIFIED or DELETED
        expected: the compared properties in the template, as JSON
        actual: the actual properties, as JSON
    """

    stack_id: str
    logical_id: str
    physical_id: str
    type: str
    status: str
    expected: str
    actual: str
    differences: tuple[PropertyDifference, ...]
    time: datetime.datetime


@dataclass(frozen=True)
class DriftDetection:
    """A finished drift detection.

    Attributes:
        status: DETECTION_COMPLETE
        drift: DRIFTED, IN_SYNC or NOT_CHECKED
    """

    id: str
    stack_id: str
    status: str
    drift: str
    time: datetime.datetime
    resources: tuple[ResourceDrift, ...]

    @property
    def drifted(self) -> int:
        """The number of resources that have drifted."""
        return sum(resource.status in ("MODIFIED", "DELETED") for resource in self.resources)
