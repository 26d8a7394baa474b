"""What a deployment means that no change set says: changes of what is decided once, and of Kubernetes' version.

The root notes them in its metadata (`cfngen.templates.decided`). A stack of a version that noted nothing is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.deploy.preview.plan import Danger, Meaning
from cfngen.errors import CfngenError
from cfngen.templates.decided import VERSION, decided, noted

_WHY = {
    "api.port": "nodes that have joined know no other",
    "network.podCidr": "nodes that have joined and their routes keep theirs",
    "network.serviceCidr": "Services that exist keep their addresses",
    "network.dnsServiceIp": "the DNS Service that exists keeps its address",
    "network.dnsDomain": "kubelets and pods that run keep theirs",
}
_SKEW = "https://kubernetes.io/releases/version-skew-policy/"


class DecidedOnceError(CfngenError):
    """The cluster file changes what is decided when a cluster is made.

    Attributes:
        problems: everything that cannot be changed, one sentence each.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems), hint="set it back in the cluster file, or make a new cluster.")
        self.problems = problems


def foreseen(before: Mapping[str, Any], cluster: Cluster) -> tuple[Meaning, ...]:
    """Return what changes between the cluster of a root template and a wanted one, as far as a change set hides it.

    Args:
        before: the template that the root stack has.
        cluster: the cluster that is wanted.

    Raises:
        DecidedOnceError: it cannot be changed.
    """
    was, wanted = noted(before), decided(cluster)
    problems = [
        f"{key}: was {was[key]} when the cluster was made and cannot become {wanted[key]}: {reason}"
        for key, reason in _WHY.items()
        if key in was and was[key] != wanted[key]
    ]
    meaning = None
    if was.get(VERSION, wanted[VERSION]) != wanted[VERSION]:
        old, new = was[VERSION], wanted[VERSION]
        old_minor, new_minor = _minor(old), _minor(new)
        if new_minor < old_minor:
            problems.append(f"{VERSION}: was {old} and cannot become {new}: Kubernetes' minor versions do not go back")
        elif new_minor > old_minor + 1:
            through = f"1.{old_minor + 1}"
            problems.append(
                f"{VERSION}: was {old} and cannot become {new} at once: go through {through} first ({_SKEW})"
            )
        elif new_minor > old_minor:
            meaning = Meaning(
                f"Kubernetes {old} becomes {new}: masters and nodes are replaced at the same time and no upgrade steps "
                "of kubeadm are run, so new nodes may meet the older API server; try it on a copy of the cluster first",
                Danger.DANGEROUS,
            )
        else:
            meaning = Meaning(f"Kubernetes {old} becomes {new}", Danger.DISRUPTIVE)
    if problems:
        raise DecidedOnceError(tuple(problems))
    return (meaning,) if meaning else ()


def _minor(version: str) -> int:
    """36 for `1.36.3`."""
    return int(version.split(".")[1])
