"""What the cluster file says of instances, for their boot program: the kubelet, the runtime, files, commands, draining.

The same for masters and nodes, except that only nodes are drained.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cfngen.cluster.model import Cluster, Instances, NodeGroup
from cfngen.userdata import containerd, kubeadm, pod_network
from cfngen.userdata.deep_merge import merge
from cfngen.userdata.files import UNITS
from cfngen.userdata.lines import text_of

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def settings(cluster: Cluster, instances: Instances) -> dict[str, Any]:
    """Return these instances' part of the configuration."""
    given = {
        "files": [file.model_dump() for file in instances.files],
        "units": [unit.model_dump() for unit in instances.units],
        "after": list(instances.post_boot_commands),
    }
    return {
        "kubeletPatch": kubelet(cluster, instances),
        **({"hooks": given} if any(given.values()) else {}),
        **({"before": list(instances.pre_boot_commands)} if instances.pre_boot_commands else {}),
        **({"drain": drain_minutes(instances)} if drain_minutes(instances) else {}),
    }


def steps(instances: Instances, common: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the steps of instances in order.

    Args:
        instances: whose.
        common: steps of masters and nodes alike, `settings` first and `services` last.
        own: steps of the role.
    """
    (first, settle), *others = common.items()
    found = {first: settle}
    if drain_minutes(instances):
        # As early as can be: an instance that fails later can then be let go at once.
        found["draining"] = "drain.start"
    if instances.files or instances.units:
        found["further files"] = "hooks.files"
    if instances.instance_storage != "none":
        found["instance storage"] = "disks.disks"
    found.update(others)
    if instances.units:
        found["further units"] = "hooks.units"
    return {**found, **own}


def last(instances: Instances, steps: Mapping[str, str]) -> dict[str, str]:
    """Return steps with those that come after everything else."""
    return {**steps, **({"post-boot commands": "hooks.after"} if instances.post_boot_commands else {})}


def tasks(instances: Instances) -> dict[str, dict[str, str]]:
    """Return what further units of these instances run."""
    return {"drain": {"drain": "drain.watch"}} if drain_minutes(instances) else {}


def drain_minutes(instances: Instances) -> int:
    """Return how long pods get to move when an instance is terminated; 0 if it is not drained, as masters are not."""
    return instances.drain_timeout if isinstance(instances, NodeGroup) else 0


def kubelet(cluster: Cluster, instances: Instances) -> dict[str, Any]:
    """Return the kubelet's settings of these instances: the group's over the cluster's over cfngen's."""
    return merge(kubeadm.kubelet(cluster), instances.kubelet_configuration)


def files(cluster: Cluster, instances: Instances) -> dict[str, str]:
    """Return the files that follow from what the cluster file says of these instances, by path."""
    return {
        "/etc/containerd/config.toml": containerd.configuration(instances, pod_network.containerd(cluster)),
        **containerd.mirrors(instances),
        **_shutdown(kubelet(cluster, instances)),
        **({f"{UNITS}/cfngen-drain.service": DRAIN_UNIT} if drain_minutes(instances) else {}),
    }


def _shutdown(kubelet: Mapping[str, Any]) -> dict[str, str]:
    """Return the setting that lets the kubelet delay a shutdown for as long as its pods may take.

    The kubelet writes such a file itself, 99-kubelet.conf, but the last name counts and Debian's and Ubuntu's
    unattended-upgrades has one that begins with a letter (kubernetes/kubernetes#102818).
    """
    seconds = duration(str(kubelet.get("shutdownGracePeriod", "0s")))
    if not seconds:
        return {}
    return {"/etc/systemd/logind.conf.d/zz-cfngen.conf": text_of("[Login]", f"InhibitDelayMaxSec={seconds}")}


def duration(text: str) -> int:
    """Return the seconds of a duration as Kubernetes writes it, e.g. `1m30s`, rounded up; 0 if it is none."""
    parts = re.findall(r"([0-9]*\.?[0-9]+)(ms|[hms])", text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return int(-(-seconds // 1))


# Not tied to the boot program's own unit: an instance whose boot failed is let go at once as well.
DRAIN_UNIT = text_of(
    "[Unit]",
    "Description=Moves pods elsewhere before this instance is terminated",
    "Wants=network-online.target",
    "After=network-online.target",
    "",
    "[Service]",
    "WorkingDirectory=/opt/cfngen",
    "ExecStart=/usr/bin/python3 -m boot drain",
    "Restart=on-failure",
    "RestartSec=10",
    "StandardOutput=journal+console",
    "",
    "[Install]",
    "WantedBy=multi-user.target",
)
