"""A deployed cluster, for the tests of replacing its instances."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "cli"))

import aws_cli
from deployed import Place
from deployments import Operator, groups

from cfngen.cluster.load import parse
from cfngen.deploy.aws.launched_versions import RetypedSlot, find_retyped_slots
from cfngen.deploy.aws.stacks import ResourceView, find_stack, list_resource_tree
from cfngen.deploy.messages.message import Question
from cfngen.deploy.operations.replacing.messages import Replaced, ReplacementPlan, ReplacementProgress
from cfngen.deploy.operations.replacing.replace import replace
from cfngen.deploy.status.validation import validate
from cfngen.sandbox.services import capacity

NAME = "one"
ONE: dict[str, Any] = {"name": NAME, "nodeGroups": groups("general")}
SUBNETS = [{"zone": f"us-west-2{letter}"} for letter in "abc"]
THREE: dict[str, Any] = {**ONE, "controlPlane": {"count": 3}, "network": {"subnets": SUBNETS}}
MASTERS = {letter: f"Master{letter.upper()}AutoScalingGroup" for letter in "abc"}
NODES = "NodeGroupGeneralAutoScalingGroup"


class Cluster:
    """A deployed cluster, and somebody who replaces instances of it."""

    def __init__(self, where: Place, content: dict[str, Any]) -> None:
        self.where = where
        self.content = content
        session = where.session_of(SimpleNamespace(access_key="AKIAOPERATOR", secret_key="secret"))
        self.operator = Operator(SimpleNamespace(session=session, cluster=where.cluster, clock=where.clock))
        self.account = self.operator.account
        self.agrees = True
        assert self.operator.deploy(content).status == "CREATE_COMPLETE"

    def replace(self, name: str, instance_type: str = "", **options: Any) -> Replaced:
        self.operator.messages.clear()
        self.operator.questions.clear()

        def consent(question: Question) -> bool:
            self.operator.questions.append(question)
            return self.agrees

        return replace(
            self.account,
            NAME,
            parse(dict(self.content)),
            name,
            instance_type=instance_type,
            consent=consent,
            report=self.operator.messages.append,
            find_url_override=self.where.override,
            **options,
        )

    @property
    def plan(self) -> ReplacementPlan:
        [plan] = self.operator.reported(ReplacementPlan)
        return plan

    @property
    def states(self) -> list[str]:
        """The states that were reported, each once in its order."""
        return list(dict.fromkeys(message.state for message in self.operator.reported(ReplacementProgress)))

    def instance(self, group: str) -> str:
        """The newest instance of a group, by its logical id."""
        return self.where.instances(group)[-1]

    def instance_type(self, group: str) -> str:
        reservations = self.account.client("ec2").describe_instances(InstanceIds=[self.instance(group)])
        return str(reservations["Reservations"][0]["Instances"][0]["InstanceType"])

    def group_name(self, group: str) -> str:
        [name] = [view.physical_id for view in self.views() if view.logical_id == group]
        return name

    def views(self) -> list[ResourceView]:
        """The resources of all its stacks."""
        stack = find_stack(self.account, NAME)
        assert stack is not None
        return [resource.view for resource in list_resource_tree(self.account, stack.id)]

    def retyped(self) -> tuple[RetypedSlot, ...]:
        """The slots that launch another type than their stack says."""
        return find_retyped_slots(self.account, self.views())

    def valid(self) -> bool:
        cluster = parse(dict(self.content))
        return validate(self.account, NAME, cluster, find_url_override=self.where.override).valid

    def sell_out(self, instance_type: str, *zones: str) -> None:
        capacity.remove_capacity(self.account.region, instance_type, *zones)

    def lose(self, group: str) -> None:
        """Let EC2 lose the newest instance of a group."""
        self.account.client("ec2").terminate_instances(InstanceIds=[self.instance(group)])
        self.where.world.machines.refresh()
        self.where.clock.sleep(120)

    def type(self, command: str) -> None:
        """Carry out a command of the AWS CLI."""
        aws_cli.call(command.split(), self.account.client)

    def versions(self) -> int:
        """How many launch template versions the account has."""
        ec2 = self.account.client("ec2")
        return sum(
            int(template["LatestVersionNumber"]) for template in ec2.describe_launch_templates()["LaunchTemplates"]
        )
