"""Checks of how people reach the cluster: the API's DNS name, and the bastion."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

from cfngen.cluster.checks.instance_types_and_images import not_offered_message
from cfngen.cluster.checks.sections import KeyCheck
from cfngen.cluster.instances import instance_types
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.zones import is_local_zone
from cfngen.cluster.network.topology import has_internal_endpoint, is_private, private_zone, public_zone
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.network import ApiDns, DnsZone
from cfngen.cluster.security_groups.rules import RESERVED_RULES, bastion_sources

_DNS: Path = ("api", "dns")
_ZONE: Path = ("bastion", "zone")
_ALLOWED_CIDRS: Path = ("bastion", "allowedCidrs")
_SUBNETS: Path = ("network", "subnets")


def _zones(dns: ApiDns) -> Iterator[tuple[Path, DnsZone]]:
    for key, zone in (("publicZone", dns.public_zone), ("privateZone", dns.private_zone)):
        if zone:
            yield (*_DNS, key), zone


def _check_name(cluster: Cluster) -> Iterator[Problem]:
    dns = cluster.api.dns
    if dns is None:
        return
    path: Path = (*_DNS, "name")
    if "." not in dns.name or _is_address(dns.name):
        yield Problem(path, f"{dns.name} is not a name in a domain; use one such as api.example.com")
    elif dns.name != dns.name.lower():
        yield Problem(path, f"Route 53 stores names in lower case; write {dns.name.lower()}")


def _is_address(name: str) -> bool:
    try:
        IPv4Address(name)
    except ValueError:
        return False
    return True


def _check_zones(cluster: Cluster) -> Iterator[Problem]:
    dns = cluster.api.dns
    if dns is None:
        return
    zones = list(_zones(dns))
    if not zones:
        message = "a name needs a hosted zone; add publicZone for the public endpoint, privateZone for the internal one"
        yield Problem(_DNS, message)
    for path, zone in zones:
        if bool(zone.id) == bool(zone.name):
            message = "needs either the id of an existing hosted zone, or the name of one to create"
            yield Problem(path, message)
        elif zone.name and dns.name != zone.name and not dns.name.endswith(f".{zone.name}"):
            message = f"{dns.name} is not in {zone.name}; use a domain that ends the name, or the name itself"
            yield Problem((*path, "name"), message, related_paths=((*_DNS, "name"),))
    if dns.public_zone and dns.private_zone and dns.public_zone.id and dns.public_zone.id == dns.private_zone.id:
        message = f"{dns.private_zone.id} is also the public zone, and no zone is both; enter the id of a private zone"
        yield Problem((*_DNS, "privateZone", "id"), message, related_paths=((*_DNS, "publicZone"),))


def _check_sources(cluster: Cluster) -> Iterator[Problem]:
    bastion = cluster.bastion
    if not bastion:
        return
    related_paths: tuple[Path, ...] = (("bastion", "allowedPrefixLists"), ("bastion", "ingress"))
    if not bastion.allowed_cidrs and not bastion.allowed_prefix_lists:
        message = (
            "is missing; list the address ranges that may reach port 22 of the bastion, e.g. your own as "
            "203.0.113.7/32 (or prefix lists in bastion.allowedPrefixLists)"
        )
        yield Problem(_ALLOWED_CIDRS, message, related_paths=related_paths)
    rules = sum(source.rule_count for source in bastion_sources(bastion))
    max_rules = cluster.network.quotas.rules_per_security_group - RESERVED_RULES
    if rules > max_rules:
        message = (
            f"the ranges and prefix lists count as {rules} rules, and the bastion's security group has room for "
            f"{max_rules}: name fewer and larger ranges, or have the account's quota raised and name it in "
            "network.quotas"
        )
        yield Problem(_ALLOWED_CIDRS, message, related_paths=(*related_paths, ("network", "quotas")))


def _check_zone(cluster: Cluster) -> Iterator[Problem]:
    bastion = cluster.bastion
    if not bastion or bastion.zone is None:
        return
    zones = [subnet.zone for subnet in cluster.network.subnets]
    if bastion.zone not in zones:
        message = f"no subnet is in {bastion.zone}; use {', '.join(zones)} or add a subnet there"
        yield Problem(_ZONE, message, related_paths=(_SUBNETS,))
    elif is_local_zone(bastion.zone) and not bastion.elastic_ip:
        message = (
            f"{bastion.zone} is a Local Zone, where Elastic IPs of the region cannot be used; choose an Availability "
            "Zone, or name an Elastic IP of the zone's network border group in bastion.elasticIp"
        )
        yield Problem(_ZONE, message, related_paths=(("bastion", "elasticIp"),))


def _check_elastic_ip(cluster: Cluster) -> Iterator[Problem]:
    elastic_ip = cluster.bastion.elastic_ip if cluster.bastion else None
    if not elastic_ip:
        return
    api_ip = cluster.api.elastic_ip
    if elastic_ip.address.is_private:
        message = f"{elastic_ip.address} is a private address; enter the public address of the Elastic IP"
        yield Problem(("bastion", "elasticIp", "address"), message)
    if api_ip and api_ip.allocation_id == elastic_ip.allocation_id:
        message = f"{elastic_ip.allocation_id} is the Elastic IP of the API; use another one, or remove the key"
        path: Path = ("bastion", "elasticIp", "allocationId")
        yield Problem(path, message, related_paths=(("api", "elasticIp"),))


def _check_type(cluster: Cluster) -> Iterator[Problem]:
    """Check that the region offers the instance type and that it runs Linux; it may be too small for Kubernetes."""
    if not cluster.bastion:
        return
    instance_type = cluster.bastion.instance_type
    path: Path = ("bastion", "instanceType")
    offered_types = instance_types.types_in_region(cluster.region)
    reason = instance_types.why_no_linux(instance_type)
    if reason:
        yield Problem(path, f"{instance_type} {reason}; use {instance_types.smallest_alternative(instance_type)}")
    elif offered_types is not None and instance_type not in offered_types:
        yield Problem(path, not_offered_message(instance_type, cluster.region), related_paths=(("region",),))


def _warn_of_direct_ssh(cluster: Cluster) -> Iterator[Problem]:
    if cluster.bastion and cluster.ssh.is_open and not is_private(cluster):
        message = (
            "port 22 of every instance is open beside the bastion, which then protects nothing; remove the ranges, or "
            "the bastion"
        )
        key = "allowedCidrs" if cluster.ssh.allowed_cidrs else "allowedPrefixLists"
        yield Problem(("ssh", key), message, related_paths=(("bastion",),))


def _warn_of_unknown_route(cluster: Cluster) -> Iterator[Problem]:
    if not cluster.bastion or is_private(cluster) or cluster.api.public:
        return
    for index, subnet in enumerate(cluster.network.subnets):
        if subnet.zone == cluster.bastion.zone and subnet.id:
            message = (
                f"the bastion is in {subnet.id}, which needs a route to an internet gateway; if its instances use a "
                "NAT gateway, set network.topology to private and name a public subnet (public.id)"
            )
            yield Problem((*_SUBNETS, index, "id"), message, related_paths=(("bastion",), ("api", "public")))


PROBLEM_CHECKS = (
    _check_name,
    _check_zones,
    KeyCheck(
        "api.dns.publicZone",
        when=lambda cluster: public_zone(cluster) and not cluster.api.public,
        message="the API has no public endpoint; use privateZone, or set api.public to true",
        related=("api.public", "api.internal"),
    ),
    KeyCheck(
        "api.dns.privateZone",
        when=lambda cluster: private_zone(cluster) and not has_internal_endpoint(cluster),
        message="the API has no internal endpoint; use publicZone, or set api.internal to true",
        related=("api.public", "api.internal"),
    ),
    KeyCheck(
        "bastion",
        when=lambda cluster: cluster.bastion and not (cluster.ssh.key_name or cluster.ssh.public_key),
        message="nobody can log in to a bastion without a key; add ssh.keyName or ssh.publicKey, or remove the "
        "bastion: Session Manager (ssh.sessionManager) opens shells on instances without a key and without an open "
        "port",
        related=("ssh.keyName", "ssh.publicKey"),
    ),
    _check_sources,
    _check_zone,
    KeyCheck(
        "bastion.zone",
        # No default is chosen among Local Zones.
        when=lambda cluster: cluster.bastion and cluster.bastion.zone is None,
        message="is missing; all subnets are in Local Zones: add a subnet in an Availability Zone, or name the zone "
        "and an Elastic IP of its network border group (bastion.elasticIp)",
        related=("network.subnets",),
    ),
    _check_elastic_ip,
    _check_type,
)
WARNING_CHECKS = (
    KeyCheck(
        "api.dns.publicZone.name",
        when=lambda cluster: (zone := public_zone(cluster)) and zone.name,
        message="{cluster.api.dns.public_zone.name} is found once its parent domain has an NS record with the new "
        "zone's name servers (the stack's output ApiNameServers); until then the API cannot be reached by its name",
    ),
    _warn_of_direct_ssh,
    _warn_of_unknown_route,
)
