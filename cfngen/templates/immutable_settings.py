"""Settings that cannot change after creation, or only in steps, recorded in the root template's metadata.

Most of them are in UserData only, where a change set shows that it changes but not which setting. A later deployment
compares the recorded settings with the cluster file before it creates a change set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.releases import exact_version

VERSION = "kubernetesVersion"
COUNT = "controlPlane.count"
# The zone of each slot, in order: `us-west-2a us-west-2b us-west-2c`.
ZONES = "controlPlane.zones"
PLUGIN = "network.plugin"


def immutable_settings(cluster: Cluster) -> dict[str, str]:
    """Return the settings to record, by key of the cluster file."""
    network = cluster.network
    return {
        VERSION: exact_version(cluster.kubernetes_version),
        COUNT: str(cluster.control_plane.count),
        ZONES: " ".join(slot.subnet.zone for slot in cluster.slots),
        "controlPlane.volume.kmsKey": cluster.control_plane.volume.kms_key or "the account's key for EBS",
        "certificateAuthority.secret": cluster.certificate_authority.secret or "made with the cluster",
        "api.port": str(cluster.api.port),
        PLUGIN: network.plugin,
        # Where pods have addresses of the subnets, there is no range to record.
        **({"network.podCidr": str(network.pod_cidr)} if network_plugin(cluster).pod_range else {}),
        "network.serviceCidr": str(network.service_cidr),
        "network.dnsServiceIp": str(network.dns_service_ip),
        "network.dnsDomain": network.dns_domain,
    }


def recorded_settings(template: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the settings that a template records; empty if it records none."""
    recorded: Mapping[str, str] = template.get("Metadata", {}).get("cfngen", {}).get("immutableSettings", {})
    # Older templates do not record the plug-in: there was only one.
    return {PLUGIN: "vpc-routes", **recorded} if recorded else recorded
