"""Somebody who deletes clusters, and clusters to delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cloud import Cloud
from clusters import resources
from made_by_kubernetes import Place

from cfngen.deploy.aws.account import Account
from cfngen.deploy.messages.message import Message, Question
from cfngen.deploy.operations.deletion.execution import delete
from cfngen.deploy.operations.deletion.report import Deleted
from cfngen.deploy.operations.deletion.stack_removal import DeletionFailed
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.plan.deletion.plan import DeletionRequest
from cfngen.deploy.watching.watch import InterruptChoice

REGION = "us-west-2"
NAME = "kubernetes"
OURS = {"cfngen:cluster": NAME}


@dataclass
class Operator:
    """Somebody who says yes to everything unless told otherwise.

    Attributes:
        account: where.
        answers: what is said to a question.
        questions: what was asked.
        told: what was reported.
    """

    account: Account
    answers: Callable[[Question], bool] = lambda question: True
    questions: list[Question] = field(default_factory=list)
    told: list[Message] = field(default_factory=list)

    def asked(self, question: Question) -> bool:
        self.questions.append(question)
        return self.answers(question)

    def deletes(self, stack: str = NAME, *, drain: Any = None, **wishes: Any) -> Deleted:
        waiting = Interaction(self.told.append, self.asked, lambda: InterruptChoice.DETACH)
        wanted = {"cluster": NAME, "pod_cidr": "10.244.0.0/16"} | wishes
        return delete(self.account, DeletionRequest(stack, **wanted), waiting, delete_services=drain)

    def heard(self, kind: type[Message]) -> list[Any]:
        return [each for each in self.told if isinstance(each, kind)]

    def failures(self) -> list[DeletionFailed]:
        return self.heard(DeletionFailed)


def created(cloud: Cloud, form: str = "cluster", name: str = NAME, tags: Any = None, **given: str) -> Any:
    """A cluster as `cfngen deploy` makes it: its root bears our tag."""
    stack = cloud.account.create(form, name=name, **given)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    stack.tags.update(OURS if tags is None else tags)
    return stack


def place_of(stack: Any, account: Account) -> Place:
    """Where a cluster of our own network is."""
    by_id = resources(stack)
    return Place(account, *(by_id[each].physical_id for each in ("Vpc", "SubnetA", "NodeSecurityGroup")))
