"""Connects the emulator with ordinary boto3 clients: CloudFormation's API, and the extensions of moto."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cfngen.sandbox.api.gate import Application, CallControl, Check, Gate
from cfngen.sandbox.api.moto_extensions import MotoExtensions
from cfngen.sandbox.api.responses import Service
from cfngen.sandbox.cloudformation import CloudFormation


@dataclass(frozen=True)
class Served:
    """An account that is served to boto3 clients.

    Attributes:
        service: the emulators of all regions; a thread that advances the clock must hold its `lock`.
        moto_extensions: the state of the account that moto lacks, such as console outputs and quotas.
        gate: passes requests on to moto or to the emulators.
    """

    service: Service
    moto_extensions: MotoExtensions
    gate: Gate

    def wsgi(self, application: Application) -> Application:
        """Return moto's server application with the gate in front of it."""
        return self.gate.wsgi(application)


@contextlib.contextmanager
def serving(
    clouds: Mapping[str, CloudFormation] | CloudFormation,
    *,
    control: CallControl | None = None,
    checks: Iterable[Check] = (),
) -> Iterator[Served]:
    """Serve emulators to ordinary boto3 clients, within `moto.mock_aws()`, until the end of the block.

    Clients in this process need no set-up; for moto's server see `Served.wsgi`.

    Args:
        clouds: one emulator, or one for each region.
    """
    clouds_by_region = {clouds.region: clouds} if isinstance(clouds, CloudFormation) else dict(clouds)
    control = control or CallControl()
    clock = next(iter(clouds_by_region.values())).clock
    control.now = lambda: clock.now
    service, extensions = Service(clouds_by_region, control), MotoExtensions()
    extensions.time = lambda: clock.time
    extensions.public_parameters = lambda region: service.cloud(region).parameter_store
    gate = Gate(control, (*checks, extensions.check_bucket_owner), {"cloudformation": service.respond})
    with extensions.patched(), gate.in_process():
        yield Served(service, extensions, gate)
