"""EC2 instance types: which region offers them, what EC2 says of them, and which are too small for Kubernetes.

The types of a region are read from cfn-lint's data files, without importing cfn-lint. They come from AWS's price list
and are as recent as the installed cfn-lint. What EC2 says of each, processors, memory, disks, network interfaces and
GPUs, is a copy of its DescribeInstanceTypes, which `.ci/instance-types` brings up to date. A type that is newer than
this copy is unknown there, so nothing may depend on a type being known.
"""

from __future__ import annotations

import difflib
import importlib.util
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

_TYPES_BY_REGION_FILE = "data/schemas/extensions/aws_ec2_instance/instancetype_enum.json"
_PROVIDER_SCHEMAS_DIRECTORY = "data/schemas/providers"
# Families with Arm processors. Graviton families carry a g after the generation: https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
_ARM_FAMILY = re.compile(r"[a-z]+[0-9]+g[a-z]*|a1|p6e-gb[0-9]+")
# Families that start paravirtual images only: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/virtualization_types.html
_PARAVIRTUAL_FAMILIES = ("c1", "m1", "m2", "t1")
# The burstable families whose medium size has two vCPU; in every other family it has one:
# https://docs.aws.amazon.com/ec2/latest/instancetypes/gp.html
_TWO_VCPU_MEDIUM_FAMILIES = ("t2", "t3", "t3a", "t4g", "t8i")
# The name of a type: https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
_TYPE_NAME = re.compile(r"(?P<family>[a-z]+)(?P<generation>[0-9]+)(?P<options>[a-z0-9-]*)\.(?P<size>[a-z0-9-]+)")
# What most families have behind the generation: Intel's, the oldest, AMD's and AWS's processors.
_USUAL_OPTIONS = ("i", "", "a", "g")
_MAC = "is a Mac, which runs no Linux"
# What kube-up used its default instance types for.
_KUBE_UP_TYPES = {"m3.medium": "masters", "t2.micro": "nodes", "t2.small": "nodes of larger clusters"}
_TABLE = "instance_types.json"


def architecture(instance_type: str) -> Literal["amd64", "arm64"]:
    """Return the CPU architecture of an instance type, e.g. `arm64` for `t4g.medium`."""
    return "arm64" if _ARM_FAMILY.fullmatch(instance_type.partition(".")[0]) else "amd64"


def why_unsuitable(instance_type: str, role: str) -> str | None:
    """Return why an instance type cannot run today's Kubernetes, and what to use instead; None if it can.

    kubeadm requires two vCPU on a master and about 2 GiB of memory on every machine. A node with one vCPU has little
    left once the kubelet, containerd and the daemon sets have taken their share.
    """
    family, _, size = instance_type.partition(".")
    if family.startswith("mac"):
        return f"{instance_type} {_MAC}; use {_alternative(instance_type)}"
    reason = _why_too_small(family, size) or why_no_linux(instance_type)
    if reason is None:
        return None
    history = f" (kube-up's type for {_KUBE_UP_TYPES[instance_type]})" if instance_type in _KUBE_UP_TYPES else ""
    return f"{instance_type}{history} {reason}; a {role} needs 2 vCPU and 2 GiB: use {_alternative(instance_type)}"


def why_no_linux(instance_type: str) -> str | None:
    """Return why an instance type starts none of the distributions' images, or None if it does."""
    family = instance_type.partition(".")[0]
    if family.startswith("mac"):
        return _MAC
    is_paravirtual = family in _PARAVIRTUAL_FAMILIES
    return "starts paravirtual images only, which no distribution makes any more" if is_paravirtual else None


def regions() -> Collection[str]:
    """Return the names of the AWS regions that the installed cfn-lint knows; empty without cfn-lint."""
    return _regions()


def types_in_region(region: str) -> Collection[str] | None:
    """Return the instance types that a region offers, or None if cfn-lint has no list for the region."""
    return _types_by_region().get(region)


def regions_of(instance_type: str) -> list[str]:
    """Return the regions that offer an instance type."""
    return sorted(region for region, types in _types_by_region().items() if instance_type in types)


