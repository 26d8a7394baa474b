"""Versions of Kubernetes: what the cluster file wants, and what may run beside what."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.releases import exact_version

OLDEST_KUBELET = 3  # minors; https://kubernetes.io/releases/version-skew-policy/#kubelet


def wanted_version(cluster: Cluster) -> str:
    """Return the version that the cluster's templates install, e.g. `1.36.3`."""
    return exact_version(cluster.kubernetes_version)


def skew(kubelet: str, server: str) -> str:
    """Return what is wrong between a kubelet's and the API server's version; an empty text if nothing is.

    A kubelet may be up to three minors older than the API server, and never newer.
    """
    mine, servers = _order(kubelet), _order(server)
    if not mine or not servers:
        return ""
    if mine[:2] > servers[:2]:
        return f"{kubelet}, newer than the API server ({server})"
    if (mine[0], mine[1] + OLDEST_KUBELET) < servers[:2]:
        return f"{kubelet}, more than {OLDEST_KUBELET} minor versions older than the API server ({server})"
    return ""


def _order(version: str) -> tuple[int, ...]:
    numbers = version.partition("-")[0].partition("+")[0].split(".")
    return tuple(int(number) for number in numbers) if all(number.isdigit() for number in numbers) else ()
