"""Refuses changes of what a cluster keeps: immutable settings, the issuer, the VPC, and the subnet of a zone.

A change set does not show the settings. The root's metadata records them (`cfngen.templates.immutable_settings`); a
stack without that record is not checked. VPC and subnets are parameters of the root: the stack's are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from cfngen.cluster.iam.issuer_stages import OFF, IssuerState, issuer_stages, issuer_state, recorded_state
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SubnetId, ZoneId
from cfngen.cluster.network.topology import is_private
from cfngen.cluster.sections.references import with_account
from cfngen.cluster.sections.services import Backups
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.preflight.findings import Finding, FindingsError, refusal
from cfngen.hints import CommandText, suggest
from cfngen.templates.immutable_settings import (
    MASTER_COUNT_KEY,
    MASTER_ZONES_KEY,
    OBJECT_LOCK_KEY,
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
    # Path is a property whose change replaces the resource (template references of AWS::IAM::Role and the others).
    "iam.path": "roles and instance profiles would be replaced, and with them all masters and nodes at once",
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


class ImmutableSettingError(FindingsError):
    """The cluster file changes settings that cannot change after the cluster was created."""

    code = "immutable-setting"
    advice = "restore the old value in the cluster file, or create a new cluster."


def setting_impacts(
    deployed_root_template: TemplatePart, cluster: Cluster, *, account_number: str = ""
) -> tuple[Impact, ...]:
    """Return the impacts of a new Kubernetes version and of more masters, which a change set does not show.

    Args:
        account_number: number of the cluster's account, which the file may leave open in ARNs.

    Raises:
        ImmutableSettingError: a setting cannot be changed in this way.
    """
    recorded = recorded_settings(deployed_root_template)
    requested = immutable_settings(cluster)
    changed_keys = [
        key
        for key in _REASONS
        if key in recorded
        and key in requested
        and with_account(recorded[key], account_number) != with_account(requested[key], account_number)
    ]
    problems = [
        refusal(
            key,
            f"was {recorded[key]} when the cluster was created and cannot be changed to {requested[key]}: "
            f"{_REASONS[key]}",
        )
        for key in changed_keys
    ]
    old, new = recorded.get(VERSION_KEY, requested[VERSION_KEY]), requested[VERSION_KEY]
    problems += _lock_problems(recorded, cluster.etcd.backups)
    problems += _master_problems(recorded, requested)
    problems += _version_problems(old, new)
    if problems:
        hint = ""
        if len(problems) == len(changed_keys):
            steps = ", and ".join(_restoring_step(key, recorded[key]) for key in changed_keys)
            hint = f"in the cluster file, {steps}; or create a new cluster."
        elif len(problems) == 1 and _minor_version(new) > _minor_version(old) + 1:
            hint = f"set {VERSION_KEY} to {_next_minor(old)}, deploy, and continue from there."
        raise ImmutableSettingError(tuple(problems), hint)
    has_snapshots = cluster.etcd.backups.enabled
    impacts = (
        _version_impact(old, new, has_snapshots=has_snapshots),
        _added_masters_impact(recorded, requested, cluster),
    )
    return tuple(impact for impact in impacts if impact)


def _version_problems(old: str, new: str) -> Iterator[Finding]:
    """Yield a problem if Kubernetes cannot change from one version to another."""
    if _minor_version(new) < _minor_version(old):
        yield refusal(
            VERSION_KEY,
            f"is {old} and cannot be changed to {new}: Kubernetes has no downgrade to an older minor version",
        )
    elif _minor_version(new) > _minor_version(old) + 1:
        yield refusal(
            VERSION_KEY,
            f"is {old} and cannot be changed to {new} in one step: upgrade to {_next_minor(old)} first "
            f"({_VERSION_SKEW_POLICY})",
        )


def _version_impact(old: str, new: str, *, has_snapshots: bool) -> Impact | None:
    """Return the impact of another version of Kubernetes; None if it stays.

    Args:
        has_snapshots: whether masters take snapshots of etcd.
    """
    if old == new:
        return None
    if _minor_version(old) == _minor_version(new):
        return Impact(f"Kubernetes {old} becomes {new}", Danger.DISRUPTIVE)
    return Impact(
        f"Kubernetes {old} becomes {new}: masters are replaced one at a time, and new nodes wait for the last "
        "master; the only way back is an etcd snapshot from before the upgrade, also if the update fails "
        "half-way",
        Danger.DANGEROUS,
        hint=_WAY_BACK if has_snapshots else "there are no snapshots: etcd.backups is not enabled; enable it before.",
    )


# docs/operate/upgrade.md: masters of the old version refuse newer data until the snapshot is restored.
_WAY_BACK = CommandText(
    suggest("etcd backup"),
    " just before takes that snapshot, and prints its KEY; to go back, let the rollback of the update bring the old "
    "version, then ",
    suggest("etcd restore KEY"),
    " brings the old data.",
)


def _restoring_step(key: str, recorded_value: str) -> str:
    """Return the line to write in the cluster file, also where the new value is a default that the file does not have.

    Args:
        recorded_value: its value in the deployed cluster; a text with spaces describes the default of a key for which
            the file had none.
    """
    section, _, name = key.rpartition(".")
    if " " in recorded_value:
        return f"remove {key}"
    return f"write `{name}: {recorded_value}` below `{section}`"


def _lock_problems(recorded: Mapping[str, str], backups: Backups) -> Iterator[Finding]:
    """Yield a problem if snapshots are no longer locked in the stack's own bucket, which keeps S3 Object Lock."""
    if OBJECT_LOCK_KEY in recorded and backups.creates_bucket and not backups.object_lock:
        yield refusal(
            OBJECT_LOCK_KEY,
            "cannot be removed, as S3 never turns Object Lock off for a bucket; `{mode: governance, days: 1}` locks "
            "least",
        )


