"""Add-ons for accelerators: NVIDIA's device plug-in."""

from __future__ import annotations

from cfngen.cluster.instances.gpu import PRESENT_LABEL
from cfngen.cluster.model import Cluster
from cfngen.userdata.addons.release import Release, pinned_chart, release_of_chart


def nvidia_device_plugin(cluster: Cluster) -> Release:
    """Return NVIDIA's device plug-in, which makes the GPUs of a node a resource that pods ask for, `nvidia.com/gpu`.

    It runs on nodes with the label that groups with `gpu` have, whatever taints these have. It needs no RuntimeClass,
    since NVIDIA's runtime is the default one of these nodes.
    """
    values = {
        "fullnameOverride": "nvidia-device-plugin",
        "nodeSelector": {PRESENT_LABEL: "true"},
        "tolerations": [{"operator": "Exists"}],
    }
    return release_of_chart(
        pinned_chart(cluster, "nvidia-device-plugin"),
        name="nvidia-device-plugin",
        namespace="kube-system",
        values=values,
    )
