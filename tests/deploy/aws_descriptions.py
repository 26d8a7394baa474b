"""Stacks, instances and tags as AWS describes them to whoever deletes a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from answers import REGION, Answers, pairs
from in_moto import NUMBER
from recorded import RefusedError

from cfngen.deploy.aws.stacks import ResourceView, StackResource
from cfngen.deploy.messages.message import Event, Message, Question, Report
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.watching.watch import InterruptChoice

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNED = {"kubernetes.io/cluster/one": "owned"}
KINDS = {
    "vpc": "AWS::EC2::VPC",
    "sg": "AWS::EC2::SecurityGroup",
    "subnet": "AWS::EC2::Subnet",
    "rtb": "AWS::EC2::RouteTable",
    "vol": "AWS::EC2::Volume",
    "group": "AWS::AutoScaling::AutoScalingGroup",
    "key": "AWS::KMS::Key",
    "bucket": "AWS::S3::Bucket",
    "nat": "AWS::EC2::NatGateway",
    "role": "AWS::IAM::Role",
}


def arn(name: str) -> str:
    """The ARN of a stack."""
    return f"arn:aws:cloudformation:{REGION}:{NUMBER}:stack/{name}/{name}"


def resource(physical_id: str, status: str = "CREATE_COMPLETE", *, type_name: str = "", **more: Any) -> StackResource:
    """A resource of the stack `one`; its type is told by its id, e.g. `vpc-1`."""
    kind = type_name or KINDS[physical_id.partition("-")[0]]
    view = ResourceView(more.get("name", kind.rpartition(":")[2]), physical_id, kind, status, more.get("reason", ""))
    return StackResource(more.get("stack_id", arn("one")), more.get("path", ()), view)


def stacked(
    aws: Answers, *stacks: dict[str, Any], resources: Mapping[str, tuple[StackResource, ...]] | None = None
) -> None:
    """Let CloudFormation know stacks, each as DescribeStacks describes it, and their resources by the stacks' names."""
    known = {stack["StackName"]: stack for stack in stacks} | {each["StackId"]: each for each in stacks}
    held = {arn(name): of for name, of in (resources or {}).items()} | dict(resources or {})

    def describe(arguments: dict[str, Any]) -> dict[str, Any]:
        name = arguments.get("StackName", "")
        if name and name not in known:
            raise RefusedError("ValidationError", f"Stack with id {name} does not exist")
        return {"Stacks": [known[name]] if name else list(stacks)}

    def summaries(arguments: dict[str, Any]) -> dict[str, Any]:
        return {
            "StackResourceSummaries": [
                {
                    "LogicalResourceId": each.view.logical_id,
                    "PhysicalResourceId": each.view.physical_id,
                    "ResourceType": each.view.type,
                    "ResourceStatus": each.view.status,
                    "ResourceStatusReason": each.view.reason,
                    "LastUpdatedTimestamp": NOW,
                }
                for each in held.get(arguments["StackName"], ())
            ]
        }

    aws.given["cloudformation:DescribeStacks"] = describe
    aws.given["cloudformation:ListStackResources"] = summaries


def stack(name: str = "one", status: str = "CREATE_COMPLETE", **more: Any) -> dict[str, Any]:
    """A stack as DescribeStacks describes it."""
    described = {
        "StackName": name,
        "StackId": arn(name),
        "StackStatus": status,
        "CreationTime": NOW,
        "Tags": pairs(more.pop("tags", {"cfngen:cluster": "one"})),
        "Parameters": [
            {"ParameterKey": key, "ParameterValue": value} for key, value in more.pop("parameters", {}).items()
        ],
        "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in more.pop("outputs", {}).items()],
    }
    return {**described, **more}


def instance(identity: str, state: str = "running", vpc_id: str = "vpc-1", **tags: str) -> dict[str, Any]:
    """An instance as EC2 describes it, with the tags of the cluster `one` unless others are given."""
    return {
        "InstanceId": identity,
        "State": {"Name": state},
        "VpcId": vpc_id,
        "Tags": pairs(tags or OWNED),
    }


def scaling_group(name: str, sizes: tuple[int, int, int], **more: Any) -> dict[str, Any]:
    """A group as Auto Scaling describes it, whose sizes are the minimum, the maximum and the desired capacity."""
    minimum, maximum, desired = sizes
    return {
        "AutoScalingGroupName": name,
        "MinSize": minimum,
        "MaxSize": maximum,
        "DesiredCapacity": desired,
        "DefaultCooldown": 0,
        "AvailabilityZones": [],
        "HealthCheckType": "EC2",
        "CreatedTime": NOW,
        "Instances": [],
        **more,
    }


def running(*instances: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Answer DescribeInstances by its filters, as far as those of a deletion go."""

    def describe(arguments: dict[str, Any]) -> dict[str, Any]:
        filters = {each["Name"]: each["Values"] for each in arguments["Filters"]}
        found = [instance for instance in instances if all(_passes(instance, name, of) for name, of in filters.items())]
        return {"Reservations": [{"Instances": [each]} for each in found]}

    return describe


def _passes(each: dict[str, Any], name: str, values: list[str]) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in each["Tags"]}
    told = {
        "vpc-id": each["VpcId"],
        "instance-state-name": each["State"]["Name"],
        "instance-id": each["InstanceId"],
        **{f"tag:{key}": value for key, value in tags.items()},
    }
    if not name.startswith("tag:") and name not in told:
        raise AssertionError(f"EC2 has no filter {name}")
    return told.get(name, "") in values


@dataclass
class Deletions:
    """CloudFormation's deletions of the stack `one`, of which each ends in a status after some events.

    Attributes:
        ends: in which status each ends; the last is repeated.
        events: what happens in each, and how many seconds pass before each event.
        since: from which event each was watched.
    """

    aws: Answers
    ends: list[str] = field(default_factory=lambda: ["DELETE_COMPLETE"])
    events: list[tuple[float, Event]] = field(default_factory=list)
    begins: str = "CREATE_COMPLETE"
    protected: bool = False
    members: tuple[StackResource, ...] = ()
    inside: tuple[StackResource, ...] = ()
    since: list[Any] = field(default_factory=list)

    def describe(self, status: str) -> None:
        described = stack(status=status, EnableTerminationProtection=self.protected)
        stacked(self.aws, described, resources={arn("one"): self.members, arn("network"): self.inside})

    def watch(self, account: Any, stack_id: str, *, report: Report, since: Any, on_interrupt: Any) -> None:
        assert (stack_id, on_interrupt()) == (arn("one"), InterruptChoice.DETACH)
        self.since.append(since)
        for seconds, each in self.events:
            self.aws.clock.sleep(seconds)
            report(each)
        self.describe(self.ends.pop(0) if len(self.ends) > 1 else self.ends[0])


@dataclass
class Asked:
    """Who is told and asked."""

    agrees: bool = True
    told: list[Message] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    def consent(self, question: Question) -> bool:
        self.questions.append(question)
        return self.agrees

    @property
    def waiting(self) -> Interaction:
        return Interaction(self.told.append, self.consent, lambda: InterruptChoice.DETACH)
