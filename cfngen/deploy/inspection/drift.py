"""Where the resources of a cluster's stacks are no longer as their templates say.

CloudFormation compares each stack by itself: detection on a root does not look into nested stacks (user guide,
"Detect unmanaged configuration changes to stacks and resources with drift detection").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors

INTERVAL = 2.0  # seconds
PATIENCE = timedelta(minutes=15)
DRIFTED = ("MODIFIED", "DELETED")


@dataclass(frozen=True)
class Difference:
    """A property that is not as the template says.

    Attributes:
        path: where it is in the resource, e.g. `/Tags/0/Value`.
        expected: what the template says.
        actual: what it is.
        change: `ADD`, `REMOVE` or `NOT_EQUAL`.
    """

    path: str
    expected: str
    actual: str
    change: str


@dataclass(frozen=True)
class DriftedResource:
    """A resource that is not as the template says.

    Attributes:
        stack: name of its stack.
        logical_id: its name in the template.
        physical_id: its name in AWS.
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
    """What a detection found.

    Attributes:
        resources: those that differ.
        failures: why detection failed, by the name of the stack; what it found all the same is among the resources.
    """

    resources: tuple[DriftedResource, ...]
    failures: Mapping[str, str]


def detect(account: Account, stacks: Mapping[str, str]) -> Drift:
    """Compare stacks with what is there, side by side, and wait for the results.

    Args:
        account: where they are.
        stacks: their names by ARN.
    """
    client = account.client("cloudformation")
    failures: dict[str, str] = {}
    running: dict[str, str] = {}
    for identifier, name in stacks.items():
        with _noted(failures, name):
            running[identifier] = client.detect_stack_drift(StackName=identifier)["StackDriftDetectionId"]
    found: list[DriftedResource] = []
    end = account.clock.now() + PATIENCE
    while running:
        late = account.clock.now() >= end
        for identifier, detection in list(running.items()):
            name = stacks[identifier]
            with _noted(failures, name):
                status = client.describe_stack_drift_detection_status(StackDriftDetectionId=detection)
                going_on = status["DetectionStatus"] == "DETECTION_IN_PROGRESS"
                if going_on and not late:
                    continue
                if going_on:
                    failures[name] = f"not finished after {PATIENCE.total_seconds() // 60:.0f} minutes"
                elif status["DetectionStatus"] == "DETECTION_FAILED":
                    failures[name] = status.get("DetectionStatusReason", "detection failed")
                found += _resources(client, identifier, name)
            del running[identifier]
        if running:
            account.clock.sleep(INTERVAL)
    order = list(stacks.values())
    return Drift(tuple(sorted(found, key=lambda each: (order.index(each.stack), each.logical_id))), failures)


@contextmanager
def _noted(failures: dict[str, str], name: str) -> Iterator[None]:
    """Note a call that is refused as the failure of a stack: the others go on."""
    try:
        with translate_aws_errors():
            yield
    except AwsError as error:
        failures[name] = str(error)


def _resources(client: Any, identifier: str, name: str) -> list[DriftedResource]:
    found: list[DriftedResource] = []
    following: dict[str, str] = {}
    while True:
        answer = client.describe_stack_resource_drifts(
            StackName=identifier, StackResourceDriftStatusFilters=list(DRIFTED), **following
        )
        found += [
            DriftedResource(
                name,
                stack_resource_drift["LogicalResourceId"],
                stack_resource_drift.get("PhysicalResourceId", ""),
                stack_resource_drift["ResourceType"],
                stack_resource_drift["StackResourceDriftStatus"],
                tuple(
                    Difference(one["PropertyPath"], one["ExpectedValue"], one["ActualValue"], one["DifferenceType"])
                    for one in stack_resource_drift.get("PropertyDifferences") or ()
                ),
            )
            for stack_resource_drift in answer["StackResourceDrifts"]
        ]
        if not answer.get("NextToken"):
            return found
        following = {"NextToken": answer["NextToken"]}
