"""In which order the stacks of a cluster come about on simulated time, also of one from before they had an order."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from earlier import CASES, earlier
from sandboxed import BUCKET

from cfngen.cluster.load import parse
from cfngen.deploy.watching.expectations import SECONDS_BY_RESOURCE_TYPE, UNAWAITED_GROUP_SECONDS
from cfngen.sandbox.cloudformation import Stack, StackEvent, client
from cfngen.sandbox.cloudformation.simulation import ResourceOrder
from cfngen.sandbox.emulated_account import EmulatedAccount, open_emulated_account
from cfngen.templates import generate

pytestmark = pytest.mark.drill

GROUP, CONDITION = "AWS::AutoScaling::AutoScalingGroup", "AWS::CloudFormation::WaitCondition"
# What waits for instances takes as long as they do; anything else takes what it usually does.
DURATIONS = {kind: create for kind, (create, *_) in SECONDS_BY_RESOURCE_TYPE.items()} | {
    GROUP: UNAWAITED_GROUP_SECONDS,
    CONDITION: 0,
}
# Instances differ by some seconds from each other, by the order of their launch; and load balancers come after the
# masters' interfaces.
SPREAD = 20.0


class Placed(NamedTuple):
    """A account, and the form a cluster has in it: `cluster` (nested stacks) or `standalone`."""

    account: EmulatedAccount
    form: str

    def publish(self, templates: Mapping[str, Any]) -> dict[str, Any]:
        """Upload templates and return what an operation on a stack is told."""
        s3, region = client("s3", self.account.region), self.account.region
        for name, body in templates.items():
            s3.put_object(Bucket=BUCKET, Key=f"{name}.json", Body=json.dumps(body).encode())
        where = {"TemplateBucket": BUCKET, "TemplatePrefix": ""} if self.form == "cluster" else {}
        url = f"https://{BUCKET}.s3.{region}.amazonaws.com/{self.form}.json"
        return {"url": url, "parameters": where, "capabilities": ["CAPABILITY_IAM"]}

    def create(self, templates: Mapping[str, Any]) -> tuple[Stack, float]:
        """Create a cluster; return its stack and how many seconds it took."""
        begin = self.account.cloud.clock.now
        stack = self.account.cloud.wait(self.account.cloud.create_stack("k8s", **self.publish(templates)))
        assert stack.status == "CREATE_COMPLETE", stack.reason
        return stack, self.account.cloud.clock.now - begin

    def update(self, templates: Mapping[str, Any]) -> Stack:
        return self.account.cloud.wait(self.account.cloud.update_stack("k8s", **self.publish(templates)))


@contextlib.contextmanager
def place(form: str) -> Iterator[Placed]:
    with open_emulated_account("us-west-2", durations=DURATIONS) as account:
        made = {"LocationConstraint": account.region}
        client("s3", account.region).create_bucket(Bucket=BUCKET, CreateBucketConfiguration=made)
        yield Placed(account, form)


@pytest.fixture(params=["cluster", "standalone"])
def placed(request: pytest.FixtureRequest) -> Iterator[Placed]:
    with place(request.param) as there:
        yield there


def events(stack: Stack) -> list[StackEvent]:
    """The events of a stack and those it nests, in order."""
    found = [*stack.events, *(event for child in stack.children.values() for event in events(child))]
    return sorted(found, key=lambda each: each.time)


def of_today(case: str, **more: Any) -> dict[str, Any]:
    return {each.name: each.body for each in generate(parse({**earlier(case).file, **more}))}


@pytest.mark.parametrize("form", ["cluster", "standalone"])
@pytest.mark.parametrize("case", CASES)
def test_a_creation_takes_no_longer_than_when_nodes_did_not_come_after_masters(
    case: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Durations that are drawn differ by more than what is compared here.
    monkeypatch.setattr(ResourceOrder, "vary_duration", lambda order, seconds: seconds)
    with place(form) as there:
        _, before = there.create(earlier(case).templates)
    with place(form) as there:
        _, now = there.create(of_today(case))
        launched = [
            (instance.boot_data.references["resource"], instance.launched)
            for instance in there.account.machines.instances.values()
        ]
    masters = [moment for resource, moment in launched if resource.startswith("Master")]
    nodes = [moment for resource, moment in launched if resource.startswith("NodeGroup")]
    assert max(nodes) - max(masters) < 60
    assert now <= before + SPREAD


@pytest.mark.parametrize("case", CASES)
def test_nodes_are_replaced_after_the_last_master_works(case: str, placed: Placed) -> None:
    """In an update by which every group changes, as an upgrade does; no tool but CloudFormation orders it."""
    stack, _ = placed.create(of_today(case))
    beginning = max(event.time for event in events(stack))
    placed.update(of_today(case, kubernetes={"kubeletConfiguration": {"maxPods": 90}}))
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    later = [event for event in events(stack) if event.time > beginning]
    masters = [each.time for each in later if each.logical_id.startswith("Master") and "SUCCESS" in each.reason]
    nodes = [each.time for each in later if each.logical_id.startswith("NodeGroup") and "Rolling update" in each.reason]
    assert len(masters) == (3 if case == "three-masters" else 1)
    assert nodes
    assert max(masters) <= min(nodes)


@pytest.mark.parametrize("case", CASES)
def test_a_cluster_of_before_is_updated(case: str, placed: Placed) -> None:
    """The conditions that its update makes are signalled by instances that have long told their groups."""
    stack, _ = placed.create(earlier(case).templates)
    placed.update(of_today(case))
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    letters = "ABC" if case == "three-masters" else "A"
    for letter in letters:
        assert stack.resources[f"Master{letter}WaitCondition"].status == "CREATE_COMPLETE"
    if placed.form == "cluster":
        assert not [key for key in stack.children["MasterStack"].resources if key.endswith("WaitCondition")]
