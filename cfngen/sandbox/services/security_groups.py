"""Security groups and their rules."""

from __future__ import annotations

import ipaddress

from cfngen.sandbox.json_types import JsonDict, JsonObject
from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.rules import PendingCall, Refused, rule

VALID_PORTS = range(65536)
PROTOCOLS = {"tcp": "6", "udp": "17", "icmp": "1", "icmpv6": "58", "all": "-1"}
PROTOCOLS_WITH_PORTS = frozenset({"6", "17"})
SOURCE_PARAMETERS = {
    "IpRanges": "CidrIp",
    "Ipv6Ranges": "CidrIpv6",
    "UserIdGroupPairs": "GroupId",
    "PrefixListIds": "PrefixListId",
}
ACTIVE_PEERING = frozenset({"active"})  # statuses of a peering whose VPCs may name each other's groups


@rule("ec2", "CreateSecurityGroup")
def check_name_of_a_group(call: PendingCall) -> None:
    """Refuse reserved and duplicate names, an unknown VPC, and a group beyond the quota."""
    name, vpc = str(call.get("GroupName", "")), call.get("VpcId")
    if name.lower().startswith("sg-"):
        raise Refused("InvalidParameterValue", f"Invalid value '{name}' for groupName. It must not begin with sg-")
    if vpc and vpc not in call.backend.vpcs:
        raise Refused("InvalidVpcID.NotFound", f"The vpc ID '{vpc}' does not exist")
    if name == "default":
        raise Refused("InvalidGroup.Reserved", "Cannot use reserved security group name: default")
    if any(group.name == name for group in call.backend.groups[vpc or call.backend.default_vpc.id].values()):
        raise Refused("InvalidGroup.Duplicate", f"The security group '{name}' already exists for VPC '{vpc}'")
    if sum(len(group) for group in call.backend.groups.values()) >= quotas.applied_value(quotas.SECURITY_GROUPS):
        raise Refused("SecurityGroupLimitExceeded", "The maximum number of security groups has been reached.")


@rule("ec2", "AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress")
def check_rules_of_a_group(call: PendingCall) -> None:
    """Refuse invalid rules, rules that the group has already, and rules beyond the quota."""
    backend = call.backend
    group = backend.get_security_group_from_id(call.get("GroupId")) if call.get("GroupId") else None
    if group is None:
        return  # moto finds it by name, or refuses
    requested = [
        rule_key for permission in call.get("IpPermissions", []) for rule_key in _rule_keys(permission)
    ] or _rule_keys(_legacy_permission(call.parameters))  # fmt: skip
    if not requested:
        raise Refused("MissingParameter", "The request must contain a source or a destination of the rule")
    for protocol, first, last, kind, source in requested:
        _check_ports(protocol, first, last)
        _check_source(backend, group, kind, source)
    if len(set(requested)) < len(requested):
        raise Refused("InvalidParameterValue", "The same permission must not appear multiple times")
    egress = call.operation.endswith("Egress")
    present = {
        _key_of_moto_rule(egress_rule) for egress_rule in (group.egress_rules if egress else group.ingress_rules)
    }
    for rule_key in requested:
        if rule_key in present:
            raise Refused(
                "InvalidPermission.Duplicate", f'the specified rule "{_describe_rule(rule_key)}" already exists'
            )
    weight = sum(_rule_weight(backend, kind, source) for _, _, _, kind, source in {*present, *requested})
    if weight > quotas.applied_value(quotas.RULES):
        raise Refused(
            "RulesPerSecurityGroupLimitExceeded", "The maximum number of rules per security group has been reached."
        )


@rule("ec2", "DeleteSecurityGroup")
def check_default_group_stays(call: PendingCall) -> None:
    """Refuse to delete a VPC's default security group."""
    group = group_of_call(call)
    if group is not None and group.name == "default":
        raise Refused(
            "CannotDelete", f'the specified group: "{group.id}" name: "default" cannot be deleted by a user'
        )  # fmt: skip


def group_of_call(call: PendingCall) -> MotoModel:
    """Return the security group that a call names by its id; None if there is none."""
    identifier = call.get("GroupId")
    return call.backend.get_security_group_from_id(identifier) if identifier else None


_RuleKey = tuple[str, int | None, int | None, str, str]  # protocol, ports, kind of source, source


def _rule_keys(permission: JsonObject) -> list[_RuleKey]:
    """Return the keys by which the rules of an IpPermission are compared: one rule, and one key, for each source."""
    protocol = _protocol_number(permission.get("IpProtocol"))
    first, last = permission.get("FromPort"), permission.get("ToPort")
    if protocol not in (*PROTOCOLS_WITH_PORTS, "1", "58"):
        first = last = None  # EC2 allows all ports of such a protocol, whatever the call says
    return [
        (protocol, first, last, key, _canonical_source(source.get(key, "")))
        for sources, key in SOURCE_PARAMETERS.items()
        for source in permission.get(sources) or []
    ]