def _master_problems(recorded: Mapping[str, str], requested: Mapping[str, str]) -> list[Finding]:
    """Return the problems of removing masters, or of moving masters to other zones, where their volumes cannot move.

    Args:
        recorded: the settings of the deployed cluster by key.
        requested: the settings of the cluster as it is to be deployed by key.
    """
    recorded_count = int(recorded.get(MASTER_COUNT_KEY, requested[MASTER_COUNT_KEY]))
    if int(requested[MASTER_COUNT_KEY]) < recorded_count:
        reason = "the removed masters' etcd members would be lost, and the remaining masters would wait for them"
        text = f"is {recorded_count} and cannot be changed to {requested[MASTER_COUNT_KEY]}: {reason}"
        return [refusal(MASTER_COUNT_KEY, text)]
    # The zones are recorded in the order of the masters.
    recorded_zones = recorded.get(MASTER_ZONES_KEY, "").split()
    requested_zones = requested[MASTER_ZONES_KEY].split()
    return [
        refusal(
            "controlPlane.addresses",
            f"master {letter} is in {recorded_zone} and cannot move to {requested_zone}: its volume stays there; give "
            f"it an address of the subnet in {recorded_zone}",
        )
        for letter, recorded_zone, requested_zone in zip("abcde", recorded_zones, requested_zones, strict=False)
        if recorded_zone != requested_zone
    ]


def _added_masters_impact(recorded: Mapping[str, str], requested: Mapping[str, str], cluster: Cluster) -> Impact | None:
    """Return the impact of additional masters; None if there are none."""
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
        f"join; the API stays up while the others work. {advice}",
        Danger.DANGEROUS,
    )


def _minor_version(version: str) -> int:
    """Return the minor version, e.g. 36 for `1.36.3`."""
    return int(version.split(".")[1])


def _next_minor(version: str) -> str:
    """Return the next minor version, e.g. `1.37` for `1.36.3`."""
    return f"1.{_minor_version(version) + 1}"


_SUBNET_REASON = "the instances and network interfaces in this subnet cannot move"
_PUBLIC_SUBNET_REASON = "the NAT gateway and the load balancers in this subnet cannot move"


class NetworkPart(NamedTuple):
    """A part of the network that cannot be replaced.

    Attributes:
        key: its key in the cluster file.
        range_parameter: name of the parameter with the range (of a zone: the name) of the part.
        id_parameter: name of the parameter with the id of the part, if the stack uses an existing one; empty if there
            is no such parameter.
        reason: why it cannot be replaced.
    """

    key: str
    range_parameter: str
    id_parameter: str
    reason: str


