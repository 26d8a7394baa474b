"""A Helm release as data, and the values and patches that several releases share."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.releases.charts import chart
from cfngen.userdata.deep_merge import merge
from cfngen.userdata.mirror import mirrored

if TYPE_CHECKING:
    from cfngen.boot import contract
    from cfngen.boot.contract import JsonObject

CHARTS_FOLDER = "/opt/cfngen/charts"
MASTER_LABEL = "node-role.kubernetes.io/control-plane"
# A Deployment's update strategy. Pods with hostNetwork occupy the host's ports, so the old pod must be deleted before
# the new one can start.
DELETE_OLD_POD_FIRST = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


@dataclass(frozen=True)
class Release:
    """A Helm release.

    Attributes:
        version: the chart's version, which masters record for operators.
        url: URL of the chart's archive at its origin.
        values: cfngen's values for the chart; the user's values are merged over them.
        patches: partial Kubernetes objects applied over the chart's, for fields without a chart value.
        essential: whether a master counts as working only once it is installed.
        has_pods_as_hooks: whether Helm waits for pods when it installs the chart, and so for a node that runs them.
    """

    name: str
    namespace: str
    version: str
    url: str
    sha256: str
    values: JsonObject = field(default_factory=dict)
    patches: tuple[JsonObject, ...] = ()
    essential: bool = False
    has_pods_as_hooks: bool = False


def release_of_chart(
    cluster: Cluster,
    chart_name: str,
    values: JsonObject,
    *,
    name: str = "",
    namespace: str = "kube-system",
    patches: tuple[JsonObject, ...] = (),
    essential: bool = False,
    has_pods_as_hooks: bool = False,
) -> Release:
    """Return the release of a chart of the catalogue `cfngen.releases.charts`; by default it has the chart's name.

    Raises:
        UnknownChartError: the catalogue has no such chart for the cluster's Kubernetes version.
    """
    pinned = chart(chart_name, cluster.kubernetes_version)
    return Release(
        name or chart_name,
        namespace,
        pinned.version,
        pinned.url,
        pinned.sha256,
        values,
        patches=patches,
        essential=essential,
        has_pods_as_hooks=has_pods_as_hooks,
    )


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
        # The braces are escaped, so that the boot program replaces no `${…}` by a master's facts: all masters must
        # have the same values.
        "values": json.dumps(merge(release.values, values), sort_keys=True).replace("${", "$\\u007b"),
        "patches": [dict(patch) for patch in release.patches],
    }


def on_masters() -> JsonObject:
    """Return the values, common to most charts, that put an add-on's pods on masters only.

    Add-ons that call AWS run on masters with the host's network, for two reasons. Only processes in the host's network
    get the credentials of the instance's role (the metadata service's hop limit is 1). And only the masters' role may
    do what these add-ons do. Add-ons with roles of their own need neither (`near_masters`).
    """
    return {
        "nodeSelector": {MASTER_LABEL: ""},
        "tolerations": [{"key": MASTER_LABEL, "operator": "Exists", "effect": "NoSchedule"}],
    }


def near_masters() -> JsonObject:
    """Return the values, common to most charts, that put the pods of an add-on with a role on masters or nodes.

    Masters are preferred, where they run while there is no node: cluster-autoscaler would otherwise never create one,
    and does not remove a node that runs a pod of kube-system.
    """
    is_master = {"matchExpressions": [{"key": MASTER_LABEL, "operator": "Exists"}]}
    preferences = [{"weight": 100, "preference": is_master}]
    return {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferences}},
        "tolerations": on_masters()["tolerations"],
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
    """Return how many pods an add-on on masters has: two, or one if the cluster has only one master."""
    return min(2, cluster.control_plane.count)
