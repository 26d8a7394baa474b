"""The emulator's API for ordinary boto3 clients, with faults and permissions of users, which tests set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fault_injection import Faults
from identity_policies import Permissions

from cfngen.sandbox import api
from cfngen.sandbox.cloudformation import ApiError, CloudFormation


@dataclass(frozen=True)
class Served(api.Served):
    """The parts of the served API.

    Attributes:
        faults: injected faults and recorded calls.
        permissions: permissions of users.
    """

    faults: Faults
    permissions: Permissions


@contextlib.contextmanager
def serving(clouds: Mapping[str, CloudFormation] | CloudFormation) -> Iterator[Served]:
    """Serve emulators to ordinary boto3 clients, until the end of the block; see `cfngen.sandbox.api.serving`."""
    faults, permissions = Faults(), Permissions()
    with api.serving(clouds, control=faults, checks=(permissions.check,)) as served:

        def stack_of_change_set(change_set: str, region: str) -> str:
            try:
                return served.service.cloud(region).change_set(change_set).stack.id
            except ApiError:
                return ""

        permissions.owner = stack_of_change_set
        yield Served(served.service, served.moto_extensions, served.gate, faults, permissions)
