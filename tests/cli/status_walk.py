"""A cluster in whatever status, and what each command makes of it, tried in copies of this process.

A copy is a fork: it has the emulated account with every stack, the clock and the cluster file as they are at that
moment, and nothing that happens in it reaches the original. So each situation is brought about once.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import io
import os
import pickle
import re
import shlex
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from advised_commands import advised, is_followed, leads, name_of
from deployed import place
from deployed_cluster import Place, session
from moto.autoscaling.models import autoscaling_backends
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.cli.application import application
from cfngen.cli.display.screen import Screen
from cfngen.cli.input.target import Target
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus
from cfngen.deploy.watching.watch import InterruptChoice
from cfngen.sandbox.cloudformation import Stack

STACK = "k8s"
CLUSTER = "walk"
CHOICE = ("-f", f"{CLUSTER}.yaml", "--stack-name", STACK)
"""How commands are told which cluster is meant: neither is the default, so that one suggested without them is wrong."""
AGREED = {
    "plan": "--create-bucket",
    "deploy": "--yes --allow-danger --no-verify",
    "rollback": "--yes --allow-danger",
    **dict.fromkeys(("delete", "etcd restore", "pause", "replace", "resume"), "--yes"),
}
"""What says yes beforehand: nobody sits at this terminal."""
PAGE = 30  # events in an answer
LONGER = 12  # times that a sleep takes: a watch then looks less often
LIFE = ("plan", "deploy", "status", "events", "validate cluster", "kubeconfig", "delete")
"""What all of cfngen's modules and clients are needed for."""
_SUFFIX = re.compile(r"-[0-9A-F]{12}\b")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Ran:
    """A command that was run.

    Attributes:
        command: what was typed, without the options that choose the cluster or say yes.
        code: its exit code.
        text: what it wrote.
        before: the state that it found; equal where no command could tell two apart.
        after: the state that it left.
        stacks: afterwards: statuses of the root, under its name, and of nested stacks; nothing without a root.
        ends: statuses in which the root, and one made in its place, have come to rest meanwhile.
        steps: commands that it names, in order.
    """

    command: str
    code: int
    text: str
    before: str
    after: str
    stacks: Mapping[str, str]
    ends: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def status(self) -> StackStatus:
        """The root's status afterwards."""
        return StackStatus(self.stacks.get(STACK, ""))

    @property
    def changed(self) -> bool:
        """Whether CloudFormation has done anything meanwhile."""
        return bool(self.ends) or self.before != self.after

    @property
    def refused(self) -> bool:
        """Whether it failed without having done anything."""
        return self.code in (1, 6) and not self.changed

    @property
    def good(self) -> bool:
        """Whether it has left nothing, or a cluster that may be deployed to."""
        return self.status.health in (StackHealth.ABSENT, StackHealth.HEALTHY)


Known = dict[tuple[str, str], Ran]
"""Steps that were taken, by the state and the command, as it is shortened; and commands that were tried unasked."""
AGAIN = ", again"
"""Behind a command that was run twice in a row: what came of the second time, in the state that the first has left."""
TRIED = ", unasked"
"""Behind a command that was run in a state where nobody may have named it."""


class Clock:
    """The time of the account; a sleep lets it go on.

    Attributes:
        leaving: where not empty, Ctrl-C is pressed as soon as the root is in this status.
    """

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self.leaving = ""

    def now(self) -> datetime:
        return self._walk.engine.clock.time

    def sleep(self, seconds: float) -> None:
        if not self.leaving:
            self._walk.place.world.advance(LONGER * seconds)
        elif self._walk.stacks.get(STACK) == self.leaving:
            self.leaving = ""
            raise KeyboardInterrupt
        else:
            self._walk.place.world.advance(seconds)


class Events:
    """The events of a client, which forget at the end of a command what it has registered, as `plan` does."""

    def __init__(self, events: Any) -> None:
        self._events = events
        self._registered: list[tuple[str, Callable[..., Any]]] = []

    def register(self, event_name: str, handler: Callable[..., Any]) -> None:
        self._events.register(event_name, handler)
        self._registered.append((event_name, handler))

    def forget(self) -> None:
        for event_name, handler in self._registered:
            self._events.unregister(event_name, handler)
        self._registered.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)