def similar(instance_type: str, region: str) -> list[str]:
    """Return up to three suitable types of a region that are near to `instance_type`.

    These are the types of the same family and size in the nearest generations, or else those with similar names.
    """
    offered_types = types_in_region(region) or ()
    candidates = [candidate for candidate in offered_types if not why_unsuitable(candidate, role="node")]
    wanted_architecture = architecture(instance_type)
    same_architecture = [candidate for candidate in candidates if architecture(candidate) == wanted_architecture]
    candidates = sorted(same_architecture or candidates)
    return _in_other_generations(instance_type, candidates) or difflib.get_close_matches(
        instance_type, candidates, n=3, cutoff=0.6
    )


def _in_other_generations(instance_type: str, candidates: Collection[str]) -> list[str]:
    """Return one type of each of the three nearest generations in which there is one of the same family and size."""
    asked_name = _TYPE_NAME.fullmatch(instance_type)
    if not asked_name:
        return []

    def distance(name: re.Match[str]) -> tuple[int, int, int, str]:
        """Return a sort key: how far the generation is, newer ones first, then how unlike the rest is."""
        options = name["options"]
        likely_options = (asked_name["options"], *_USUAL_OPTIONS)
        rank = likely_options.index(options) if options in likely_options else len(likely_options)
        generation = int(name["generation"])
        return abs(generation - int(asked_name["generation"])), -generation, rank, options

    names = [
        name
        for candidate in candidates
        if (name := _TYPE_NAME.fullmatch(candidate))
        and (name["family"], name["size"]) == asked_name.group("family", "size")
    ]
    by_generation: dict[str, str] = {}
    for name in sorted(names, key=distance):
        by_generation.setdefault(name["generation"], name[0])
    return list(by_generation.values())[:3]


def _why_too_small(family: str, size: str) -> str | None:
    """Return why the types of a family have too few vCPU or too little memory in a size, or None if they have not."""
    if size in ("nano", "micro"):
        return "has less than 2 GiB of memory"
    if family in ("t2", "m1") and size == "small":
        return "has one vCPU"
    if size == "medium" and family not in _TWO_VCPU_MEDIUM_FAMILIES:
        return "has less than 2 GiB of memory" if family == "c1" else "has one vCPU"
    return None


def _alternative(instance_type: str) -> str:
    return "t4g.medium or larger" if architecture(instance_type) == "arm64" else "t3.medium or larger"


def smallest_alternative(instance_type: str) -> str:
    """Return a small type with the same CPU architecture, for a message about a type that is not for Kubernetes."""
    return "t4g.micro" if architecture(instance_type) == "arm64" else "t3.micro"


def _cfn_lint_path(path: str) -> Path | None:
    spec = importlib.util.find_spec("cfnlint")
    package_directories = list(spec.submodule_search_locations or ()) if spec else []
    for directory in package_directories:
        if (Path(directory) / path).exists():
            return Path(directory) / path
    return None


@cache
def _types_by_region() -> dict[str, frozenset[str]]:
    """Return the instance types by region.

    In cfn-lint's file the entry of a region is a schema with the types (`enum`), or the name of another entry with the
    same types.
    """
    file = _cfn_lint_path(_TYPES_BY_REGION_FILE)
    entries = json.loads(file.read_text(encoding="utf-8")) if file else {}
    types_by_region: dict[str, frozenset[str]] = {}
    for region, entry in entries.items():
        while isinstance(entry, str) and entry in entries and entry != region:
            entry = entries[entry]
        # Other entries of the file are not regions.
        if "-" in region and isinstance(entry, dict) and entry.get("enum"):
            types_by_region[region] = frozenset(entry["enum"])
    return types_by_region


@cache
def _regions() -> frozenset[str]:
    """Return the regions for which cfn-lint has a list of instance types or a directory of resource schemas."""
    directory = _cfn_lint_path(_PROVIDER_SCHEMAS_DIRECTORY)
    schema_regions = (file.stem for file in directory.glob("*-*.json")) if directory else ()
    return frozenset(_types_by_region()) | frozenset(schema_regions)


@dataclass(frozen=True)
class InstanceTypeFacts:
    """The facts about one instance type, as DescribeInstanceTypes gives them.

    Attributes:
        vcpus: number of vCPUs with the default number of threads.
        local_disk_gb: total size of the instance store in GB; 0 without one.
        network_interfaces: highest number of interfaces of the first network card.
        addresses_per_interface: highest number of private IPv4 addresses of one interface, its primary one included.
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
