"""What a deployment means that no change set says: changes of what is decided once, and of Kubernetes' version.

The root's metadata records them (`cfngen.templates.immutable_settings`); a stack without that record is not checked.
What parameters say, the VPC and its subnets, is in `cfngen.deploy.preview.foundations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.deploy.preview.plan import Danger, Impact
from cfngen.errors import CfngenError
from cfngen.templates.immutable_settings import COUNT, VERSION, ZONES, immutable_settings, recorded_settings

_WHY = {
    "controlPlane.volume.kmsKey": "EBS encrypts a volume once, and etcd's data are on it",
    "certificateAuthority.secret": "nodes, kubeconfigs and Pods trust the authorities that the cluster has",
    "api.port": "nodes that have joined know no other",
    "network.plugin": "pods that run keep their addresses, and nodes the plug-in's interfaces, routes and rules",
    "network.podCidr": "nodes that have joined and their routes keep theirs",
    "network.serviceCidr": "Services that exist keep their addresses",
    "network.dnsServiceIp": "the DNS Service that exists keeps its address",
    "network.dnsDomain": "kubelets and pods that run keep theirs",
}
_SKEW = "https://kubernetes.io/releases/version-skew-policy/"


class ImmutableSettingError(CfngenError):
    """The cluster file changes what is decided when a cluster is made.

    Attributes:
        problems: everything that cannot be changed, one sentence each.
    """

    def __init__(self, problems: tuple[str, ...], hint: str = "") -> None:
        super().__init__("; ".join(problems), hint=hint or "set it back in the cluster file, or make a new cluster.")
        self.problems = problems


def setting_impacts(before: Mapping[str, Any], cluster: Cluster) -> tuple[Impact, ...]:
    """Return what changes between the cluster of a root template and a wanted one, as far as a change set hides it.

    Args:
        before: the template that the root stack has.
        cluster: the cluster that is wanted.

    Raises:
        DecidedOnceError: it cannot be changed.
    """
    was, wanted = recorded_settings(before), immutable_settings(cluster)
    problems = [
        f"{key}: was {was[key]} when the cluster was made and cannot become {wanted[key]}: {reason}"
        for key, reason in _WHY.items()
        if key in was and key in wanted and was[key] != wanted[key]
    ]
    problems += _misplaced(was, wanted)
    meaning, hint = None, ""
    if was.get(VERSION, wanted[VERSION]) != wanted[VERSION]:
        old, new = was[VERSION], wanted[VERSION]
        old_minor, new_minor = _minor(old), _minor(new)
        if new_minor < old_minor:
            problems.append(f"{VERSION}: was {old} and cannot become {new}: Kubernetes' minor versions do not go back")
        elif new_minor > old_minor + 1:
            through = f"1.{old_minor + 1}"
            hint = "" if problems else f"set {VERSION} to {through}, deploy, and go on from there."
            problems.append(
                f"{VERSION}: was {old} and cannot become {new} at once: go through {through} first ({_SKEW})"
            )
        elif new_minor > old_minor:
            meaning = Impact(
                f"Kubernetes {old} becomes {new}: masters are replaced one at a time, new nodes wait for the last of "
                "them; there is no way back but a snapshot of etcd from before, also when the update fails half-way",
                Danger.DANGEROUS,
            )
        else:
            meaning = Impact(f"Kubernetes {old} becomes {new}", Danger.DISRUPTIVE)
    if problems:
        raise ImmutableSettingError(tuple(problems), hint)
    found = (meaning, _more_masters(was, wanted))
    return tuple(each for each in found if each)


def _misplaced(was: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    """Return which masters would go, or move: etcd's data stay in their zones, and few members are too few."""
    count = int(was.get(COUNT, wanted[COUNT]))
    if int(wanted[COUNT]) < count:
        why = "the masters that go take their parts of etcd with them, and those that stay would wait for them"
        return [f"{COUNT}: is {count} and cannot become {wanted[COUNT]}: {why}"]
    places = zip("abcde", was.get(ZONES, "").split(), wanted[ZONES].split(), strict=False)
    return [
        f"controlPlane.addresses: master {letter} is in {old} and cannot move to {new}: its volume stays there; "
        f"give it an address of the subnet in {old}"
        for letter, old, new in places
        if old != new
    ]


def _more_masters(was: Mapping[str, str], wanted: Mapping[str, str]) -> Impact | None:
    """Return what it means that masters are added; None if none are."""
    before, after = int(was.get(COUNT, wanted[COUNT])), int(wanted[COUNT])
    if after <= before:
        return None
    # CloudFormation takes new resources back, and knows nothing of etcd.
    back = (
        "Use --on-failure keep: an update that is taken back after they have joined leaves etcd without a majority, "
        "and the way back is a snapshot of etcd from before"
    )
    if before == 1:
        return Impact(
            f"1 master becomes {after}: the API's address becomes that of a load balancer, so that kubeconfigs have to "
            "be fetched anew. The master that is there is replaced first, and the API is away for the minutes of its "
            f"boot; then the others join it one after another. {back}",
            Danger.DANGEROUS,
        )
    return Impact(
        f"{before} masters become {after}: those that are there are replaced one at a time, then the others join; the "
        f"API stays up. {back}",
        Danger.DANGEROUS,
    )


def _minor(version: str) -> int:
    """36 for `1.36.3`."""
    return int(version.split(".")[1])
