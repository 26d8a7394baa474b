"""Security groups and their rules."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule
from cfngen.sandbox.untyped import JsonObject, MotoBackend, MotoModel

VALID_PORTS = range(65536)
# Numbers of protocols as text, as EC2 accepts them; -1 stands for all protocols.
TCP, UDP, ICMP = "6", "17", "1"
PROTOCOLS = {"tcp": TCP, "udp": UDP, "icmp": ICMP, "all": "-1"}
PROTOCOLS_WITH_PORTS = frozenset({TCP, UDP})
# The parameters with the sources of a rule: the name of the list, and of the key in its items.
SOURCE_PARAMETERS = {"IpRanges": "CidrIp", "UserIdGroupPairs": "GroupId", "PrefixListIds": "PrefixListId"}


@rule("ec2", "CreateSecurityGroup")
def check_name_of_a_group(call: PendingCall) -> None:
    """Refuse reserved and duplicate names, an unknown VPC, and a group beyond the quota."""
    name, vpc = str(call.get("GroupName", "")), call.get("VpcId")
    if name.lower().startswith("sg-"):
        raise invalid_value(f"Invalid value '{name}' for groupName. It must not begin with sg-")
    if vpc and vpc not in call.backend.vpcs:
        raise Refused("InvalidVpcID.NotFound", f"The vpc ID '{vpc}' does not exist")
    if any(group.name == name for group in call.backend.groups[vpc or call.backend.default_vpc.id].values()):
        raise Refused("InvalidGroup.Duplicate", f"The security group '{name}' already exists for VPC '{vpc}'")
    if sum(len(group) for group in call.backend.groups.values()) >= quotas.applied_value(quotas.SECURITY_GROUPS):
        raise Refused("SecurityGroupLimitExceeded", "The maximum number of security groups has been reached.")


@rule("ec2", "AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress")
def check_rules_of_a_group(call: PendingCall) -> None:
    """Refuse invalid rules, rules that the group has already, and rules beyond the quota."""
    backend = call.backend
    group = group_of_call(call)
    if group is None:
        return  # moto finds it by name, or refuses
    requested = [rule_key for permission in call.get("IpPermissions", []) for rule_key in _rule_keys(permission)]
    if not requested:
        raise Refused("MissingParameter", "The request must contain a source or a destination of the rule")
    for rule_key in requested:
        _check_ports(rule_key.protocol, rule_key.from_port, rule_key.to_port)
        _check_source(backend, group, rule_key.source_kind, rule_key.source)
    if len(set(requested)) < len(requested):
        raise invalid_value("The same permission must not appear multiple times")
    existing_rules = group.egress_rules if call.operation.endswith("Egress") else group.ingress_rules
    existing = {_key_of_moto_rule(existing_rule) for existing_rule in existing_rules}
    for rule_key in requested:
        if rule_key in existing:
            raise Refused(
                "InvalidPermission.Duplicate", f'the specified rule "{_describe_rule(rule_key)}" already exists'
            )
    weight = sum(_rule_weight(backend, rule_key) for rule_key in {*existing, *requested})
    if weight > quotas.applied_value(quotas.RULES):
        raise Refused(
            "RulesPerSecurityGroupLimitExceeded", "The maximum number of rules per security group has been reached."
        )


@rule("ec2", "DeleteSecurityGroup")
def check_default_group_stays(call: PendingCall) -> None:
    """Refuse to delete a VPC's default security group."""
    group = group_of_call(call)
    if group is not None and group.name == "default":
        raise Refused("CannotDelete", f'the specified group: "{group.id}" name: "default" cannot be deleted by a user')


def group_of_call(call: PendingCall) -> MotoModel:
    """Return the security group that a call names by its id; None if there is none."""
    identifier = call.get("GroupId")
    return call.backend.get_security_group_from_id(identifier) if identifier else None


class _RuleKey(NamedTuple):
    """What makes two rules of a security group the same.

    Attributes:
        protocol: number of the protocol as text, e.g. `6` for TCP.
        from_port: the first port, or the ICMP type; None for all ports.
        to_port: the last port, or the ICMP code.
        source_kind: `CidrIp`, `GroupId` or `PrefixListId`.
        source: a range, or the id of a security group or prefix list; for egress, the destination.
    """

    protocol: str
    from_port: int | None
    to_port: int | None
    source_kind: str
    source: str


