"""Lives a drawn life in the emulator, and holds what happens to what must happen.

- Templates are generated and lint has nothing to say.
- A deployment does what its plan said: the same resources, created, updated, replaced or removed; or it is refused,
  and nothing has changed.
- What the account holds afterwards is what it would hold had the cluster been created from that file.
- A deployment that fails ends where it began, or where the phase that failed began; the next one succeeds.
- What a deletion leaves is what its report names.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloud import Cloud, cloud_of
from clusters import inventory, resources, templates_of
from contents import Contents, contents, differences
from deployments import Operator
from drawn_files import File
from drawn_lives import Life
from landlord import Landlord
from moto.moto_api._internal import mock_random

from cfngen import lint
from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.deploy.messages.message import Finished, Message, Step
from cfngen.deploy.operations.deletion.execution import delete
from cfngen.deploy.operations.deletion.report import Deleted
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.operations.leftovers import Remains
from cfngen.deploy.plan.deletion.plan import AuthorityCopy, DeletionRequest
from cfngen.deploy.plan.plan import Plan, Replacement
from cfngen.deploy.watching.watch import InterruptChoice
from cfngen.errors import CfngenError
from cfngen.sandbox.cloudformation import Stack
from cfngen.sandbox.cloudformation.simulation import InjectedFailures
from cfngen.templates.images import DISTRIBUTIONS

NESTED = "AWS::CloudFormation::Stack"
ASSOCIATION = "AWS::EC2::EIPAssociation"
REPLACING = "Requested update requires the creation of a new physical resource"
WRONG = "it was to fail"
PATIENCE = 7200
"""Seconds after which a node that is lost has been drained, and another one is there."""
Inventory = dict[str, set[str]]
Row = tuple[str, str, str, bool]
"""Path of the stack, logical id, action, whether it is replaced."""


@dataclass
class Account:
    """An account with what a life's files take for granted, and somebody who deploys there.

    Attributes:
        reported: what was reported by deployments and deletions, from the beginning.
    """

    cloud: Cloud
    landlord: Landlord
    operator: Operator
    name: str
    reported: list[Message] = field(default_factory=list)

    def clusters(self, files: list[File]) -> list[Cluster]:
        """The clusters of files, as they are in this account, which then has what they take for granted."""
        return [parse(self.landlord.furnish(file)) for file in files]

    def deploy(self, cluster: Cluster) -> Finished:
        try:
            return self.operator.deploy(cluster, flags=flags(cluster))
        finally:
            self.reported += self.operator.messages

    def delete(self) -> Deleted:
        """Delete the cluster; nothing is left behind in place of being deleted."""
        self.operator.messages.clear()
        root = self.root
        assert root is not None
        request = DeletionRequest(
            self.name,
            self.name,
            vpc_id=str(root.parameters.get("VpcId", "")),
            pod_cidr="10.244.0.0/16",
            authorities=AuthorityCopy("destroy"),
        )
        waiting = Interaction(
            self.operator.messages.append,
            lambda question: "leave that behind" not in question.text,
            lambda: InterruptChoice.DETACH,
        )
        deleted = delete(self.operator.account, request, waiting)
        self.reported.append(deleted)
        return deleted

    def contents(self) -> Contents:
        """What the account holds."""
        return contents(self.cloud, self.name, self.landlord.ids, self.retained)

    @property
    def retained(self) -> list[str]:
        """Ids of resources that an update removes or replaces and leaves in the account, as its plan says."""
        plans = [message for message in self.reported if isinstance(message, Plan)]
        return [
            change.physical_id
            for plan in plans
            for change in plan.changes
            if change.policy == "retain" and (change.action == "remove" or change.replacement is Replacement.WILL)
        ]

    def inventory(self) -> Inventory:
        """Ids of what the account holds; without the bucket that deployments share."""
        buckets = {each["Name"] for each in self.cloud.client("s3").list_buckets()["Buckets"]}
        own = {each for each in buckets if each.startswith("cfngen-")}
        return {**inventory(self.cloud.cluster.region), "buckets": buckets - own}

    @property
    def root(self) -> Stack | None:
        """The cluster's stack, unless it is deleted."""
        stacks = (each for each in self.cloud.engine.stacks() if each.name == self.name)
        return next((each for each in stacks if each.status != "DELETE_COMPLETE"), None)

    def told(self) -> str:
        """What was reported last, for the message of a failure."""
        return "\n".join(str(each) for each in self.operator.messages if not isinstance(each, Plan))[-3000:]

    def mark(self) -> dict[str, int]:
        """How many events each stack has."""
        return {each.id: len(each.events) for each in self.cloud.engine.stacks()}

    def compare_with_plan(self, mark: Mapping[str, int]) -> None:
        """Hold the events since a mark to the plan that was shown first."""
        plan = next(each for each in self.operator.messages if isinstance(each, Plan))
        planned, possible = _planned(plan)
        happened = _happened(self, mark)
        wrong = [f"planned, and not done: {row}" for row in sorted(planned - happened)]
        wrong += [f"done, and not planned: {row}" for row in sorted(happened - planned - possible)]
        assert wrong == [], _report("what was done is not what the plan said", wrong)


