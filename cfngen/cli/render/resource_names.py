"""Readable names of stacks and resources, made from their logical ids."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")
_WAITING_SUFFIXES = ("AutoScalingGroup", "WaitCondition")
_ACRONYMS = {"Api": "API", "Ca": "CA", "Cidr": "CIDR", "Dhcp": "DHCP", "Dns": "DNS", "Iam": "IAM", "Ip": "IP"}
_ACRONYMS |= {"Mtu": "MTU", "Tcp": "TCP", "Udp": "UDP", "Vpc": "VPC"}


def resource_name(logical_id: str) -> str:
    """Return a logical id as words, e.g. `master A volume`; suffixes such as `WaitCondition` are dropped."""
    for ending in _WAITING_SUFFIXES:
        if logical_id.endswith(ending) and logical_id != ending:
            return _words(logical_id.removesuffix(ending))
    return _words(logical_id)


def stack_title(path: Sequence[str], name: str) -> str:
    """Return the title of a stack: the name of the root, or the logical ids of a nested stack as words."""
    if not path:
        return name
    return " / ".join(_words(logical_id.removesuffix("Stack") or logical_id) for logical_id in path)


def place(path: Sequence[str], logical_id: str) -> str:
    """Return the logical ids of the nested stacks and the resource, e.g. `VpcStack/SubnetA`."""
    return "/".join((*path, logical_id))


def stack_path(path: Sequence[str], root_name: str) -> str:
    """Return the logical ids of a nested stack, e.g. `VpcStack`; for the root stack its name."""
    return "/".join(path) or root_name


def _words(logical_id: str) -> str:
    words = _WORD.findall(logical_id)
    # A single letter names an availability zone or a master, and stays upper-case.
    spelled_words = [_ACRONYMS.get(word, word if len(word) == 1 else word.lower()) for word in words]
    return " ".join(spelled_words)
