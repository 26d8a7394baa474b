"""Turns an instance group's settings of the cluster file into boot configuration, steps and files.

These are kubelet, containerd, files, units, commands and draining; masters and nodes have the same, except that only
nodes are drained.
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

_SECONDS_PER_UNIT = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def settings(cluster: Cluster, instances: Instances) -> dict[str, Any]:
    """Return these instances' part of the configuration."""
    hooks = {
        "files": [file.model_dump() for file in instances.files],
        "units": [unit.model_dump() for unit in instances.units],
        "after": list(instances.post_boot_commands),
    }
    return {
        "kubeletPatch": kubelet(cluster, instances),
        **({"hooks": hooks} if any(hooks.values()) else {}),
        **({"before": list(instances.pre_boot_commands)} if instances.pre_boot_commands else {}),
        **({"drain": drain_minutes(instances)} if drain_minutes(instances) else {}),
    }


def steps(instances: Instances, common_steps: Mapping[str, str], role_steps: Mapping[str, str]) -> dict[str, str]:
    """Return the steps of instances in order.

    Args:
        instances: the instances.
        common_steps: the steps of masters and nodes alike, `settings` first and `services` last.
        role_steps: the steps of the role.
    """
    (first_title, first_step), *remaining = common_steps.items()
    ordered = {first_title: first_step}
    if drain_minutes(instances):
        # As early as possible, so that the service can complete the lifecycle action if a later step fails.
        ordered["draining"] = "drain.start"
    if instances.files or instances.units:
        ordered["further files"] = "hooks.files"
    if instances.instance_storage != "none":
        ordered["instance storage"] = "disks.disks"
    ordered.update(remaining)
    if instances.units:
        ordered["further units"] = "hooks.units"
    return {**ordered, **role_steps}


def last(instances: Instances, steps: Mapping[str, str]) -> dict[str, str]:
    """Return the steps with the post-boot commands as the last one, if there are any."""
    return {**steps, **({"post-boot commands": "hooks.after"} if instances.post_boot_commands else {})}


def tasks(instances: Instances) -> dict[str, dict[str, str]]:
    """Return the tasks of the boot program that units of these instances run, besides timers."""
    return {"drain": {"drain": "drain.watch"}} if drain_minutes(instances) else {}


def drain_minutes(instances: Instances) -> int:
    """Return the time-out for draining an instance before its termination; 0 if it is not drained, like masters."""
    return instances.drain_timeout if isinstance(instances, NodeGroup) else 0


def kubelet(cluster: Cluster, instances: Instances) -> dict[str, Any]:
    """Return the kubelet's settings of these instances: the group's over the cluster's over cfngen's."""
    return merge(kubeadm.kubelet(cluster), instances.kubelet_configuration)


def files(cluster: Cluster, instances: Instances) -> dict[str, str]:
    """Return the files that follow from what the cluster file says of these instances, by path."""
    return {
        "/etc/containerd/config.toml": containerd.configuration(instances, pod_network.containerd(cluster)),
        **containerd.mirrors(instances),
        **_inhibit_delay_file(kubelet(cluster, instances)),
        **({f"{UNITS}/cfngen-drain.service": DRAIN_UNIT} if drain_minutes(instances) else {}),
    }


def _inhibit_delay_file(kubelet: Mapping[str, Any]) -> dict[str, str]:
    """Return the logind setting that lets the kubelet delay a shutdown by its `shutdownGracePeriod`.

    The kubelet writes 99-kubelet.conf itself, but the file whose name sorts last wins, and unattended-upgrades of
    Debian and Ubuntu has one that begins with a letter (kubernetes/kubernetes#102818).
    """
    seconds = duration(str(kubelet.get("shutdownGracePeriod", "0s")))
    if not seconds:
        return {}
    return {"/etc/systemd/logind.conf.d/zz-cfngen.conf": text_of("[Login]", f"InhibitDelayMaxSec={seconds}")}


def duration(text: str) -> int:
    """Return the seconds of a duration as Kubernetes writes it, e.g. `1m30s`, rounded up; 0 if it is none."""
    parts = re.findall(r"([0-9]*\.?[0-9]+)(ms|[hms])", text)
    seconds = sum(float(number) * _SECONDS_PER_UNIT[unit] for number, unit in parts)
    return int(-(-seconds // 1))


# Does not depend on the boot program's unit: if the boot failed, the lifecycle action is still completed at once.
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
