"""The engine behind CloudFormation's API, with everything that stands between a client and it."""

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
    """What a test or the sandbox holds while the API is there.

    Attributes:
        service: the engines; hold its `lock` while simulated time passes in another thread than that of the requests.
        faults: what goes wrong.
        permissions: who may do what.
        gaps: what moto lacks.
        gate: where requests pass.
    """

    service: Service
    faults: Faults
    permissions: Permissions
    gaps: MotoExtensions
    gate: Gate

    def wsgi(self, application: Application) -> Application:
        """Return moto's server application with the gate before it."""
        return self.gate.wsgi(application)


@contextlib.contextmanager
def serving(clouds: Mapping[str, CloudFormation] | CloudFormation, *, faults: Faults | None = None) -> Iterator[Served]:
    """Serve engines to ordinary boto3 clients, within `moto.mock_aws()`, until the end of the block.

    Requests of this process pass by themselves; for moto's server see `Served.wsgi`.

    Args:
        clouds: one engine, or one for each region.
        faults: what goes wrong; nothing if it is left out.
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
