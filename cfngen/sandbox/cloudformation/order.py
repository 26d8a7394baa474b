"""The order in which resources come and go that do not depend on each other.

CloudFormation promises no more than that a resource waits for what it depends on (template reference, "DependsOn
attribute"): independent ones are made, changed and removed side by side, and end in whatever order they end. A seed
draws such an order, so that a dependency that is missing fails for some seeds; without a seed the order is always that
of the template, and nothing takes longer than it is told to.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

# Seconds that a resource takes whose duration nobody has told, where a seed draws it. Some take a thousand times as
# long as others: were they all alike, a resource that needs many others would always come after one that needs few.
SHORTEST, LONGEST = 0.3, 300.0


class Order:
    """An order drawn from a seed.

    Args:
        seed: the same one draws the same order; None keeps that of the template.
    """

    def __init__(self, seed: int | None) -> None:
        self._random = None if seed is None else random.Random(seed)  # noqa: S311 - nothing secret

    def lasting(self, seconds: float) -> float:
        """Return how long something takes that usually takes so many seconds: between half and one and a half of it."""
        if self._random is None:
            return seconds
        if not seconds:
            return float(SHORTEST * (LONGEST / SHORTEST) ** self._random.random())
        return seconds * self._random.uniform(0.5, 1.5)

    def next_of(self, keys: Iterable[str]) -> list[str]:
        """Return those of the keys that are next, all of which could be: all of them, or the one drawn."""
        remaining = list(keys)
        return remaining if self._random is None or not remaining else [self._random.choice(remaining)]
