"""What masters and nodes have in common: files, kernel settings, downloads, services."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError

from . import kubelet
from .machine import HOME, BootError, Machine, Pending, fill
from .runner import remaining

FILES = HOME + "/files"
SYSCTL = "/etc/sysctl.d/99-cfngen.conf"
# How often a file is asked for that is another one, or that its server does not have: about ten seconds.
MAX_REFUSALS = 5
# What the kubelet talks to in containerd 2, by type and id as `ctr plugins ls` lists them.
CRI_PLUGINS = {
    ("io.containerd.cri.v1", "images"),
    ("io.containerd.cri.v1", "runtime"),
    ("io.containerd.grpc.v1", "cri"),
}
# Answers of HTTP that ask for patience, though they say that the asker is at fault.
RETRYABLE_STATUS = (408, 425, 429)


def settings(machine: Machine, config: dict[str, Any]) -> str:
    """Put the files of /opt/cfngen/files in place, load kernel modules, set kernel parameters, turn swap off."""
    files = {path[len(FILES) :]: fill(machine.read(path), config["facts"]) for path in machine.glob(FILES + "/**/*")}
    changed = [path for path, text in files.items() if machine.write(path, text)]
    # A kernel may have modules built in or refuse a parameter; kubeadm checks the ones that matter.
    machine.run("modprobe", "-a", "overlay", "br_netfilter", expect=(0, 1))
    machine.run("sysctl", "-e", "-p", SYSCTL, expect=(0, 1))
    if len(machine.read("/proc/swaps").splitlines()) > 1:
        machine.run("swapoff", "-a")
        machine.run("systemctl", "mask", "swap.target")
    return f"wrote {len(changed)} of {len(files)} files"


def downloads(machine: Machine, config: dict[str, Any]) -> str:
    """Fetch what is not there with the right digest, four files at a time; unpack archives."""
    seconds = remaining(machine, config)
    with ThreadPoolExecutor(4) as pool:
        fetched = list(pool.map(lambda asset: provide(machine, asset, seconds), config["assets"]))
    return f"fetched {sum(fetched)} of {len(fetched)} files"


def provide(machine: Machine, asset: dict[str, Any], seconds: float) -> bool:
    """See that a file is there with the right digest, and unpacked if it is to be.

    Args:
        machine: the instance.
        asset: its `url` and `sha256`; the `file` it becomes, or the `folder` it is unpacked in, perhaps only `members`
            of it (shell patterns), which leave the archive's uppermost folder behind.
        seconds: how long to try.

    Returns:
        Whether it had to be fetched.

    Raises:
        BootError: it cannot be had, or has another digest.
    """
    url, sha256, folder = asset["url"], asset["sha256"], asset.get("folder")
    path = asset.get("file") or f"{HOME}/downloads/{url.rpartition('/')[2]}"
    is_missing = bool(machine.sha256(path) != sha256)
    if is_missing:
        _download(machine, url, path, sha256, seconds)
    if folder and machine.read(path + ".unpacked") != sha256:
        machine.run("mkdir", "-p", folder)
        members = ["--strip-components=1", "--wildcards", *asset["members"]] if "members" in asset else []
        machine.run("tar", "-xzf", path, "-C", folder, "--no-same-owner", *members)
        machine.write(path + ".unpacked", sha256)
    return is_missing


def _download(machine: Machine, url: str, path: str, sha256: str, seconds: float) -> None:
    """Download a file, again and again while nobody answers.

    Where another file is, or none, a few seconds change nothing: then the boot fails at once, not when its time is up.
    """
    refusals = 0

    def attempt() -> None:
        nonlocal refusals
        try:
            machine.download(url, path, sha256)
        except (BootError, HTTPError) as error:
            if isinstance(error, HTTPError) and (error.code >= 500 or error.code in RETRYABLE_STATUS):
                raise
            refusals += 1
            if refusals < MAX_REFUSALS:
                raise Pending(str(error)) from error
            message = str(error) if url in str(error) else f"{url}: {error}"
            raise BootError(message, "has the server, or assets.mirror, this very file?") from error

    machine.wait("download", attempt, f"can the instance reach {url}?", seconds, (Pending, OSError))


def services(machine: Machine, config: dict[str, Any]) -> str:
    """Start the container runtime and the masquerading of pods; let the kubelet start at later boots."""
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", "--now", *config["services"])
    if not kubelet.established(machine, config):
        # An image may have started them already, with a configuration of its own; containers outlive containerd.
        machine.run("systemctl", "restart", *config["services"])
    hint = "`systemctl status containerd`; `journalctl -u containerd`"
    machine.wait("containerd", lambda: _check_containerd(machine), hint, 60)
    machine.run("systemctl", "enable", "kubelet")
    return ", ".join(config["services"]) + " running"


def _check_containerd(machine: Machine) -> None:
    """Return if containerd serves the kubelet: it runs even where that plug-in could not be loaded.

    Raises:
        Pending: it does not answer yet.
        BootError: a plug-in was not loaded; that does not change by itself.
    """
    code, text = machine.run("ctr", "plugins", "ls", expect=(0, 1))
    if code:
        raise Pending("it does not answer")
    states = {tuple(row[:2]): row[-1] for row in map(str.split, text.splitlines()) if row}
    for kind, name in sorted(CRI_PLUGINS):
        state = states.get((kind, name), "not there")
        if state != "ok":
            _, details = machine.run("ctr", "plugins", "ls", "-d", f"type=={kind},id=={name}", expect=(0, 1))
            match = re.search(r"Message:\s*(.+)", details)
            cause = match[1] if match else "no reason given"
            raise BootError(
                f"containerd runs, but its plug-in {kind}.{name} is {state}: {cause}",
                "is `containerd.configuration` of the cluster file right? `journalctl -u containerd`",
            )
