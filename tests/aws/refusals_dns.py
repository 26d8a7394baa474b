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


VPC = {"VPCId": "vpc-0123456789abcdef0", "VPCRegion": REGION}
PRIVATE = {"HostedZoneConfig": {"PrivateZone": True}, "VPC": VPC}


def _second_private_zone(cloud: CloudFormation) -> None:
    for reference in ("one", "two"):
        client("route53", REGION).create_hosted_zone(Name=DOMAIN, CallerReference=reference, **PRIVATE)


def _associate_with_second_zone(cloud: CloudFormation) -> None:
    route53 = client("route53", REGION)
    route53.create_hosted_zone(Name=DOMAIN, CallerReference="one", **PRIVATE)
    elsewhere = {**PRIVATE, "VPC": {**VPC, "VPCId": "vpc-0fedcba9876543210"}}
    zone_id = route53.create_hosted_zone(Name=DOMAIN, CallerReference="two", **elsewhere)["HostedZone"]["Id"]
    route53.associate_vpc_with_hosted_zone(HostedZoneId=zone_id, VPC=VPC)


def _two_zones_of_a_vpc() -> dict[str, Any]:
    private = zone()
    private["Properties"]["VPCs"] = [{"VPCId": {"Ref": "Vpc"}, "VPCRegion": REGION}]
    vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}
    return {"Vpc": vpc, "First": private, "It": private | {"DependsOn": ["First"]}}


ROWS = [
    *(
        Refusal(f"route53:{operation}", condition, "has already been associated with the hosted zone",
                f"[{operation}]({API}/API_{operation}.html): ConflictingDomainExists; words: [openshift/release#17062]"
                "(https://github.com/openshift/release/pull/17062)", "seen", ServiceCall(attempt))
        for operation, condition, attempt in (
            ("CreateHostedZone", "a second private zone of one name for a VPC", _second_private_zone),
            ("AssociateVPCWithHostedZone", "a VPC that has another zone of the name", _associate_with_second_zone),
        )
    ),
    refused("name in use in the zone", "but it already exists",
            f"[ChangeResourceRecordSets]({API}/API_ChangeResourceRecordSets.html): InvalidChangeBatch",
            "condition documented", record() | {"DependsOn": ["First"]}, First=record()),
    refused("name outside the zone", "is not permitted in zone",
            f"[ChangeResourceRecordSets]({API}/API_ChangeResourceRecordSets.html): InvalidChangeBatch",
            "condition documented", record("api.example.org")),
    refused("label of 64 characters", "DomainLabelTooLong (Domain label is too long) encountered with",
            "[ministryofjustice/cloud-platform#4294](https://github.com/ministryofjustice/cloud-platform/issues/4294)",
            "seen", record(f"{'a' * 64}.{DOMAIN}")),
    refused("TXT beside a CNAME",
            "because a conflicting RRSet of type  CNAME with the same DNS name already exists in zone k8s.example.com.",
            "[boto/boto3#1475](https://github.com/boto/boto3/issues/1475)", "seen",
            record(Type="TXT", ResourceRecords=['"x"']) | {"DependsOn": ["First"]},
            First=record(Type="CNAME", ResourceRecords=["example.org"])),
    Refusal("AWS::Route53::HostedZone", "a VPC that has another zone of the name",
            "has already been associated with the hosted zone",
            f"[CreateHostedZone]({API}/API_CreateHostedZone.html): ConflictingDomainExists; words: "
            "[openshift/release#17062](https://github.com/openshift/release/pull/17062)", "seen",
            Creation(_two_zones_of_a_vpc, "It")),
    refused("zone that does not exist", "No hosted zone found with ID",
            f"[ChangeResourceRecordSets]({API}/API_ChangeResourceRecordSets.html): NoSuchHostedZone",
            "condition documented", record(HostedZoneId="Z0123456789ABC")),
    Refusal("route53:DeleteHostedZone", "other records than the zone's own", "HostedZoneNotEmpty",
            f"[DeleteHostedZone]({API}/API_DeleteHostedZone.html): HostedZoneNotEmpty", "documented",
            ServiceCall(_delete_zone_with_records)),
]  # fmt: skip
