"""Compares settings that a change set does not show: immutable settings, number of masters and Kubernetes version.

The root's metadata records them (`cfngen.templates.immutable_settings`); a stack without that record is not checked.
The VPC and its subnets are parameters and are checked in `cfngen.deploy.preview.foundations`.
"""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.topology import is_private
from cfngen.deploy.aws_types import TemplatePart
from cfngen.deploy.preview.changes import Danger, Impact
from cfngen.errors import CfngenError
from cfngen.templates.immutable_settings import (
    MASTER_COUNT_KEY,
    MASTER_ZONES_KEY,
    VERSION_KEY,
    immutable_settings,
    recorded_settings,
)

# Why the setting with this key in the cluster file cannot change.
_REASONS = {
    "controlPlane.volume.kmsKey": "EBS cannot change the key of a volume, and etcd's data are on it",
    "certificateAuthority.secret": "nodes, kubeconfigs and pods trust the current certificate authorities",
    # "Change the encryption key for an AWS Secrets Manager secret", AWS Secrets Manager User Guide: versions that
    # Secrets Manager may not decrypt with the previous key stay encrypted with it. CloudFormation would delete a key
    # that it has created in the same update.
    "secrets.kmsKey": (
        "versions of the certificate authorities may stay encrypted with the current key, and a key that was made with "
        "the cluster would be deleted"
    ),
    "api.port": "nodes that have joined use the current port",
    "network.topology": (
        "instances and the load balancers of services would lose their way in or out while subnets change their routes"
    ),
    "network.plugin": (
        "running pods keep their addresses, and nodes keep the old plug-in's interfaces, routes and rules"
    ),
    "network.podCidr": "existing nodes and their routes keep their ranges",
    "network.serviceCidr": "existing Services keep their addresses",
    "network.dnsServiceIp": "the existing DNS Service keeps its address",
    "network.dnsDomain": "running kubelets and pods keep the current domain",
}
_VERSION_SKEW_POLICY = "https://kubernetes.io/releases/version-skew-policy/"


class ImmutableSettingError(CfngenError):
    """The cluster file changes settings that cannot change after the cluster was created.

    Attributes:
        problems: one sentence for each setting.
    """

    code = "immutable-setting"

    def __init__(self, problems: tuple[str, ...], hint: str = "") -> None:
        super().__init__(
            "; ".join(problems), hint=hint or "restore the old value in the cluster file, or create a new cluster."
        )
        self.problems = problems


def setting_impacts(deployed_root_template: TemplatePart, cluster: Cluster) -> tuple[Impact, ...]:
    """Return the impacts of a new Kubernetes version and of more masters, which a change set does not show.

    Args:
        deployed_root_template: the root's template as it is deployed.
        cluster: the cluster as it is to be deployed.

    Raises:
        ImmutableSettingError: a setting cannot be changed in this way.
    """
    recorded = recorded_settings(deployed_root_template)
    requested = immutable_settings(cluster)
    changed_keys = [key for key in _REASONS if key in recorded and key in requested and recorded[key] != requested[key]]
    problems = [
        f"{key}: was {recorded[key]} when the cluster was created and cannot be changed to {requested[key]}: "
        f"{_REASONS[key]}"
        for key in changed_keys
    ]
    restoring_steps = [_restoring_step(key, recorded[key]) for key in changed_keys]
    problems += _master_problems(recorded, requested)
    version_impact, hint = None, ""
    if recorded.get(VERSION_KEY, requested[VERSION_KEY]) != requested[VERSION_KEY]:
        old, new = recorded[VERSION_KEY], requested[VERSION_KEY]
        old_minor, new_minor = _minor_version(old), _minor_version(new)
        if new_minor < old_minor:
            problems.append(
                f"{VERSION_KEY}: is {old} and cannot be changed to {new}: Kubernetes has no downgrade to an older "
                "minor version"
            )
        elif new_minor > old_minor + 1:
            next_minor = f"1.{old_minor + 1}"
            hint = "" if problems else f"set {VERSION_KEY} to {next_minor}, deploy, and continue from there."
            problems.append(
                f"{VERSION_KEY}: is {old} and cannot be changed to {new} in one step: "
                f"upgrade to {next_minor} first ({_VERSION_SKEW_POLICY})"
            )
        elif new_minor > old_minor:
            version_impact = Impact(
                f"Kubernetes {old} becomes {new}: masters are replaced one at a time, and new nodes wait for the last "
                "master; the only way back is an etcd snapshot from before the upgrade, also if the update fails "
                "half-way",
                Danger.DANGEROUS,
            )
        else:
            version_impact = Impact(f"Kubernetes {old} becomes {new}", Danger.DISRUPTIVE)
    if problems:
        if not hint and len(restoring_steps) == len(problems):
            hint = f"in the cluster file, {', and '.join(restoring_steps)}; or create a new cluster."
        raise ImmutableSettingError(tuple(problems), hint)
    impacts = (version_impact, _added_masters_impact(recorded, requested, cluster))
    return tuple(impact for impact in impacts if impact)


