"""Drift: what the account has, compared with what the template says."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cfngen.sandbox.cloudformation.differences import differing
from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.cloudformation.handlers import HANDLERS
from cfngen.sandbox.cloudformation.properties import call
from cfngen.sandbox.cloudformation.stack import STABLE, Resource, Stack

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region


@dataclass(frozen=True)
class PropertyDifference:
    """A property that is not as the template says.

    Attributes:
        path: e.g. `/MaxSize`
        expected: as JSON, or nothing
        actual: as JSON, or nothing
        kind: ADD, REMOVE or NOT_EQUAL
    """

    path: str
    expected: str
    actual: str
    kind: str


@dataclass(frozen=True)
class ResourceDrift:
    """What a detection has found about one resource.

    Attributes:
        status: IN_SYNC, MODIFIED or DELETED
        expected: the compared properties as the template says, as JSON
        actual: as the account has them, as JSON
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
class Detection:
    """A finished detection.

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
        """How many resources have drifted."""
        return sum(resource.status in ("MODIFIED", "DELETED") for resource in self.resources)


def detect(service: Region, stack: Stack, identifier: str) -> Detection:
    """Compare every resource of a stack that can be compared; nested stacks are detected by themselves.

    Raises:
        ValidationError: the stack is not in a status for it
    """
    if stack.status not in STABLE | {"UPDATE_ROLLBACK_FAILED"}:
        raise ValidationError(f"Drift detection cannot be performed on stack [{stack.id}] in status {stack.status}")
    found = []
    for resource in stack.resources.values():
        handler = HANDLERS.get(resource.type)
        if handler is None or not handler.detects_drift or not resource.exists:
            continue
        found.append(_compared(service, stack, resource, handler.actual(call(service, stack, resource))))
        resource.drift = found[-1].status
    drifted = any(each.status != "IN_SYNC" for each in found)
    stack.drift = "DRIFTED" if drifted else "IN_SYNC" if found else "NOT_CHECKED"
    stack.drift_checked = service.clock.time
    return Detection(identifier, stack.id, "DETECTION_COMPLETE", stack.drift, service.clock.time, tuple(found))


def _compared(service: Region, stack: Stack, resource: Resource, actual: Mapping[str, Any] | None) -> ResourceDrift:
    keys = resource.properties if actual is None else actual
    expected = {key: _ordered(resource.properties[key]) for key in keys if key in resource.properties}
    there = (
        {} if actual is None else {key: _ordered(value) for key, value in actual.items() if value or key in expected}
    )
    differences = tuple(
        PropertyDifference(path, _json(old), _json(new), "ADD" if old is None else "REMOVE" if new is None else
                           "NOT_EQUAL")
        for path, old, new in (differing(expected, there) if actual is not None else ())
    )  # fmt: skip
    status = "DELETED" if actual is None else "MODIFIED" if differences else "IN_SYNC"
    return ResourceDrift(
        stack.id, resource.logical_id, resource.physical_id, resource.type, status,
        json.dumps(expected), "" if actual is None else json.dumps(there), differences, service.clock.time,
    )  # fmt: skip


def _ordered(value: Any) -> Any:
    """Lists whose order means nothing, in one order."""
    return sorted(value, key=lambda each: json.dumps(each, sort_keys=True)) if isinstance(value, list) else value


def _json(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def found(detections: list[Detection], stack: Stack) -> list[ResourceDrift]:
    """What the last detection has found about each resource of a stack."""
    for detection in reversed(detections):
        if detection.stack_id == stack.id:
            return list(detection.resources)
    return []
