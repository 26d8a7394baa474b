"""Compares settings that a change set does not show: immutable settings, number of masters and Kubernetes version.

The root's metadata records them (`cfngen.templates.immutable_settings`); a stack without that record is not checked.
The VPC and its subnets are parameters and are checked in `cfngen.deploy.preview.foundations`.
"""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.cluster.model import Cluster
from cfngen.deploy.aws_types import TemplatePart
from cfngen.deploy.preview.changes import Danger, Impact
from cfngen.errors import CfngenError
from cfngen.templates.immutable_settings import COUNT_KEY, VERSION_KEY, ZONES_KEY, immutable_settings, recorded_settings

_REASONS = {
    "controlPlane.volume.kmsKey": "EBS encrypts a volume once, and etcd's data are on it",
    "certificateAuthority.secret": "nodes, kubeconfigs and Pods trust the authorities that the cluster has",
    "api.port": "nodes that have joined know no other",
    "network.plugin": "pods that run keep their addresses, and nodes the plug-in's interfaces, routes and rules",
    "network.podCidr": "nodes that have joined and their routes keep theirs",
    "network.serviceCidr": "Services that exist keep their addresses",
    "network.dnsServiceIp": "the DNS Service that exists keeps its address",
    "network.dnsDomain": "kubelets and pods that run keep theirs",
}
_VERSION_SKEW_POLICY = "https://kubernetes.io/releases/version-skew-policy/"


class ImmutableSettingError(CfngenError):
    """The cluster file changes settings that cannot change after the cluster was created.

    Attributes:
        problems: one sentence for each setting.
    """

    code = "immutable-setting"

    def __init__(self, problems: tuple[str, ...], hint: str = "") -> None:
        super().__init__("; ".join(problems), hint=hint or "set it back in the cluster file, or make a new cluster.")
        self.problems = problems


def setting_impacts(previous_template: TemplatePart, cluster: Cluster) -> tuple[Impact, ...]:
    """Return the impacts of changed settings that a change set does not show.

    Args:
        previous_template: the deployed template of the root.
        cluster: the cluster as it is to be deployed.

    Raises:
        ImmutableSettingError: a setting cannot be changed in this way.
    """
    recorded, requested = recorded_settings(previous_template), immutable_settings(cluster)
    problems = [
        f"{key}: was {recorded[key]} when the cluster was made and cannot become {requested[key]}: {reason}"
        for key, reason in _REASONS.items()
        if key in recorded and key in requested and recorded[key] != requested[key]
    ]
    problems += _master_problems(recorded, requested)
    version_impact, hint = None, ""
    if recorded.get(VERSION_KEY, requested[VERSION_KEY]) != requested[VERSION_KEY]:
        old, new = recorded[VERSION_KEY], requested[VERSION_KEY]
        old_minor, new_minor = _minor_version(old), _minor_version(new)
        if new_minor < old_minor:
            problems.append(
                f"{VERSION_KEY}: was {old} and cannot become {new}: Kubernetes' minor versions do not go back"
            )
        elif new_minor > old_minor + 1:
            next_minor = f"1.{old_minor + 1}"
            hint = "" if problems else f"set {VERSION_KEY} to {next_minor}, deploy, and continue from there."
            problems.append(
                f"{VERSION_KEY}: was {old} and cannot become {new} at once: "
                f"go through {next_minor} first ({_VERSION_SKEW_POLICY})"
            )
        elif new_minor > old_minor:
            version_impact = Impact(
                f"Kubernetes {old} becomes {new}: masters are replaced one at a time, new nodes wait for the last of "
                "them; there is no way back but a snapshot of etcd from before, also when the update fails half-way",
                Danger.DANGEROUS,
            )
        else:
            version_impact = Impact(f"Kubernetes {old} becomes {new}", Danger.DISRUPTIVE)
    if problems:
        raise ImmutableSettingError(tuple(problems), hint)
    impacts = (version_impact, _added_masters_impact(recorded, requested))
    return tuple(impact for impact in impacts if impact)


def _master_problems(recorded: Mapping[str, str], requested: Mapping[str, str]) -> list[str]:
    """Return a problem for each master that would be removed or moved: etcd's data stays in its zone."""
    recorded_count = int(recorded.get(COUNT_KEY, requested[COUNT_KEY]))
    if int(requested[COUNT_KEY]) < recorded_count:
        reason = "the masters that go take their parts of etcd with them, and those that stay would wait for them"
        return [f"{COUNT_KEY}: is {recorded_count} and cannot become {requested[COUNT_KEY]}: {reason}"]
    places = zip("abcde", recorded.get(ZONES_KEY, "").split(), requested[ZONES_KEY].split(), strict=False)
    return [
        f"controlPlane.addresses: master {letter} is in {old} and cannot move to {new}: its volume stays there; "
        f"give it an address of the subnet in {old}"
        for letter, old, new in places
        if old != new
    ]


def _added_masters_impact(recorded: Mapping[str, str], requested: Mapping[str, str]) -> Impact | None:
    """Return the impact of additional masters; None if there are none."""
    old_count, new_count = int(recorded.get(COUNT_KEY, requested[COUNT_KEY])), int(requested[COUNT_KEY])
    if new_count <= old_count:
        return None
    # A rollback deletes the new masters without removing their members from etcd.
    advice = (
        "Use --on-failure keep: an update that is rolled back after they have joined leaves etcd without a majority, "
        "and the way back is a snapshot of etcd from before"
    )
    if old_count == 1:
        return Impact(
            f"1 master becomes {new_count}: the API's address becomes that of a load balancer, so that kubeconfigs "
            "have to be fetched again. The master that is there is replaced first, and the API is away for the minutes "
            f"of its boot; then the others join it one after another. {advice}",
            Danger.DANGEROUS,
        )
    return Impact(
        f"{old_count} masters become {new_count}: those that are there are replaced one at a time, then the others "
        f"join; the API stays up. {advice}",
        Danger.DANGEROUS,
    )


def _minor_version(version: str) -> int:
    """Return the minor version, e.g. 36 for `1.36.3`."""
    return int(version.split(".")[1])
