"""Whether rules of security groups, as EC2 describes them, allow some traffic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from ipaddress import IPv4Network, collapse_addresses

from cfngen.deploy.aws_types import AwsObject

_ALL = "-1"
# Rules for all of these protocols take the place of one for all protocols: the cluster uses no others.
_PROTOCOLS: tuple[tuple[str, tuple[int, int]], ...] = (("tcp", (0, 65535)), ("udp", (0, 65535)), ("icmp", (-1, -1)))
_NUMBERS = {"1": "icmp", "6": "tcp", "17": "udp"}


def permits(
    permissions: Sequence[AwsObject],
    protocol: str,
    ports: tuple[int, int] | None,
    *,
    group_ids: Collection[str] = (),
    cidrs: Iterable[IPv4Network] = (),
    prefix_list: str = "",
) -> bool:
    """Return whether permissions of security groups (`IpPermission` in the EC2 API) allow some traffic.

    What a prefix list contains is not known here; it is taken to contain the ranges.

    Args:
        permissions: the permissions for the direction of the traffic.
        protocol: `tcp`, `udp` or `icmp`; `-1` for all protocols.
        ports: first and last port, or type and code for `icmp`; None for all ports.
        group_ids: security groups, one of which the permissions may name.
        cidrs: the address ranges that the permissions otherwise must contain.
        prefix_list: the prefix list that the permissions may name; empty if there is none.
    """
    if protocol == _ALL:
        wanted: tuple[tuple[str, tuple[int, int]], ...] = _PROTOCOLS
    else:
        wanted = ((protocol, ports or (0, 65535)),)
    return all(
        _permits_peer(
            [permission for permission in permissions if _includes_ports(permission, wanted_protocol, wanted_ports)],
            group_ids,
            tuple(cidrs),
            prefix_list,
        )
        for wanted_protocol, wanted_ports in wanted
    )


def _includes_ports(permission: AwsObject, protocol: str, ports: tuple[int, int]) -> bool:
    """Return whether a permission is for all ports of `ports`, or for the type and code of `icmp`."""
    permitted_protocol = str(permission["IpProtocol"])
    permitted_protocol = _NUMBERS.get(permitted_protocol, permitted_protocol)
    if permitted_protocol == _ALL:
        return True
    if permitted_protocol != protocol:
        return False
    first, last = int(permission.get("FromPort", -1)), int(permission.get("ToPort", -1))
    if protocol == "icmp":
        return first in (-1, ports[0]) and last in (-1, ports[1])
    # -1 stands for all ports.
    return first == -1 or (first <= ports[0] and ports[1] <= last)


def _permits_peer(
    permissions: Sequence[AwsObject], group_ids: Collection[str], cidrs: Sequence[IPv4Network], prefix_list: str
) -> bool:
    """Return whether permissions name a group or the prefix list, or contain all of the ranges."""
    named_groups = {pair["GroupId"] for permission in permissions for pair in permission.get("UserIdGroupPairs", ())}
    if named_groups.intersection(group_ids):
        return True
    named_lists = {item["PrefixListId"] for permission in permissions for item in permission.get("PrefixListIds", ())}
    permitted = list(
        collapse_addresses(
            IPv4Network(item["CidrIp"]) for permission in permissions for item in permission.get("IpRanges", ())
        )
    )
    if prefix_list:
        return prefix_list in named_lists or IPv4Network("0.0.0.0/0") in permitted
    if cidrs and named_lists:
        return True
    return bool(cidrs) and all(any(cidr.subnet_of(range_) for range_ in permitted) for cidr in cidrs)