class Clients:
    """A session that makes each client once, which takes longer than most calls do."""

    def __init__(self, made: Any) -> None:
        self._session = made
        self._clients: dict[tuple[str, str, str], Any] = {}

    def client(self, service: str, *, region_name: str, config: Any) -> Any:
        key = (service, region_name, str(config.retries))
        if key not in self._clients:
            client = self._clients[key] = self._session.client(service, region_name=region_name, config=config)
            client.meta.events = Events(client.meta.events)
        return self._clients[key]

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """Let nothing stay that a command has registered with its clients."""
        yield
        for client in self._clients.values():
            client.meta.events.forget()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class Walk:
    """An account with a cluster, and a shell to run commands of cfngen in.

    Args:
        where: the account.
        patch: lets commands work in it.
        home: directory of the cluster file and of the operator.
        clients: what commands take their clients from.
    """

    def __init__(self, where: Place, patch: pytest.MonkeyPatch, home: Path, clients: Clients) -> None:
        self.place = where
        self.engine = where.world.cloud
        self.clock = Clock(self)
        where.served.faults.page_size = PAGE
        for name in set(os.environ) - {"PATH", "TMPDIR"}:
            patch.delenv(name)
        patch.setenv("HOME", str(home))
        patch.setenv("COLUMNS", "400")
        patch.setenv("LC_ALL", "C.UTF-8")
        patch.chdir(home)
        patch.setattr("cfngen.deploy.aws.types.SystemClock", lambda: self.clock)
        patch.setattr(Target, "kubernetes_override", lambda target, endpoint: where.override(endpoint))
        patch.setattr(Target, "_session", lambda target, region: self._clients)
        patch.setattr("cfngen.lint.lint", lambda documents, **options: ())
        patch.setattr(sys, "stdin", io.StringIO())
        self._clients = clients

    @property
    def root(self) -> Stack | None:
        """The root, unless it is gone."""
        return next((each for each in self._alive() if each.name == STACK), None)

    @property
    def stacks(self) -> dict[str, str]:
        """Statuses of the root, under its name, and of the stacks that it nests, under their logical ids."""
        root = self.root
        nested = [each for each in self._alive() if root and each.root is root]
        return {_SUFFIX.sub("", each.name).removeprefix(f"{STACK}-"): each.status for each in nested}

    def write(self, *more: Mapping[str, Any], **group: Any) -> None:
        """Write the cluster file: a master, and a group of two nodes.

        Args:
            more: further node groups.
            group: what else there is to say of the first one.
        """
        general = {"name": "general", "minSize": 2, "maxSize": 2, **group}
        content = {"name": CLUSTER, "api": {"allowedCidrs": ["203.0.113.7/32"]}, "nodeGroups": [general, *more]}
        Path(f"{CLUSTER}.yaml").write_text(yaml.safe_dump(content))

    def run(self, command: str, *options: str, leaving: str = "") -> Ran:
        """Run a command of cfngen, agreeing to whatever it asks.

        Args:
            command: without `cfngen`, and without the options that choose the cluster.
            options: that are no part of what is being tried.
            leaving: where not empty, Ctrl-C is pressed as soon as the root is in this status.
        """
        return self.type(f"{command} {shlex.join(CHOICE)}", *options, leaving=leaving)

    def cancel(self) -> Ran:
        """Attach to the operation under way, press Ctrl-C, and choose to cancel it."""
        choices = iter((InterruptChoice.CANCEL,))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Screen, "interrupted", lambda shown: next(choices, InterruptChoice.WAIT))
            patch.setattr(Target, "consent", lambda target, **options: lambda question: True)
            return self.run("watch", leaving=self.stacks[STACK])

    def type(self, line: str, *options: str, leaving: str = "") -> Ran:
        """Run a command as it is typed, except that what says yes beforehand is added."""
        words = shlex.split(line)
        before, ends = self.state(), len(self._ends())
        self.clock.leaving = leaving
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), self._clients.unchanged():
            try:
                application.main([*words, *AGREED.get(name_of(line), "").split(), *options], prog_name="cfngen")
                code: Any = 0
            except SystemExit as left:
                code = left.code or 0
        assert not self.clock.leaving, f"{line}: the root has never been in {leaving}: {err.getvalue()}"
        self.place.world.close()  # a copy would have its sockets, and not the threads that answer there
        text = out.getvalue() + err.getvalue()
        ended = tuple(self._ends()[ends:])
        return Ran(shortened(line), code, text, before, self.state(), self.stacks, ended, advised(text))

    def follow(self, ran: Ran, known: Known) -> None:
        """Take every step that is named, twice in a row, and those that it names, each in a copy of this moment."""
        for step in ran.steps:
            key = (ran.after, shortened(step))
            if key in known or not is_followed(step):
                continue
            if tried := known.get((ran.after, f"{key[1]}{TRIED}")):
                known[key] = tried
                if tried.after == ran.after:
                    self.follow(tried, known)
                continue

            def taken(step: str = step, key: tuple[str, str] = key) -> None:
                first = known[key] = self.type(step)
                self.follow(first, known)
                again = (first.after, f"{key[1]}{AGAIN}")
                if again not in known and (leads(step) or first.changed):
                    known[again] = self.type(step)
                    self.follow(known[again], known)

            in_a_copy(taken, known)

    def state(self) -> str:
        """What there is, as far as any command can tell: not when it was made, nor under which ids."""
        parts: list[Any] = [Path(f"{CLUSTER}.yaml").read_text()]
        # What always fails is the same whether it has failed once or twice.
        parts += [(one.logical_id, one.during, min(one.remaining_times, 10)) for one in self.engine.failures._pending]
        parts += self._launching()
        for stack in self._alive():
            parts += [(stack.name, stack.status, stack.own_termination_protection, stack.policy)]
            parts += sorted((key, one.status, one.exists) for key, one in stack.resources.items())
            parts += sorted(one.execution_status for one in self.engine.all_change_sets() if one.stack is stack)
        return hashlib.sha256(_SUFFIX.sub("", repr(parts)).encode()).hexdigest()[:16]

    def _alive(self) -> list[Stack]:
        return [stack for stack in self.engine.stacks() if stack.status != "DELETE_COMPLETE"]

    def _launching(self) -> list[Any]:
        """Which groups launch from the newest version of their launch templates, their sizes, and which are paused."""
        # From moto itself, as each command asks twice and the answer of the service takes long to write.
        groups = autoscaling_backends[DEFAULT_ACCOUNT_ID][self.engine.region].autoscaling_groups.values()
        return sorted(
            (
                one.name,
                one.launch_template["Version"] == str(one.ec2_launch_template.latest_version_number),
                (one.min_size, one.max_size, one.desired_capacity),
                any(tag["Key"] == PAUSED for tag in one.tags),
            )
            for one in groups
        )

    def _ends(self) -> list[str]:
        roots = [stack for stack in self.engine.stacks() if stack.name == STACK]
        own = [event.status for root in roots for event in root.events if event.physical_id == root.id]
        return [status for status in own if not status.endswith("_IN_PROGRESS")]