def _restoring_step(key: str, recorded_value: str) -> str:
    """Return the line to write in the cluster file, also where the new value is a default that the file does not have.

    Args:
        key: the key of the setting.
        recorded_value: its value in the deployed cluster; a text with spaces describes the default of a key for which
            the file had none.
    """
    section, _, name = key.rpartition(".")
    if " " in recorded_value:
        return f"remove {key}"
    return f"write `{name}: {recorded_value}` below `{section}`"


def _master_problems(recorded: Mapping[str, str], requested: Mapping[str, str]) -> list[str]:
    """Return the problems of removing masters, or of moving masters to other zones, where their volumes cannot move.

    Args:
        recorded: the settings of the deployed cluster by key.
        requested: the settings of the cluster as it is to be deployed by key.
    """
    recorded_count = int(recorded.get(MASTER_COUNT_KEY, requested[MASTER_COUNT_KEY]))
    if int(requested[MASTER_COUNT_KEY]) < recorded_count:
        reason = "the removed masters' etcd members would be lost, and the remaining masters would wait for them"
        return [
            f"{MASTER_COUNT_KEY}: is {recorded_count} and cannot be changed to {requested[MASTER_COUNT_KEY]}: {reason}"
        ]
    # The zones are recorded in the order of the masters.
    recorded_zones = recorded.get(MASTER_ZONES_KEY, "").split()
    requested_zones = requested[MASTER_ZONES_KEY].split()
    return [
        f"controlPlane.addresses: master {letter} is in {recorded_zone} and cannot move to {requested_zone}: its "
        f"volume stays there; give it an address of the subnet in {recorded_zone}"
        for letter, recorded_zone, requested_zone in zip("abcde", recorded_zones, requested_zones, strict=False)
        if recorded_zone != requested_zone
    ]


def _added_masters_impact(recorded: Mapping[str, str], requested: Mapping[str, str], cluster: Cluster) -> Impact | None:
    """Return the impact of additional masters; None if there are none.

    Args:
        recorded: the settings of the deployed cluster by key.
        requested: the settings of the cluster as it is to be deployed by key.
        cluster: the cluster as it is to be deployed.
    """
    old_count = int(recorded.get(MASTER_COUNT_KEY, requested[MASTER_COUNT_KEY]))
    new_count = int(requested[MASTER_COUNT_KEY])
    if new_count <= old_count:
        return None
    # A rollback deletes the new masters without removing their members from etcd.
    advice = (
        "Use --on-failure keep: if the update is rolled back after new masters have joined, etcd loses its majority "
        "and must be restored from an earlier snapshot"
    )
    if old_count == 1:
        # A single private master has a load balancer already if its API is public.
        has_load_balancer = is_private(cluster) and cluster.api.public
        move = (
            "the API keeps its load balancer"
            if has_load_balancer
            else "the API moves to the address of a load balancer, so fetch kubeconfigs again"
        )
        return Impact(
            f"1 master becomes {new_count}: {move}. The existing master is replaced first, and the API is unavailable "
            f"while it boots, for some minutes; then the others join it one after another. {advice}",
            Danger.DANGEROUS,
        )
    return Impact(
        f"{old_count} masters become {new_count}: the existing ones are replaced one at a time, then the new ones "
        f"join; the API stays up. {advice}",
        Danger.DANGEROUS,
    )


def _minor_version(version: str) -> int:
    """Return the minor version, e.g. 36 for `1.36.3`."""
    return int(version.split(".")[1])
