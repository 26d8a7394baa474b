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
MIN_RANDOM_SECONDS = 0.3
MAX_RANDOM_SECONDS = 300.0


class ResourceOrder:
    """The order of resources that do not depend on each other, and how long operations on them take.

    Args:
        seed: the same seed gives the same random order; None keeps the order of the template.
    """

    def __init__(self, seed: int | None) -> None:
        self._random = None if seed is None else random.Random(seed)  # noqa: S311 - nothing secret

    def vary_duration(self, seconds: float) -> float:
        """Vary the duration of an operation, or choose one if none is configured; unchanged without a seed.

        Args:
            seconds: the configured duration, which becomes half to one and a half times as long; 0 if none is
                configured
        """
        if self._random is None:
            return seconds
        if not seconds:
            # A uniform exponent makes short and long durations equally likely.
            return float(MIN_RANDOM_SECONDS * (MAX_RANDOM_SECONDS / MIN_RANDOM_SECONDS) ** self._random.random())
        return seconds * self._random.uniform(0.5, 1.5)

    def choose_next(self, logical_ids: Iterable[str]) -> list[str]:
        """The resources to handle next: without a seed all the given ones, with a seed a random one of them."""
        candidates = list(logical_ids)
        if self._random is None or not candidates:
            return candidates
        return [self._random.choice(candidates)]
