"""Add-ons for traffic into the cluster: load balancers, DNS names, certificates."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.proxy import environment
from cfngen.userdata import proxy
from cfngen.userdata.addons.release import (
    DELETE_OLD_POD_FIRST,
    Release,
    host_network_patch,
    on_masters,
    pinned_chart,
    release_of_chart,
    replica_count,
)

NAMESPACE = "kube-system"


def aws_load_balancer_controller(cluster: Cluster) -> Release:
    """Return the AWS load balancer controller, for ingresses and for services that name its load balancer class.

    Other services of type LoadBalancer stay with the cloud controller manager: the webhook that would assign all of
    them to this controller is disabled, so that no service depends on this add-on unless its author wants it.
    """
    values = {
        "fullnameOverride": "aws-load-balancer-controller",
        "clusterName": cluster.name,
        "region": cluster.region,
        "replicaCount": replica_count(cluster),
        "hostNetwork": True,
        "dnsPolicy": "Default",
        "updateStrategy": DELETE_OLD_POD_FIRST,
        # Tags of every resource that the controller creates; IAM conditions check KubernetesCluster.
        "defaultTags": {**cluster.tags, "KubernetesCluster": cluster.name},
        "enableServiceMutatorWebhook": False,
        # Unless these are disabled, the controller queries them for every load balancer, which masters may not do.
        "enableShield": False,
        "enableWaf": False,
        "enableWafv2": False,
        # Otherwise each upgrade would create a new certificate, which running pods get only after some time.
        "keepTLSSecret": True,
        **proxy.as_map(cluster, "env"),
        **on_masters(),
    }
    return release_of_chart(
        pinned_chart(cluster, "aws-load-balancer-controller"),
        name="aws-load-balancer-controller",
        namespace=NAMESPACE,
        values=values,
    )


def external_dns(cluster: Cluster) -> Release:
    """Return external-dns, which writes to the hosted zones of `addons.externalDns.zones` and to no other."""
    name = "external-dns"
    values = {
        "fullnameOverride": name,
        "provider": {"name": "aws"},
        "txtOwnerId": cluster.name,
        "extraArgs": [f"--zone-id-filter={zone}" for zone in cluster.addons.external_dns.zones],
        "env": [{"name": "AWS_DEFAULT_REGION", "value": cluster.region}, *proxy.as_list(cluster)],
        **on_masters(),
    }
    return release_of_chart(
        pinned_chart(cluster, name),
        name=name,
        namespace=NAMESPACE,
        values=values,
        patches=(host_network_patch(NAMESPACE, name),),
    )


def cert_manager(cluster: Cluster) -> Release:
    """Return cert-manager with its CustomResourceDefinitions.

    The definitions are kept when cert-manager is uninstalled: deleting them would delete all certificates.
    """
    values = {
        "crds": {"enabled": True, "keep": True},
        # This hook of the chart waits for pods, but there may be no node to run them yet.
        "startupapicheck": {"enabled": False},
        # The chart's values for the proxy are called like the variables in lower case.
        **{name.lower(): value for name, value in environment(cluster).items()},
    }
    return release_of_chart(
        pinned_chart(cluster, "cert-manager"), name="cert-manager", namespace="cert-manager", values=values
    )
