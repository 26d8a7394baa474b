"""Clusters of three masters for the tests of the sandbox."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sandboxed import CASES, Place, place

from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.sandbox.instances.instance import Instance

LETTERS = "ABC"
ZONES = 'network.subnets=[{"zone": "us-west-2a"}, {"zone": "us-west-2b"}, {"zone": "us-west-2c"}]'


def group(letter: str) -> str:
    return f"Master{letter}AutoScalingGroup"


def variant(*overrides: str) -> Cluster:
    return load(CASES / "default" / "cluster.yaml", environ={}, overrides=(ZONES, *overrides)).cluster


def three(*overrides: str) -> Cluster:
    return variant("controlPlane.count=3", *overrides)


def masters(where: Place) -> list[Instance]:
    return [instance for letter in LETTERS for instance in where.instances(group(letter))]


@contextlib.contextmanager
def three_masters() -> Iterator[Place]:
    """An emulated account for a cluster of three masters, which is not created yet."""
    with place() as where:
        yield Place(where.account, three())
