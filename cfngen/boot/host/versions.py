"""Kubernetes versions and the version skew policy.

API servers of a cluster may differ by one minor version; a kubelet must not be newer than any API server that it may
talk to (https://kubernetes.io/releases/version-skew-policy/).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..machine import BootError, Pending

if TYPE_CHECKING:
    from ..contract import JoinInformation
    from ..state import Boot


def version_numbers(version: str) -> tuple[int, int, int]:
    """Return the major, minor and patch version as numbers: (1, 36, 3) for `v1.36.3` or `1.36.3-rc.0`."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", version)
    if not match:
        raise BootError(f"{version!r} is not a Kubernetes version")
    return int(match[1]), int(match[2]), int(match[3])


def minor_number(version: str) -> int:
    """Return the minor version as a number: 36 for `v1.36.3`."""
    return version_numbers(version)[1]


def check_masters_version(boot: Boot, information: JoinInformation) -> None:
    """Check that no master is older than this node's kubelet; callers retry this until all masters are updated.

    Args:
        boot: this run of the program; `kubernetesVersion` in the configuration is the version of this node's kubelet.
        information: the join information; `kubernetesVersion` in it is the version of the oldest master. It is missing
            if masters run a boot program of an earlier release, which does not publish it: then nothing is checked.

    Raises:
        Pending: a master is older. In an update nodes and masters are replaced at the same time, so the node waits.
    """
    kubelet_version = boot.config["kubernetesVersion"]
    oldest_master_version = information.get("kubernetesVersion", "")
    if oldest_master_version and minor_number(oldest_master_version) < minor_number(kubelet_version):
        raise Pending(
            f"this node's kubelet is {kubelet_version} and a master is still {oldest_master_version}: "
            "masters are updated first"
        )
