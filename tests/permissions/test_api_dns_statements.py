"""What CloudFormation's service role may do in Route 53: nothing without a DNS name, then only in its zones."""

from __future__ import annotations

from typing import Any

from cfngen.cluster.load import parse
from cfngen.permissions.api_dns import api_dns_statements, read_zone_statements
from cfngen.permissions.grants import scope_of

NAME = "api.k8s.example.com"


def statements(**api: Any) -> dict[str, dict[str, Any]]:
    """Return the statements of a cluster with these keys of `api`, by their names."""
    cluster = parse({"api": api})
    return {statement["Sid"]: dict(statement) for statement in api_dns_statements(cluster, scope_of(cluster))}


def test_a_cluster_without_a_dns_name_needs_none() -> None:
    assert statements() == {}


def test_records_of_addresses_may_change_in_existing_zones_only() -> None:
    found = statements(dns={"name": NAME, "publicZone": {"id": "Z0123456789ABC"}})
    records = found["DnsRecords"]
    assert records["Resource"] == ["arn:aws:route53:::hostedzone/Z0123456789ABC"]
    assert records["Condition"] == {"ForAllValues:StringEquals": {"route53:ChangeResourceRecordSetsRecordTypes": ["A"]}}
    assert "DnsMakeZones" not in found


def test_in_a_new_zone_only_names_of_its_domain_may_change() -> None:
    found = statements(dns={"name": NAME, "publicZone": {"name": "k8s.example.com"}})
    names = found["DnsRecordsInNewZones"]["Condition"]["ForAllValues:StringLike"]
    assert names == {"route53:ChangeResourceRecordSetsNormalizedRecordNames": ["k8s.example.com", "*.k8s.example.com"]}
    assert "DnsMakeZones" in found
    assert "DnsRecords" not in found


def test_an_operator_lists_zones_of_a_vpc_only_where_one_is_made() -> None:
    def actions(zone: dict[str, str]) -> list[str]:
        cluster = parse({"api": {"internal": True, "dns": {"name": NAME, "privateZone": zone}}})
        return [str(statement["Action"]) for statement in read_zone_statements(cluster, scope_of(cluster))]

    assert "route53:ListHostedZonesByVPC" in str(actions({"name": "k8s.example.com"}))
    assert "ListHostedZonesByVPC" not in str(actions({"id": "Z0123456789ABC"}))


def test_an_operator_reads_existing_zones_and_whether_they_have_the_record() -> None:
    cluster = parse({"api": {"dns": {"name": NAME, "publicZone": {"id": "Z0123456789ABC"}}}})
    [look] = read_zone_statements(cluster, scope_of(cluster))
    assert look["Action"] == ["route53:GetHostedZone", "route53:ListResourceRecordSets"]
    assert look["Resource"] == ["arn:aws:route53:::hostedzone/Z0123456789ABC"]