def _planned(plan: Plan) -> tuple[set[Row], set[Row]]:
    """What a plan says will be done, and what it says may be."""
    certain: set[Row] = set()
    possible: set[Row] = set()
    for stack in plan.stacks:
        for each in stack.changes:
            if each.type == NESTED:
                continue
            row = ("/".join(stack.path), each.logical_id, each.action, each.replacement is Replacement.WILL)
            if each.replacement is Replacement.MIGHT or (
                each.action == "update" and each.properties and not any(one.certain for one in each.properties)
            ):
                possible |= {row, (*row[:3], True)}
            else:
                certain.add(row)
    return certain, possible


def _happened(account: Account, mark: Mapping[str, int]) -> set[Row]:
    """What was done since a mark, as the events of all stacks say."""
    found: dict[tuple[str, str], set[str]] = {}
    for stack in account.cloud.engine.stacks():
        path = stack.name.removeprefix(account.name).strip("-").rpartition("-")[0]
        for event in stack.events[mark.get(stack.id, 0) :]:
            if event.type != NESTED:
                replacing = "REPLACED" if event.reason.startswith(REPLACING) else event.status
                found.setdefault((path, event.logical_id), set()).add(replacing)
    rows = {(*key, _action(statuses), "REPLACED" in statuses) for key, statuses in found.items()}
    return {row for row in rows if row[2]}


def _action(statuses: set[str]) -> str:
    if "CREATE_COMPLETE" in statuses:
        return "add"
    if "UPDATE_COMPLETE" in statuses:
        return "update"
    return "remove" if statuses & {"DELETE_COMPLETE", "DELETE_SKIPPED"} else ""


@contextmanager
def account_for(file: File) -> Iterator[Account]:
    """An account in the region of a file; its ids are the same in every run."""
    mock_random.seed(0)
    with cloud_of(parse({"region": file["region"]})) as cloud:
        _publish_images(cloud)
        yield Account(cloud, Landlord(cloud), Operator(cloud), file["name"])


def _publish_images(cloud: Cloud) -> None:
    """Give the account the images of every distribution and architecture that it has not."""
    register = cloud.client("ec2").register_image
    for facts in DISTRIBUTIONS.values():
        for architecture, name in facts.ssm_parameter.items():
            if name not in cloud.engine.parameter_store:
                kind = {"amd64": "x86_64"}.get(architecture, architecture)
                made = register(Name=name.strip("/").replace("/", "-"), Architecture=kind)
                cloud.engine.parameter_store[name] = made["ImageId"]


def flags(cluster: Cluster) -> dict[str, str]:
    """What the console would ask for."""
    asked = not (cluster.api.allowed_cidrs or cluster.api.allowed_prefix_lists)
    return {"ApiAllowedCidr": "203.0.113.7/32"} if asked else {}


