"""Names for moto's objects in annotations; to the type checker they are all `Any`.

moto's own annotations lack many attributes, or give them types that its code does not keep to, and the emulator adds
further attributes. The names only show readers which layer of moto an object belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MotoBackend = Any  # the state of one service in one region, such as EC2Backend
MotoModel = Any  # one object in a backend: an instance, a security group, a load balancer, …
MotoResponse = Any  # the handler of one request to a service, such as EC2's `DHCPOptions`
Original = Callable[..., Any]  # a method of moto that a patch replaces
