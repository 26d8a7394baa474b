"""Which EC2 instance types exist where, which CPU they have, and which are too small for today's Kubernetes.

Which types a region has is read from cfn-lint's data, without importing cfn-lint: its lists come from AWS's price list
and are as new as the installed release.
"""

from __future__ import annotations

import difflib
import importlib.util
import json
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Literal

_LISTS = "data/schemas/extensions/aws_ec2_instance/instancetype_enum.json"
_SCHEMAS = "data/schemas/providers"
# Graviton families carry a g after the generation: https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
_ARM = re.compile(r"[a-z]+[0-9]+g[a-z]*|a1|p6e-gb[0-9]+")
# They start paravirtual images only: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/virtualization_types.html
_PARAVIRTUAL = ("c1", "m1", "m2", "t1")
# The burstable families whose medium size has two vCPU; in every other family it has one:
# https://docs.aws.amazon.com/ec2/latest/instancetypes/gp.html
_BURSTABLE = ("t2", "t3", "t3a", "t4g", "t8i")
_KUBE_UP = {"m3.medium": "masters", "t2.micro": "nodes", "t2.small": "nodes of larger clusters"}


def architecture(instance_type: str) -> Literal["amd64", "arm64"]:
    """Return the CPU architecture of an instance type, e.g. `arm64` for `t4g.medium`."""
    return "arm64" if _ARM.fullmatch(instance_type.partition(".")[0]) else "amd64"


def unfit(instance_type: str, role: str) -> str | None:
    """Say why an instance type cannot run today's Kubernetes, or return None if it can.

    kubeadm asks for two vCPU on a master and about 2 GiB of memory on every machine; a node of one vCPU has little left
    once the kubelet, containerd and the daemon sets have taken their reserves.

    Args:
        instance_type: e.g. `m3.medium`.
        role: `master` or `node`, for the sentence.

    Returns:
        A sentence with the reason and what to use instead.
    """
    family, _, size = instance_type.partition(".")
    if family.startswith("mac"):
        return f"{instance_type} is a Mac, which runs no Linux; use {_alternative(instance_type)}"
    reason = _smallness(family, size)
    if reason is None and family in _PARAVIRTUAL:
        reason = "starts paravirtual images only, which no distribution makes any more"
    if reason is None:
        return None
    was = f" (kube-up's type for {_KUBE_UP[instance_type]})" if instance_type in _KUBE_UP else ""
    return f"{instance_type}{was} {reason}; a {role} needs 2 vCPU and 2 GiB: use {_alternative(instance_type)}"


def regions() -> Collection[str]:
    """Return the names of the AWS regions."""
    return _regions()


def known(region: str) -> Collection[str] | None:
    """Return the instance types of a region, or None if there is no list for it."""
    return _lists().get(region)


def regions_of(instance_type: str) -> list[str]:
    """Return the regions that offer an instance type."""
    return sorted(region for region, types in _lists().items() if instance_type in types)


def similar(instance_type: str, region: str) -> list[str]:
    """Return up to three types of a region that `instance_type` may have been meant for; fit ones only."""
    fit = [each for each in known(region) or () if not unfit(each, "node")]
    same = architecture(instance_type)
    fit = [each for each in fit if architecture(each) == same] or fit
    return difflib.get_close_matches(instance_type, sorted(fit), n=3, cutoff=0.6)


def _smallness(family: str, size: str) -> str | None:
    if size in ("nano", "micro"):
        return "has less than 2 GiB of memory"
    if family in ("t2", "m1") and size == "small":
        return "has one vCPU"
    if size == "medium" and family not in _BURSTABLE:
        return "has less than 2 GiB of memory" if family == "c1" else "has one vCPU"
    return None


def _alternative(instance_type: str) -> str:
    return "t4g.medium or larger" if architecture(instance_type) == "arm64" else "t3.medium or larger"


def _data(path: str) -> Path | None:
    spec = importlib.util.find_spec("cfnlint")
    locations = list(spec.submodule_search_locations or ()) if spec else []
    found = [file for location in locations if (file := Path(location) / path).exists()]
    return found[0] if found else None


@cache
def _lists() -> dict[str, frozenset[str]]:
    """Instance types by region; a region's entry may be the name of one with the same types."""
    file = _data(_LISTS)
    entries = json.loads(file.read_text(encoding="utf-8")) if file else {}
    lists: dict[str, frozenset[str]] = {}
    for region, entry in entries.items():
        while isinstance(entry, str) and entry in entries and entry != region:
            entry = entries[entry]
        if "-" in region and isinstance(entry, dict) and entry.get("enum"):
            lists[region] = frozenset(entry["enum"])
    return lists


@cache
def _regions() -> frozenset[str]:
    directory = _data(_SCHEMAS)
    named = (file.stem for file in directory.glob("*-*.json")) if directory else ()
    return frozenset(_lists()) | frozenset(named)