def live(life: Life, counted: Counter[str], verdicts: Path | None = None) -> None:
    """Live a life.

    Args:
        life: the life.
        counted: how often what happened.
        verdicts: where lint keeps what it found of stacks that are the same; None does not lint.
    """
    files = [life.file, *(each.file for each in life.chapters)]
    with account_for(life.file) as account:
        first, *later = account.clusters(files)
        for cluster in (first, *later) if verdicts else ():
            assert lint.lint(templates_of(cluster), region=cluster.region, cache=verdicts) == ()
        before = account.inventory()
        _create(account, first, life.fails, counted)
        lived = life.file
        for cluster, chapter in zip(later, life.chapters, strict=True):
            if _update(account, cluster, chapter.fails, counted):
                lived = chapter.file
            if chapter.loses is not None:
                _lose_instance(account, chapter.loses, counted)
        held = account.contents()
        _delete(account, life.sticks, counted, before)
    if lived is not life.file:
        found = differences(_fresh(files, lived), held)
        assert found == [], _report("after its changes the cluster is not as a new one of its file", found)


def _fresh(files: list[File], file: File) -> Contents:
    """What an account holds in which a cluster has just been created from one of a life's files."""
    with account_for(file) as account:
        cluster = account.clusters(files)[files.index(file)]
        finished = account.deploy(cluster)
        assert finished.succeeded, account.told()
        return account.contents()


def _create(account: Account, cluster: Cluster, fails: int | None, counted: Counter[str]) -> None:
    if fails is not None:
        parts = [each for each in templates_of(cluster) if each.name not in ("cluster", "standalone")]
        victims = sorted(key for each in parts for key in each.body["Resources"])
        victim = victims[fails % len(victims)]
        account.cloud.engine.fail(victim, WRONG, during="CREATE")
        before = account.inventory()
        finished = account.deploy(cluster)
        assert (finished.succeeded, finished.status) == (False, "ROLLBACK_COMPLETE"), (victim, account.told())
        unnamed = _unnamed(account, before)
        assert unnamed == {}, f"{victim} failed, and what is left is not named: {unnamed}"
        counted["creation failed"] += 1
    mark = account.mark()
    finished = account.deploy(cluster)
    assert finished.succeeded, account.told()
    account.compare_with_plan(mark)
    counted["created"] += 1


def _update(account: Account, cluster: Cluster, fails: int | None, counted: Counter[str]) -> bool:
    """Carry a change out; False if it is refused."""
    before = account.contents()
    refusal: CfngenError | None = None
    try:
        if fails is not None:
            _fail(account, cluster, fails, counted)
        mark = account.mark()
        finished = account.deploy(cluster)
    except CfngenError as error:
        refusal = error
    if refusal:
        counted[f"refused: {type(refusal).__name__}"] += 1
        found = differences(before, account.contents())
        assert found == [], _report(f"refused ({refusal}), and yet changed", found)
        return False
    assert finished.succeeded, account.told()
    if finished.action != "none":
        account.compare_with_plan(mark)
    counted["nothing to do" if finished.action == "none" else "updated"] += 1
    return True


def _lose_instance(account: Account, loses: int, counted: Counter[str]) -> None:
    """Let an instance end, and see whether its group launches another one like it."""
    client, before = account.cloud.client("autoscaling"), account.contents()
    instances = sorted(
        (group["AutoScalingGroupName"], instance["InstanceId"])
        for group in client.describe_auto_scaling_groups()["AutoScalingGroups"]
        for instance in group["Instances"]
        if instance["LifecycleState"] == "InService"
    )
    if not instances:
        return
    group, lost = instances[loses % len(instances)]
    client.terminate_instance_in_auto_scaling_group(InstanceId=lost, ShouldDecrementDesiredCapacity=False)
    account.cloud.clock.sleep(PATIENCE)
    found = differences(before, account.contents())
    assert found == [], _report(f"an instance of {group} was lost, and its group is not as before", found)
    counted["instance lost"] += 1


