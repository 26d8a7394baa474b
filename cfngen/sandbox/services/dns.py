"""Route 53: private zones of VPCs, and the records in zones.

Conditions: API reference of Route 53 (ChangeResourceRecordSets, CreateHostedZone, AssociateVPCWithHostedZone) and the
developer guide, "DNS domain name format". Words: tests/aws/refusals.md.

moto 5.2.5 (moto/route53/models.py) replaces a record that it is to create.
"""

from __future__ import annotations

from cfngen.sandbox.services.rules import PendingCall, Refused, rule

MAX_LABEL = 63


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
    """Refuse names that are no names, and conflicts within the zone."""
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
