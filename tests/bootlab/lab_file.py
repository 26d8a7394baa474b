"""The cluster files of labs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lab_real
import yaml
from lab_mirror import URL

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
PULLED_IMAGE, ABSENT_IMAGE = "registry.k8s.io/pause:3.10.1", "registry.invalid/absent:1"
# Spot Instances of Xen, whose disks have the names that the launch template gives them (see `lab_disks`).
SPOT_GROUP = {
    "name": "spot",
    "instanceTypes": ["t2.medium", "t2.large"],
    "instancesDistribution": {"onDemandPercentage": 0},
    "rebalanceRecommendation": "drain",
    "minSize": 1,
    "maxSize": 3,
    "maxPods": 40,
    "labels": {"example.com/purchase": "spot", "example.com/version": "first"},
    "taints": [{"key": "example.com/spot", "value": "yes", "effect": "NoSchedule"}],
    "prePulledImages": [PULLED_IMAGE, ABSENT_IMAGE],
    "volumes": [{"size": 10, "mountPath": "/var/lib/containerd"}],
    "update": {"pause": 1},
}


def cluster_file(folder: Path, masters: int, nodes: int, further_groups: Sequence[object] = (), **more: object) -> Path:
    """Write the file of a cluster of so many masters, each in its own zone, and of nodes; it names the mirror."""
    subnets = [{"zone": zone, "cidr": f"172.20.{number}.0/24"} for number, zone in enumerate(ZONES[:masters])]
    content = {
        "name": "kubernetes",
        "region": "us-west-2",
        "assets": {"mirror": URL},
        "network": {"subnets": subnets},
        "controlPlane": {"count": masters},
        "nodeGroups": [{"name": "nodes", "minSize": nodes, "maxSize": nodes + 2}, *further_groups],
        **more,
    }
    if images := lab_real.images():
        content = lab_real.merged(content, lab_real.settings(images, old=lab_real.old_groups()))
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(content))
    return file
