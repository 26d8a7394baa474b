"""Templates of two small clusters as they were generated when node groups did not come after masters.

One master's Auto Scaling group had the creation policy itself, and three masters' wait conditions were in their stack.
Clusters made from such templates are updated to those of today.
"""

from __future__ import annotations

import functools
import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster

FILE = Path(__file__).with_name("templates_without_order.json.xz")
CASES = ("one-master", "three-masters")


@dataclass(frozen=True)
class Earlier:
    """A cluster and its templates then.

    Attributes:
        file: the cluster file's content.
        templates: bodies by name.
    """

    file: dict[str, Any]
    templates: dict[str, dict[str, Any]]

    @property
    def cluster(self) -> Cluster:
        return parse(self.file)


@functools.cache
def _all() -> dict[str, Any]:
    return json.loads(lzma.decompress(FILE.read_bytes()))


def earlier(case: str) -> Earlier:
    """Return a case: one of `CASES`."""
    found = _all()[case]
    return Earlier(found["cluster"], found["templates"])
