"""What is decided once in a cluster's life, or only changed in steps: noted in the root's metadata.

Most of it is in UserData only, where a change set shows that something changes and not what. A later deployment
compares these notes with the cluster file before it asks CloudFormation for anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.releases import exact_version

VERSION = "kubernetesVersion"


def decided(cluster: Cluster) -> dict[str, str]:
    """Return the notes, by the keys of the cluster file."""
    network = cluster.network
    return {
        VERSION: exact_version(cluster.kubernetes_version),
        "api.port": str(cluster.api.port),
        "network.podCidr": str(network.pod_cidr),
        "network.serviceCidr": str(network.service_cidr),
        "network.dnsServiceIp": str(network.dns_service_ip),
        "network.dnsDomain": network.dns_domain,
    }


def noted(template: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the notes of a template; empty for one that has none."""
    notes: Mapping[str, str] = template.get("Metadata", {}).get("cfngen", {}).get("decided", {})
    return notes
