"""Types of moto's objects, which are untyped here.

moto's annotations lack many attributes, or give them types that its own code does not keep to; and the emulator adds
attributes of its own. So the type checker knows no more of these objects than which layer of moto they belong to.
"""

from __future__ import annotations

from typing import Any

MotoBackend = Any  # the state of one service in one region, such as EC2Backend
MotoModel = Any  # one object in a backend: an instance, a security group, a load balancer, …
MotoResponse = Any  # the handler of one request to a service, such as EC2's `DHCPOptions`
