"""Route 53: private zones of VPCs, and the records in zones.

Conditions: API reference of Route 53 (ChangeResourceRecordSets, CreateHostedZone, AssociateVPCWithHostedZone) and the
developer guide, "Supported DNS record types" and "DNS domain name format". Words: tests/aws/refusals.md.

moto 5.2.5 (moto/route53/models.py) looks at no value of a record, and replaces a record that it is to create.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.services.rules import PendingCall, Refused, rule
from cfngen.sandbox.untyped import JsonObject, MotoBackend, MotoModel

MAX_LABEL = 63
MAX_STRING = 255  # characters of one of the strings of a TXT record
MAX_TTL = 2_147_483_647
CLOUDFRONT_ZONE = "Z2FDTNDATAQYW2"  # of all distributions: API reference, AliasTarget
# Of how many fields a value is, and what Route 53 says of fewer.
FIELDS = {
    "MX": (2, "MXRRDATANotTwoFields (MX record doesn't have 2 fields)"),
    "SRV": (4, "SRVRRDATANotFourFields (SRV record doesn't have 4 fields)"),
    "CAA": (3, "CAARRDATANotThreeFields (CAA record doesn't have 3 fields)"),
}
QUOTED_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
QUOTED_STRINGS = re.compile(r'"([^"\\]|\\.)*"(\s+"([^"\\]|\\.)*")*')


@rule("route53", "CreateHostedZone")
def check_domain(call: PendingCall) -> None:
    """Refuse a zone of what is no domain name."""
    labels = call.get("Name", "").removesuffix(".").split(".")
    if not all(re.fullmatch(r"[!-~]{1,63}", label) for label in labels):
        raise Refused("InvalidDomainName", "The specified domain name is not valid.")


@rule("route53", "DeleteHostedZone")
def check_only_own_records(call: PendingCall) -> None:
    """Refuse to delete a zone with records other than those that it must have."""
    zone = call.backend.zones.get(call.get("Id", "").rpartition("/")[2])
    if zone and any(
        (record.name, record.type) not in ((zone.name, "NS"), (zone.name, "SOA")) for record in zone.rrsets
    ):
        raise Refused(
            "HostedZoneNotEmpty",
            "The specified hosted zone contains non-required resource record sets and so cannot be deleted.",
        )


@rule("route53", "CreateHostedZone", "AssociateVPCWithHostedZone")
def check_private_zone_of_a_vpc(call: PendingCall) -> None:
    """Refuse a VPC that does not exist, and a second private zone of one name for it (ConflictingDomainExists)."""
    vpc = call.get("VPC") or {}
    regions = get_backend("ec2")[DEFAULT_ACCOUNT_ID]
    if vpc and vpc["VPCId"] not in getattr(regions.get(str(vpc.get("VPCRegion"))), "vpcs", ()):
        raise Refused("InvalidVPCId", "The VPC ID is invalid.")
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
    """Refuse wrong values and names, conflicts within the zone, and the deletion of what is not there."""
    zone = call.backend.get_hosted_zone(call.get("HostedZoneId"))
    existing = {(record.name, record.type, record.set_identifier) for record in zone.rrsets}
    for change in call.get("ChangeBatch")["Changes"]:
        action, record = change["Action"], change["ResourceRecordSet"]
        name, kind = _absolute(record["Name"]), record["Type"]
        key = (name, kind, record.get("SetIdentifier"))
        if action == "DELETE":
            if key not in existing:
                raise _invalid(
                    f"Tried to delete resource record set [name='{name}', type='{kind}'] but it was not found"
                )
            existing.discard(key)
            continue
        _check_form(action, record)
        _check_name(name)
        values = record.get("ResourceRecords") or ()
        if kind == "CNAME" and len(values) > 1:
            raise _invalid(f"RRSet of type CNAME with DNS name {name} has more than one value")
        for value in values:
            _check_value(kind, value["Value"])
        if record.get("AliasTarget"):
            _check_alias(call, zone, kind, record["AliasTarget"], {(other, kind) for other, kind, _ in existing})
        _check_no_conflict(name, kind, zone.name, {kind for other, kind, _ in existing if other == name})
        if action == "CREATE" and key in existing:
            raise _invalid(f"Tried to create resource record set [name='{name}', type='{kind}'] but it already exists")
        existing.add(key)


def _absolute(name: str) -> str:
    return name.rstrip(".") + "."


def _invalid(message: str) -> Refused:
    return Refused("InvalidChangeBatch", f"[{message}]")


def _check_form(action: str, record: JsonObject) -> None:
    """Refuse a record that has neither a target nor both a TTL and values, and a target with one of them."""
    is_alias = bool(record.get("AliasTarget"))
    parts = ["TTL" in record, bool(record.get("ResourceRecords"))]
    has_values = any(parts) if is_alias else all(parts)
    if not 0 <= int(record.get("TTL", 0)) <= MAX_TTL:
        raise Refused("InvalidInput", f"Invalid TTL {record['TTL']}: it is between 0 and {MAX_TTL} seconds")
    if has_values == is_alias:
        raise Refused(
            "InvalidInput",
            "Invalid request: Expected exactly one of [AliasTarget, all of [TTL, and ResourceRecords], or "
            f"TrafficPolicyInstanceId], but found {'more than one' if has_values else 'none'} in Change with "
            f"[Action={action}, Name={record['Name']}, Type={record['Type']}, SetIdentifier=null]",
        )


def _check_alias(
    call: PendingCall, zone: MotoModel, kind: str, target: JsonObject, existing: Collection[tuple[str, str]]
) -> None:
    """Refuse an alias whose target is in another zone than it says, or is not there, for records of this type.

    Args:
        zone: the zone of the record, which is also the target's if that is a record.
        existing: names and types of the records in the zone.
    """
    name, zone_id = _absolute(target["DNSName"]), target["HostedZoneId"]
    subject = f"Tried to create an alias that targets {name}, type {kind} in zone {zone_id}"
    target_zone = call.backend.zones.get(zone_id)
    is_distribution, is_balancer = (name.endswith(suffix) for suffix in (".cloudfront.net.", ".amazonaws.com."))
    is_balancer = is_balancer and ".elb." in name
    own_zones = {CLOUDFRONT_ZONE} if is_distribution else _zones_of_balancer(name) if is_balancer else {zone_id}
    # moto's classic load balancers have no hosted zone.
    is_in_zone = not own_zones or bool({zone_id, ""} & own_zones)
    if target_zone:
        is_in_zone = f".{name}".endswith(f".{target_zone.name}")
    if is_distribution and zone.private_zone:
        raise _invalid(f"{subject}, but a private hosted zone has no aliases of CloudFront distributions")
    if not is_in_zone:
        raise _invalid(f"{subject}, but the alias target name does not lie within the target zone")
    has_addresses = (is_distribution or is_balancer) and bool(own_zones) and kind in ("A", "AAAA", "HTTPS")
    is_elsewhere = not (target_zone or is_distribution or is_balancer)  # an endpoint, a website, ...
    if not (has_addresses or is_elsewhere or (name, kind) in existing):
        raise _invalid(f"{subject}, but that target was not found")


def _zones_of_balancer(name: str) -> set[str]:
    """Return the ids of the hosted zones in which a load balancer has a name; none if there is no such one."""
    backends: list[MotoBackend] = [
        *get_backend("elb")[DEFAULT_ACCOUNT_ID].values(), *get_backend("elbv2")[DEFAULT_ACCOUNT_ID].values()
    ]  # fmt: skip
    return {
        getattr(balancer, "canonical_hosted_zone_id", "")
        for backend in backends
        for balancer in backend.load_balancers.values()
        if _absolute(balancer.dns_name) == name.removeprefix("dualstack.")
    }


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
    elif kind == "TXT" and any(len(text) > MAX_STRING for text in QUOTED_STRING.findall(value)):
        problem = "CharacterStringTooLong (Value is too long)"
    elif kind in FIELDS and len(value.split()) < FIELDS[kind][0]:
        problem = FIELDS[kind][1]
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
