"""Route 53: private zones of VPCs, and the records in zones.

Conditions: API reference of Route 53 (ChangeResourceRecordSets, CreateHostedZone, AssociateVPCWithHostedZone) and the
developer guide, "DNS domain name format". Words: tests/aws/refusals.md.

moto 5.2.5 (moto/route53/models.py) replaces a record that it is to create.
"""

from __future__ import annotations

from cfngen.sandbox.services.rules import PendingCall, Refused, rule

MAX_LABEL = 63


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
    """Refuse names that are no names, and conflicts within the zone."""
    zone = call.backend.get_hosted_zone(call.get("HostedZoneId"))
    existing = {(record.name, record.type, record.set_identifier) for record in zone.rrsets}
    for change in call.get("ChangeBatch")["Changes"]:
        action, record = change["Action"], change["ResourceRecordSet"]
        name, kind = _absolute(record["Name"]), record["Type"]
        key = (name, kind, record.get("SetIdentifier"))
        if action == "DELETE":
            existing.discard(key)
            continue
        _check_name(name)
        if any(other == name and other_kind == "CNAME" for other, other_kind, _ in existing):
            raise _invalid(
                f"RRSet of type {kind} with DNS name {name} is not permitted because a conflicting RRSet of type  "
                f"CNAME with the same DNS name already exists in zone {zone.name}"
            )
        if action == "CREATE" and key in existing:
            raise _invalid(f"Tried to create resource record set [name='{name}', type='{kind}'] but it already exists")
        existing.add(key)


def _absolute(name: str) -> str:
    return name.rstrip(".") + "."


def _invalid(message: str) -> Refused:
    return Refused("InvalidChangeBatch", f"[{message}]")


def _check_name(name: str) -> None:
    for label in name.split("."):
        if len(label) > MAX_LABEL:
            raise Refused(
                "InvalidChangeBatch",
                f"FATAL problem: DomainLabelTooLong (Domain label is too long) encountered with '{label}'",
            )
