"""Drift detection: resources of a cluster's stacks that differ from their templates, and what puts them back.

CloudFormation detects drift for each stack separately: drift detection on a root stack does not include its nested
stacks (user guide, "Detect unmanaged configuration changes to stacks and resources with drift detection").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.checked_answers import read_document
from cfngen.deploy.aws.drift_commands import ROUTE, SECURITY_GROUP, is_paused, revert_commands
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.group_rules import RULE_TYPES, GroupRule, inline_rules, read_ingress_rules, rule_of_resource
from cfngen.deploy.aws.stacks import find_stack, list_resources, read_template
from cfngen.deploy.aws.types import AwsObject
from cfngen.templates.evaluation import EvaluatedTemplate
from cfngen.templates.expressions import reference
from cfngen.text import minutes_text

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
        commands: commands of the AWS CLI that put the template's values back, in order; empty if there are none.
    """

    stack: str
    logical_id: str
    physical_id: str
    type: str
    status: str
    differences: tuple[Difference, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drift:
    """The result of drift detection.

    Attributes:
        resources: the resources that differ from their templates.
        failures: why drift detection failed, by stack name; drift that it detected before it failed is in `resources`.
    """

    resources: tuple[DriftedResource, ...]
    failures: Mapping[str, str]


def detect_drift(account: Account, stacks: Mapping[str, str], cluster: str) -> Drift:
    """Detect drift of several stacks in parallel, and wait for the results.

    The desired capacity of a group is no drift, since autoscalers set it, and neither is a rule that was deleted and
    added again by hand: CloudFormation knows rules by their ids. What CloudFormation does not look for is found here:
    rules of security groups that no template has, unless a controller of the cluster has made them.

    Args:
        stacks: names of the stacks, by the stack's ARN.
    """
    failures: dict[str, str] = {}
    compared: list[_ComparedResource] = []
    for stack_id in _detect(account, stacks, failures):
        with _record_error(failures, stacks[stack_id]):
            compared += _read_compared_resources(account, _Stack(account, stack_id, stacks[stack_id]), failures)
    rules = _Rules()
    # Without all of the templates' rules, one of them might be taken for one that no template has.
    if not failures:
        with _record_error(failures, "security groups"):
            rules = _compare_rules(account, compared, cluster)
    drifted = (_drifted_resource(resource, rules, account.region) for resource in compared)
    resources = [resource for resource in drifted if resource]
    stack_order = list(stacks.values())
    resources.sort(key=lambda resource: (stack_order.index(resource.stack), resource.logical_id))
    return Drift(tuple(resources), failures)


def _detect(account: Account, stacks: Mapping[str, str], failures: dict[str, str]) -> Iterator[str]:
    """Yield the ARN of each stack as soon as its detection has ended, or has failed after it began."""
    client = account.client("cloudformation")
    detections: dict[str, str] = {}  # ids of the drift detections in progress, by the stack's ARN
    for stack_id, name in stacks.items():
        with _record_error(failures, name):
            detections[stack_id] = client.detect_stack_drift(StackName=stack_id)["StackDriftDetectionId"]
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
                    failures[name] = f"not finished after {minutes_text(TIMEOUT.total_seconds())}"
                elif status["DetectionStatus"] == "DETECTION_FAILED":
                    failures[name] = status.get("DetectionStatusReason", "detection failed")
                yield stack_id
            del detections[stack_id]
        if detections:
            account.clock.sleep(POLL_INTERVAL_SECONDS)


@contextmanager
def _record_error(failures: dict[str, str], stack_name: str) -> Iterator[None]:
    """Record an AWS error as the failure of one stack, so that drift detection continues for the other stacks."""
    try:
        with translate_aws_errors():
            yield
    except AwsError as error:
        failures[stack_name] = str(error)


class _Stack:
    """A stack, with the properties in its template, which are read only if they are needed."""

    def __init__(self, account: Account, id_: str, name: str) -> None:
        self._account = account
        self.id = id_
        self.name = name

    def properties(self, logical_id: str) -> Mapping[str, Any]:
        """Return the properties of a resource, with the values of parameters and the ids of resources."""
        properties = self._template.resources.get(logical_id, {}).get("Properties", {})
        return {name: self._with_ids(value) for name, value in properties.items()}

    @cached_property
    def _template(self) -> EvaluatedTemplate:
        stack = find_stack(self._account, self.id)
        values, looked_up = (stack.parameters, stack.looked_up) if stack else ({}, {})
        return EvaluatedTemplate(read_template(self._account, self.id), values, looked_up)

    @cached_property
    def _physical_ids(self) -> dict[str, str]:
        return {resource.logical_id: resource.physical_id for resource in list_resources(self._account, self.id)}

    def _with_ids(self, value: object) -> object:
        """Return the id of a resource in place of a reference to it; `GroupId` and the like are ids as well."""
        referenced = reference(value)
        if not referenced or not (referenced.attribute.endswith("Id") or not referenced.attribute):
            return value
        return self._physical_ids.get(referenced.name, value)


@dataclass(frozen=True)
class _ComparedResource:
    """A resource that CloudFormation has compared with its template.

    Attributes:
        expected: its properties in the template.
        actual: its actual properties; None if it was deleted.
    """

    stack: str
    entry: AwsObject
    expected: Mapping[str, Any]
    actual: Mapping[str, Any] | None

    @property
    def physical_id(self) -> str:
        return str(self.entry.get("PhysicalResourceId", ""))

    @property
    def kind(self) -> str:
        return str(self.entry["ResourceType"])

    @property
    def rules(self) -> Iterable[GroupRule]:
        """The rules of security groups that the template makes by this resource."""
        rule = rule_of_resource(self.kind, self.expected)
        return (rule,) if rule else inline_rules(self.physical_id, self.expected)


def _read_compared_resources(account: Account, stack: _Stack, failures: dict[str, str]) -> Iterator[_ComparedResource]:
    operation = "cloudformation.describe_stack_resource_drifts"
    for entry in account.items(operation, "StackResourceDrifts", StackName=stack.id):
        if entry["StackResourceDriftStatus"] != "DELETED":
            yield _ComparedResource(stack.name, entry, _properties(entry, "Expected"), _properties(entry, "Actual"))
            continue
        # "For resources whose StackResourceDriftStatus is DELETED, this structure will not be present" (API reference).
        expected: Mapping[str, Any] = {}
        if entry["ResourceType"] in (ROUTE, *RULE_TYPES):
            with _record_error(failures, stack.name):
                expected = stack.properties(entry["LogicalResourceId"])
        yield _ComparedResource(stack.name, entry, expected, None)


def _properties(entry: AwsObject, which: str) -> Mapping[str, Any]:
    member = f"{which}Properties"
    return read_document(entry.get(member) or "{}", "cloudformation:DescribeStackResourceDrifts", member)


@dataclass(frozen=True)
class _Rules:
    """The rules for incoming traffic that security groups have, compared with those of the templates.

    Attributes:
        added: those that no template has.
    """

    present: frozenset[GroupRule] = frozenset()
    added: frozenset[GroupRule] = frozenset()


def _compare_rules(account: Account, compared: Iterable[_ComparedResource], cluster: str) -> _Rules:
    compared = tuple(compared)
    expected = frozenset(rule for resource in compared for rule in resource.rules)
    # CloudFormation compares the rules that a group itself lists.
    compared_here = {
        resource.physical_id
        for resource in compared
        if resource.kind == SECURITY_GROUP
        and resource.actual is not None
        and "SecurityGroupIngress" not in resource.expected
    }
    groups = compared_here | {rule.group for rule in expected}
    if not groups:
        return _Rules()
    present = frozenset(read_ingress_rules(account, sorted(groups), cluster))
    if any(resource.kind in RULE_TYPES and not resource.rules for resource in compared):
        return _Rules(present)
    return _Rules(present, frozenset(rule for rule in present - expected if rule.group in compared_here))


def _drifted_resource(resource: _ComparedResource, rules: _Rules, region: str) -> DriftedResource | None:
    """Return a resource that differs from its template; None if it does not, or is not meant to be as there."""
    status, entry = resource.entry["StackResourceDriftStatus"], resource.entry
    all_differences = [
        Difference(
            path=difference["PropertyPath"],
            expected=difference["ExpectedValue"],
            actual=difference["ActualValue"],
            change=difference["DifferenceType"],
        )
        for difference in entry.get("PropertyDifferences") or ()
    ]
    differences = [difference for difference in all_differences if difference.path != "/DesiredCapacity"]
    added = sorted((rule for rule in rules.added if rule.group == resource.physical_id), key=str)
    differences += [Difference("/SecurityGroupIngress", "", str(rule), "ADD") for rule in added]
    commands = (
        ()
        if status not in DRIFTED_STATUSES
        else revert_commands(resource.kind, resource.physical_id, resource.expected, resource.actual, region)
    )
    is_added_again = resource.actual is None and bool(resource.rules) and rules.present.issuperset(resource.rules)
    is_as_meant = status not in DRIFTED_STATUSES or (all_differences and not differences) or is_added_again
    if not added and (is_as_meant or is_paused(resource.kind, resource.actual or {})):
        return None
    return DriftedResource(
        stack=resource.stack,
        logical_id=entry["LogicalResourceId"],
        physical_id=resource.physical_id,
        type=resource.kind,
        status="MODIFIED" if added else status,
        differences=tuple(differences),
        commands=(*commands, *(rule.revoke_command(region) for rule in added)),
    )
