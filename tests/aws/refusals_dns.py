"""Route 53."""

from __future__ import annotations

from typing import Any

from refusal import Creation, Refusal, ServiceCall
from refusals_load_balancers import balancer, subnet
from small_stacks import REGION, vpc

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


def _private(vpc: str = "") -> dict[str, Any]:
    made = vpc or client("ec2", REGION).create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    return {"HostedZoneConfig": {"PrivateZone": True}, "VPC": {"VPCId": made, "VPCRegion": REGION}}


def _second_private_zone(cloud: CloudFormation) -> None:
    private = _private()
    for reference in ("one", "two"):
        client("route53", REGION).create_hosted_zone(Name=DOMAIN, CallerReference=reference, **private)


def _associate_with_second_zone(cloud: CloudFormation) -> None:
    route53, private = client("route53", REGION), _private()
    route53.create_hosted_zone(Name=DOMAIN, CallerReference="one", **private)
    zone_id = route53.create_hosted_zone(Name=DOMAIN, CallerReference="two", **_private())["HostedZone"]["Id"]
    route53.associate_vpc_with_hosted_zone(HostedZoneId=zone_id, VPC=private["VPC"])


def _delete_no_record(cloud: CloudFormation) -> None:
    route53 = client("route53", REGION)
    zone_id = route53.create_hosted_zone(Name=DOMAIN, CallerReference="one")["HostedZone"]["Id"]
    gone = {"Name": f"app.{DOMAIN}", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "192.0.2.1"}]}
    changes = [{"Action": "DELETE", "ResourceRecordSet": gone}]
    route53.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": changes})


def alias(zone_id: Any, name: Any, kind: str = "A", **properties: Any) -> dict[str, Any]:
    it = record(Type=kind, AliasTarget={"HostedZoneId": zone_id, "DNSName": name}, **properties)
    it["Properties"] = {key: value for key, value in it["Properties"].items() if value is not None}
    return it


def _with_balancer(condition: str, words: str, source: str, evidence: Any, it: dict[str, Any]) -> Refusal:
    return refused(condition, words, source, evidence, it, Vpc=vpc(), One=subnet(0), Balancer=balancer("One"))


BALANCER_NAME = {"Fn::GetAtt": ["Balancer", "DNSName"]}
BALANCER_ZONE = {"Fn::GetAtt": ["Balancer", "CanonicalHostedZoneID"]}
NEITHER = {"TTL": None, "ResourceRecords": None}
ALIASES = f"[AliasTarget]({API}/API_AliasTarget.html)"


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
    Refusal("route53:DeleteHostedZone", "other records than the zone's own",
            "The specified hosted zone contains non-required resource record sets and so cannot be deleted.",
            "[rebuy-de/aws-nuke#215](https://github.com/rebuy-de/aws-nuke/issues/215)", "seen",
            ServiceCall(_delete_zone_with_records)),
    Refusal("AWS::Route53::HostedZone", "a VPC that does not exist", "InvalidVPCId",
            f"[CreateHostedZone]({API}/API_CreateHostedZone.html): InvalidVPCId; words: "
            "[localstack/localstack, test_route53.snapshot.json]"
            "(https://github.com/localstack/localstack/blob/main/tests/aws/services/route53/test_route53.snapshot.json)",
            "seen", Creation(lambda: {"It": {**zone(), "Properties": {"Name": DOMAIN, "VPCs": [
                {"VPCId": "vpc-0123456789abcdef0", "VPCRegion": REGION}]}}}, "It")),
    Refusal("AWS::Route53::HostedZone", "no domain name", "InvalidDomainName",
            f"[CreateHostedZone]({API}/API_CreateHostedZone.html): InvalidDomainName", "documented",
            Creation(lambda: {"It": {**zone(), "Properties": {"Name": "k8s..example.com"}}}, "It")),
    Refusal("route53:ChangeResourceRecordSets", "the deletion of a record that is not there", "but it was not found",
            "[terraform-provider-aws#37806](https://github.com/hashicorp/terraform-provider-aws/issues/37806)", "seen",
            ServiceCall(_delete_no_record)),
    *(
        refused(condition, words, source, evidence, record(**properties))
        for condition, words, source, evidence, properties in (
            ("MX without a preference", "MXRRDATANotTwoFields (MX record doesn't have 2 fields) encountered with",
             RECORD_TYPES, "condition documented",
             {"Type": "MX", "ResourceRecords": ["mail.example.com."]}),
            ("SRV of three fields", "FATAL problem: SRVRRDATANotFourFields", RECORD_TYPES, "condition documented",
             {"Type": "SRV", "ResourceRecords": ["0 443 api.example.com."]}),
            ("CAA of two fields", "FATAL problem: CAARRDATANotThreeFields", RECORD_TYPES, "condition documented",
             {"Type": "CAA", "ResourceRecords": ['issue "amazon.com"']}),
            ("TXT of 256 characters in one string", "CharacterStringTooLong (Value is too long)", RECORD_TYPES,
             "condition documented", {"Type": "TXT", "ResourceRecords": ['"' + "x" * 256 + '"']}),
            ("CNAME of two values", "has more than one value", RECORD_TYPES, "condition documented",
             {"Type": "CNAME", "ResourceRecords": ["a.example.org", "b.example.org"]}),
            ("TTL of a century", "InvalidInput", f"[ResourceRecordSet]({API}/API_ResourceRecordSet.html): TTL",
             "condition documented", {"TTL": "3153600000"}),
            ("TTL that is no number", "is no whole number",
             f"[ResourceRecordSet]({API}/API_ResourceRecordSet.html): TTL", "condition documented", {"TTL": "5m"}),
        )
    ),
    refused("alias of a record that is not there", "but that target was not found",
            "[aws/aws-cdk#19643](https://github.com/aws/aws-cdk/issues/19643)", "seen",
            alias({"Ref": "Zone"}, f"app.{DOMAIN}", **NEITHER)),
    refused("alias of a load balancer that is not there", "but that target was not found",
            "[harmony-one/harmony-ops#491](https://github.com/harmony-one/harmony-ops/issues/491)", "seen",
            alias("Z1H1FL5HABSF5", "gone-0123456789abcdef.us-west-2.elb.amazonaws.com", **NEITHER)),
    _with_balancer("alias of a load balancer in the record's own zone",
                   "but the alias target name does not lie within the target zone",
                   "[barnybug/cli53#213](https://github.com/barnybug/cli53/issues/213)", "seen",
                   alias({"Ref": "Zone"}, BALANCER_NAME, **NEITHER)),
    _with_balancer("CNAME alias of a load balancer, which has addresses only", "but that target was not found", ALIASES,
                   "condition documented", alias(BALANCER_ZONE, BALANCER_NAME, "CNAME", **NEITHER)),
    _with_balancer("alias with a TTL", "but found more than one in Change with",
                   f"[ResourceRecordSet]({API}/API_ResourceRecordSet.html): TTL", "condition documented",
                   alias(BALANCER_ZONE, BALANCER_NAME, ResourceRecords=None)),
]  # fmt: skip
