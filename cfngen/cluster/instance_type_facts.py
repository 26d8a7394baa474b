"""What EC2 says about its instance types: processors, memory, disks, network interfaces and GPUs.

The table is a copy of EC2's DescribeInstanceTypes, which `.ci/instance-types` brings up to date. A type that is newer
than the table is unknown here, so nothing may depend on a type being known.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

_TABLE = "instance_types.json"


@dataclass(frozen=True)
class InstanceTypeFacts:
    """The facts about one instance type, as DescribeInstanceTypes gives them.

    Attributes:
        vcpus: number of vCPUs with the default number of threads.
        local_disk_gb: total size of the instance store in GB; 0 without one.
        network_interfaces: highest number of interfaces of the first network card.
        addresses_per_interface: highest number of private IPv4 addresses of one interface, its primary one included.
        is_current_generation: whether AWS counts the type among the current generation.
        is_bare_metal: whether it is a machine without hypervisor.
        gpu: name of its GPUs, e.g. `A10G`; empty without one.
        gpu_count: number of GPUs that programs see; a part of a GPU counts as one.
        gpu_manufacturer: `NVIDIA`, `AMD` or `Habana`; empty without a GPU.
        gpu_memory_mib: memory of all GPUs together, in MiB.
    """

    architecture: Literal["amd64", "arm64"]
    vcpus: int
    memory_mib: int
    local_disk_gb: int = 0
    network_interfaces: int = 0
    addresses_per_interface: int = 0
    is_current_generation: bool = False
    is_bare_metal: bool = False
    is_burstable: bool = False
    has_spot: bool = False
    gpu: str = ""
    gpu_count: int = 0
    gpu_manufacturer: str = ""
    gpu_memory_mib: int = 0


def facts_of(instance_type: str) -> InstanceTypeFacts | None:
    """Return the facts about an instance type, or None for a type that the table does not have."""
    return all_facts().get(instance_type)


@cache
def all_facts() -> dict[str, InstanceTypeFacts]:
    """Return the facts about all known instance types, by type in alphabetical order."""
    text = resources.files(__package__).joinpath(_TABLE).read_text(encoding="utf-8")
    return {name: InstanceTypeFacts(**row) for name, row in json.loads(text).items()}
