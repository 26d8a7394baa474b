"""Drift detection: resources of a cluster's stacks that differ from their templates.

CloudFormation detects drift for each stack separately: drift detection on a root stack does not include its nested
stacks (user guide, "Detect unmanaged configuration changes to stacks and resources with drift detection").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.types import Client

POLL_INTERVAL_SECONDS = 2.0  # seconds between two polls
TIMEOUT = timedelta(minutes=15)
DRIFTED_STATUSES = ("MODIFIED", "DELETED")


@dataclass(frozen=True)
class Difference:
    """A property that differs from the template.

    Attributes:
        path: the property's path, e.g. `/Tags/0/Value`.
        expected: the value in the template.
        actual: the current value.
        change: `ADD`, `REMOVE` or `NOT_EQUAL`.
    """

    path: str
    expected: str
    actual: str
    change: str


@dataclass(frozen=True)
class DriftedResource:
    """A resource that differs from the template.

    Attributes:
        stack: name of its stack.
        logical_id: its logical id.
        physical_id: its physical id.
        type: e.g. `AWS::EC2::SecurityGroup`.
        status: `MODIFIED` or `DELETED`.
        differences: the properties that differ.
    """

    stack: str
    logical_id: str
    physical_id: str
    type: str
    status: str
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Drift:
    """The result of drift detection.

    Attributes:
        resources: the resources that differ from their templates.
        failures: why drift detection failed, by stack name; drift that it detected before it failed is in `resources`.
    """

    resources: tuple[DriftedResource, ...]
    failures: Mapping[str, str]


def detect_drift(account: Account, stacks: Mapping[str, str]) -> Drift:
    """Detect drift of several stacks in parallel, and wait for the results.

    Args:
        stacks: names of the stacks, by the stack's ARN.
    """
    client = account.client("cloudformation")
    failures: dict[str, str] = {}
    detections: dict[str, str] = {}  # ids of the drift detections in progress, by the stack's ARN
    for stack_id, name in stacks.items():
        with _record_error(failures, name):
            detections[stack_id] = client.detect_stack_drift(StackName=stack_id)["StackDriftDetectionId"]
    resources: list[DriftedResource] = []
    deadline = account.clock.now() + TIMEOUT
    while detections:
        is_timed_out = account.clock.now() >= deadline
        for stack_id, detection_id in list(detections.items()):
            name = stacks[stack_id]
            with _record_error(failures, name):
                status = client.describe_stack_drift_detection_status(StackDriftDetectionId=detection_id)
                in_progress = status["DetectionStatus"] == "DETECTION_IN_PROGRESS"
                if in_progress and not is_timed_out:
                    continue
                if in_progress:
                    failures[name] = f"not finished after {TIMEOUT.total_seconds() // 60:.0f} minutes"
                elif status["DetectionStatus"] == "DETECTION_FAILED":
                    failures[name] = status.get("DetectionStatusReason", "detection failed")
                resources += _read_drifted_resources(client, stack_id, name)
            del detections[stack_id]
        if detections:
            account.clock.sleep(POLL_INTERVAL_SECONDS)
    stack_order = list(stacks.values())
    resources.sort(key=lambda resource: (stack_order.index(resource.stack), resource.logical_id))
    return Drift(tuple(resources), failures)


@contextmanager
def _record_error(failures: dict[str, str], stack_name: str) -> Iterator[None]:
    """Record an AWS error as the failure of one stack, so that drift detection continues for the other stacks."""
    try:
        with translate_aws_errors():
            yield
    except AwsError as error:
        failures[stack_name] = str(error)


def _read_drifted_resources(client: Client, stack_id: str, stack_name: str) -> list[DriftedResource]:
    resources: list[DriftedResource] = []
    page_arguments: dict[str, str] = {}
    while True:
        response = client.describe_stack_resource_drifts(
            StackName=stack_id, StackResourceDriftStatusFilters=list(DRIFTED_STATUSES), **page_arguments
        )
        resources += [
            DriftedResource(
                stack=stack_name,
                logical_id=entry["LogicalResourceId"],
                physical_id=entry.get("PhysicalResourceId", ""),
                type=entry["ResourceType"],
                status=entry["StackResourceDriftStatus"],
                differences=tuple(
                    Difference(
                        path=difference["PropertyPath"],
                        expected=difference["ExpectedValue"],
                        actual=difference["ActualValue"],
                        change=difference["DifferenceType"],
                    )
                    for difference in entry.get("PropertyDifferences") or ()
                ),
            )
            for entry in response["StackResourceDrifts"]
        ]
        if not response.get("NextToken"):
            return resources
        page_arguments = {"NextToken": response["NextToken"]}
