"""Additional statements of CloudFormation's service role, and of operators, for a DNS name of the API in Route 53.

Actions: the permissions of the handlers of AWS::Route53::HostedZone and AWS::Route53::RecordSet in the CloudFormation
registry (November 2026), without those for query logs and DNSSEC. Resources: "Actions, resources, and condition keys
for Amazon Route 53", Service Authorization Reference.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.network import topology
from cfngen.cluster.sections.references import known_id
from cfngen.permissions.scope import Scope
from cfngen.permissions.statements import Statement, allow

_RECORD_NAMES = "route53:ChangeResourceRecordSetsNormalizedRecordNames"
_RECORD_TYPES = "route53:ChangeResourceRecordSetsRecordTypes"


def read_zone_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of an operator, whose plans look at the existing zones that the cluster file names."""
    zones = [zone for zone in (topology.public_zone(cluster), topology.private_zone(cluster)) if zone and zone.id]
    # Which zone a reference leads to is not known beforehand.
    arns = [f"arn:{scope.partition}:route53:::hostedzone/{known_id(zone.id) or '*'}" for zone in zones]
    return [allow(sid="DnsLook", actions="route53:GetHostedZone", resources=arns)] if arns else []


def api_dns_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements for the API's records and new hosted zones; empty if the API has no DNS name.

    In an existing zone, only records of addresses may be changed. The id of a new zone is not known beforehand, so the
    statement matches each zone, but only names in the domain of the new one. The API's own name is no condition: when
    it changes, CloudFormation deletes the record with the old one.
    """
    zones = [zone for zone in (topology.public_zone(cluster), topology.private_zone(cluster)) if zone]
    if not zones:
        return []
    route53 = f"arn:{scope.partition}:route53:::"
    every_zone = f"{route53}hostedzone/*"
    existing_zones = [f"{route53}hostedzone/{known_id(zone.id) or '*'}" for zone in zones if zone.id]
    new_domains = sorted({zone.name for zone in zones if zone.name})
    only_addresses = {"ForAllValues:StringEquals": {_RECORD_TYPES: ["A"]}}
    statements = [
        allow(sid="DnsLook", actions="route53:ListHostedZones"),
        allow(sid="DnsChanges", actions="route53:GetChange", resources=[f"{route53}change/*"]),
        allow(
            sid="DnsZones",
            actions="route53:GetHostedZone route53:ListResourceRecordSets",
            resources=[every_zone] if new_domains else existing_zones,
        ),
    ]
    if existing_zones:
        statements.append(
            allow(
                sid="DnsRecords",
                actions="route53:ChangeResourceRecordSets",
                resources=existing_zones,
                condition=only_addresses,
            )
        )
    if new_domains:
        names = [pattern for domain in new_domains for pattern in (domain, f"*.{domain}")]
        statements += [
            allow(
                sid="DnsRecordsInNewZones",
                actions="route53:ChangeResourceRecordSets",
                resources=[every_zone],
                condition={**only_addresses, "ForAllValues:StringLike": {_RECORD_NAMES: names}},
            ),
            # CreateHostedZone has no resource that a statement could name.
            allow(sid="DnsMakeZones", actions="route53:CreateHostedZone"),
            allow(
                sid="DnsNewZones",
                actions="""
                    route53:AssociateVPCWithHostedZone route53:ChangeTagsForResource route53:DeleteHostedZone
                    route53:DisassociateVPCFromHostedZone route53:ListQueryLoggingConfigs
                    route53:ListTagsForResource""",
                resources=[every_zone],
            ),
        ]
    return statements
