"""Masters on their way back: what each is seen to do, when all of them work, and what is said where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from answers import Answers
from aws_descriptions import stack, stacked

from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.api_connection import ApiUnreachableError
from cfngen.deploy.access.kubernetes_objects import Node, Readiness
from cfngen.deploy.aws import consoles
from cfngen.deploy.aws.consoles import ConsoleExcerpt
from cfngen.deploy.aws.groups import GroupView, InstanceView
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Message, Notice
from cfngen.deploy.operations.etcd.watch import MasterReplacement, RestoreFailedError, RestoreProgress
from cfngen.errors import CfngenError


def machine(identity: str, lifecycle: str = "InService") -> InstanceView:
    return InstanceView(identity, "us-west-2a", lifecycle)


def slot(letter: str, *instances: InstanceView) -> GroupView:
    return GroupView("master", letter, f"group-{letter}", instances=instances)


class Api:
    """What the API says: of itself, and which Nodes are Ready."""

    def __init__(self) -> None:
        self.ready: Any = Readiness(True)
        self.listed: tuple[Node, ...] = ()
        self.opened = 0

    def readiness(self) -> Readiness:
        if isinstance(self.ready, Exception):
            raise self.ready
        return self.ready  # type: ignore[no-any-return]

    def nodes(self) -> tuple[Node, ...]:
        return self.listed


class Watched:
    """A restore that is watched; what the masters do is a list of looks, of which the last one stays."""

    def __init__(self, aws: Answers, api: Api) -> None:
        self.aws, self.api = aws, api
        self.looks: list[tuple[GroupView, ...]] = []
        self.said: list[Message] = []
        self.began = aws.clock.now()

    @property
    def passed(self) -> float:
        return (self.aws.clock.now() - self.began).total_seconds()

    def look(self) -> tuple[GroupView, ...]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def wait(self, *looks: tuple[GroupView, ...], minutes: float = 10) -> list[tuple[list[tuple[str, str]], str]]:
        self.looks = list(looks)
        root = find_stack(self.aws.account, "one")
        assert root is not None
        old = frozenset({"i-old"})
        masters = MasterReplacement(
            self.aws.account, root, self.look, old, cluster_access.no_api_url_override, self.said.append
        )
        masters.wait(timedelta(minutes=minutes))
        return self.progress

    @property
    def progress(self) -> list[tuple[list[tuple[str, str]], str]]:
        shown = [each for each in self.said if isinstance(each, RestoreProgress)]
        return [([(master.instance, master.state) for master in one.masters], one.api) for one in shown]


@pytest.fixture
def watched(aws: Answers, monkeypatch: pytest.MonkeyPatch) -> Watched:
    api = Api()

    @contextmanager
    def connection(*_: Any) -> Iterator[Api]:
        api.opened += 1
        yield api

    stacked(aws, stack(outputs={"ApiEndpoint": "https://api.example", "CaSecretArn": "arn-of-a-secret"}))
    monkeypatch.setattr(cluster_access, "connect_as_administrator", connection)
    monkeypatch.setattr(cluster_access, "read_authority", lambda account, arn: None)
    return Watched(aws, api)


def node(identity: str, *, ready: bool = True, instance_id: str = "") -> Node:
    return Node(identity, instance_id, ready=ready)


def test_every_change_is_told_once_until_all_work(watched: Watched) -> None:
    watched.api.listed = (node("i-new"),)
    progress = watched.wait(
        (slot("a", machine("i-old")),),
        (slot("a", machine("i-old", "Terminating")),),
        (slot("a"),),
        (slot("a", machine("i-new", "Pending")),),
        (slot("a", machine("i-new", "Pending")),),
        (slot("a", machine("i-new")),),
    )
    assert progress == [
        ([("i-old", "terminating")], "is shutting down"),
        ([("", "waiting for an instance")], "ready"),
        ([("i-new", "booting")], "ready"),
        ([("i-new", "ready")], "ready"),
    ]
    assert watched.passed == 50


def test_while_an_old_master_is_there_the_api_is_not_asked(watched: Watched) -> None:
    watched.api.listed = (node("i-old"), node("i-b"))
    watched.wait(
        (slot("a", machine("i-old")), slot("b", machine("i-b"))), (slot("a", machine("i-b")), slot("b", machine("i-b")))
    )
    assert watched.api.opened == 1


def test_a_new_instance_beside_the_old_one_is_what_counts(watched: Watched) -> None:
    watched.api.listed = (node("i-new"),)
    [first, *_] = watched.wait(
        (slot("a", machine("i-old", "Terminating"), machine("i-new")),), (slot("a", machine("i-new")),)
    )
    assert first == ([("i-new", "booting")], "is shutting down")


def test_a_new_instance_that_leaves_again_is_none(watched: Watched) -> None:
    watched.api.listed = (node("i-new"),)
    [first, *_] = watched.wait((slot("a", machine("i-bad", "Terminating")),), (slot("a", machine("i-new")),))
    assert first[0] == [("i-bad", "terminating")]


@pytest.mark.parametrize(
    ("nodes", "ready"),
    [
        ((node("i-new"),), True),
        ((node("ip-10-0-0-1", instance_id="i-new"),), True),
        ((node("i-new", ready=False),), False),
        ((node("i-other"),), False),
        ((), False),
    ],
)
def test_only_a_ready_node_says_that_a_master_works(watched: Watched, nodes: tuple[Node, ...], ready: bool) -> None:
    watched.api.listed = nodes
    if ready:
        assert watched.wait((slot("a", machine("i-new")),), minutes=0) == [([("i-new", "ready")], "ready")]
        return
    with pytest.raises(RestoreFailedError, match="master a is booting"):
        watched.wait((slot("a", machine("i-new")),), minutes=0)


@pytest.mark.parametrize(
    ("ready", "words"),
    [
        (Readiness(False, ("etcd", "ping")), "not ready: etcd, ping"),
        (ApiUnreachableError("nobody"), "does not answer"),
        (CfngenError("no certificate"), "no certificate"),
    ],
)
def test_what_the_api_says_is_told(watched: Watched, ready: Any, words: str) -> None:
    watched.api.listed, watched.api.ready = (node("i-new"),), ready
    with pytest.raises(RestoreFailedError, match=f"the API: {words}"):
        watched.wait((slot("a", machine("i-new")),), minutes=0)
    assert watched.progress[0][1] == words


@pytest.mark.parametrize(("minutes", "time", "looks"), [(1, "1 minute:", 7), (0, "0 minutes:", 1)])
def test_patience_has_an_end(watched: Watched, minutes: int, time: str, looks: int) -> None:
    with pytest.raises(RestoreFailedError, match=f"not every master is ready after {time}") as failed:
        watched.wait((slot("a", machine("i-new")),), minutes=minutes)
    assert (watched.passed, watched.api.opened) == (60 * minutes, looks)
    assert "aws ec2 get-console-output --latest --region us-west-2" in str(failed.value.hint)


def test_only_what_is_missing_is_named_and_why_no_instance_comes(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def failures(account: Any, group: str) -> list[str]:
        asked.append(group)
        return ["no capacity", "earlier: no capacity"]

    monkeypatch.setattr(consoles, "read_launch_failures", failures)
    watched.api.listed = (node("i-a"),)
    with pytest.raises(RestoreFailedError) as failed:
        watched.wait((slot("a", machine("i-a")), slot("b"), slot("c", machine("i-c"))), minutes=0)
    text = str(failed.value)
    assert text.endswith("master b is waiting for an instance; master c is booting; no capacity")
    assert asked == ["group-b"]


def test_a_master_that_fails_to_boot_is_heard_each_minute_and_told_once(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[float, str]] = []
    words = [("volume FAILED after 1 s",), ("volume FAILED after 1 s", "join FAILED after 2 s"), ("all is well",)]

    def of_instance(account: Any, identity: str) -> ConsoleExcerpt:
        heard.append((watched.passed, identity))
        said = words[min(len(heard), len(words)) - 1]
        return ConsoleExcerpt(identity, "", said, failed=len(heard) != 3)

    monkeypatch.setattr(consoles, "read_instance_console", of_instance)
    with pytest.raises(RestoreFailedError):
        watched.wait((slot("a", machine("i-a")), slot("b")), minutes=4)
    assert heard == [(60, "i-a"), (120, "i-a"), (180, "i-a"), (240, "i-a")]
    notices = [each.text for each in watched.said if isinstance(each, Notice)]
    assert notices == ["master a (i-a): volume FAILED after 1 s", "master a (i-a): join FAILED after 2 s"]
