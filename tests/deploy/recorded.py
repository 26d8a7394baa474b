"""CloudFormation's answers about change sets in the shapes that botocore's model of the service has.

For what a change set can say and the emulator never does: noise between nested stacks, incomplete answers, throttling.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import boto3
import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.loaders import Loader, create_loader
from botocore.validate import validate_parameters

from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.account import Account
from cfngen.deploy.plan.plan import PlanRequest
from cfngen.templates import generate

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STACK_ID = "arn:aws:cloudformation:us-west-2:123456789012:stack/kubernetes/11111111-1111-1111-1111-111111111111"
CHANGE_SET = (
    "arn:aws:cloudformation:us-west-2:123456789012:changeSet/cfngen-plan-one/22222222-2222-2222-2222-222222222222"
)
NESTED = "AWS::CloudFormation::Stack"
UNKNOWN_VALUE = "{{changeSet:KNOWN_AFTER_APPLY}}"

Answer = Callable[[dict[str, Any]], dict[str, Any]]


class RefusedError(Exception):
    """An answer that is an error of the service."""

    def __init__(self, code: str, message: str = "no", status: int = 400) -> None:
        super().__init__(code)
        self.code, self.message, self.status = code, message, status


class TestClock:
    """A clock that only waiting moves."""

    __test__ = False

    def __init__(self) -> None:
        self.time = NOW
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += timedelta(seconds=seconds)


class Recorded:
    """A CloudFormation that answers as it is told; answers and arguments are checked against the service's model.

    Attributes:
        calls: each call's operation and arguments, in order.
        change_sets: descriptions by ARN.
        stack: the root's description; None if there is no stack.
        answers: what answers an operation in another way than usual.
    """

    def __init__(self, *, exists: bool = True) -> None:
        self.clock = TestClock()
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.change_sets: dict[str, dict[str, Any]] = {}
        self.stack: dict[str, Any] | None = (
            {"StackName": "kubernetes", "StackId": STACK_ID, "StackStatus": "CREATE_COMPLETE", "CreationTime": NOW}
            if exists
            else None
        )
        self.answers: dict[str, Answer] = {}
        self.summaries: list[dict[str, Any]] = []
        session = _session()
        # Of the session, since a watch makes clients of its own.
        session.events.register("before-call", self._answer)
        self.account = Account(
            "123456789012",
            "us-west-2",
            "aws",
            "arn:aws:iam::123456789012:user/operator",
            session,
            self.clock,
        )

    def named(self, operation: str) -> list[dict[str, Any]]:
        """Arguments of each call of an operation."""
        return [arguments for name, arguments in self.calls if name == operation]

    def _answer(self, model: Any, params: dict[str, Any], **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        # No other service is asked for anything: the caller may not.
        other = model.service_model.service_name != "cloudformation"
        arguments = {} if other else dict(params["body"])
        self.calls.append((model.name, arguments))
        response = AWSResponse("https://recorded", 200, {}, None)
        try:
            if other:
                raise RefusedError("AccessDenied", status=403)
            answer = self.answers.get(model.name, getattr(self, f"_{model.name}", lambda _: {}))(arguments)
        except RefusedError as refusal:
            response.status_code = refusal.status
            error = {"Code": refusal.code, "Message": refusal.message}
            return response, {"Error": error, "ResponseMetadata": {"HTTPStatusCode": refusal.status}}
        if model.output_shape is not None:
            validate_parameters(answer, model.output_shape)
        return response, {**answer, "ResponseMetadata": {"HTTPStatusCode": 200}}

    def _DescribeStacks(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if self.stack is None:
            raise RefusedError("ValidationError", "Stack with id kubernetes does not exist")
        return {"Stacks": [self.stack]}

    def _CreateChangeSet(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if self.stack is None:
            self.stack = {
                "StackName": "kubernetes",
                "StackId": STACK_ID,
                "StackStatus": "REVIEW_IN_PROGRESS",
                "CreationTime": NOW,
            }
        return {"Id": CHANGE_SET, "StackId": STACK_ID}

    def _DescribeChangeSet(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if arguments["ChangeSetName"] not in self.change_sets:
            raise RefusedError("ChangeSetNotFound", status=404)
        return self.change_sets[arguments["ChangeSetName"]]

    def _DeleteChangeSet(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.change_sets.pop(arguments["ChangeSetName"], None)
        return {}

    def _ListChangeSets(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"Summaries": self.summaries}


def _session() -> boto3.Session:
    """A session of its own, since its events are; what it reads of botocore's data is read once for all tests."""
    core = botocore.session.Session()
    core.register_component("data_loader", _loader())
    return boto3.Session("AKIDEXAMPLE", "secret", region_name="us-west-2", botocore_session=core)


