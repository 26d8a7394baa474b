"""The DNS records of the API in Route 53, and the hosted zones that are created for them.

A record in a public zone leads to the public endpoint, one in a private zone to the internal endpoint. The record is an
alias of a load balancer, whose addresses may change, or has the fixed address of a single master.
"""

from __future__ import annotations

from troposphere import GetAtt, Join, Ref, route53
from troposphere import elasticloadbalancingv2 as elb

from cfngen.cluster.model import Cluster
from cfngen.cluster.network import topology
from cfngen.cluster.network.existing_parts import HOSTED_ZONE
from cfngen.cluster.sections.network import DnsZone
from cfngen.templates.network_references import vpc_id
from cfngen.templates.references import part_value
from cfngen.templates.stack import DELETED_WITH_STACK, RETAINED_ONCE_CREATED, PropertyValue, Stack
from cfngen.templates.tagging import tags

# Seconds for which resolvers keep an address, of a master or (Route 53 sets it) of a load balancer.
RECORD_TTL = "60"


def add_public_record(stack: Stack, cluster: Cluster, target: elb.LoadBalancer | PropertyValue) -> None:
    """Add the record of the public endpoint to the public zone that the cluster file names, if it names one.

    Args:
        target: the load balancer, or the public address of a single master.
    """
    zone, name = topology.public_zone(cluster), topology.public_name(cluster)
    if zone is None or name is None:
        return
    zone_id: PropertyValue = part_value(stack, zone.id, HOSTED_ZONE) if zone.id else ""
    if zone.name:
        # A public zone has four name servers of its own, which its parent domain names. A zone that is created anew has
        # others, so it is kept when the cluster is deleted; if its stack's creation fails, it is deleted.
        hosted_zone = stack.add(
            route53.HostedZone(
                "ApiPublicZone", Name=zone.name, HostedZoneTags=tags(cluster, zone.name), **RETAINED_ONCE_CREATED
            )
        )
        zone_id = Ref(hosted_zone)
        stack.output(
            "ApiNameServers",
            value=Join(", ", GetAtt(hosted_zone, "NameServers")),
            description=f"Name servers of {zone.name}, for the NS record in its parent domain",
            also_output_of_root=True,
        )
    _add_record(stack, "ApiPublicRecord", name, zone_id, target)


def add_private_record(stack: Stack, cluster: Cluster, target: elb.LoadBalancer | PropertyValue) -> None:
    """Add the record of the internal endpoint to the private zone that the cluster file names, if it names one.

    Args:
        target: the load balancer, or the private address of a single master.
    """
    zone, name = topology.private_zone(cluster), topology.internal_name(cluster)
    if zone is None or name is None:
        return
    zone_id: PropertyValue = part_value(stack, zone.id, HOSTED_ZONE) if zone.id else ""
    if zone.name:
        zone_id = Ref(_add_private_zone(stack, cluster, zone))
    _add_record(stack, "ApiPrivateRecord", name, zone_id, target)


def _add_private_zone(stack: Stack, cluster: Cluster, zone: DnsZone) -> route53.HostedZone:
    return stack.add(
        route53.HostedZone(
            "ApiPrivateZone",
            Name=zone.name,
            VPCs=[route53.HostedZoneVPCs(VPCId=vpc_id(stack, cluster), VPCRegion=Ref("AWS::Region"))],
            HostedZoneTags=tags(cluster, str(zone.name)),
            **DELETED_WITH_STACK,
        )
    )


def _add_record(
    stack: Stack, logical_id: str, name: str, zone_id: PropertyValue, target: elb.LoadBalancer | PropertyValue
) -> None:
    """Add an A record to a zone: an alias of a load balancer, or an address."""
    if isinstance(target, elb.LoadBalancer):
        destination: dict[str, PropertyValue] = {
            "AliasTarget": route53.AliasTarget(
                DNSName=GetAtt(target, "DNSName"),
                HostedZoneId=GetAtt(target, "CanonicalHostedZoneID"),
                EvaluateTargetHealth=False,
            )
        }
    else:
        destination = {"ResourceRecords": [target], "TTL": RECORD_TTL}
    stack.add(route53.RecordSetType(logical_id, HostedZoneId=zone_id, Name=name, Type="A", **destination))
