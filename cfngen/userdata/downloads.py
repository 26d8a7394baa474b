"""What instances download: the files of the catalogue, the charts of add-ons, and registries of images.

Instances without a way to the internet need files and charts from `assets.mirror`, and images from mirrors of the
registries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from cfngen.cluster.instances.instance_types import architecture
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.topology import is_private
from cfngen.cluster.sections.instances import Instances
from cfngen.cluster.sections.services import Assets
from cfngen.releases import (
    CLOUD_CONTROLLER_MANAGER_IMAGE,
    PAUSE_IMAGE,
    POD_IDENTITY_WEBHOOK_IMAGE,
    Asset,
    master_tools,
    release,
)
from cfngen.userdata import addons

# kubeadm's default of ClusterConfiguration.imageRepository (kubeadm API v1beta4).
_DEFAULT_IMAGE_REPOSITORY = "registry.k8s.io"


@dataclass(frozen=True)
class Downloads:
    """What the instances of a cluster download.

    Attributes:
        mirror: URL of the mirror of files and charts, `assets.mirror`, which serves `https://<host>/<path>` as
            `<mirror>/<host>/<path>`; empty if the cluster has none.
        files: the publishers' URLs of programs and archives, for each architecture in use.
        charts: the publishers' URLs of the charts of the network plug-in and of add-ons.
        registries: the registries of the images of the control plane and of pods' sandboxes. The images of charts come
            from further ones, which the charts' values name.
    """

    mirror: str
    files: tuple[str, ...]
    charts: tuple[str, ...]
    registries: tuple[str, ...]


def of_cluster(cluster: Cluster) -> Downloads:
    """Return what the instances of a cluster download, with the publishers' URLs, also if the cluster has a mirror."""
    unmirrored = cluster.model_copy(update={"assets": Assets()})
    assets = list(master_downloads(cluster))
    for group in (cluster.control_plane, *cluster.node_groups):
        assets += instance_downloads(cluster, group)
    charts = [described["chart"]["url"] for described in addons.releases(unmirrored)]
    return Downloads(
        mirror=(cluster.assets.mirror or "").rstrip("/"),
        files=tuple(sorted({asset.url for asset in assets})),
        charts=tuple(sorted(set(charts))),
        registries=tuple(sorted(set(_registries(cluster)))),
    )


def without_internet(cluster: Cluster) -> Downloads | None:
    """Return what mirrors must serve, or None for a cluster whose instances have a way to the internet."""
    return of_cluster(cluster) if is_private(cluster) and cluster.network.nat == "none" else None


def instance_downloads(cluster: Cluster, group: Instances) -> tuple[Asset, ...]:
    """Return the files that every instance of a group downloads: containerd and Kubernetes' programs."""
    return release(cluster.kubernetes_version, architecture(group.instance_type)).assets


def master_downloads(cluster: Cluster) -> tuple[Asset, ...]:
    """Return the files that only masters download: Helm and etcd's tools."""
    return master_tools(architecture(cluster.control_plane.instance_type))


def _registries(cluster: Cluster) -> Iterator[str]:
    """Yield the registry of each image that instances pull without a chart."""
    repository = cluster.kubernetes.cluster_configuration.get("imageRepository", _DEFAULT_IMAGE_REPOSITORY)
    webhook_images = [POD_IDENTITY_WEBHOOK_IMAGE] if cluster.addons.pod_identity_webhook.enabled else []
    for image in (PAUSE_IMAGE, CLOUD_CONTROLLER_MANAGER_IMAGE, str(repository), *webhook_images):
        yield urlsplit(f"//{image}").netloc
