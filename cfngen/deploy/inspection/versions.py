"""Versions of Kubernetes: the version in the cluster file, and the supported version skew."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.releases import exact_version

MAX_MINOR_SKEW = 3  # https://kubernetes.io/releases/version-skew-policy/#kubelet


def target_version(cluster: Cluster) -> str:
    """Return the version that the cluster's templates install, e.g. `1.36.3`."""
    return exact_version(cluster.kubernetes_version)


def describe_skew(kubelet: str, server: str) -> str:
    """Return in words why the API server does not support a kubelet's version; an empty text if it does.

    A kubelet may be up to three minor versions older than the API server, and must not be newer.
    """
    kubelet_version, server_version = _numbers(kubelet), _numbers(server)
    if not kubelet_version or not server_version:
        return ""
    if kubelet_version[:2] > server_version[:2]:
        return f"{kubelet}, newer than the API server ({server})"
    if (kubelet_version[0], kubelet_version[1] + MAX_MINOR_SKEW) < server_version[:2]:
        return f"{kubelet}, more than {MAX_MINOR_SKEW} minor versions older than the API server ({server})"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, e.g. (1, 36, 3), without a suffix; empty if it has another form."""
    numbers = version.partition("-")[0].partition("+")[0].split(".")
    return tuple(int(number) for number in numbers) if all(number.isdigit() for number in numbers) else ()
