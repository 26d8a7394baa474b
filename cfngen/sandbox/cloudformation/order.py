"""The order in which resources are handled that do not depend on each other.

CloudFormation only guarantees that a resource waits for its dependencies (template reference, "DependsOn attribute").
Independent resources are created, updated and deleted concurrently, and complete in any order. With a seed, the
emulator picks a random order, so that a missing dependency shows as a failure for some seeds. Without a seed, the order
is that of the template, and durations are exactly as configured.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

# With a seed, the range of random durations for resources without a configured duration. It is wide on purpose: with
# similar durations, a resource with many dependencies would always come after one with few.
MIN_SECONDS, MAX_SECONDS = 0.3, 300.0


class ResourceOrder:
    """A random order.

    Args:
        seed: the same seed gives the same order; None keeps the order of the template.
    """

    def __init__(self, seed: int | None) -> None:
        self._random = None if seed is None else random.Random(seed)  # noqa: S311 - nothing secret

    def vary_duration(self, seconds: float) -> float:
        """Vary a duration: between half and one and a half times as long; unchanged without a seed."""
        if self._random is None:
            return seconds
        if not seconds:
            return float(MIN_SECONDS * (MAX_SECONDS / MIN_SECONDS) ** self._random.random())
        return seconds * self._random.uniform(0.5, 1.5)

    def next_of(self, keys: Iterable[str]) -> list[str]:
        """Choose the keys to handle next: with a seed, a random one of the given keys; without, all of them."""
        remaining = list(keys)
        return remaining if self._random is None or not remaining else [self._random.choice(remaining)]
