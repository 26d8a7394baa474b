"""Rehearsals on the emulator, and what is left there afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployed import Place

from cfngen.deploy.aws.account import Account
from cfngen.deploy.messages.message import Message, Question
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.watching.watch import InterruptChoice
from cfngen.rehearse import clusters, expectations
from cfngen.rehearse.expectations import Expectations
from cfngen.rehearse.operation_runner import RehearsalRequest
from cfngen.rehearse.outlines import outline_steps
from cfngen.rehearse.run import RehearsalResult, rehearse
from cfngen.rehearse.steps import STEPS, RehearsalStep
from cfngen.sandbox.cloudformation import client

EXPECTED = Path(expectations.__file__).with_name(expectations.EXPECTATIONS_FILE)


def steps_of(*names: str) -> tuple[RehearsalStep, ...]:
    """Steps by their names, or all of them."""
    return tuple(step for step in STEPS if not names or step.name in names)


@dataclass
class Person:
    """Somebody who rehearses.

    Attributes:
        account: where.
        answer: what is said to a question.
        messages: what was reported.
        questions: what was asked.
    """

    account: Account
    answer: Callable[[Question], bool] = lambda question: True
    messages: list[Message] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    @property
    def waiting(self) -> Interaction:
        return Interaction(self.messages.append, self._ask, lambda: InterruptChoice.DETACH)

    def rehearse(
        self,
        *names: str,
        zones: tuple[str, ...] = clusters.DEFAULT_ZONES,
        expected: Expectations | None = None,
        recording: bool = False,
        **options: Any,
    ) -> RehearsalResult:
        known = expected or expectations.read_recorded_expectations()
        steps = steps_of(*names)
        request = RehearsalRequest(steps, outline_steps(steps, zones, known), zones, **options)
        return rehearse(self.account, request, None if recording else known, self.waiting)

    def _ask(self, question: Question) -> bool:
        self.questions.append(question)
        return self.answer(question)


def left(place: Place) -> list[str]:
    """What a rehearsal has left in the account: stacks, templates, snapshots, buckets, volumes, roles, instances."""
    region = place.cluster.region
    ec2, s3, iam = (client(service, region) for service in ("ec2", "s3", "iam"))
    return list(_left(place, ec2, s3, iam))


def _left(place: Place, ec2: Any, s3: Any, iam: Any) -> Iterator[str]:
    for stack in place.world.cloud.stacks():
        if stack.name.startswith(clusters.REHEARSAL_NAME) and stack.status != "DELETE_COMPLETE":
            yield f"stack {stack.name} {stack.status}"
    for bucket in (each["Name"] for each in s3.list_buckets()["Buckets"]):
        if clusters.REHEARSAL_NAME in bucket:
            yield f"bucket {bucket}"
        else:
            objects = s3.list_object_versions(Bucket=bucket, Prefix=f"{clusters.REHEARSAL_NAME}/")
            yield from (f"object {each['Key']}" for each in objects.get("Versions", []))
    for each in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]:
        if "for AMI" not in each["Description"]:
            yield f"snapshot {each['SnapshotId']}"
    # moto keeps the root volumes of terminated instances, without tags.
    yield from (f"volume {each['VolumeId']}" for each in ec2.describe_volumes()["Volumes"] if each.get("Tags"))
    yield from (
        f"role {role['RoleName']}" for role in iam.list_roles()["Roles"] if clusters.REHEARSAL_NAME in role["RoleName"]
    )
    for reservation in ec2.describe_instances()["Reservations"]:
        for each in reservation["Instances"]:
            if each["State"]["Name"] != "terminated":
                yield f"instance {each['InstanceId']}"