def check(
    current: Mapping[str, str], requested: Mapping[str, str], references: Mapping[str, str] | None = None
) -> None:
    """Refuse a deployment that would replace the VPC, or the subnet of a zone that the cluster keeps using.

    CloudFormation would try, and fail half-way: network interfaces and volumes of masters cannot move, and a NAT
    gateway in a new public subnet cannot have the Elastic IP that the old one still has.

    Args:
        current: current values of the root's parameters, with ids in place of references; empty if the stack is new.
        requested: values of the deployment, likewise.
        references: the references of the cluster file that the deployment has resolved, by names of parameters.

    Raises:
        ImmutableSettingError: the deployment would replace the VPC or a subnet.
    """
    references = references or {}
    problems = []
    has_moved_reference = False
    for part in _network_parts(current):
        current_value, requested_value = _value_of(part, current), _value_of(part, requested)
        if current_value is None or requested_value is None or current_value == requested_value:
            continue
        if part.id_parameter in references:
            has_moved_reference = True
            requested_value += f", to which {references[part.id_parameter]} leads now"
        text = f"is {current_value} and cannot be changed to {requested_value}: {part.reason}"
        problems.append(refusal(part.key, text))
    if problems:
        keep_options = " ".join(
            f"--keep {name}"
            for name in sorted(current)
            if name in requested and name not in references and current[name] != requested[name]
        )
        hint = "restore the old value in the cluster file (and in the parameters), or create a new cluster."
        if has_moved_reference:
            hint = "enter the old id in place of the reference, let it lead there again, or create a new cluster."
        if keep_options:
            hint += f" `{keep_options}` deploys with the stack's current values."
        raise ImmutableSettingError(tuple(problems), hint)


def _value_of(part: NetworkPart, parameters: Mapping[str, str]) -> str | None:
    """Return the range (or zone) or the id of a part of the network; None if there is no parameter for it."""
    for name in (part.range_parameter, part.id_parameter):
        if name and name in parameters:
            return parameters[name]
    return None


def _network_parts(parameters: Mapping[str, str]) -> Iterator[NetworkPart]:
    """Yield the VPC, and the subnet and zone of each zone for which the stack has parameters."""
    yield NetworkPart(
        "network.vpc",
        range_parameter="VpcCidr",
        id_parameter="VpcId",
        reason="all resources of the cluster are in it, and they cannot move",
    )
    for name in sorted(parameters):
        if (subnet := SubnetId.parse(name)) and subnet.part in ("Cidr", "Id"):
            yield NetworkPart(
                f"network.subnets (zone {subnet.zone}{', public' if subnet.is_public else ''})",
                range_parameter=str(replace(subnet, part="Cidr")),
                id_parameter=str(replace(subnet, part="Id")),
                reason=_PUBLIC_SUBNET_REASON if subnet.is_public else _SUBNET_REASON,
            )
        elif parameter := ZoneId.parse(name):
            yield NetworkPart(
                f"network.subnets (zone {parameter.zone})",
                range_parameter=name,
                id_parameter="",
                reason="subnets and volumes stay in their zone",
            )


def next_clusters(deployed_root_template: TemplatePart, final_cluster: Cluster) -> tuple[Cluster, ...]:
    """Return the clusters to deploy one after another, the wanted one last.

    Args:
        deployed_root_template: the root's template as it is deployed; empty for a new cluster.

    Raises:
        ImmutableSettingError: the cluster file names another issuer than the cluster has.
    """
    if not deployed_root_template:
        return (final_cluster,)
    deployed = recorded_state(recorded_settings(deployed_root_template))
    _ensure_same_issuer(deployed, issuer_state(final_cluster))
    return issuer_stages(deployed, final_cluster)


def removed_issuer(deployed_root_template: TemplatePart, cluster: Cluster) -> IssuerState | None:
    """Return the state of the issuer that the update removes; None if it removes none."""
    if not deployed_root_template or issuer_state(cluster).stage != OFF:
        return None
    deployed = recorded_state(recorded_settings(deployed_root_template))
    return deployed if deployed.stage != OFF else None


def _ensure_same_issuer(deployed: IssuerState, final: IssuerState) -> None:
    """Refuse another issuer: pods hold tokens of the current one, and roles trust it.

    Raises:
        ImmutableSettingError: it is another one.
    """
    if not deployed.identity or not final.identity or deployed.identity == final.identity:
        return
    problem = refusal(
        "serviceAccountIssuer",
        f"is {deployed.identity} and cannot be changed to {final.identity} in one step: pods hold tokens of the "
        "current issuer, and their roles trust it",
    )
    raise ImmutableSettingError(
        (problem,), "remove serviceAccountIssuer and what needs it, deploy, and add the other issuer afterwards."
    )
