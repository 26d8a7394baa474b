"""Kubernetes' resource quantities, such as `500m` or `1Gi`, as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

# Suffixes and their factors: apimachinery, pkg/api/resource/suffix.go.
_FACTORS: Mapping[str, Decimal] = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("MGTPE", start=2)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([a-zA-Z]*)")


def parse_quantity(value: object) -> Decimal | None:
    """Return the number that a quantity stands for, e.g. 0.5 for `500m`, or None if it has another form."""
    match = _QUANTITY.fullmatch(str(value))
    factor = _FACTORS.get(match[2]) if match else None
    return Decimal(match[1]) * factor if match and factor is not None else None


def parse_threshold(value: object, capacity: Decimal) -> Decimal | None:
    """Return the number that an eviction threshold stands for: a quantity, or a percentage of the capacity."""
    percentage = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)%", str(value))
    return capacity * Decimal(percentage[1]) / 100 if percentage else parse_quantity(value)
