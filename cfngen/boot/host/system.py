"""What masters and nodes have in common: files, kernel settings, downloads, services."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.error import HTTPError

from ..machine import HOME, BootError, Machine, Pending
from ..state import fill
from . import kubelet

if TYPE_CHECKING:
    from ..contract import Asset
    from ..state import Boot

# The folder with files to copy: below it each file has the path that it gets on the instance.
FILES_FOLDER = HOME + "/files"
SYSCTL_FILE = "/etc/sysctl.d/99-cfngen.conf"
# The most attempts at a download that ends with a wrong digest, or a 4xx status other than RETRIED_CLIENT_ERRORS. With
# the pauses between them they take about ten seconds.
MAX_REJECTED_DOWNLOADS = 5
# The plug-ins of containerd 2 that the kubelet needs, by type and id as in `ctr plugins ls`.
CRI_PLUGINS = {
    ("io.containerd.cri.v1", "images"),
    ("io.containerd.cri.v1", "runtime"),
    ("io.containerd.grpc.v1", "cri"),
}
# 4xx status codes that are retried until the time-out: Request Timeout, Too Early, Too Many Requests.
RETRIED_CLIENT_ERRORS = (408, 425, 429)


def settings(machine: Machine, boot: Boot) -> str:
    """Copy the files below /opt/cfngen/files to /, load kernel modules, set kernel parameters, turn swap off."""
    files = {
        path[len(FILES_FOLDER) :]: fill(machine.read(path), boot.facts) for path in machine.glob(FILES_FOLDER + "/**/*")
    }
    changed_paths = [path for path, text in files.items() if machine.write(path, text)]
    # Errors are ignored: modules may be built in, parameters unknown; kubeadm checks those that matter.
    machine.run("modprobe", "-a", "overlay", "br_netfilter", expect=(0, 1))
    machine.run("sysctl", "-e", "-p", SYSCTL_FILE, expect=(0, 1))
    if len(machine.read("/proc/swaps").splitlines()) > 1:
        machine.run("swapoff", "-a")
        machine.run("systemctl", "mask", "swap.target")
    return f"wrote {len(changed_paths)} of {len(files)} files"


def downloads(machine: Machine, boot: Boot) -> str:
    """Download files that are missing or have another digest, four at a time; unpack archives."""
    seconds = boot.remaining(machine)
    with ThreadPoolExecutor(4) as pool:
        fetched = list(pool.map(lambda asset: provide_asset(machine, asset, seconds), boot.config["assets"]))
    return f"fetched {sum(fetched)} of {len(fetched)} files"


def provide_asset(machine: Machine, asset: Asset, seconds: float) -> bool:
    """Download a file unless it exists with the right digest, and unpack it if it is an archive.

    Args:
        asset: `url` and `sha256`, and either the `file` to write, or the `folder` to unpack the archive in. If it has
            `members` (shell patterns), only the matching files are unpacked, without the archive's top-level folder.

    Returns:
        Whether the file had to be downloaded.
    """
    url, sha256, folder = asset["url"], asset["sha256"], asset.get("folder")
    path = asset.get("file") or f"{HOME}/downloads/{url.rpartition('/')[2]}"
    needs_download = bool(machine.sha256(path) != sha256)
    if needs_download:
        _download(machine, url, path, sha256, seconds)
    if folder and machine.read(path + ".unpacked") != sha256:
        machine.run("mkdir", "-p", folder)
        selection = ["--strip-components=1", "--wildcards", *asset["members"]] if "members" in asset else []
        machine.run("tar", "-xzf", path, "-C", folder, "--no-same-owner", *selection)
        machine.write(path + ".unpacked", sha256)
    return needs_download


def _download(machine: Machine, url: str, path: str, sha256: str, seconds: float) -> None:
    """Download a file, and retry while the server does not answer.

    If the digest is wrong or the server does not have the file, this fails after MAX_REJECTED_DOWNLOADS attempts,
    without waiting for the time-out: more attempts would not help.

    Args:
        path: where to write the file.
    """
    rejections = 0

    def download_once() -> None:
        nonlocal rejections
        try:
            machine.download(url, path, sha256)
        except (BootError, HTTPError) as error:
            if isinstance(error, HTTPError) and (error.code >= 500 or error.code in RETRIED_CLIENT_ERRORS):
                raise
            rejections += 1
            if rejections < MAX_REJECTED_DOWNLOADS:
                raise Pending(str(error)) from error
            message = str(error) if url in str(error) else f"{url}: {error}"
            raise BootError(message, "check that the server, or assets.mirror, has exactly this file") from error

    hint = f"check that the instance can reach {url}"
    machine.wait("download", download_once, hint=hint, seconds=seconds, retry_on=(Pending, OSError))


def services(machine: Machine, boot: Boot) -> str:
    """Start containerd and the masquerading of pods' traffic; enable the kubelet for later boots."""
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", "--now", *boot.config["services"])
    if not kubelet.is_set_up(machine, boot):
        # The AMI may have started these services already, with another configuration. Containers survive the restart.
        machine.run("systemctl", "restart", *boot.config["services"])
    hint = "`systemctl status containerd`; `journalctl -u containerd`"
    machine.wait("containerd", lambda: _check_containerd(machine), hint, seconds=60)
    machine.run("systemctl", "enable", "kubelet")
    return ", ".join(boot.config["services"]) + " running"


def _check_containerd(machine: Machine) -> None:
    """Check that containerd has loaded its CRI plug-ins, since containerd also runs without them."""
    code, text = machine.run("ctr", "plugins", "ls", expect=(0, 1))
    if code:
        raise Pending("it does not answer")
    rows = [line.split() for line in text.splitlines()]
    states = {tuple(row[:2]): row[-1] for row in rows if row}
    for plugin_type, plugin_id in sorted(CRI_PLUGINS):
        state = states.get((plugin_type, plugin_id), "missing")
        if state != "ok":
            plugin_filter = f"type=={plugin_type},id=={plugin_id}"
            _, details = machine.run("ctr", "plugins", "ls", "-d", plugin_filter, expect=(0, 1))
            match = re.search(r"Message:\s*(.+)", details)
            cause = match[1] if match else "no reason given"
            raise BootError(
                f"containerd runs, but its plug-in {plugin_type}.{plugin_id} is {state}: {cause}",
                "check `containerd.configuration` in the cluster file; `journalctl -u containerd`",
            )
