"""One root stack whose status, events and resources a test writes down, and whose operations end as it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from recorded import NESTED, NOW, STACK_ID, Recorded, RefusedError

from cfngen.deploy.aws.stacks import CLUSTER_TAG, StackView, find_stack
from cfngen.deploy.messages.message import Message, Notice, Question, Step
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.watching.watch import InterruptChoice

NAME = "kubernetes"
_BEGINNINGS = {
    "ContinueUpdateRollback": "UPDATE_ROLLBACK_IN_PROGRESS",
    "RollbackStack": "UPDATE_ROLLBACK_IN_PROGRESS",
    "DeleteStack": "DELETE_IN_PROGRESS",
}


def arn(name: str) -> str:
    return STACK_ID.replace(f"/{NAME}/", f"/{name}/")


def event(
    status: str, logical_id: str = NAME, *, stack: str = NAME, reason: str = "", time: datetime = NOW, token: str = ""
) -> dict[str, Any]:
    """An event without its id; one of the stack itself unless a resource is named."""
    own = logical_id == stack
    return {
        "StackId": arn(stack),
        "StackName": stack,
        "LogicalResourceId": logical_id,
        "PhysicalResourceId": arn(stack) if own else f"physical-{logical_id}",
        "ResourceType": NESTED if own else "AWS::EC2::VPC",
        "ResourceStatus": status,
        "Timestamp": time,
        **({"ResourceStatusReason": reason} if reason else {}),
        **({"ClientRequestToken": token} if token else {}),
    }


def resource(
    logical_id: str, status: str, *, type_: str = "AWS::EC2::VPC", physical_id: str = "", reason: str = ""
) -> dict[str, Any]:
    """A resource as ListStackResources has it."""
    return {
        "LogicalResourceId": logical_id,
        "PhysicalResourceId": physical_id or f"physical-{logical_id}",
        "ResourceType": type_,
        "ResourceStatus": status,
        "LastUpdatedTimestamp": NOW,
        **({"ResourceStatusReason": reason} if reason else {}),
    }


@dataclass
class End:
    """How an operation ends.

    Attributes:
        status: of the stack.
        events: of resources, oldest first, between the stack's own first and last one.
        resources: of the stack at the end; None leaves them as they are.
    """

    status: str
    events: Sequence[Mapping[str, Any]] = ()
    resources: Sequence[Mapping[str, Any]] | None = None


@dataclass
class Told:
    """What a command asks and reports.

    Attributes:
        answer: the user's answer to every question.
        choice: the user's answer to Ctrl-C.
    """

    answer: bool = True
    choice: InterruptChoice = InterruptChoice.DETACH
    questions: list[Question] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    @property
    def waiting(self) -> Interaction:
        return Interaction(self.messages.append, self._consent, lambda: self.choice)

    @property
    def notices(self) -> list[str]:
        return [message.text for message in self.messages if isinstance(message, Notice)]

    @property
    def steps(self) -> list[str]:
        return [message.text for message in self.messages if isinstance(message, Step)]

    def _consent(self, question: Question) -> bool:
        self.questions.append(question)
        return self.answer


class RecordedStack(Recorded):
    """A root in some status.

    Attributes:
        resources: of each stack, by its name.
        events: of each stack, by its name, oldest first.
        ends: how the operations end that are begun, in turn.
        others: further roots.
    """

    def __init__(self, status: str, *ends: End, cluster: str = NAME, protected: bool = False) -> None:
        super().__init__()
        self.stack = {
            "StackName": NAME,
            "StackId": STACK_ID,
            "StackStatus": status,
            "CreationTime": NOW,
            "EnableTerminationProtection": protected,
            "Tags": [{"Key": CLUSTER_TAG, "Value": cluster}] if cluster else [],
        }
        self.ends = list(ends)
        self.children: dict[str, dict[str, Any]] = {}
        self.others: list[dict[str, Any]] = []
        self.resources: dict[str, list[dict[str, Any]]] = {}
        self.events: dict[str, list[dict[str, Any]]] = {NAME: [event(status)]}
        self.answers |= {
            "DescribeStacks": self._describe,
            "DescribeStackEvents": self._history,
            "ListStackResources": self._resources,
            **{operation: lambda sent, name=operation: self._operate(name) for operation in _BEGINNINGS},
        }

    @property
    def view(self) -> StackView:
        view = find_stack(self.account, STACK_ID)
        assert view is not None
        return view

    def nest(self, logical_id: str, status: str, *resources: dict[str, Any], own: str = "UPDATE_FAILED") -> str:
        """Put a nested stack into the root, in a status of its own; return its name."""
        name = f"{NAME}-{logical_id}-1"
        self.children[name] = {
            "StackName": name,
            "StackId": arn(name),
            "StackStatus": status,
            "CreationTime": NOW,
            "ParentId": STACK_ID,
        }
        self.resources[name] = list(resources)
        self.events.setdefault(name, [event(status, name, stack=name)])
        entry = resource(logical_id, own, type_=NESTED, physical_id=arn(name), reason=f"{logical_id} failed")
        self.resources.setdefault(NAME, []).append(entry)
        return name

    def interrupt_waiting(self) -> None:
        """Let Ctrl-C come whenever something waits."""

        def interrupt(_: float) -> None:
            raise KeyboardInterrupt

        self.clock.sleep = interrupt  # type: ignore[method-assign]

    def _name(self, sent: Mapping[str, Any]) -> str:
        name = str(sent["StackName"])
        return name.split("/")[1] if name.startswith("arn:") else name

    def _describe(self, sent: dict[str, Any]) -> dict[str, Any]:
        assert self.stack is not None
        if "StackName" not in sent:
            return {"Stacks": [self.stack, *self.children.values(), *self.others]}
        known = {NAME: self.stack, **self.children}
        stack = known.get(self._name(sent))
        if stack is None or (stack["StackStatus"] == "DELETE_COMPLETE" and not sent["StackName"].startswith("arn:")):
            raise RefusedError("ValidationError", f"Stack with id {sent['StackName']} does not exist")
        return {"Stacks": [stack]}

    def _history(self, sent: dict[str, Any]) -> dict[str, Any]:
        name = self._name(sent)
        entries = [{"EventId": f"{name}-{number}", **entry} for number, entry in enumerate(self.events[name])]
        return {"StackEvents": entries[::-1]}

    def _resources(self, sent: dict[str, Any]) -> dict[str, Any]:
        return {"StackResourceSummaries": self.resources.get(self._name(sent), [])}

    def _operate(self, operation: str) -> dict[str, Any]:
        assert self.stack is not None
        end = self.ends.pop(0)
        self.clock.time += timedelta(minutes=1)
        entries = (event(_BEGINNINGS[operation]), *end.events, event(end.status))
        self.events[NAME] += [{**entry, "Timestamp": self.clock.time} for entry in entries]
        self.stack["StackStatus"] = end.status
        if end.resources is not None:
            self.resources[NAME] = list(end.resources)
        return {}
