"""The cluster files of labs."""

from __future__ import annotations

from pathlib import Path

import lab_real
import yaml
from lab_mirror import URL

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")


def cluster_file(folder: Path, masters: int, nodes: int, **more: object) -> Path:
    """Write the file of a cluster of so many masters, each in its own zone, and of nodes; it names the mirror."""
    subnets = [{"zone": zone, "cidr": f"172.20.{number}.0/24"} for number, zone in enumerate(ZONES[:masters])]
    content = {
        "name": "kubernetes",
        "region": "us-west-2",
        "assets": {"mirror": URL},
        "network": {"subnets": subnets},
        "controlPlane": {"count": masters},
        "nodeGroups": [{"name": "nodes", "minSize": nodes, "maxSize": nodes + 2}],
        **more,
    }
    if images := lab_real.images():
        content = lab_real.merged(content, lab_real.settings(images, old=lab_real.old_groups()))
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(content))
    return file
