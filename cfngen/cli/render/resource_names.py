"""Readable names of stacks and resources, made from their logical ids."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD_PATTERN = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")
_WAITING_SUFFIXES = ("AutoScalingGroup", "WaitCondition")
_ACRONYMS = {"Api": "API", "Ca": "CA", "Cidr": "CIDR", "Dhcp": "DHCP", "Dns": "DNS", "Iam": "IAM", "Ip": "IP"}
_ACRONYMS |= {"Mtu": "MTU", "Tcp": "TCP", "Udp": "UDP", "Vpc": "VPC"}


def resource_name(logical_id: str) -> str:
    """Return a logical id as words, e.g. `master a volume` for `MasterAVolume`.

    The suffixes of resources that CloudFormation waits for, such as `WaitCondition`, are dropped.
    """
    for ending in _WAITING_SUFFIXES:
        if logical_id.endswith(ending) and logical_id != ending:
            return _words(logical_id.removesuffix(ending))
    return _words(logical_id)


def stack_title(path: Sequence[str], name: str) -> str:
    """Return the title of a stack: the name of a root stack, or the logical ids of a nested stack as words.

    Args:
        path: the logical ids of the nested stacks from the root to this one; empty for the root stack.
    """
    if not path:
        return name
    return " / ".join(_words(logical_id.removesuffix("Stack") or logical_id) for logical_id in path)


def resource_path(path: Sequence[str], logical_id: str) -> str:
    """Return the logical ids of the nested stacks in `path` and of the resource, e.g. `VpcStack/SubnetA`."""
    return "/".join((*path, logical_id))


def stack_path(path: Sequence[str], root_name: str) -> str:
    """Return the logical ids in `path`, e.g. `VpcStack`; for the root stack, whose path is empty, its name."""
    return "/".join(path) or root_name


def _words(logical_id: str) -> str:
    """Return a logical id as words, in lower case but for acronyms: `MasterAVolume` as `master a volume`."""
    return " ".join(_ACRONYMS.get(word, word.lower()) for word in _WORD_PATTERN.findall(logical_id))
