"""What is decided once in a cluster's life, or only changed in steps: noted in the root's metadata.

Most of it is in UserData only, where a change set shows that something changes and not what. A later deployment
compares these notes with the cluster file before it asks CloudFormation for anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.releases import exact_version

VERSION = "kubernetesVersion"
COUNT = "controlPlane.count"
# Of each slot its zone, in order: `us-west-2a us-west-2b us-west-2c`.
ZONES = "controlPlane.zones"
PLUGIN = "network.plugin"


def immutable_settings(cluster: Cluster) -> dict[str, str]:
    """Return the notes, by the keys of the cluster file."""
    network = cluster.network
    return {
        VERSION: exact_version(cluster.kubernetes_version),
        COUNT: str(cluster.control_plane.count),
        ZONES: " ".join(slot.subnet.zone for slot in cluster.slots),
        "controlPlane.volume.kmsKey": cluster.control_plane.volume.kms_key or "the account's key for EBS",
        "certificateAuthority.secret": cluster.certificate_authority.secret or "made with the cluster",
        "api.port": str(cluster.api.port),
        PLUGIN: network.plugin,
        # Where pods have addresses of the subnets there is no range to note.
        **({"network.podCidr": str(network.pod_cidr)} if network_plugin(cluster).pod_range else {}),
        "network.serviceCidr": str(network.service_cidr),
        "network.dnsServiceIp": str(network.dns_service_ip),
        "network.dnsDomain": network.dns_domain,
    }


def recorded_settings(template: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the notes of a template; empty for one that has none."""
    notes: Mapping[str, str] = template.get("Metadata", {}).get("cfngen", {}).get("immutableSettings", {})
    # Notes without a plug-in are of a version that had one only.
    return {PLUGIN: "vpc-routes", **notes} if notes else notes
