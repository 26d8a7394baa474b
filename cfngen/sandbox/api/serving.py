"""Connects the emulator with ordinary boto3 clients: CloudFormation's API, faults, permissions, extensions of moto."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cfngen.sandbox.api.faults import Faults
from cfngen.sandbox.api.gate import Application, Gate
from cfngen.sandbox.api.identity import Permissions
from cfngen.sandbox.api.moto_extensions import MotoExtensions
from cfngen.sandbox.api.responses import Service
from cfngen.sandbox.cloudformation import CloudFormation


@dataclass(frozen=True)
class Served:
    """The parts of the served API, for a test or the sandbox.

    Attributes:
        service: the emulators of all regions; hold its `lock` if another thread than a request's advances the clock.
        faults: injected faults and recorded calls.
        permissions: permissions of users.
        gaps: the extensions of moto.
        gate: the gate that requests pass.
    """

    service: Service
    faults: Faults
    permissions: Permissions
    gaps: MotoExtensions
    gate: Gate

    def wsgi(self, application: Application) -> Application:
        """Return moto's server application with the gate in front of it."""
        return self.gate.wsgi(application)


@contextlib.contextmanager
def serving(clouds: Mapping[str, CloudFormation] | CloudFormation, *, faults: Faults | None = None) -> Iterator[Served]:
    """Serve emulators to ordinary boto3 clients, within `moto.mock_aws()`, until the end of the block.

    Clients in this process need no set-up; for moto's server see `Served.wsgi`.

    Args:
        clouds: one emulator, or one for each region.
        faults: the faults to inject; none by default.
    """
    engines = {clouds.region: clouds} if isinstance(clouds, CloudFormation) else dict(clouds)
    faults = faults or Faults()
    [first, *_] = engines.values()
    faults.now = lambda: first.clock.now
    service, permissions, gaps = Service(engines, faults), Permissions(), MotoExtensions()
    gaps.time = lambda: first.clock.time
    gaps.stored = lambda region: service.cloud(region).stored
    permissions.owner = service.owner
    gate = Gate(faults, (permissions.check, gaps.check), {"cloudformation": service.respond})
    with gaps.filled(), gate.in_process():
        yield Served(service, faults, permissions, gaps, gate)
