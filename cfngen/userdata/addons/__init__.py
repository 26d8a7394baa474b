"""The Helm releases of the enabled add-ons, with chart and values.

Each module of this package returns releases for a cluster; the user's values are merged over theirs.
`cfngen.boot.master.addons` installs the releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.services import Addon
from cfngen.userdata.addons import nodes, observation, storage, traffic
from cfngen.userdata.addons.networking import network_plugin_releases
from cfngen.userdata.addons.release import Release, for_boot_program

if TYPE_CHECKING:
    from cfngen.boot import contract


# The add-ons in the order in which they are installed, after the network plug-in. For each, the function that returns
# its release, and the field of `cluster.addons` with its settings.
CATALOGUE = (
    (storage.aws_ebs_csi_driver, "aws_ebs_csi_driver"),
    (observation.metrics_server, "metrics_server"),
    (nodes.cluster_autoscaler, "cluster_autoscaler"),
    (nodes.node_termination_handler, "node_termination_handler"),
    (traffic.cert_manager, "cert_manager"),
    (traffic.aws_load_balancer_controller, "aws_load_balancer_controller"),
    (traffic.external_dns, "external_dns"),
    (observation.headlamp, "headlamp"),
    (observation.fluent_bit, "fluent_bit"),
    (observation.prometheus, "prometheus"),
    (nodes.nvidia_device_plugin, "nvidia_device_plugin"),
)


def releases(cluster: Cluster) -> list[contract.Release]:
    """Return the releases that masters install, in order, as the boot program reads them.

    Those that wait for a node come last, so that they hold up no other.
    """
    releases_with_values = list(network_plugin_releases(cluster))
    for make_release, settings_field in CATALOGUE:
        addon: Addon = getattr(cluster.addons, settings_field)
        if addon.enabled:
            releases_with_values.append((make_release(cluster), addon.values))
    for chart in cluster.addons.charts:
        # The chart's archive is called `<chart>-<version>.tgz`.
        version = chart.url.rpartition("/")[2].removesuffix(".tgz").removeprefix(f"{chart.name}-")
        release = Release(
            name=chart.name, namespace=chart.namespace, version=version, url=chart.url, sha256=chart.sha256
        )
        releases_with_values.append((release, chart.values))
    releases_with_values.sort(key=lambda release_and_values: release_and_values[0].has_pods_as_hooks)
    return [for_boot_program(cluster, release, values) for release, values in releases_with_values]
