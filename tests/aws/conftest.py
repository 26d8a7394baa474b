"""An AWS account in memory for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import in_memory

from cfngen.sandbox.cloudformation import CloudFormation


@pytest.fixture(autouse=True)
def account(request: pytest.FixtureRequest) -> Iterator[None]:
    """An empty account, or that of a fixture of wider scope. An indirect parameter is moto's configuration."""
    with in_memory(getattr(request, "param", None)):
        yield


@pytest.fixture
def cloud() -> CloudFormation:
    """CloudFormation in an account where instances do nothing."""
    return CloudFormation("us-west-2")
