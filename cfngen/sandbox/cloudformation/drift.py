"""Drift detection: compares the actual resources with the template."""

from __future__ import annotations

import json

from cfngen.sandbox.cloudformation.change_set_diff import change_type, find_differences
from cfngen.sandbox.cloudformation.change_sets import text_in_api
from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.cloudformation.handlers import HANDLERS
from cfngen.sandbox.cloudformation.properties import handler_call
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.stack import (
    STABLE_STATUSES,
    DriftDetection,
    PropertyDifference,
    Resource,
    ResourceDrift,
    Stack,
)
from cfngen.sandbox.untyped import JsonDict, Properties

# The DifferenceTypes of drift detection, by the change from the expected value to the actual one.
DIFFERENCE_TYPES = {"Add": "ADD", "Remove": "REMOVE", "Modify": "NOT_EQUAL"}


def detect_drift(cloud: Region, stack: Stack, identifier: str) -> DriftDetection:
    """Compare all resources of a stack whose type supports drift detection with their actual state.

    Resources of its nested stacks are not compared.

    Raises:
        ValidationError: the stack's status does not allow drift detection
    """
    if stack.status not in STABLE_STATUSES | {"UPDATE_ROLLBACK_FAILED"}:
        raise ValidationError(f"Drift detection cannot be performed on stack [{stack.id}] in status {stack.status}")
    drifts = []
    for resource in stack.resources.values():
        handler = HANDLERS.get(resource.type)
        if handler is None or not handler.supports_drift_detection or not resource.exists:
            continue
        actual_properties = handler.read_actual(handler_call(cloud, stack, resource))
        resource_drift = _compare_resource(cloud, stack, resource, actual_properties)
        resource.drift = resource_drift.status
        drifts.append(resource_drift)
    if not drifts:
        stack.drift = "NOT_CHECKED"
    elif all(drift.status == "IN_SYNC" for drift in drifts):
        stack.drift = "IN_SYNC"
    else:
        stack.drift = "DRIFTED"
    stack.drift_checked = cloud.clock.time
    return DriftDetection(
        id=identifier,
        stack_id=stack.id,
        drift=stack.drift,
        time=cloud.clock.time,
        resources=tuple(drifts),
    )


def _compare_resource(cloud: Region, stack: Stack, resource: Resource, actual: Properties | None) -> ResourceDrift:
    """Compare a resource's properties in the template with its actual ones.

    Args:
        actual: the actual values of the properties to compare; None if the actual resource is deleted
    """
    compared_keys = resource.properties if actual is None else actual
    expected = {key: _sorted(resource.properties[key]) for key in compared_keys if key in resource.properties}
    actual_values: JsonDict = {}
    differences: tuple[PropertyDifference, ...] = ()
    if actual is None:
        status = "DELETED"
    else:
        actual_values = {key: _sorted(value) for key, value in actual.items() if value or key in expected}
        differences = tuple(
            PropertyDifference(
                path=path,
                expected=text_in_api(expected_value) or "",
                actual=text_in_api(actual_value) or "",
                kind=DIFFERENCE_TYPES[change_type(expected_value, actual_value)],
            )
            for path, expected_value, actual_value in find_differences(expected, actual_values)
        )
        status = "MODIFIED" if differences else "IN_SYNC"
    return ResourceDrift(
        stack_id=stack.id,
        logical_id=resource.logical_id,
        physical_id=resource.physical_id,
        type=resource.type,
        status=status,
        # API reference, StackResourceDrift: not present for deleted resources.
        expected="" if actual is None else json.dumps(expected),
        actual="" if actual is None else json.dumps(actual_values),
        differences=differences,
        time=cloud.clock.time,
    )


def _sorted(value: object) -> object:
    """Sort a list, because drift detection ignores the order of lists; other values are returned unchanged."""
    return sorted(value, key=lambda item: json.dumps(item, sort_keys=True)) if isinstance(value, list) else value
