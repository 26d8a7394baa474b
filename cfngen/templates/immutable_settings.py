"""Settings that cannot change after creation, or only in steps; the root template's metadata records them.

Most of these settings appear only in UserData: a change set shows that UserData changes, but not which setting. So each
deployment compares the settings recorded in the deployed template with the cluster file, before it creates a change
set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.cluster.iam.issuer_stages import state_to_record
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.sections.references import ACCOUNT_VARIABLE
from cfngen.releases import exact_version

# Keys of settings that more than one function needs.
VERSION_KEY = "kubernetesVersion"
MASTER_COUNT_KEY = "controlPlane.count"
# The value of this setting is the zone of each master, in order: `us-west-2a us-west-2b us-west-2c`.
MASTER_ZONES_KEY = "controlPlane.zones"
NETWORK_PLUGIN_KEY = "network.plugin"
OBJECT_LOCK_KEY = "etcd.backups.objectLock"
# What stands for the account in recorded ARNs: for cfn-lint, the variable in metadata is a forgotten `Fn::Sub` (E1029).
_RECORDED_ACCOUNT = "<AWS::AccountId>"
_TOPOLOGY_KEY = "network.topology"
_SECRETS_KEY_KEY = "secrets.kmsKey"
_IAM_PATH_KEY = "iam.path"
# Older templates do not record these settings, because no other value existed when they were generated.
_UNRECORDED = {
    NETWORK_PLUGIN_KEY: "vpc-routes",
    _TOPOLOGY_KEY: "public",
    _SECRETS_KEY_KEY: "a key made with the cluster",
    _IAM_PATH_KEY: "/",
}
# Settings with the value of older templates are left out of new ones, too: their templates stay the same.
_RECORDED_IF_OTHER = (_TOPOLOGY_KEY, _SECRETS_KEY_KEY, _IAM_PATH_KEY)


def immutable_settings(cluster: Cluster) -> dict[str, str]:
    """Return the settings that a deployment compares with those of the deployed template, by their keys."""
    network = cluster.network
    # If pods get addresses from the subnets, the cluster has no pod range.
    pod_range = {"network.podCidr": str(network.pod_cidr)} if network_plugin(cluster).uses_pod_cidr else {}
    return {
        VERSION_KEY: exact_version(cluster.kubernetes_version),
        MASTER_COUNT_KEY: str(cluster.control_plane.count),
        MASTER_ZONES_KEY: " ".join(slot.subnet.zone for slot in cluster.slots),
        "controlPlane.volume.kmsKey": cluster.control_plane.volume.kms_key or "the account's key for EBS",
        "certificateAuthority.secret": cluster.certificate_authority.secret or "made with the cluster",
        _SECRETS_KEY_KEY: cluster.secrets.kms_key or _UNRECORDED[_SECRETS_KEY_KEY],
        "api.port": str(cluster.api.port),
        NETWORK_PLUGIN_KEY: network.plugin,
        **pod_range,
        "network.serviceCidr": str(network.service_cidr),
        "network.dnsServiceIp": str(network.dns_service_ip),
        "network.dnsDomain": network.dns_domain,
        _TOPOLOGY_KEY: network.topology,
        _IAM_PATH_KEY: cluster.iam.path,
    }


def settings_to_record(cluster: Cluster) -> dict[str, str]:
    """Return the settings to record in the root template, by their keys in the cluster file.

    The topology of a public cluster is left out: a template that records none is one of a public cluster. So is the
    key of the secrets if it is made with the cluster, and IAM's own path. The issuer of tokens, and the Object Lock of
    the created bucket, are recorded where there is one.
    """
    settings = {
        key: value.replace(ACCOUNT_VARIABLE, _RECORDED_ACCOUNT)
        for key, value in immutable_settings(cluster).items()
        if key not in _RECORDED_IF_OTHER or value != _UNRECORDED[key]
    }
    lock = {OBJECT_LOCK_KEY: "on"} if cluster.etcd.backups.locks_own_bucket else {}
    return {**settings, **lock, **state_to_record(cluster)}


def recorded_settings(template: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the settings recorded in the metadata of a root template, by key; empty if it records none."""
    recorded: Mapping[str, str] = template.get("Metadata", {}).get("cfngen", {}).get("immutableSettings", {})
    settings = {key: value.replace(_RECORDED_ACCOUNT, ACCOUNT_VARIABLE) for key, value in recorded.items()}
    return {**_UNRECORDED, **settings} if settings else settings
