"""Checks of add-ons: required values, names of Helm releases, ports."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.addon_ports import LISTENERS
from cfngen.cluster.checks.sections import KeyCheck
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import lookup
from cfngen.cluster.problems import Problem

# Names of cfngen's own Helm releases, enabled or not. A user's chart must not have one of these names: its release
# would replace the resources of cfngen's.
CFNGEN_RELEASES = frozenset(
    {
        "aws-ebs-csi-driver",
        "aws-load-balancer-controller",
        "aws-node-termination-handler",
        "aws-vpc-cni",
        "calico",
        "calico-crds",
        "cert-manager",
        "cilium",
        "cluster-autoscaler",
        "external-dns",
        "flannel",
        "fluent-bit",
        "headlamp",
        "metrics-server",
        "nvidia-device-plugin",
        "prometheus",
    }
)


def _check_release_names(cluster: Cluster) -> Iterator[Problem]:
    first_index_by_name: dict[str, int] = {}
    for index, chart in enumerate(cluster.addons.charts):
        path = ("addons", "charts", index, "name")
        earlier_index = first_index_by_name.setdefault(chart.name, index)
        if earlier_index != index:
            message = f"{chart.name} is also the name of charts[{earlier_index}]; give each release a different name"
            yield Problem(path, message, related_paths=(("addons", "charts", earlier_index, "name"),))
        elif chart.name in CFNGEN_RELEASES:
            yield Problem(path, f"{chart.name} is the name of a Helm release that cfngen installs; use another name")


def _check_api_port_free(cluster: Cluster) -> Iterator[Problem]:
    """Check that no enabled add-on listens on the API's port on masters.

    Only pods with the network of their instance (`host`) can take the port.
    """
    port = cluster.api.port
    for field, listeners in LISTENERS.items():
        host_ports = {listener.port for listener in listeners if listener.network == "host"}
        if getattr(cluster.addons, field).enabled and port in host_ports:
            # The add-on's key in the cluster file, in camelCase.
            key = type(cluster.addons).model_fields[field].alias or field
            message = f"{port} is used by addons.{key}, whose pods use the masters' network; use 443 or 6443"
            yield Problem(("api", "port"), message, related_paths=(("addons", key, "enabled"),))


PROBLEM_CHECKS = (
    KeyCheck(
        "addons.externalDns.zones",
        when=lambda cluster: cluster.addons.external_dns.enabled and not cluster.addons.external_dns.zones,
        message="is empty, so externalDns cannot write any records; add the ids of hosted zones, or disable "
        "externalDns",
        related=("addons.externalDns.enabled",),
    ),
    KeyCheck(
        "addons.fluentBit.values",
        when=lambda cluster: (
            cluster.addons.fluent_bit.enabled and not lookup(cluster.addons.fluent_bit.values, ("config", "outputs"))
        ),
        message="does not say where logs go; set config.outputs to a text with fluent-bit's [OUTPUT] sections, or "
        "disable fluentBit",
        related=("addons.fluentBit.enabled",),
    ),
    _check_release_names,
    _check_api_port_free,
)
