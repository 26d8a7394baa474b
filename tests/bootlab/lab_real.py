"""Real programs of Kubernetes in the place of stand-ins, where the folder KUBERNETES_BINARIES holds them.

A folder for each version, as the catalogue spells it, with files by their names there; and an OCI image layout with
what static pods and add-ons run:

    v1.36.3/kubeadm  v1.36.3/kubelet  v1.36.3/kubectl      v1.36.2/…
    v2.3.4/containerd-2.3.4-linux-amd64.tar.gz  v1.4.3/runc.amd64  v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz
    v3.6.14/etcd-v3.6.14-linux-amd64.tar.gz  v4.2.4/helm-v4.2.4-linux-amd64.tar.gz
    images/oci-layout  images/index.json  images/blobs/sha256/…

What the settings here change is the machine's fault and not an instance's: a container on a machine with control groups
of version 1 can neither have those of version 2 nor write the kernel's settings. No instance of EC2 is given them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab_network import SERVICES
from lab_registry import PORT, Layout

BINARIES = "KUBERNETES_BINARIES"
PROGRAMS = "/usr/lib/bootlab/programs"
# Only these of kubeadm's commands check the machine, and so know the option.
CHECKING = ("join", "init phase preflight")
WRAPPER = """#!/bin/sh
# kubeadm, to which control groups of version 1 are a warning and no error.
case "$*" in
    {checking}) exec {program} "$@" --ignore-preflight-errors=SystemVerification ;;
esac
exec {program} "$@"
"""
# The kubelet and kube-proxy want to write these, which are the machine's: they write to files of their own instead.
KERNEL = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
    "net/netfilter/nf_conntrack_max": "131072",
}
SCRIPT = "/usr/local/sbin/bootlab-host"
UNIT = "/etc/systemd/system/bootlab-host.service"


def folder() -> Path | None:
    """Return the folder with real programs; None if there is none."""
    named = os.environ.get(BINARIES, "")
    return Path(named) if named and Path(named).is_dir() else None


def program(version: str, name: str) -> Path | None:
    """Return the real file for one of the catalogue, if there is one.

    Args:
        version: as the catalogue spells it, e.g. `v1.36.3`.
        name: its name there, e.g. `kubeadm`.
    """
    top = folder()
    file = top / version / name if top else None
    return file if file and file.is_file() else None


def images() -> Layout | None:
    """Return the images for real containers; None if there are none.

    Raises:
        LayoutError: what is there is no OCI image layout.
    """
    top = folder()
    return Layout(top / "images") if top and (top / "images").is_dir() else None


def old_groups(top: Path = Path("/sys/fs/cgroup")) -> bool:
    """Return whether this machine has control groups of version 1."""
    return not (top / "cgroup.controllers").exists()


def settings(layout: Layout, *, old: bool) -> dict[str, Any]:
    """Return what a cluster file needs besides, for real containers here.

    Args:
        layout: the images.
        old: whether control groups are those of version 1.
    """
    mirrors = {host: [f"http://{SERVICES}:{PORT}"] for host in layout.registries}
    runtime: dict[str, Any] = {}
    kubelet: dict[str, Any] = {}
    if old:
        runc = {"options": {"SystemdCgroup": False}}
        # Here not even root may lower the score by which the kernel chooses whom to end.
        runtime = {"restrict_oom_score_adj": True, "containerd": {"runtimes": {"runc": runc}}}
        kubelet = {"failCgroupV1": False, "cgroupDriver": "cgroupfs"}
    plugins = {"plugins": {"io.containerd.cri.v1.runtime": runtime}} if runtime else {}
    containerd = {"registryMirrors": mirrors, **({"configuration": plugins} if plugins else {})}
    dns = any(each.name.startswith("coredns") for each in layout.tags)
    return {
        "controlPlane": {"containerd": containerd},
        "nodeGroups": [{"containerd": containerd}],
        "kubernetes": {
            **({"kubeletConfiguration": kubelet} if kubelet else {}),
            **({} if dns else {"clusterConfiguration": {"dns": {"disabled": True}}}),
        },
    }


def merged(content: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cluster file with settings laid over it; those of the one node group go to every group."""
    result = dict(content)
    for key, value in more.items():
        before = result.get(key)
        if isinstance(value, Mapping):
            result[key] = merged(before if isinstance(before, Mapping) else {}, value)
        elif key == "nodeGroups" and isinstance(before, list):
            result[key] = [merged(each, value[0]) for each in before]
        else:
            result[key] = value
    return result


def wrapped(version: str) -> bytes:
    """Return what stands before a version's real kubeadm where control groups are those of version 1."""
    checking = "|".join(f'"{each}"|"{each} "*' for each in CHECKING)
    return WRAPPER.format(checking=checking, program=f"{PROGRAMS}/{version}/kubeadm").encode()


def files() -> dict[str, tuple[str, int]]:
    """Return files, with their permissions, that let a real kubelet run in a container with old control groups."""
    lines = ["#!/bin/sh", "# What the kubelet writes, which a container cannot: see lab_real.", "set -eu"]
    lines += ['for each in /sys/fs/cgroup/*/; do mount -o remount,bind,rw "$each" || true; done']
    lines += ["mkdir -p /run/bootlab"]
    for path, value in KERNEL.items():
        copy = f"/run/bootlab/{path.replace('/', '.')}"
        lines.append(f"[ ! -e /proc/sys/{path} ] || {{ echo {value} > {copy}; mount --bind {copy} /proc/sys/{path}; }}")
    unit = (
        "[Unit]\nDescription=The machine's control groups and settings\nDefaultDependencies=no\n"
        "After=local-fs.target\nBefore=sysinit.target\n\n"
        f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={SCRIPT}\n\n[Install]\nWantedBy=sysinit.target\n"
    )
    return {SCRIPT: ("\n".join([*lines, ""]), 0o755), UNIT: (unit, 0o644)}
