"""Route 53: private zones of VPCs, and the records in zones.

Conditions: API reference of Route 53 (ChangeResourceRecordSets, CreateHostedZone, AssociateVPCWithHostedZone) and the
developer guide, "Supported DNS record types" and "DNS domain name format". Words: tests/aws/refusals.md.

moto 5.2.5 (moto/route53/models.py) looks at no value of a record, and replaces a record that it is to create.
"""

from __future__ import annotations

import ipaddress
import re

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.services.rules import PendingCall, Refused, rule

MAX_LABEL = 63
QUOTED_STRINGS = re.compile(r'"([^"\\]|\\.)*"(\s+"([^"\\]|\\.)*")*')


@rule("route53", "CreateHostedZone", "AssociateVPCWithHostedZone")
def check_private_zone_of_a_vpc(call: PendingCall) -> None:
    """Refuse to give a VPC a second private zone of one name (ConflictingDomainExists)."""
    vpc = call.get("VPC") or {}
    own = call.backend.zones.get(call.get("HostedZoneId", "").rpartition("/")[2])
    name = own.name if own else _absolute(call.get("Name", ""))
    for zone_id, zone in call.backend.zones.items():
        if zone is not own and zone.name == name and any(other["vpc_id"] == vpc.get("VPCId") for other in zone.vpcs):
            raise Refused(
                "ConflictingDomainExists",
                f"The VPC {vpc['VPCId']} in region {vpc.get('VPCRegion')} has already been associated with the hosted "
                f"zone {zone_id} with the same domain name.",
            )


@rule("route53", "ChangeResourceRecordSets")
def check_records(call: PendingCall) -> None:
    """Refuse records without values or with wrong ones, names that are no names, and conflicts within the zone."""
    zone = call.backend.get_hosted_zone(call.get("HostedZoneId"))
    existing = {(record.name, record.type, record.set_identifier) for record in zone.rrsets}
    for change in call.get("ChangeBatch")["Changes"]:
        action, record = change["Action"], change["ResourceRecordSet"]
        name, kind = _absolute(record["Name"]), record["Type"]
        key = (name, kind, record.get("SetIdentifier"))
        if action == "DELETE":
            existing.discard(key)
            continue
        _check_form(action, record)
        _check_name(name)
        for value in record.get("ResourceRecords") or ():
            _check_value(kind, value["Value"])
        _check_no_conflict(name, kind, zone.name, {kind for other, kind, _ in existing if other == name})
        if action == "CREATE" and key in existing:
            raise _invalid(f"Tried to create resource record set [name='{name}', type='{kind}'] but it already exists")
        existing.add(key)


def _absolute(name: str) -> str:
    return name.rstrip(".") + "."


def _invalid(message: str) -> Refused:
    return Refused("InvalidChangeBatch", f"[{message}]")


def _check_form(action: str, record: JsonObject) -> None:
    """Refuse a record that has neither a target nor both a TTL and values, and one that has the two."""
    has_values = "TTL" in record and bool(record.get("ResourceRecords"))
    if has_values == bool(record.get("AliasTarget")):
        raise Refused(
            "InvalidInput",
            "Invalid request: Expected exactly one of [AliasTarget, all of [TTL, and ResourceRecords], or "
            f"TrafficPolicyInstanceId], but found {'more than one' if has_values else 'none'} in Change with "
            f"[Action={action}, Name={record['Name']}, Type={record['Type']}, SetIdentifier=null]",
        )


def _check_name(name: str) -> None:
    for label in name.split("."):
        if len(label) > MAX_LABEL:
            raise Refused(
                "InvalidChangeBatch",
                f"FATAL problem: DomainLabelTooLong (Domain label is too long) encountered with '{label}'",
            )


def _check_value(kind: str, value: str) -> None:
    """Refuse what is no value of a record of this type."""
    problem = ""
    if kind in ("A", "AAAA"):
        version = 4 if kind == "A" else 6
        try:
            is_address = ipaddress.ip_address(value).version == version
        except ValueError:
            is_address = False
        if not is_address:
            problem = f"{kind}RRDATAIllegalIPv{version}Address (Value is not a valid IPv{version} address)"
    elif kind == "TXT" and not QUOTED_STRINGS.fullmatch(value.strip()):
        problem = "InvalidCharacterString (Value should be enclosed in quotation marks)"
    if problem:
        raise _invalid(f"Invalid Resource Record: 'FATAL problem: {problem} encountered with '{value}''")


def _check_no_conflict(name: str, kind: str, zone_name: str, kinds: set[str]) -> None:
    """Refuse a CNAME beside other records and at the top of its zone, and other records beside a CNAME.

    Args:
        kinds: the types of the records that the name has.
    """
    subject = f"RRSet of type {kind} with DNS name {name} is not permitted"
    if kind == "CNAME" and name == zone_name:
        raise _invalid(f"{subject} at apex in zone {zone_name}")
    if kind == "CNAME" and kinds - {kind}:
        raise _invalid(f"{subject} as it conflicts with other records with the same DNS name in zone {zone_name}")
    if kind != "CNAME" and "CNAME" in kinds:
        raise _invalid(
            f"{subject} because a conflicting RRSet of type  CNAME with the same DNS name already exists in zone "
            f"{zone_name}"
        )
