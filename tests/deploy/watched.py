"""A small tree of stacks that a test can work on and watch: a network, a disk, and nodes that signal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from cloud import ACCESS_KEY, SimulatedClock
from clusters import in_memory
from served_api import Served, serving
from small_stacks import GATEWAY, REGION, VOLUME, group, nested, running, text, vpc

from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.aws.events import read_last_event
from cfngen.deploy.messages.message import Event, Message, Notice
from cfngen.deploy.watching.progress import Progress
from cfngen.deploy.watching.watch import InterruptChoice, PollingBudget, WatchResult, watch
from cfngen.sandbox.cloudformation import CloudFormation, LaunchedInstance, Stack

NAME = "k8s"
BOOT = 90
OFTEN = PollingBudget(tick=60)  # no messages in which only time passes


@dataclass
class Operator:
    """Somebody who begins operations and watches them.

    Attributes:
        engine: CloudFormation.
        served: its API.
        clock: the time.
        account: the account, as this operator.
        messages: what a watch has reported.
        choices: what to answer to each Ctrl-C; the last one again and again.
        asked: how often it was asked.
        signals: what instances signal, in the order of launch; SUCCESS once there are no more.
    """

    engine: CloudFormation
    served: Served
    clock: SimulatedClock
    account: Account
    messages: list[Message] = field(default_factory=list)
    choices: list[InterruptChoice] = field(default_factory=lambda: [InterruptChoice.DETACH])
    asked: int = 0
    signals: list[str | None] = field(default_factory=list)
    _bodies: tuple[str, ...] = ()

    @property
    def faults(self) -> Any:
        return self.served.faults

    @property
    def cloudformation(self) -> Any:
        return self.account.client("cloudformation")

    @property
    def root(self) -> Stack:
        return next(stack for stack in self.engine.stacks() if stack.name == NAME)

    @property
    def seconds(self) -> float:
        """How long the root has been changing."""
        return (self.root.events[-1].time - self.root.events[0].time).total_seconds()

    def body(self) -> str:
        """The root's template; those of the nested stacks are in S3."""
        nodes = group(2)
        nodes["Template"]["Properties"]["LaunchTemplateData"]["InstanceType"] = {"Ref": "Size"}
        size = {"Size": {"Type": "String", "Default": "t3.small"}}
        stacks = {
            "VpcStack": nested("vpc", text({"Vpc": vpc(), "Gateway": GATEWAY})),
            "DiskStack": nested("disk", text({"Disk": VOLUME})),
            "NodesStack": nested("nodes", text(nodes, Parameters=size), Parameters={"Size": {"Ref": "Size"}})
            | {"DependsOn": ["VpcStack"]},
        }
        return text(stacks, Parameters=size)

    def create(self, **options: Any) -> str:
        """Begin to create the tree; return the root's ARN."""
        answer = self.cloudformation.create_stack(StackName=NAME, TemplateBody=self.body(), **options)
        return str(answer["StackId"])

    def created(self) -> str:
        """Create the tree; return the root's ARN."""
        root_id = self.create()
        self.engine.wait(self.engine.stack(root_id))
        return root_id

    def update(self, size: str, **options: Any) -> Event | None:
        """Begin to replace the nodes; return the last event before."""
        before = read_last_event(self.account, NAME)
        given = [{"ParameterKey": "Size", "ParameterValue": size}]
        self.cloudformation.update_stack(StackName=NAME, UsePreviousTemplate=True, Parameters=given, **options)
        return before

    def watch(self, root_id: str = NAME, **options: Any) -> WatchResult:
        options = {"budget": OFTEN, "on_interrupt": self.interrupted, **options}
        return watch(self.account, root_id, report=self.messages.append, **options)

    def interrupted(self) -> InterruptChoice:
        self.asked += 1
        return self.choices.pop(0) if len(self.choices) > 1 else self.choices[0]

    @property
    def events(self) -> list[Event]:
        return [message for message in self.messages if isinstance(message, Event)]

    @property
    def notices(self) -> list[str]:
        return [message.text for message in self.messages if isinstance(message, Notice)]

    @property
    def progress(self) -> list[Progress]:
        return [message for message in self.messages if isinstance(message, Progress)]

    def happened(self) -> set[str]:
        """Ids of all events of all stacks that the engine knows."""
        return {event.id for stack in self.engine.stacks() for event in stack.events}

    def boots(self, launched: LaunchedInstance) -> None:
        outcome = self.signals.pop(0) if self.signals else "SUCCESS"
        stacks = (stack for stack in self.engine.stacks() if "Group" in stack.template.resources)
        [stack] = (stack for stack in stacks if stack.status != "DELETE_COMPLETE")

        def signal() -> None:
            if outcome and launched.instance_id in running():
                self.engine.signal_resource(stack.name, "Group", launched.instance_id, outcome)

        self.engine.clock.schedule(BOOT, signal)


@contextlib.contextmanager
def operating() -> Iterator[Operator]:
    """An account of an operator who may do everything; whatever waits, waits by the simulated clock."""
    with in_memory(), pytest.MonkeyPatch.context() as patch:
        operators: list[Operator] = []
        engine = CloudFormation(
            REGION,
            on_launch=lambda launched: operators[0].boots(launched),
            durations={"AWS::EC2::VPC": 15, "AWS::EC2::Volume": 15},
        )
        clock = SimulatedClock(engine)
        for module in ("botocore.endpoint", "botocore.waiter"):
            patch.setattr(f"{module}.time", SimpleNamespace(sleep=clock.sleep))
        with serving(engine) as served:
            session = boto3.Session(ACCESS_KEY, "secret", region_name=REGION)
            operators.append(Operator(engine, served, clock, connect(session, REGION, clock=clock)))
            yield operators[0]


def ctrl_c() -> None:
    raise KeyboardInterrupt


def lines(events: list[Event] | tuple[Event, ...]) -> list[str]:
    """Events as `path/to/Resource STATUS`."""
    return [f"{'/'.join((*event.path, event.logical_id))} {event.status}" for event in events]
