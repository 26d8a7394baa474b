"""Checks of the API's DNS name: its zones, and the endpoints that it leads to."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

from cfngen.cluster.api_dns import private_zone, public_zone
from cfngen.cluster.checks.sections import KeyCheck
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.network import ApiDns, DnsZone
from cfngen.cluster.topology import has_internal_endpoint

_DNS: Path = ("api", "dns")


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
)
WARNING_CHECKS = (
    KeyCheck(
        "api.dns.publicZone.name",
        when=lambda cluster: (zone := public_zone(cluster)) and zone.name,
        message="{cluster.api.dns.public_zone.name} is found once its parent domain has an NS record with the new "
        "zone's name servers (the stack's output ApiNameServers); until then the API cannot be reached by its name",
    ),
)
