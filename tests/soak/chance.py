"""One thing by chance, chosen by a number: the same number is the same thing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar
from unittest.mock import patch

from hypothesis import Phase, given, seed, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.strategies import SearchStrategy

SMALLEST = 10
"""Hypothesis begins with this many examples of next to nothing, in which nothing is found that others do not show."""
Drawn = TypeVar("Drawn")


def tried(number: int, strategy: SearchStrategy[Drawn], check: Callable[[Drawn], None], *, shrink: bool) -> None:
    """Draw something, and check it.

    Args:
        number: chooses what is drawn.
        strategy: draws it.
        check: raises what is wrong.
        shrink: whether to look for something smaller with which the same is wrong, for five minutes at most.
    """
    examples = itertools.count(1)

    @seed(number)
    @settings(
        max_examples=SMALLEST + 2,
        database=None,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
    )
    @given(strategy)
    def last(drawn: Drawn) -> None:
        if next(examples) >= SMALLEST + 2:
            check(drawn)

    # Hypothesis also draws constants of the modules that happen to be imported, and caches them.
    with patch.object(providers, "_get_local_constants", Constants), patch.object(providers, "CONSTANTS_CACHE", {}):
        last()
    assert next(examples) > SMALLEST + 2