def _rule_keys(permission: JsonObject) -> list[_RuleKey]:
    protocol = _protocol_number(permission.get("IpProtocol"))
    from_port, to_port = permission.get("FromPort"), permission.get("ToPort")
    if protocol not in (*PROTOCOLS_WITH_PORTS, ICMP):
        from_port = to_port = None  # EC2 allows all ports of such a protocol, whatever the call says
    return [
        _RuleKey(protocol, from_port, to_port, source_kind, _canonical_source(source.get(source_kind, "")))
        for list_parameter, source_kind in SOURCE_PARAMETERS.items()
        for source in permission.get(list_parameter) or []
    ]


def _key_of_moto_rule(moto_rule: MotoModel) -> _RuleKey:
    possible_sources = {
        "CidrIp": moto_rule.ip_range.get("CidrIp"),
        "GroupId": moto_rule.source_group.get("GroupId"),
        "PrefixListId": moto_rule.prefix_list_id,
    }
    source_kind, source = next(((kind, source) for kind, source in possible_sources.items() if source), ("", ""))
    return _RuleKey(
        protocol=_protocol_number(moto_rule.ip_protocol),
        from_port=moto_rule.from_port,
        to_port=moto_rule.to_port,
        source_kind=source_kind,
        source=_canonical_source(source),
    )


def _protocol_number(value: object) -> str:
    """Return the number of a protocol as text, e.g. `6` for `tcp`; an unknown name is returned in lower case."""
    return PROTOCOLS.get(str(value).lower(), str(value).lower())


def _check_ports(protocol: str, first: int | None, last: int | None) -> None:
    """Refuse an unknown protocol, and ports out of range; for ICMP, `first` is the type and `last` the code."""
    if not protocol.removeprefix("-").isdecimal() or not -1 <= int(protocol) <= 255:
        raise invalid_value(f"Invalid value '{protocol}' for IP protocol. Unknown protocol.")
    if protocol in PROTOCOLS_WITH_PORTS:
        if first is None or last is None:
            raise invalid_value("Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.")
        if first not in VALID_PORTS or last not in VALID_PORTS or first > last:
            raise invalid_value(f"Invalid TCP/UDP port range ({first}:{last})")
    elif protocol == ICMP and any(number is None or not -1 <= number <= 255 for number in (first, last)):
        raise invalid_value(f"ICMP type ({first}) or code ({last}) is out of range")


def _check_source(backend: MotoBackend, group: MotoModel, source_kind: str, source: str) -> None:
    if source_kind == "CidrIp":
        try:
            ipaddress.IPv4Network(source, strict=False)
        except ValueError:
            raise invalid_value(f"CIDR block {source} is malformed") from None
    elif source_kind == "GroupId":
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
    return any(
        {peering.vpc.id, peering.peer_vpc.id} == {one, other} and peering.status["Code"] == "active"
        for peering in backend.vpc_pcxs.values()
    )


def _rule_weight(backend: MotoBackend, rule_key: _RuleKey) -> int:
    """Return how many rules a rule counts as: for a prefix list, its maximum number of entries (VPC user guide)."""
    if rule_key.source_kind != "PrefixListId" or rule_key.source not in backend.managed_prefix_lists:
        return 1
    return int(backend.managed_prefix_lists[rule_key.source].max_entries or 1)


def _canonical_source(source: str) -> str:
    """Return a CIDR range in the form that EC2 stores (API: AuthorizeSecurityGroupIngress)."""
    try:
        return str(ipaddress.ip_network(source, strict=False)) if "/" in source else source
    except ValueError:
        return source


def _describe_rule(rule_key: _RuleKey) -> str:
    names_by_number = {number: name.upper() for name, number in PROTOCOLS.items()}
    protocol = names_by_number.get(rule_key.protocol, rule_key.protocol)
    ports = ""
    if rule_key.from_port is not None:
        ports = f", from port: {rule_key.from_port}, to port: {rule_key.to_port}"
    return f"peer: {rule_key.source}, {protocol}{ports}, ALLOW"
