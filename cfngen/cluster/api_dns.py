"""The DNS name that a cluster file gives the API: which hosted zones have it, and which endpoints it leads to."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.network import DnsZone


def public_zone(cluster: Cluster) -> DnsZone | None:
    """Return the public hosted zone in which the API's name leads to the public endpoint, if there is one."""
    return cluster.api.dns.public_zone if cluster.api.dns else None


def private_zone(cluster: Cluster) -> DnsZone | None:
    """Return the private hosted zone in which the API's name leads to the internal endpoint, if there is one."""
    return cluster.api.dns.private_zone if cluster.api.dns else None


def public_name(cluster: Cluster) -> str | None:
    """Return the DNS name of the public endpoint, if it has one."""
    return cluster.api.dns.name if cluster.api.dns and cluster.api.dns.public_zone else None


def internal_name(cluster: Cluster) -> str | None:
    """Return the DNS name of the internal endpoint, if it has one."""
    return cluster.api.dns.name if cluster.api.dns and cluster.api.dns.private_zone else None


def certificate_names(cluster: Cluster) -> tuple[str, ...]:
    """Return the names that the cluster file asks for in the API server's certificate, each once."""
    names = (*((cluster.api.dns.name,) if cluster.api.dns else ()), *cluster.api.additional_names)
    return tuple(dict.fromkeys(names))
