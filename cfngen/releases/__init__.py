"""The catalogue of the programs that instances install: compatible versions, URLs and SHA-256 digests.

`catalogue.json` has the published digests, and under `sources` where they were found (`sources.json`). Nothing here
uses the network: a version that is not in the catalogue cannot be installed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from cfngen.errors import CfngenError

# containerd 2.3.0 to 2.3.3 cannot pull a sandbox image pinned by digest (containerd#13529).
CONTAINERD_VERSION = "v2.3.4"
RUNC_VERSION = "v1.4.3"
ECR_CREDENTIAL_PROVIDER_VERSION = "v1.31.7"
# Helm 3 gets no more fixes since November 2026.
HELM_VERSION = "v4.2.4"
# etcdctl and etcdutl; kubeadm pairs every minor here with an etcd 3.6, whose snapshots they read and write.
ETCD_VERSION = "v3.6.14"
# The CNI plugins that kops pairs with each minor.
CNI_PLUGIN_VERSIONS = {"1.34": "v1.7.1", "1.35": "v1.8.0", "1.36": "v1.9.1"}
# Route reconciliation is broken in v1.34.0-3, v1.35.0-2 and v1.36.0 (kubernetes/cloud-provider-aws#1351); v1.36.1 is
# the first good one and serves every minor here.
CLOUD_CONTROLLER_MANAGER_IMAGE = "registry.k8s.io/provider-aws/cloud-controller-manager:v1.36.1"
PAUSE_IMAGE = "registry.k8s.io/pause:3.10.1"


class UnknownReleaseError(CfngenError):
    """A Kubernetes version that is not in the catalogue."""

    code = "unknown-kubernetes-version"

    def __init__(self, version: str) -> None:
        available = ", ".join(f"{minor} ({', '.join(patches)})" for minor, patches in patches_by_minor().items())
        super().__init__(f"Kubernetes {version} is not in the catalogue; it holds {available}")
        self.version = version


@dataclass(frozen=True)
class Asset:
    """One file that an instance downloads.

    Attributes:
        name: its name in the boot program, e.g. `kubelet` or `containerd`.
        url: its URL at the publisher.
        sha256: its published digest, 64 hexadecimal digits.
    """

    name: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Release:
    """One Kubernetes version with everything an instance needs to run it.

    Attributes:
        version: exact version without a leading v, e.g. `1.36.3`.
        assets: the files to download, for one architecture.
    """

    version: str
    assets: tuple[Asset, ...]

    @property
    def minor(self) -> str:
        """The minor version, e.g. `1.36`."""
        return self.version.rpartition(".")[0]


@cache
def _components() -> dict[str, Any]:
    text = resources.files(__name__).joinpath("catalogue.json").read_text(encoding="utf-8")
    components: dict[str, Any] = json.loads(text)["components"]
    return components


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.lstrip("v").split("."))


@cache
def patches_by_minor() -> dict[str, tuple[str, ...]]:
    """Return the patch versions of each minor, oldest first, e.g. `{"1.36": ("1.36.2", "1.36.3")}`."""
    patches_by_minor: dict[str, list[str]] = {}
    for version in sorted((key.lstrip("v") for key in _components()["kubernetes"]["versions"]), key=_version_key):
        patches_by_minor.setdefault(version.rpartition(".")[0], []).append(version)
    return {minor: tuple(patches) for minor, patches in patches_by_minor.items()}


def exact_version(version: str) -> str:
    """Return the exact version for `version`: for a minor, its newest patch.

    Args:
        version: `1.36`, `v1.36` or an exact version such as `1.36.3`.

    Raises:
        UnknownReleaseError: the catalogue does not have it.
    """
    requested = version.removeprefix("v")
    if requested in patches_by_minor():
        return patches_by_minor()[requested][-1]
    if requested in patches_by_minor().get(requested.rpartition(".")[0], ()):
        return requested
    raise UnknownReleaseError(version)


@cache
def release(version: str, architecture: str) -> Release:
    """Return what an instance needs to run a Kubernetes version.

    Args:
        version: a version that `exact_version` accepts.
        architecture: `amd64` or `arm64`.

    Raises:
        UnknownReleaseError: the catalogue does not hold the version.
    """
    exact = exact_version(version)
    minor = exact.rpartition(".")[0]
    assets: list[Asset] = []
    components = (
        ("kubernetes", f"v{exact}", {f"/{name}": name for name in ("kubelet", "kubeadm", "kubectl")}),
        ("containerd", CONTAINERD_VERSION, {"containerd-": "containerd"}),
        ("runc", RUNC_VERSION, {"runc.": "runc"}),
        ("cni-plugins", CNI_PLUGIN_VERSIONS[minor], {"cni-plugins-": "cni-plugins"}),
        (
            "ecr-credential-provider",
            ECR_CREDENTIAL_PROVIDER_VERSION,
            {"ecr-credential-provider-": "ecr-credential-provider"},
        ),
    )
    for component, component_version, names in components:
        entry = _components()[component]
        for path, sha256 in entry["versions"][component_version].items():
            for part, name in names.items():
                if architecture in path and part in path:
                    assets.append(Asset(name, entry["base"] + path, sha256))
    return Release(exact, tuple(assets))


@cache
def master_tools(architecture: str) -> tuple[Asset, ...]:
    """Return further files for masters: `helm` for add-ons, `etcd` (an archive with etcdctl and etcdutl) for backups.

    Args:
        architecture: `amd64` or `arm64`.
    """
    return tuple(
        Asset(component, _components()[component]["base"] + path, sha256)
        for component, version in (("helm", HELM_VERSION), ("etcd", ETCD_VERSION))
        for path, sha256 in _components()[component]["versions"][version].items()
        if architecture in path
    )
