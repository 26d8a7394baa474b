"""What all tests share."""

from __future__ import annotations

import functools
import gc
import os
from datetime import datetime
from typing import Any

import botocore.parsers
import botocore.session
from botocore.utils import parse_timestamp
from dateutil.tz import tzutc

# `make test` tells these to whatever it starts; a make that a test starts would take them for its own.
for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(name, None)

# The models of botocore and moto are millions of objects that stay: looking through them after every few hundred new
# ones takes a fifth of the suite's time.
gc.set_threshold(100_000, 50, 100)

# Tests make hundreds of sessions, and each would read megabytes of service models anew.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)


def _timestamp(value: Any) -> datetime:
    """Read a time of an answer as botocore does, but the form that all of moto's have without guessing at forms."""
    if isinstance(value, str) and value.endswith("Z") and "T" in value:
        try:
            return datetime.fromisoformat(value[:-1]).replace(tzinfo=tzutc())
        except ValueError:
            pass
    return parse_timestamp(value)


botocore.parsers.DEFAULT_TIMESTAMP_PARSER = _timestamp
