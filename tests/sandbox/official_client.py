"""`kubernetes.client`, whose eight hundred modules are imported when something of it is first asked for.

Every process of the tests imports every test module; one of them runs the few tests that need the client.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # pytest looks at what test modules have
        raise AttributeError(name)
    return getattr(importlib.import_module("kubernetes.client"), name)