@cache
def _loader() -> Loader:
    return create_loader()


def description(arn: str = CHANGE_SET, *changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What DescribeChangeSet answers; complete unless `more` says otherwise."""
    name = more.pop("StackName", "kubernetes" if arn == CHANGE_SET else arn.split("/")[1])
    return {
        "ChangeSetId": arn,
        "ChangeSetName": arn.split("/")[1],
        "StackId": STACK_ID
        if arn == CHANGE_SET
        else f"arn:aws:cloudformation:us-west-2:123456789012:stack/{name}/33333333",
        "StackName": name,
        "Status": "CREATE_COMPLETE",
        "ExecutionStatus": "AVAILABLE",
        "CreationTime": NOW,
        "Changes": list(changes),
        **more,
    }


def nested_arn(logical_id: str) -> str:
    return f"arn:aws:cloudformation:us-west-2:123456789012:changeSet/kubernetes-{logical_id}-XYZ/44444444"


def change(
    logical_id: str,
    type_: str,
    *details: dict[str, Any],
    action: str = "Modify",
    replacement: str = "False",
    policy: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One entry of a change set, in the order of the documentation's examples."""
    found: dict[str, Any] = {"Action": action, "LogicalResourceId": logical_id, "ResourceType": type_}
    if action != "Add":
        found["PhysicalResourceId"] = f"physical-{logical_id}"
    if action == "Modify":
        found["Replacement"] = replacement
        found["Scope"] = sorted({each["Target"]["Attribute"] for each in details})
    if policy:
        found["PolicyAction"] = policy
    if before is not None:
        found["BeforeContext"] = json.dumps({"Properties": before})
    if after is not None:
        found["AfterContext"] = json.dumps({"Properties": after})
    return {"Type": "Resource", "ResourceChange": {**found, "Details": list(details), **more}}


def nested(logical_id: str, *details: dict[str, Any], action: str = "Modify") -> dict[str, Any]:
    """A nested stack that CloudFormation lists because it might change, as it always does."""
    automatic = {
        "Target": {"Attribute": "Properties", "RequiresRecreation": "Never"},
        "Evaluation": "Dynamic",
        "ChangeSource": "Automatic",
    }
    child = {} if action == "Remove" else {"ChangeSetId": nested_arn(logical_id)}
    return change(logical_id, NESTED, *([automatic, *details] if action == "Modify" else []), action=action, **child)


def detail(
    path: str,
    before: str | None = None,
    after: str | None = None,
    *,
    recreation: str = "Never",
    cause: str = "",
    source: str = "",
    evaluation: str = "",
) -> dict[str, Any]:
    """One detail; `source` follows from what `cause` looks like, and the evaluation from whether `after` is known."""
    attribute = "Tags" if path.startswith("Tags") else "Properties"
    target: dict[str, Any] = {"Attribute": attribute, "RequiresRecreation": recreation, "Path": f"/Properties/{path}"}
    if attribute == "Properties":
        target["Name"] = path.split("/")[0]
    if before is not None:
        target["BeforeValue"] = before
    if after is not None:
        target["AfterValue"] = after
    found: dict[str, Any] = {
        "Target": target,
        "Evaluation": evaluation or ("Dynamic" if after == UNKNOWN_VALUE else "Static"),
        "ChangeSource": source or ("DirectModification" if not cause else _source(cause)),
    }
    if cause:
        found["CausingEntity"] = cause
    return found


def _source(cause: str) -> str:
    return "ResourceAttribute" if "." in cause else "ParameterReference"


@cache
def default_cluster() -> Cluster:
    from cfngen.cluster.load import load

    return load(None, environ={}).cluster


@cache
def documents() -> Any:
    return generate(default_cluster())


def request(**more: Any) -> PlanRequest:
    """What `cfngen deploy` asks for, of the default cluster."""
    usual: dict[str, Any] = {
        "stack": "kubernetes",
        "cluster": default_cluster(),
        "template_url": "https://bucket.s3.us-west-2.amazonaws.com/kubernetes/0123/cluster.json",
        "documents": documents(),
        "token": "one",
        "capabilities": ("CAPABILITY_IAM",),
        "tags": {"cfngen:cluster": "kubernetes"},
    }
    return PlanRequest(**{**usual, **more})