def _fail(account: Account, cluster: Cluster, fails: int, counted: Counter[str]) -> None:
    """Let a deployment fail at one of the resources that it changes, and see what comes of it."""
    changes = account.operator.plan(cluster, flags=flags(cluster)).changes
    victims = sorted(
        (each for each in changes if each.action in ("add", "update") and each.type != NESTED),
        key=lambda each: each.logical_id,
    )
    if not victims:
        return
    victim = victims[fails % len(victims)]
    replaced = victim.replacement is Replacement.WILL
    during = "CREATE" if victim.action == "add" or replaced else "UPDATE"
    begun = account.contents()
    account.cloud.engine.fail(victim.logical_id, WRONG, during=during)
    account.operator.messages = phases = _Phases(account)
    finished = account.deploy(cluster)
    account.operator.messages = list(phases)
    if finished.succeeded:
        assert victim.replacement is Replacement.MIGHT or not any(each.certain for each in victim.properties), (
            f"the plan says that {victim.logical_id} changes ({victim.action}, {during}), and nothing tried to"
        )
        account.cloud.engine.failures = InjectedFailures()
        counted["might have changed"] += 1
        return
    counted["update failed"] += 1
    if phases.kept:
        assert finished.status == "UPDATE_FAILED", account.told()
        return
    assert finished.status == "UPDATE_ROLLBACK_COMPLETE", (victim, account.told())
    found = differences(phases.begun or begun, account.contents())
    if any(each.type == ASSOCIATION for each in changes):
        # EC2 has ended the former association to begin the new one, and a rollback only ends the new one.
        found = [each for each in found if not re.match(r"(interfaces|addresses): ", each)]
        counted["rolled back without its Elastic IP"] += 1
    if phases.begun:  # what protects resources against replacement is lifted while a phase is carried out
        found = [each for each in found if ": .policy = " not in each]
    assert found == [], _report(
        f"{victim.logical_id} failed ({during}); the rollback does not end where it began", found
    )


class _Phases(list[Message]):
    """Messages, which keep what the account held when the last phase began.

    Attributes:
        begun: what it held; None where there are no phases.
        kept: whether that phase has no way back: volumes do not shrink.
    """

    def __init__(self, account: Account) -> None:
        super().__init__()
        self._account = account
        self.begun: Contents | None = None
        self.kept = False

    def append(self, message: Message) -> None:
        super().append(message)
        if isinstance(message, Step) and re.match(r"phase \d+ of \d+: ", message.text):
            self.begun = self._account.contents()
        if isinstance(message, Plan):
            self.kept = message.on_failure == "DO_NOTHING"


def _delete(account: Account, sticks: int | None, counted: Counter[str], before: Inventory) -> None:
    root = account.root
    assert root is not None
    if sticks is not None:
        every = sorted(resources(root))
        victim = every[sticks % len(every)]
        account.cloud.engine.fail(victim, WRONG, during="DELETE")
        account.delete()
        counted["deletion failed" if account.root else "deletion retried"] += 1
    if account.root:
        deleted = account.delete()
        assert deleted.succeeded, account.told()
    account.cloud.engine.failures = InjectedFailures()
    assert account.root is None
    unnamed = _unnamed(account, before)
    assert unnamed == {}, f"the report of the deletion does not name {unnamed}"
    after = account.inventory()
    gone = {kind: ids - after[kind] for kind, ids in before.items()}
    assert not any(gone.values()), f"the deletion took what was there before: {gone}"
    counted["deleted"] += 1


def _unnamed(account: Account, before: Inventory) -> Inventory:
    """What is in the account, was not before, and is named by nothing that was reported."""
    said = json.dumps([account.retained, *(_plain(each) for each in account.reported)], default=str)
    left = {
        kind: {each for each in ids - before[kind] if each not in said} for kind, ids in account.inventory().items()
    }
    return {kind: ids for kind, ids in left.items() if ids}


def _plain(message: Message) -> Any:
    return dataclasses.asdict(message) if isinstance(message, (Deleted, Remains)) else None


def _report(what: str, found: list[str]) -> str:
    return "\n".join([f"{what}:", *found[:40], *(["…"] if found[40:] else [])])
