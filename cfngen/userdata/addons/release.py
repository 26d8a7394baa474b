"""A Helm release as data, and what several of them share: running on masters."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.releases.charts import PinnedChart, chart
from cfngen.userdata.deep_merge import merge
from cfngen.userdata.mirror import mirrored

if TYPE_CHECKING:
    from cfngen.boot import contract
    from cfngen.boot.contract import JsonObject

CHARTS_FOLDER = "/opt/cfngen/charts"
MASTER_LABEL = "node-role.kubernetes.io/control-plane"
# Pods with hostNetwork occupy the host's ports: the old pod must be deleted before the new one can start.
DELETE_OLD_POD_FIRST = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


@dataclass(frozen=True)
class Release:
    """A Helm release.

    Attributes:
        name: its name.
        namespace: its namespace, created if it does not exist.
        version: the chart's version, for people.
        url: address of the chart's archive at its origin.
        sha256: the archive's digest.
        values: cfngen's values.
        patches: partial Kubernetes objects applied over those of the chart, for fields without a chart value.
        essential: whether a master counts as working only once it is installed.
    """

    name: str
    namespace: str
    version: str
    url: str
    sha256: str
    values: JsonObject = field(default_factory=dict)
    patches: tuple[JsonObject, ...] = ()
    essential: bool = False


def release_of_chart(
    pinned: PinnedChart,
    name: str,
    namespace: str,
    values: JsonObject,
    *,
    patches: tuple[JsonObject, ...] = (),
    essential: bool = False,
) -> Release:
    """Return the release of a chart of the catalogue.

    Args:
        pinned: the chart.
        name: name of the release.
        namespace: its namespace.
        values: cfngen's values.
        patches: partial Kubernetes objects applied over those of the chart.
        essential: whether a master counts as working only once it is installed.
    """
    return Release(name, namespace, pinned.version, pinned.url, pinned.sha256, values, patches, essential)


def pinned_chart(cluster: Cluster, name: str) -> PinnedChart:
    """Return the catalogue's chart for the cluster's Kubernetes version.

    Raises:
        UnknownChartError: the catalogue has none.
    """
    return chart(name, cluster.kubernetes_version)


def for_boot_program(cluster: Cluster, release: Release, values: JsonObject) -> contract.Release:
    """Return a release as the boot program reads it, with the user's values merged over cfngen's."""
    return {
        "name": release.name,
        "namespace": release.namespace,
        "version": release.version,
        "essential": release.essential,
        "chart": {
            "url": mirrored(cluster, release.url),
            "sha256": release.sha256,
            "file": f"{CHARTS_FOLDER}/{release.name}-{release.sha256[:12]}.tgz",
        },
        # As text with escaped braces, so that no facts are filled in: all masters must have the same values.
        "values": json.dumps(merge(release.values, values), sort_keys=True).replace("${", "$\\u007b"),
        "patches": [dict(patch) for patch in release.patches],
    }


def on_masters() -> JsonObject:
    """Return the values that most charts have for placing pods: on masters only.

    Add-ons that call AWS run there with the host's network: an instance's role answers only processes that have it
    (the metadata service's hop limit is 1), and only the masters' role may do what these add-ons do.
    """
    return {
        "nodeSelector": {MASTER_LABEL: ""},
        "tolerations": [{"key": MASTER_LABEL, "operator": "Exists", "effect": "NoSchedule"}],
    }


def host_network_patch(namespace: str, deployment: str) -> JsonObject:
    """Return the patch that gives a Deployment's pods the host's network and resolver."""
    pod = {"hostNetwork": True, "dnsPolicy": "Default"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": deployment, "namespace": namespace},
        "spec": {"template": {"spec": pod}},
    }


def replica_count(cluster: Cluster) -> int:
    """Return how many pods an add-on on masters has: a second one where there is a second master."""
    return min(2, cluster.control_plane.count)
