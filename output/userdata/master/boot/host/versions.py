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


def numbers(version: str) -> tuple[int, int, int]:
    """Return (1, 36, 3) for `v1.36.3` or `1.36.3-rc.0`.

    Raises:
        BootError: `version` is not a Kubernetes version.
    """
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", version)
    if not match:
        raise BootError(f"{version!r} is not a Kubernetes version")
    return int(match[1]), int(match[2]), int(match[3])


def minor(version: str) -> int:
    """Return 36 for `v1.36.3`."""
    return numbers(version)[1]


def await_masters(boot: Boot, information: JoinInformation) -> None:
    """Check that no master is older than this node's kubelet.

    Args:
        boot: this run of the program; the configuration's `kubernetesVersion` is its kubelet's.
        information: the join information; `kubernetesVersion` is the oldest master's. Masters with an older boot
            program do not publish it.

    Raises:
        Pending: a master is older; in an update nodes and masters are replaced at the same time.
    """
    own_version, oldest = boot.config["kubernetesVersion"], information.get("kubernetesVersion", "")
    if oldest and minor(oldest) < minor(own_version):
        raise Pending(f"this node's kubelet is {own_version} and a master is still {oldest}: masters are updated first")
