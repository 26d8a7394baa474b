"""What a new cluster consists of, and what AWS charges for."""

from __future__ import annotations

from dataclasses import dataclass

UNUSED_CAPACITY = "reserved capacity without an instance"
"""The billed item of capacity reservations: an instance in one is charged itself, and the reservation is not."""


@dataclass(frozen=True)
class ComponentCount:
    """A kind of component that a new cluster consists of, and how many there are.

    Attributes:
        count: how many components of this kind.
        what: the kind, e.g. `master`, `node`, `VPC`.
        detail: further information, e.g. `t3.medium, group gpu`; may be empty.
    """

    count: int
    what: str
    detail: str = ""


@dataclass(frozen=True)
class Cost:
    """Something that AWS charges for as long as it exists; prices are not included.

    Attributes:
        quantity: how much.
        unit: e.g. `instance`, `GiB`, `address`.
        what: the billed item, e.g. `t3.medium`, `gp3 volume`.
        detail: what the item is used for; may be empty.
    """

    quantity: int
    unit: str
    what: str
    detail: str = ""


@dataclass(frozen=True)
class CreationSummary:
    """What a deployment creates if the cluster does not exist yet.

    Attributes:
        items: what it consists of.
        costs: what AWS charges for as long as it exists; traffic, requests and snapshots are not included.
    """

    items: tuple[ComponentCount, ...] = ()
    costs: tuple[Cost, ...] = ()
