"""Handlers of AWS::Route53 types: hosted zones and record sets."""

from __future__ import annotations

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Handler,
    HandlerCall,
    leave_to_rollback_on_failure,
    tag_changes,
    whole_number,
)
from cfngen.sandbox.untyped import JsonDict, Properties


class HostedZone(Handler):
    supported_properties = frozenset({"Name", "VPCs", "HostedZoneTags"})
    deletion = ("route53", "delete_hosted_zone", "Id")

    def create(self, call: HandlerCall) -> CreatedResource:
        route53 = call.client("route53")
        vpcs = call.properties.get("VPCs", [])
        private = {"HostedZoneConfig": {"PrivateZone": True}, "VPC": vpcs[0]} if vpcs else {}
        # Route 53 needs a reference that no other zone of the account has.
        reference = call.generate_name()
        zone = route53.create_hosted_zone(Name=call["Name"], CallerReference=reference, **private)
        zone_id = zone["HostedZone"]["Id"].removeprefix("/hostedzone/")
        name_servers = zone.get("DelegationSet", {}).get("NameServers", [])
        created = CreatedResource(zone_id, {"Id": zone_id, **({} if vpcs else {"NameServers": name_servers})})
        with leave_to_rollback_on_failure(created):
            for vpc in vpcs[1:]:
                route53.associate_vpc_with_hosted_zone(HostedZoneId=zone_id, VPC=vpc)
            if tags := call.properties.get("HostedZoneTags"):
                route53.change_tags_for_resource(ResourceType="hostedzone", ResourceId=zone_id, AddTags=tags)
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        route53, zone_id = call.client("route53"), call.physical_id
        if "VPCs" in changed:
            old_vpcs, new_vpcs = old_properties.get("VPCs", []), call.properties.get("VPCs", [])
            # A private zone always has a VPC, so the new ones come first.
            for vpc in (vpc for vpc in new_vpcs if vpc not in old_vpcs):
                route53.associate_vpc_with_hosted_zone(HostedZoneId=zone_id, VPC=vpc)
            for vpc in (vpc for vpc in old_vpcs if vpc not in new_vpcs):
                route53.disassociate_vpc_from_hosted_zone(HostedZoneId=zone_id, VPC=vpc)
        if "HostedZoneTags" in changed:
            old_tags, new_tags = (each.get("HostedZoneTags", []) for each in (old_properties, call.properties))
            arguments: JsonDict = {"AddTags": new_tags} if new_tags else {}
            removed_keys, _ = tag_changes(old_tags, new_tags)
            if removed_keys:
                arguments["RemoveTagKeys"] = removed_keys
            route53.change_tags_for_resource(ResourceType="hostedzone", ResourceId=zone_id, **arguments)


class RecordSet(Handler):
    supported_properties = frozenset({"HostedZoneId", "Name", "Type", "TTL", "ResourceRecords", "AliasTarget"})

    def create(self, call: HandlerCall) -> CreatedResource:
        _change(call, CREATE=call.properties)
        return CreatedResource(call["Name"])

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        if changed & {"Name", "Type"}:
            _change(call, DELETE=old_properties, CREATE=call.properties)
        else:
            _change(call, UPSERT=call.properties)

    def delete(self, call: HandlerCall) -> None:
        try:
            _change(call, DELETE=call.properties)
        except ClientError as error:
            if "but it was not found" not in str(error):  # the error of Route 53 for that has no code of its own
                raise


def _change(call: HandlerCall, **changes: Properties) -> None:
    """Create, update (`UPSERT`) or delete, in one batch, the record sets with these properties."""
    batch = [{"Action": action, "ResourceRecordSet": _record_set(properties)} for action, properties in changes.items()]
    call.client("route53").change_resource_record_sets(
        HostedZoneId=call["HostedZoneId"], ChangeBatch={"Changes": batch}
    )


def _record_set(properties: Properties) -> JsonDict:
    record_set: JsonDict = {key: properties[key] for key in ("Name", "Type") if key in properties}
    if "AliasTarget" in properties:
        record_set["AliasTarget"] = {"EvaluateTargetHealth": False, **properties["AliasTarget"]}
    if "TTL" in properties:
        record_set["TTL"] = whole_number("TTL", properties["TTL"])
    if values := properties.get("ResourceRecords"):
        record_set["ResourceRecords"] = [{"Value": value} for value in values]
    return record_set
