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


def without_ttl() -> dict[str, Any]:
    it = record()
    del it["Properties"]["TTL"]
    return it


def _two_zones_of_a_vpc() -> dict[str, Any]:
    private = zone()
    private["Properties"]["VPCs"] = [{"VPCId": {"Ref": "Vpc"}, "VPCRegion": REGION}]
    vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}
    return {"Vpc": vpc, "First": private, "It": private | {"DependsOn": ["First"]}}


RECORD_TYPES = (
    "Route 53 guide: [supported record types]"
    "(https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/ResourceRecordTypes.html)"
)
NOTHING_FOUND = (
    "Expected exactly one of [AliasTarget, all of [TTL, and ResourceRecords], or TrafficPolicyInstanceId], but found "
    "none in Change with [Action=CREATE, Name=api.k8s.example.com, Type=A, SetIdentifier=null]"
)
MISSING_TTL = (
    "[ministryofjustice/modernisation-platform#10072]"
    "(https://github.com/ministryofjustice/modernisation-platform/pull/10072)"
)
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
    *(
        refused(condition, words, source, evidence, record(**properties))
        for condition, words, source, evidence, properties in (
            ("A whose value is a name", "ARRDATAIllegalIPv4Address (Value is not a valid IPv4 address) encountered",
             "[gomodules/dns#7](https://github.com/gomodules/dns/issues/7)", "seen",
             {"ResourceRecords": ["ns.example.com"]}),
            ("A whose value is an address of IPv6", "ARRDATAIllegalIPv4Address (Value is not a valid IPv4 address)",
             RECORD_TYPES, "condition documented", {"ResourceRecords": ["2001:db8::1"]}),
            ("AAAA whose value is an address of IPv4",
             "AAAARRDATAIllegalIPv6Address (Value is not a valid IPv6 address) encountered with '192.0.2.1'",
             "[sjmayotte/route53-dynamic-dns#45](https://github.com/sjmayotte/route53-dynamic-dns/issues/45)", "seen",
             {"Type": "AAAA"}),
            ("TXT without quotation marks",
             "InvalidCharacterString (Value should be enclosed in quotation marks) encountered with 'hello'",
             "[kubernetes-sigs/external-dns#4792](https://github.com/kubernetes-sigs/external-dns/issues/4792)", "seen",
             {"Type": "TXT", "ResourceRecords": ["hello"]}),
            ("label of 64 characters", "DomainLabelTooLong (Domain label is too long) encountered with",
             "[ministryofjustice/cloud-platform#4294](https://github.com/ministryofjustice/cloud-platform/issues/4294)",
             "seen", {"name": f"{'a' * 64}.{DOMAIN}"}),
            ("no values", NOTHING_FOUND, MISSING_TTL, "seen", {"ResourceRecords": []}),
            ("CNAME at the top of its zone", "is not permitted at apex in zone k8s.example.com.",
             RECORD_TYPES, "condition documented",
             {"name": DOMAIN, "Type": "CNAME", "ResourceRecords": ["example.org"]}),
        )
    ),
    refused("no TTL", NOTHING_FOUND, MISSING_TTL, "seen", without_ttl()),
    refused("values beside an alias", "but found more than one in Change with",
            "[ansible-collections/community.aws#545](https://github.com/ansible-collections/community.aws/issues/545)",
            "seen", record(AliasTarget={"HostedZoneId": {"Ref": "Zone"}, "DNSName": f"app.{DOMAIN}"})),
    refused("CNAME beside an A",
            "is not permitted as it conflicts with other records with the same DNS name in zone k8s.example.com.",
            "[aws/aws-sdk-java#1996](https://github.com/aws/aws-sdk-java/issues/1996)", "seen",
            record(Type="CNAME", ResourceRecords=["example.org"]) | {"DependsOn": ["First"]}, First=record()),
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
