"""The catalogue of the programs that instances install: compatible versions, URLs and SHA-256 digests.

`catalogue.json` contains the published digests. Its `sources` say where they were found; `sources.json` describes these
sources. Nothing here uses the network: a version that is not in the catalogue cannot be installed.
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
# Version of etcdctl and etcdutl, which read and write etcd's snapshots. kubeadm installs etcd 3.6 for every Kubernetes
# version of this catalogue.
ETCD_VERSION = "v3.6.14"
# The CNI plugins that kops installs with each minor version of Kubernetes.
CNI_PLUGIN_VERSIONS = {"1.34": "v1.7.1", "1.35": "v1.8.0", "1.36": "v1.9.1"}
# The cloud controller manager writes no correct routes in v1.34.0-3, v1.35.0-2 and v1.36.0
# (kubernetes/cloud-provider-aws#1351). v1.36.1 does, and works with every Kubernetes version of this catalogue.
CLOUD_CONTROLLER_MANAGER_IMAGE = "registry.k8s.io/provider-aws/cloud-controller-manager:v1.36.1"
PAUSE_IMAGE = "registry.k8s.io/pause:3.10.1"
# The newest tag of aws/amazon-eks-pod-identity-webhook. AWS publishes the image in this gallery (the repository's
# README.md, "Container Images"), for amd64 and arm64, and no digests of it.
POD_IDENTITY_WEBHOOK_IMAGE = "public.ecr.aws/eks/amazon-eks-pod-identity-webhook:v0.6.17"


class UnknownReleaseError(CfngenError):
    """A requested Kubernetes version is not in the catalogue."""

    code = "unknown-kubernetes-version"

    def __init__(self, version: str) -> None:
        available = ", ".join(f"{minor} ({', '.join(patches)})" for minor, patches in patches_by_minor().items())
        super().__init__(f"Kubernetes {version} is not in the catalogue; it holds {available}")
        self.version = version


@dataclass(frozen=True)
class Asset:
    """One file that an instance downloads, a program or an archive.

    Attributes:
        name: the file's name in the boot program, e.g. `kubelet` or `containerd`.
        url: the publisher's URL of the file.
        sha256: the file's published digest, 64 hexadecimal digits.
    """

    name: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Release:
    """One Kubernetes version, with the files that an instance needs to run it.

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
    """Return the components in `catalogue.json` by name; each has `base` (a URL), `sources` and `versions`."""
    text = resources.files(__name__).joinpath("catalogue.json").read_text(encoding="utf-8")
    components: dict[str, Any] = json.loads(text)["components"]
    return components


def _version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, e.g. (1, 36, 3), as a sort key."""
    return tuple(int(part) for part in version.lstrip("v").split("."))


@cache
def patches_by_minor() -> dict[str, tuple[str, ...]]:
    """Return the patch versions of each minor, oldest first, e.g. `{"1.36": ("1.36.2", "1.36.3")}`."""
    patch_lists: dict[str, list[str]] = {}
    for version in sorted((key.lstrip("v") for key in _components()["kubernetes"]["versions"]), key=_version_numbers):
        patch_lists.setdefault(version.rpartition(".")[0], []).append(version)
    return {minor: tuple(patches) for minor, patches in patch_lists.items()}


def exact_version(version: str) -> str:
    """Return the exact Kubernetes version that a version stands for: a minor version stands for its newest patch.

    Args:
        version: `1.36`, `v1.36` or an exact version such as `1.36.3`.

    Raises:
        UnknownReleaseError: the version is not in the catalogue.
    """
    requested = version.removeprefix("v")
    if requested in patches_by_minor():
        return patches_by_minor()[requested][-1]
    if requested in patches_by_minor().get(requested.rpartition(".")[0], ()):
        return requested
    raise UnknownReleaseError(version)


@cache
def release(version: str, architecture: str) -> Release:
    """Return the files that an instance needs to run a Kubernetes version.

    Args:
        version: a version that `exact_version` accepts.
        architecture: `amd64` or `arm64`.

    Raises:
        UnknownReleaseError: the version is not in the catalogue.
    """
    exact_kubernetes_version = exact_version(version)
    minor = exact_kubernetes_version.rpartition(".")[0]
    assets: list[Asset] = []
    # For each component: its name in the catalogue, its version, and names of its assets by a part of their paths.
    components = (
        (
            "kubernetes",
            f"v{exact_kubernetes_version}",
            {f"/{name}": name for name in ("kubelet", "kubeadm", "kubectl")},
        ),
        ("containerd", CONTAINERD_VERSION, {"containerd-": "containerd"}),
        ("runc", RUNC_VERSION, {"runc.": "runc"}),
        ("cni-plugins", CNI_PLUGIN_VERSIONS[minor], {"cni-plugins-": "cni-plugins"}),
        (
            "ecr-credential-provider",
            ECR_CREDENTIAL_PROVIDER_VERSION,
            {"ecr-credential-provider-": "ecr-credential-provider"},
        ),
    )
    for component, component_version, name_by_path_part in components:
        catalogue_entry = _components()[component]
        for path, sha256 in catalogue_entry["versions"][component_version].items():
            for path_part, name in name_by_path_part.items():
                if architecture in path and path_part in path:
                    assets.append(Asset(name, url=catalogue_entry["base"] + path, sha256=sha256))
    return Release(exact_kubernetes_version, tuple(assets))


@cache
def master_tools(architecture: str) -> tuple[Asset, ...]:
    """Return the files that only masters need: `helm` for add-ons, `etcd` (with etcdctl and etcdutl) for snapshots.

    Args:
        architecture: `amd64` or `arm64`.
    """
    return tuple(
        Asset(component, url=_components()[component]["base"] + path, sha256=sha256)
        for component, version in (("helm", HELM_VERSION), ("etcd", ETCD_VERSION))
        for path, sha256 in _components()[component]["versions"][version].items()
        if architecture in path
    )


@dataclass(frozen=True)
class KindImage:
    """The image of kind's nodes for a minor version of Kubernetes.

    Attributes:
        reference: the image with its digest, e.g. `kindest/node:v1.36.4@sha256:…`.
        kubernetes_version: exact version that it runs; its patch may differ from the cluster's.
        kind_version: the release of kind that the image was published with; older ones may not start it.
    """

    reference: str
    kubernetes_version: str
    kind_version: str


def kind_image(version: str) -> KindImage:
    """Return the image of kind's nodes for a Kubernetes version that `exact_version` accepts.

    Raises:
        UnknownReleaseError: the version is not in the catalogue.
    """
    catalogue: dict[str, Any] = json.loads(resources.files(__name__).joinpath("kind.json").read_text(encoding="utf-8"))
    reference = catalogue["nodeImages"][exact_version(version).rpartition(".")[0]]
    return KindImage(reference, reference.partition(":v")[2].partition("@")[0], catalogue["kind"])
