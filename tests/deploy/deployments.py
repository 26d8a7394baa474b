"""Deployments as a test asks for them: a cluster, an answer to every question, and what was reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cloud import Cloud
from clusters import templates_of

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.messages.message import Finished, Message, Question
from cfngen.deploy.operations.deployment.deploy import deploy, plan
from cfngen.deploy.operations.deployment.preparation import DeploymentRequest
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.watching.watch import InterruptChoice

ALLOWED = {"ApiAllowedCidr": "203.0.113.7/32"}
Kind = TypeVar("Kind", bound=Message)


@dataclass
class Operator:
    """Somebody who deploys.

    Attributes:
        cloud: the account.
        answer: what is said to a question.
        choice: what is chosen after Ctrl-C.
        messages: what was reported.
        questions: what was asked.
    """

    cloud: Cloud
    answer: Callable[[Question], bool] = lambda question: True
    choice: Callable[[], InterruptChoice] = lambda: InterruptChoice.DETACH
    messages: list[Message] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    made: int = 0

    @property
    def account(self) -> Account:
        return connect(self.cloud.session, self.cloud.cluster.region, clock=self.cloud.clock)

    @property
    def waiting(self) -> Interaction:
        return Interaction(self.messages.append, self._ask, lambda: self.choice())

    def wanted(self, cluster: Cluster | Mapping[str, Any] | None = None, **options: Any) -> DeploymentRequest:
        """What is wanted of a cluster: the default one, or that of a cluster file's content."""
        built = cluster if isinstance(cluster, Cluster) else parse(dict(cluster or {}))
        self.made += 1
        options = {"flags": ALLOWED, **options}
        documents = options.pop("documents", None) or templates_of(built)
        return DeploymentRequest(built, documents, options.pop("stack_name", built.name), f"test{self.made}", **options)

    def deploy(self, cluster: Cluster | Mapping[str, Any] | None = None, **options: Any) -> Finished:
        self.messages.clear()
        self.questions.clear()
        finished = deploy(self.account, self.wanted(cluster, **options), self.waiting)
        assert finished.unplanned == ()
        return finished

    def plan(self, cluster: Cluster | Mapping[str, Any] | None = None, **options: Any) -> Plan:
        return plan(self.account, self.wanted(cluster, **options), self.waiting)

    def reported(self, kind: type[Kind]) -> list[Kind]:
        return [message for message in self.messages if isinstance(message, kind)]

    def _ask(self, question: Question) -> bool:
        self.questions.append(question)
        return self.answer(question)


def groups(*names: str, **changes: Any) -> Sequence[Mapping[str, Any]]:
    """Node groups of a cluster file, two nodes each."""
    return [{"name": name, "minSize": 2, "maxSize": 2, **changes} for name in names]
