"""What all tests share."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import botocore.parsers
import botocore.session
import pytest
from botocore.utils import parse_timestamp
from dateutil.tz import tzutc

from cfngen.deploy.access import certificates

# `make test` tells these to whatever it starts; a make that a test starts would take them for its own.
for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(name, None)

# The models of botocore and moto are millions of objects that stay: looking through them after every few hundred new
# ones takes a fifth of the suite's time.
gc.set_threshold(100_000, 50, 100)

# Tests make hundreds of sessions, and each would read megabytes of service models anew.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

# Reading a private key tries whether it is a right one, which takes 40 ms; every look at a cluster does so twice, and
# the keys of tests are the same few.
certificates._load_private_key = functools.cache(certificates._load_private_key)


def _timestamp(value: Any) -> datetime:
    """Read a time of an answer as botocore does, but the form that all of moto's have without guessing at forms."""
    if isinstance(value, str) and value.endswith("Z") and "T" in value:
        try:
            return datetime.fromisoformat(value[:-1]).replace(tzinfo=tzutc())
        except ValueError:
            pass
    return parse_timestamp(value)


botocore.parsers.DEFAULT_TIMESTAMP_PARSER = _timestamp


def all_of_some(values: Iterable[Any]) -> bool:
    """`all` for tests: of nothing at all everything is true, and a test that says so of nothing tests nothing."""
    __tracebackhide__ = True
    some = False
    for value in values:
        some = True
        if not value:
            return False
    if not some:
        pytest.fail("all() of nothing: what it says things of is not there")
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give test modules an `all` that wants something to say it of."""
    for module in {id(module): module for item in items if (module := getattr(item, "module", None))}.values():
        module.__dict__.setdefault("all", all_of_some)