def shortened(line: str) -> str:
    """A command without the options that choose the cluster."""
    words = shlex.split(line)
    for name in CHOICE[::2]:
        if name in words:
            del words[words.index(name) : words.index(name) + 2]
    return " ".join(words)


@contextlib.contextmanager
def walking() -> Iterator[Walk]:
    """An empty account, and the operator's directory with a cluster file.

    A whole life of a cluster in another account comes first: what it imports, and the clients and models of services
    that it makes, every copy has then.
    """
    clients = Clients(session())
    with _operating(clients) as walk:
        for command in LIFE:
            walk.run(command)
    with _operating(clients) as walk:
        gc.freeze()  # what is collected in a copy is copied
        try:
            yield walk
        finally:
            gc.unfreeze()


@contextlib.contextmanager
def _operating(clients: Clients) -> Iterator[Walk]:
    with place() as made, pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as home:
        walk = Walk(made, patch, Path(home), clients)
        walk.write()
        yield walk


def in_a_copy(function: Callable[[], Answer], known: Known) -> Answer:
    """Call a function in a copy of this process, and return what it returns; what it adds to `known` is known here too.

    Raises:
        AssertionError: it raised something.
    """
    [answer] = in_copies([function], known)
    return answer


def in_copies(functions: Sequence[Callable[[], Answer]], known: Known) -> list[Answer]:
    """Call functions at the same time, each in a copy of this process, as `in_a_copy` does."""
    here = frozenset(known)

    def learned(function: Callable[[], Answer]) -> tuple[Answer, Known]:
        answer = function()
        return answer, {key: ran for key, ran in known.items() if key not in here}

    answers = []
    for copy in [_begun(partial(learned, function)) for function in functions]:
        answer, more = copy()
        known.update(more)
        answers.append(answer)
    return answers


def _begun(function: Callable[[], Answer]) -> Callable[[], Answer]:
    """Begin to call a function in a copy of this process; what is returned waits for what it returns."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        _answer(function, write)
    os.close(write)

    def ended() -> Answer:
        with os.fdopen(read, "rb") as pipe:
            data = pipe.read()
        os.waitpid(child, 0)
        succeeded, value = pickle.loads(data) if data else (False, "the copy has ended without a word")
        if not succeeded:
            raise AssertionError(value)
        answer: Answer = value
        return answer

    return ended


def _answer(function: Callable[[], Any], write: int) -> None:
    """Send what a function returns, and end this process with nothing of what the original does at its end."""
    try:
        # What commands write beside the cluster file is the copy's own.
        with tempfile.TemporaryDirectory() as directory:
            here = shutil.copytree(Path.cwd(), Path(directory) / "home")
            os.environ["HOME"] = str(here)
            os.chdir(here)
            try:
                answer = pickle.dumps((True, function()))
            except BaseException:  # noqa: BLE001 (the original raises it)
                answer = pickle.dumps((False, traceback.format_exc()))
        with os.fdopen(write, "wb") as pipe:
            pipe.write(answer)
    finally:
        os._exit(0)
