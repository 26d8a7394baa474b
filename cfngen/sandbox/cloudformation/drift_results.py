"""The emulator's model of a drift detection: the drift of a stack, of its resources and of their properties."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True)
class PropertyDifference:
    """A property whose actual value differs from the template.

    Attributes:
        path: the path below the resource's properties, e.g. `/MaxSize`
        expected: the value in the template; "" if the template has none
        actual: the actual value; "" if the actual resource has none
        kind: the DifferenceType: ADD, REMOVE or NOT_EQUAL
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
        actual: the compared properties of the actual resource, as JSON; "" if it is deleted
        time: when the resource was compared
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
        drift: the drift status of the stack: DRIFTED, IN_SYNC or NOT_CHECKED
        time: when the drift detection ran
        resources: the drift of each compared resource
    """

    id: str
    stack_id: str
    status: str
    drift: str
    time: datetime.datetime
    resources: tuple[ResourceDrift, ...]

    @property
    def drifted_resource_count(self) -> int:
        """The number of resources that have drifted."""
        return sum(resource.status in ("MODIFIED", "DELETED") for resource in self.resources)
