"""Runs of the boot program that begin in the middle: with a configuration and facts, as earlier steps leave them."""

from __future__ import annotations

from typing import Any

from cfngen.boot.state import Boot


def boot_of(config: dict[str, Any]) -> Boot:
    """Return the run of an instance with this configuration.

    Args:
        config: a configuration, and beside its keys `facts` and `deadline`, which are the run's.
    """
    settings = {key: value for key, value in config.items() if key not in ("facts", "deadline")}
    boot = Boot(settings, config.get("facts", {}))
    boot.deadline = config.get("deadline", 0.0)
    return boot