def _key_of_moto_rule(item: MotoModel) -> _RuleKey:
    """Return the key of a rule in moto's form, to compare it with the rules of a call."""
    possible_sources = {
        "CidrIp": item.ip_range.get("CidrIp"),
        "CidrIpv6": item.ip_range.get("CidrIpv6"),
        "GroupId": item.source_group.get("GroupId"),
        "PrefixListId": item.prefix_list_id,
    }
    kind, source = next(((kind, source) for kind, source in possible_sources.items() if source), ("", ""))
    return _protocol_number(item.ip_protocol), item.from_port, item.to_port, kind, _canonical_source(source)


def _legacy_permission(parameters: JsonObject) -> JsonDict:
    """Return the IpPermission of a call that has no IpPermissions, but `IpProtocol`, `CidrIp` and so on itself."""
    ranges = [{"CidrIp": parameters["CidrIp"]}] if parameters.get("CidrIp") else []
    return {**{key: parameters.get(key) for key in ("IpProtocol", "FromPort", "ToPort")}, "IpRanges": ranges}


def _protocol_number(value: object) -> str:
    """Return the number of a protocol as text, e.g. `6` for `tcp`; an unknown name is returned in lower case."""
    return PROTOCOLS.get(str(value).lower(), str(value).lower())


def _check_ports(protocol: str, first: int | None, last: int | None) -> None:
    """Refuse an unknown protocol, and ports or ICMP types out of range."""
    if not protocol.lstrip("-").isdigit() or not -1 <= int(protocol) <= 255:
        raise Refused("InvalidParameterValue", f"Invalid value '{protocol}' for IP protocol. Unknown protocol.")
    if protocol in PROTOCOLS_WITH_PORTS:
        if first is None or last is None:
            raise Refused(
                "InvalidParameterValue",
                "Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.",
            )
        if first not in VALID_PORTS or last not in VALID_PORTS or first > last:
            raise Refused("InvalidParameterValue", f"Invalid TCP/UDP port range ({first}:{last})")
    elif protocol == "1":
        if first is None or last is None or not (-1 <= first <= 255 and -1 <= last <= 255):
            raise Refused("InvalidParameterValue", f"ICMP type ({first}) or code ({last}) is out of range")
        if first == -1 and last != -1:
            raise Refused("InvalidParameterValue", "ICMP code must be -1 if all ICMP types are allowed")


def _check_source(backend: MotoBackend, group: MotoModel, kind: str, source: str) -> None:
    """Refuse a malformed range, and a security group or prefix list that cannot be the source of a rule."""
    if kind in ("CidrIp", "CidrIpv6"):
        kinds = {"CidrIp": ipaddress.IPv4Network, "CidrIpv6": ipaddress.IPv6Network}
        try:
            kinds[kind](source, strict=False)
        except ValueError:
            raise Refused("InvalidParameterValue", f"CIDR block {source} is malformed") from None
    elif kind == "GroupId":
        other = backend.get_security_group_from_id(source)
        if other is None:
            raise Refused("InvalidGroup.NotFound", f"The security group '{source}' does not exist")
        if other.vpc_id != group.vpc_id and not _are_peered(backend, group.vpc_id, other.vpc_id):
            raise Refused(
                "InvalidGroup.NotFound", "You have specified two resources that belong to different networks."
            )
    elif source not in backend.managed_prefix_lists:
        raise Refused("InvalidPrefixListID.NotFound", f"The prefix list ID '{source}' does not exist")


def _are_peered(backend: MotoBackend, one: str, other: str) -> bool:
    """Return whether two VPCs have an active peering connection."""
    return any(
        {peering.vpc.id, peering.peer_vpc.id} == {one, other} and peering.status["Code"] in ACTIVE_PEERING
        for peering in backend.vpc_pcxs.values()
    )


def _rule_weight(backend: MotoBackend, kind: str, source: str) -> int:
    """Return how many rules a source counts as: a prefix list as its maximum number of entries (VPC user guide)."""
    if kind != "PrefixListId" or source not in backend.managed_prefix_lists:
        return 1
    return int(backend.managed_prefix_lists[source].max_entries or 1)


def _canonical_source(source: str) -> str:
    """Return a CIDR range in the form that EC2 stores (API: AuthorizeSecurityGroupIngress)."""
    try:
        return str(ipaddress.ip_network(source, strict=False)) if "/" in source else source
    except ValueError:
        return source


def _describe_rule(rule_key: _RuleKey) -> str:
    """Return a rule as EC2's error message describes it."""
    protocol, first, last, _, source = rule_key
    name = {number: name.upper() for name, number in PROTOCOLS.items()}.get(protocol, protocol)
    ports = f", from port: {first}, to port: {last}" if first is not None else ""
    return f"peer: {source}, {name}{ports}, ALLOW"
