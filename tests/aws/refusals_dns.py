"""Route 53."""

from __future__ import annotations

from typing import Any

from refusal import Creation, Refusal, ServiceCall
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation, client

API = "https://docs.aws.amazon.com/Route53/latest/APIReference"
DOMAIN = "k8s.example.com"


def zone() -> dict[str, Any]:
    return {"Type": "AWS::Route53::HostedZone", "Properties": {"Name": DOMAIN}}


def record(name: str = f"api.{DOMAIN}", **properties: Any) -> dict[str, Any]:
    defaults = {"HostedZoneId": {"Ref": "Zone"}, "Name": name, "Type": "A", "TTL": "60"}
    return {
        "Type": "AWS::Route53::RecordSet",
        "Properties": {**defaults, "ResourceRecords": ["192.0.2.1"], **properties},
    }


def refused(condition: str, words: str, source: str, evidence: Any, it: Any, **others: Any) -> Refusal:
    resources = {"Zone": zone(), **others, "It": it}
    return Refusal("AWS::Route53::RecordSet", condition, words, source, evidence, Creation(lambda: resources, "It"))


def _delete_zone_with_records(cloud: CloudFormation) -> None:
    route53 = client("route53", REGION)
    zone_id = route53.create_hosted_zone(Name=DOMAIN, CallerReference="one")["HostedZone"]["Id"]
    new_record = {
        "Name": f"app.{DOMAIN}",
        "Type": "A",
        "TTL": 60,
        "ResourceRecords": [{"Value": "192.0.2.1"}],
    }
    changes = [{"Action": "CREATE", "ResourceRecordSet": new_record}]
    route53.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": changes})
    route53.delete_hosted_zone(Id=zone_id)


ROWS = [
    refused("name in use in the zone", "but it already exists",
            f"[ChangeResourceRecordSets]({API}/API_ChangeResourceRecordSets.html): InvalidChangeBatch",
            "condition documented", record() | {"DependsOn": ["First"]}, First=record()),
    refused("name outside the zone", "is not permitted in zone",
            f"[ChangeResourceRecordSets]({API}/API_ChangeResourceRecordSets.html): InvalidChangeBatch",
            "condition documented", record("api.example.org")),
    refused("zone that does not exist", "No hosted zone found with ID",
            f"[ChangeResourceRecordSets]({API}/API_ChangeResourceRecordSets.html): NoSuchHostedZone",
            "condition documented", record(HostedZoneId="Z0123456789ABC")),
    Refusal("route53:DeleteHostedZone", "other records than the zone's own", "HostedZoneNotEmpty",
            f"[DeleteHostedZone]({API}/API_DeleteHostedZone.html): HostedZoneNotEmpty", "documented",
            ServiceCall(_delete_zone_with_records)),
]  # fmt: skip
