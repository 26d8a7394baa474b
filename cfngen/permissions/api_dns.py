"""Additional statements of CloudFormation's service role, and of operators, for a DNS name of the API in Route 53.

Actions: the permissions of the handlers of AWS::Route53::HostedZone and AWS::Route53::RecordSet in the CloudFormation
registry (November 2026), without those for query logs and DNSSEC. Resources: "Actions, resources, and condition keys
for Amazon Route 53", Service Authorization Reference.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.network import topology
from cfngen.cluster.sections.network import DnsZone
from cfngen.cluster.sections.references import known_id
from cfngen.permissions.scope import Scope
from cfngen.permissions.statements import Statement, allow

_RECORD_NAMES = "route53:ChangeResourceRecordSetsNormalizedRecordNames"
_ONLY_ADDRESSES = {"ForAllValues:StringEquals": {"route53:ChangeResourceRecordSetsRecordTypes": ["A"]}}


def read_zone_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of an operator, whose plans look at the zones of the cluster file and those of the VPC."""
    zones = _zones(cluster)
    arns = _zone_arns(zones, scope)
    actions = "route53:GetHostedZone route53:ListResourceRecordSets"
    new_zone = topology.private_zone(cluster)
    return [
        *([allow(sid="DnsLook", actions=actions, resources=arns)] if arns else []),
        *([allow(sid="DnsOfVpc", actions="route53:ListHostedZonesByVPC")] if new_zone and new_zone.name else []),
    ]


def api_dns_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements for the API's records and new hosted zones; empty if the API has no DNS name.

    In an existing zone, only records of addresses may be changed. The id of a new zone is not known beforehand, so the
    statement matches each zone, but only names in the domain of the new one. The API's own name is not required: when
    it changes, CloudFormation deletes the record with the old one.
    """
    zones = _zones(cluster)
    if not zones:
        return []
    existing_zones = _zone_arns(zones, scope)
    every_zone = f"arn:{scope.partition}:route53:::hostedzone/*"
    new_domains = sorted({zone.name for zone in zones if zone.name})
    statements = [
        allow(sid="DnsLook", actions="route53:ListHostedZones"),
        allow(sid="DnsChanges", actions="route53:GetChange", resources=[f"arn:{scope.partition}:route53:::change/*"]),
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
                condition=_ONLY_ADDRESSES,
            )
        )
    return [*statements, *(_new_zone_statements(every_zone, new_domains) if new_domains else [])]


def _new_zone_statements(every_zone: str, domains: list[str]) -> list[Statement]:
    names = [pattern for domain in domains for pattern in (domain, f"*.{domain}")]
    return [
        allow(
            sid="DnsRecordsInNewZones",
            actions="route53:ChangeResourceRecordSets",
            resources=[every_zone],
            condition={**_ONLY_ADDRESSES, "ForAllValues:StringLike": {_RECORD_NAMES: names}},
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


def _zones(cluster: Cluster) -> list[DnsZone]:
    return [zone for zone in (topology.public_zone(cluster), topology.private_zone(cluster)) if zone]


def _zone_arns(zones: list[DnsZone], scope: Scope) -> list[str]:
    """Return the ARNs of existing zones; which zone a reference leads to is not known beforehand."""
    return [f"arn:{scope.partition}:route53:::hostedzone/{known_id(zone.id) or '*'}" for zone in zones if zone.id]
