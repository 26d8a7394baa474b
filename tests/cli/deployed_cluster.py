"""A deployed cluster for the tests of commands that look at one, and the way there."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from deployed import STACK, Place, place
from shell import Ran, Shell

from cfngen.cli.input.target import Target

__all__ = ["Command", "Place", "Ran", "Shell", "commanding", "created", "operating", "place"]
Command = Callable[..., Ran]


@functools.cache
def session() -> Any:
    """One session for all commands: each new one reads the models of all services again."""
    return boto3.Session("AKIAOPERATOROPERATOR", "secret")


@contextlib.contextmanager
def created() -> Iterator[Place]:
    """The default cluster, as nested stacks."""
    with place() as made:
        made.create()
        yield made


def operating(where: Place, patch: pytest.MonkeyPatch) -> None:
    """Let commands of cfngen work in the account, by its clock, where its API listens on this machine."""
    patch.setattr("cfngen.deploy.aws.types.SystemClock", lambda: where.clock)
    patch.setattr(Target, "kubernetes_override", lambda self, endpoint: where.override(endpoint))
    patch.setattr(Target, "_session", lambda self, region: session())


def commanding(where: Place, cfngen: Shell, patch: pytest.MonkeyPatch) -> Command:
    """Return what runs a command of cfngen on the cluster."""
    operating(where, patch)

    def run(name: str, *arguments: str, stack: str = STACK, **environ: str) -> Ran:
        agreed = ("--create-bucket",) if name == "plan" else ()
        return cfngen(name, *arguments, *agreed, "--defaults", "--stack-name", stack, **environ)

    return run
