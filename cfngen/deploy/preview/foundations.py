"""What everything else of a cluster stands on, and no update may exchange: its VPC, and the subnets in their zones.

CloudFormation would: it makes the new VPC beside the old one and moves into it whatever it can. Network interfaces and
volumes of masters cannot follow, so the update ends half-way, and a load balancer of several masters would be moved
onto subnets in which there are none.

The values are parameters of the root, so they are compared as such: as the stack has them, whoever gave them and how,
with those that a deployment would give it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cfngen.deploy.preview.immutable_changes import ImmutableSettingError

_SUBNET = re.compile(r"Subnet(?P<zone>\w+?)(?P<kind>Cidr|Id)")
_ZONE = re.compile(r"Zone(?P<zone>\w+)")


class Foundation(NamedTuple):
    """A part of the network that stays.

    Attributes:
        key: where the cluster file says it.
        made: name of the parameter that has its range, where the stack makes it.
        exists: name of the parameter that has its id, where it exists already; empty if that cannot be.
        why: why it stays.
    """

    key: str
    made: str
    exists: str
    why: str


def check(current: Mapping[str, str], requested: Mapping[str, str]) -> None:
    """Refuse a deployment that would exchange the VPC, or a subnet whose zone stays.

    Args:
        before: values of the parameters that the root stack has; empty of a new one.
        after: those that it would get.

    Raises:
        DecidedOnceError: as above.
    """
    problems = []
    for foundation in _foundations(current):
        old, new = (
            next((values[name] for name in (foundation.made, foundation.exists) if name and name in values), None)
            for values in (current, requested)
        )
        if old is None or new is None or old == new:
            continue
        problems.append(f"{foundation.key}: is {old} and cannot become {new}: {foundation.why}")
    if problems:
        keep_options = " ".join(
            f"--keep {name}" for name in sorted(current) if name in requested and current[name] != requested[name]
        )
        hint = "set it back in the cluster file (and in the parameters), or make a new cluster."
        raise ImmutableSettingError(
            tuple(problems), hint + (f" `{keep_options}` goes on with what the stack has." if keep_options else "")
        )


def _foundations(parameters: Mapping[str, str]) -> Iterator[Foundation]:
    yield Foundation("network.vpc", "VpcCidr", "VpcId", "everything of the cluster is in it, and nothing can move")
    for name in sorted(parameters):
        if match := _SUBNET.fullmatch(name):
            zone = match["zone"]
            reason = "the instances and network interfaces in this subnet cannot move"
            yield Foundation(f"network.subnets (zone {zone})", f"Subnet{zone}Cidr", f"Subnet{zone}Id", reason)
        elif match := _ZONE.fullmatch(name):
            reason = "subnets and volumes stay in their zone"
            yield Foundation(f"network.subnets (zone {match['zone']})", name, "", reason)
